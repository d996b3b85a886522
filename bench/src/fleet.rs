//! A hundred stdio servers discovered at once: how much a client adds to what starting the
//! processes and exchanging the lines costs anyway, and how much memory it takes.

use std::{path::Path, process::Stdio, time::Instant};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    task::JoinSet,
};
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, message, meta, method},
    surface::ListKind,
    version::Version,
};
use toolcrib_engine::{Engine, Options};
use toolcrib_testkit::script;

use crate::{
    measure::{Result, Sample, compare, megabytes, say, table, verdict},
    ours, peer,
};

const SERVERS: usize = 100;
const TOOLS: &str = "20";

/// The sides in turn, the ratio and the memory.
///
/// # Errors
/// A side failed.
pub(crate) fn report(rounds: usize) -> Result<()> {
    script::binary();
    say(format_args!("fleet: {SERVERS} stdio servers of {TOOLS} tools, discovered at once"))?;
    let sides = compare("fleet", ["toolcrib", "engine", "bare", "rmcp"], rounds)?;
    table(&sides)?;
    let [sessions, engine, bare, _] = sides.map(|side| side.median);
    verdict("sessions' time / bare", sessions.ms / bare.ms, 1.5, "")?;
    verdict("engine's time / bare", engine.ms / bare.ms, 1.5, "")?;
    verdict("sessions' peak memory", megabytes(sessions.rss_bytes), 60.0, " MB")?;
    verdict("engine's peak memory", megabytes(engine.rss_bytes), 60.0, " MB")
}

/// One side, here and now.
///
/// # Errors
/// It failed.
pub(crate) async fn one(side: &str) -> Result<Sample> {
    let program = script::binary();
    let args = ["--tools", TOOLS].map(str::to_owned).to_vec();
    match side {
        "toolcrib" => toolcrib(&program, &args).await,
        "engine" => engine(&program, &args).await,
        "bare" => bare(&program, &args).await,
        "rmcp" => rmcp(&program, &args).await,
        _ => Err(format!("fleet has no side {side}").into()),
    }
}

/// The whole slow loop: checks of every definition and one catalog come on top.
async fn engine(program: &Path, args: &[String]) -> Result<Sample> {
    let begin = Instant::now();
    let servers = (0..SERVERS).map(|n| ours::config(&format!("s{n}"), program, args)).collect();
    let engine = Engine::start(servers, Options::default());
    let snapshot = engine.settled(&ListKind::ALL, None).await;
    let tools = snapshot.parts().map(|part| part.tools().count()).sum();
    let sample = Sample::now(begin, begin, tools);
    engine.shutdown().await;
    Ok(sample)
}

/// Starts the same processes and exchanges the same lines; reads no JSON.
async fn bare(program: &Path, args: &[String]) -> Result<Sample> {
    let begin = Instant::now();
    let mut fleet = JoinSet::new();
    for _ in 0..SERVERS {
        let mut command = Command::new(program);
        command.args(args).kill_on_drop(true).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        fleet.spawn(exchange(command));
    }
    let (mut children, mut tools) = (Vec::new(), 0);
    while let Some(done) = fleet.join_next().await {
        let (child, answer) = done??;
        tools += answer.matches(r#"{"name":"#).count();
        children.push(child);
    }
    Ok(Sample::now(begin, begin, tools))
}

async fn exchange(mut command: Command) -> Result<(Child, String)> {
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let mut answer = String::new();
    for (id, method) in [(1, method::DISCOVER), (2, method::TOOLS_LIST)] {
        let line = message::request(id, method, &params()) + "\n";
        stdin.write_all(line.as_bytes()).await?;
        answer.clear();
        stdout.read_line(&mut answer).await?;
    }
    // Kept open until all are done, as a client does.
    child.stdin = Some(stdin);
    Ok((child, answer))
}

fn params() -> Params {
    let client = Raw::of(&serde_json::json!({"name": "toolcrib", "version": "0.1.0"}));
    Params::new()
        .with_meta(meta::PROTOCOL_VERSION, Raw::of(&Version::MODERN.as_str()))
        .with_meta(meta::CLIENT_CAPABILITIES, Raw::empty_object())
        .with_meta(meta::CLIENT_INFO, client)
}

async fn toolcrib(program: &Path, args: &[String]) -> Result<Sample> {
    let begin = Instant::now();
    let mut fleet = JoinSet::new();
    for _ in 0..SERVERS {
        let (program, args) = (program.to_owned(), args.to_vec());
        fleet.spawn(async move {
            let session = ours::open(&program, &args).await?;
            let surface = ours::surface(&session).await?;
            Result::Ok((session, surface))
        });
    }
    let (mut sessions, mut tools) = (Vec::new(), 0);
    while let Some(done) = fleet.join_next().await {
        let (session, surface) = done??;
        tools += surface.tools.items.len();
        sessions.push((session, surface));
    }
    let sample = Sample::now(begin, begin, tools);
    let mut ends = JoinSet::new();
    for (session, _) in sessions {
        ends.spawn(async move { session.close().await });
    }
    ends.join_all().await;
    Ok(sample)
}

async fn rmcp(program: &Path, args: &[String]) -> Result<Sample> {
    let begin = Instant::now();
    let mut fleet = JoinSet::new();
    for _ in 0..SERVERS {
        let (program, args) = (program.to_owned(), args.to_vec());
        fleet.spawn(async move {
            let client = peer::connect(&program, &args).await?;
            let tools = client.list_all_tools().await?;
            Result::Ok((client, tools))
        });
    }
    let (mut clients, mut tools) = (Vec::new(), 0);
    while let Some(done) = fleet.join_next().await {
        let (client, list) = done??;
        tools += list.len();
        clients.push((client, list));
    }
    let sample = Sample::now(begin, begin, tools);
    for (client, _) in clients {
        client.cancel().await?;
    }
    Ok(sample)
}
