//! The tour: three demo servers, of both eras and over both transports, discovered into one
//! catalog; a good call, a call refused before anything is sent, and a change noticed.
//!
//! Nothing here is played: the servers are this program, started as any server is.

use std::{io, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::{Instant, timeout},
};
use toolcrib_core::{
    code::Code,
    raw::Raw,
    surface::ListKind,
    target::{Command as Program, Endpoint, ServerConfig, Target},
};
use toolcrib_engine::{CallOptions, Engine, Mode, Options, Snapshot};

use crate::{
    failure::Failure,
    show::{Out, content, listing},
};

/// How long any one step may take.
const STEP: Duration = Duration::from_secs(10);

/// Runs the tour.
pub(crate) async fn run(out: &mut Out) -> Result<(), Failure> {
    let began = Instant::now();
    let program = std::env::current_exe().map_err(not_started)?;
    let program = program.to_string_lossy().into_owned();
    let (mut http, url) = start_http(&program).await?;
    let engine =
        Engine::start(servers(&program, &url), Options { mode: Mode::Live, ..Options::default() });
    let outcome = tour(out, &engine).await;
    engine.shutdown().await;
    // It has no state; killing it is how it ends.
    let _ = http.kill().await;
    outcome?;
    out.line("")?;
    out.line(format!(
        "That took {:.1} s. Next: toolcrib inspect URL, or toolcrib add NAME -- COMMAND",
        began.elapsed().as_secs_f64()
    ))?;
    Ok(())
}

fn servers(program: &str, url: &str) -> Vec<ServerConfig> {
    let stdio = |name: &str, more: &[&str]| {
        let args = ["demo-server", "--server-name", name];
        let args = args.iter().chain(more).map(|arg| (*arg).to_owned()).collect();
        let command = Program { program: program.to_owned(), args, ..Program::default() };
        ServerConfig::new(name, Target::Command(command))
    };
    vec![
        stdio("bench", &["--era", "modern"]),
        stdio("attic", &["--era", "legacy", "--broken"]),
        ServerConfig::new("annex", Target::Http(Endpoint::new(url))),
    ]
}

/// Starts a demo server on a free port and reads its address from what it says.
async fn start_http(program: &str) -> Result<(Child, String), Failure> {
    let mut child = Command::new(program)
        .args(["demo-server", "--http", "127.0.0.1:0", "--server-name", "annex"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(not_started)?;
    let stderr =
        child.stderr.take().ok_or_else(|| not_started(io::ErrorKind::BrokenPipe.into()))?;
    let mut lines = BufReader::new(stderr).lines();
    let found = timeout(STEP, async {
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(at) = line.find("http://") {
                return Some(line[at..].trim().to_owned());
            }
        }
        None
    });
    match found.await {
        Ok(Some(url)) => Ok((child, url)),
        _ => Err(Failure::new(Code::Internal, "the demo server did not say where it listens")),
    }
}

fn not_started(error: io::Error) -> Failure {
    Failure::new(Code::Internal, format!("the demo server cannot be started: {error}"))
}

async fn tour(out: &mut Out, engine: &Engine) -> Result<(), Failure> {
    let deadline = Some(Instant::now() + STEP);
    let snapshot = engine.settled(&ListKind::ALL, deadline).await;
    discovered(out, &snapshot)?;
    good_call(out, engine).await?;
    refused_call(out, engine).await?;
    changed(out, engine).await
}

fn step(out: &mut Out, number: u8, title: &str) -> io::Result<()> {
    if number > 1 {
        out.line("")?;
    }
    out.heading(&format!("{number}. {title}"))
}

fn discovered(out: &mut Out, snapshot: &Snapshot) -> io::Result<()> {
    step(out, 1, "Discover: three servers, two eras, two transports, one catalog")?;
    let rows = snapshot.parts().map(|part| {
        let surface = part.surface.as_deref();
        let protocol = surface.map_or("", |surface| surface.negotiated.version.as_str());
        let how = surface.map_or(String::new(), |surface| surface.negotiated.how.join("; "));
        let transport = part.session.as_ref().map_or("", |session| session.transport());
        vec![
            part.name().to_owned(),
            part.status.word().to_owned(),
            transport.to_owned(),
            protocol.to_owned(),
            how,
        ]
    });
    out.line(listing::table(&["server", "state", "transport", "protocol", "how"], rows.collect()))?;
    out.line("")?;
    let rows = snapshot.names().iter().filter_map(|named| {
        let part = snapshot.part(&named.server)?;
        let tool = part.tool(&named.item).filter(|_| named.kind == ListKind::Tools)?;
        let about = listing::first_line(tool.description.as_deref());
        Some(vec![named.canonical.clone(), listing::arguments(tool), about])
    });
    out.line(listing::table(&["tool", "arguments", "description"], rows.collect()))?;
    let broken = snapshot.part("attic").map(|part| part.findings.as_slice()).unwrap_or_default();
    if !broken.is_empty() {
        out.line("")?;
        out.line("One broken tool cost its neighbours nothing:")?;
        for finding in broken.iter().take(3) {
            out.line(format!("  {}", listing::finding(finding)))?;
        }
    }
    Ok(())
}

async fn good_call(out: &mut Out, engine: &Engine) -> Result<(), Failure> {
    step(out, 2, "Call: all three servers have `add`, so the full name says which")?;
    let arguments = Raw::of(&serde_json::json!({"a": 2, "b": 40}));
    if let Err(error) = engine.call("add", Some(&arguments), CallOptions::default()).await {
        out.line("> toolcrib call add '{\"a\": 2, \"b\": 40}'")?;
        out.line(format!("error: {error}"))?;
    }
    out.line("> toolcrib call bench.add '{\"a\": 2, \"b\": 40}'")?;
    let called = engine.call("bench.add", Some(&arguments), CallOptions::default()).await?;
    content::tool_result(out, &called.result)?;
    Ok(())
}

async fn refused_call(out: &mut Out, engine: &Engine) -> Result<(), Failure> {
    step(out, 3, "Check: a call that cannot work is refused before anything is sent")?;
    let arguments = Raw::of(&serde_json::json!({"a": "2", "bb": 40}));
    out.line("> toolcrib call annex.add '{\"a\": \"2\", \"bb\": 40}'")?;
    match engine.call("annex.add", Some(&arguments), CallOptions::default()).await {
        Ok(_) => Err(Failure::new(Code::Internal, "arguments that do not fit were sent")),
        Err(error) => {
            out.line(format!("error: {error}"))?;
            Ok(())
        }
    }
}

async fn changed(out: &mut Out, engine: &Engine) -> Result<(), Failure> {
    step(out, 4, "Follow: a server changes its catalog, and the new tool is there")?;
    out.line("> toolcrib call annex.refresh")?;
    let before = engine.snapshot().generation();
    let called = engine.call("annex.refresh", None, CallOptions::default()).await?;
    content::tool_result(out, &called.result)?;
    let deadline = Instant::now() + STEP;
    let mut snapshot = engine.snapshot();
    let mut generation = before;
    while snapshot.resolve(ListKind::Tools, "annex.greet").is_err() {
        let next = engine.next(generation);
        let Ok(next) = tokio::time::timeout_at(deadline, next).await else {
            return Err(Failure::new(Code::Timeout, "the change was not noticed"));
        };
        generation = next.generation();
        snapshot = next;
    }
    out.line("> toolcrib call annex.greet '{\"name\": \"Ada\"}'")?;
    let arguments = Raw::of(&serde_json::json!({"name": "Ada"}));
    let called = engine.call("annex.greet", Some(&arguments), CallOptions::default()).await?;
    content::tool_result(out, &called.result)?;
    Ok(())
}
