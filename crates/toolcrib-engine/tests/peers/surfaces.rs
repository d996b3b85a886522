//! What each peer shows and does, whatever it is made of and however it is reached: one course for
//! all, and a table of what to expect.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};
use toolcrib_core::{raw::Raw, surface::ListState, target::Target, version::Era};
use toolcrib_engine::{CallError, CallOptions, Options, Progress};
use toolcrib_testkit::peers::Peer;

use crate::house::{Reached, Watched, example, http, stdio, text};

/// Something asked of a peer, with a part of what it answers.
struct Asked {
    what: &'static str,
    arguments: Value,
    answer: &'static str,
}

fn asked(what: &'static str, arguments: Value, answer: &'static str) -> Asked {
    Asked { what, arguments, answer }
}

/// What a peer is expected to show and do.
struct Expected {
    era: Era,
    version: &'static str,
    /// How many tools, resources, templates and prompts.
    counts: [usize; 4],
    /// A call that works.
    call: Asked,
    /// A call that does not fit, with the member that is named.
    misfit: Asked,
    /// Reads of listed resources and of templated ones.
    reads: Vec<Asked>,
    prompt: Option<Asked>,
    /// A call with progress, and how often it comes.
    progress: Option<(Asked, usize)>,
    /// A call that takes longer than a test has patience.
    slow: Option<Asked>,
    /// A call with much progress, which the server ends when nobody waits for it.
    abandoned: Option<Asked>,
    /// A call that adds a tool, and the tool.
    grow: Option<Asked>,
}

fn python(era: Era) -> Expected {
    let version = if era == Era::Modern { "2026-07-28" } else { "2025-11-25" };
    Expected {
        era,
        version,
        counts: [3, 1, 1, 1],
        call: asked("add", json!({"a": 2, "b": 40}), "42"),
        misfit: asked("add", json!({"a": "two", "b": 40}), "a"),
        reads: vec![
            asked("docs://handbook", Value::Null, "Count the tools before and after."),
            asked("users://42/profile", Value::Null, "profile of 42"),
        ],
        prompt: Some(asked("review", json!({"code": "x = 1"}), "review this python code:")),
        progress: Some((asked("count", json!({"to": 3, "pause_ms": 20}), "counted to 3"), 3)),
        slow: Some(asked("count", json!({"to": 1, "pause_ms": 20_000}), "")),
        abandoned: Some(asked("count", json!({"to": 1_000, "pause_ms": 20}), "")),
        grow: Some(asked("grow", json!({"name": "branch"}), "branch")),
    }
}

fn everything() -> Expected {
    let long = "trigger-long-running-operation";
    Expected {
        era: Era::Legacy,
        version: "2025-11-25",
        counts: [13, 7, 2, 4],
        call: asked("get-sum", json!({"a": 2, "b": 40}), "The sum of 2 and 40 is 42."),
        misfit: asked("get-sum", json!({"a": 2}), "b"),
        reads: vec![
            asked("demo://resource/static/document/features.md", Value::Null, "# Everything"),
            asked("demo://resource/dynamic/text/7", Value::Null, "Resource 7: "),
            asked("demo://resource/dynamic/blob/7", Value::Null, "\"blob\":"),
        ],
        prompt: Some(asked("args-prompt", json!({"city": "Lyon"}), "What's weather in Lyon?")),
        progress: Some((asked(long, json!({"duration": 0.1, "steps": 4}), "Steps: 4"), 4)),
        slow: Some(asked(long, json!({"duration": 20, "steps": 1}), "")),
        abandoned: None,
        grow: None,
    }
}

/// The whole course.
async fn check(reached: &Reached, expected: &Expected) {
    let peer = Watched::settled(reached, Options::default()).await;
    peer.speaks(expected.era, expected.version);
    shows(&peer, expected.counts);
    works(&peer, &expected.call).await;
    is_refused_here(&peer, &expected.misfit).await;
    if let Some(slow) = &expected.slow {
        is_given_up(&peer, slow).await;
        // The connection has not suffered.
        works(&peer, &expected.call).await;
    }
    if let Some((asked, times)) = &expected.progress {
        reports_progress(&peer, asked, *times).await;
    }
    if let Some(asked) = &expected.abandoned {
        ends_with_its_caller(&peer, asked).await;
        works(&peer, &expected.call).await;
    }
    for asked in &expected.reads {
        let read = peer.engine.read(asked.what, None, CallOptions::default()).await;
        answers(asked, &text(read));
    }
    if let Some(asked) = &expected.prompt {
        let arguments = Raw::of(&asked.arguments);
        let name = format!("s.{}", asked.what);
        let prompt = peer.engine.prompt(&name, Some(&arguments), CallOptions::default()).await;
        answers(asked, &text(prompt));
    }
    if let Some(asked) = &expected.grow {
        grows(&peer, asked).await;
    }
    peer.shutdown().await;
}

#[track_caller]
fn answers(asked: &Asked, answer: &str) {
    assert!(answer.contains(asked.answer), "{}: {answer}", asked.what);
}

/// All four lists are complete, asked for once, and hold so many items.
fn shows(peer: &Watched, counts: [usize; 4]) {
    let part = peer.part();
    let surface = part.surface.as_ref().expect("a ready server has one");
    let pages = [
        surface.tools.pages,
        surface.resources.pages,
        surface.templates.pages,
        surface.prompts.pages,
    ];
    for ((kind, state), pages) in surface.states().into_iter().zip(pages) {
        let complete = matches!(state, ListState::Complete | ListState::NotOffered);
        assert!(complete, "{kind:?}: {state:?}");
        assert_eq!(peer.wire.sent(kind.method()), pages, "{kind:?} was asked for in vain");
    }
    let shown = [
        surface.tools.items.len(),
        surface.resources.items.len(),
        surface.templates.items.len(),
        surface.prompts.items.len(),
    ];
    assert_eq!(shown, counts);
}

async fn works(peer: &Watched, asked: &Asked) {
    let called = peer.call(asked.what, &asked.arguments).await;
    let called = called.unwrap_or_else(|error| panic!("{error}"));
    assert!(!called.is_error, "{}", called.result.get());
    assert_eq!(called.misfit, None);
    answers(asked, called.result.get());
}

/// Arguments that do not fit never reach the server.
async fn is_refused_here(peer: &Watched, asked: &Asked) {
    let before = peer.wire.sent("tools/call");
    match peer.call(asked.what, &asked.arguments).await {
        Err(CallError::Arguments { errors, .. }) => {
            let message = errors.to_string();
            assert!(message.contains(&format!("/{}", asked.answer)), "{message}");
        }
        other => panic!("{} was not refused: {other:?}", asked.what),
    }
    assert_eq!(peer.wire.sent("tools/call"), before);
}

/// A call that takes too long ends in time.
async fn is_given_up(peer: &Watched, asked: &Asked) {
    let began = Instant::now();
    let options =
        CallOptions { timeout: Some(Duration::from_millis(300)), ..CallOptions::default() };
    let error = peer.call_with(asked.what, &asked.arguments, options).await.unwrap_err();
    assert!(error.to_string().contains("no answer to tools/call within"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let stdio = matches!(peer.part().config.target, Target::Command(_));
    // Modern HTTP has no such notification: closing the stream of the answer says it.
    let told = usize::from(stdio || is_legacy(peer));
    let sent = || peer.wire.sent("notifications/cancelled");
    let end = Instant::now() + Duration::from_secs(5);
    while sent() < told && Instant::now() < end {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sent(), told);
}

fn is_legacy(peer: &Watched) -> bool {
    let part = peer.part();
    part.surface.as_ref().is_some_and(|surface| surface.negotiated.era == Era::Legacy)
}

/// Every progress notification reaches the caller, in order.
async fn reports_progress(peer: &Watched, asked: &Asked, times: usize) {
    let (sender, mut progress) = mpsc::channel::<Progress>(16);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    answers(asked, &text(peer.call_with(asked.what, &asked.arguments, options).await));
    let mut steps = Vec::new();
    while let Ok(progress) = progress.try_recv() {
        assert_eq!(progress.total, Some(times as f64), "{progress:?}");
        steps.push(progress.progress);
    }
    let expected: Vec<_> = (1..=times).map(|step| step as f64).collect();
    assert_eq!(steps, expected);
}

/// A call whose caller is gone is ended at the server, too.
async fn ends_with_its_caller(peer: &Watched, asked: &Asked) {
    let (sender, mut progress) = mpsc::channel::<Progress>(16);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    tokio::select! {
        ended = peer.call_with(asked.what, &asked.arguments, options) => panic!("{ended:?}"),
        begun = progress.recv() => assert!(begun.is_some()),
    }
    let reported = || peer.wire.received("notifications/progress");
    sleep(Duration::from_millis(300)).await;
    let before = reported();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(reported(), before, "{} goes on at the server", asked.what);
}

/// A tool that is added is usable as soon as it is announced, and nothing is asked for in vain.
async fn grows(peer: &Watched, asked: &Asked) {
    let before = peer.tools();
    let listed = peer.wire.sent("tools/list");
    let began = Instant::now();
    peer.call(asked.what, &asked.arguments).await.unwrap();
    peer.until_it_shows(asked.answer).await;
    assert_eq!(peer.tools().len(), before.len() + 1);
    // Once when the call looks at a list that its server calls stale, once when announced.
    let listed = peer.wire.sent("tools/list") - listed;
    assert!((1..=2).contains(&listed), "listed {listed} times for one change");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let called = peer.call(asked.answer, &json!({})).await;
    assert!(text(called).contains(&format!("this is {}", asked.answer)));
}

fn python_http(version: &str) -> toolcrib_testkit::peers::HttpPeer {
    Peer::python(version).arg("--http").arg("0").listen("/mcp")
}

#[tokio::test]
async fn peer_python_2_3_over_stdio() {
    check(&stdio(Peer::python("2.3")), &python(Era::Modern)).await;
}

#[tokio::test]
async fn peer_python_2_3_over_http() {
    check(&http(&python_http("2.3")), &python(Era::Modern)).await;
}

#[tokio::test]
async fn peer_python_1_30_over_stdio() {
    check(&stdio(Peer::python("1.30")), &python(Era::Legacy)).await;
}

#[tokio::test]
async fn peer_python_1_30_over_http() {
    check(&http(&python_http("1.30")), &python(Era::Legacy)).await;
}

#[tokio::test]
async fn peer_everything_over_stdio() {
    check(&stdio(Peer::node("mcp-server-everything")), &everything()).await;
}

#[tokio::test]
async fn peer_everything_over_streamable_http() {
    let peer = Peer::node("mcp-server-everything").env("PORT", "0").arg("streamableHttp");
    check(&http(&peer.listen("/mcp")), &everything()).await;
}

/// The transport of 2024-11-05, found out by trying.
#[tokio::test]
async fn peer_everything_over_old_sse() {
    let peer = Peer::node("mcp-server-everything").env("PORT", "0").arg("sse");
    check(&http(&peer.listen("/sse")), &everything()).await;
}

#[tokio::test]
async fn peer_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.txt"), "the first line\n").unwrap();
    let peer = Peer::node("mcp-server-filesystem").arg(folder.to_string_lossy());
    let path = folder.join("a.txt");
    let expected = Expected {
        era: Era::Legacy,
        version: "2025-11-25",
        counts: [14, 0, 0, 0],
        call: asked("read_text_file", json!({"path": path}), "the first line"),
        misfit: asked("read_text_file", json!({"path": 1}), "path"),
        reads: Vec::new(),
        prompt: None,
        progress: None,
        slow: None,
        abandoned: None,
        grow: None,
    };
    check(&stdio(peer), &expected).await;
}

#[tokio::test]
async fn peer_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let peer = Peer::node("mcp-server-memory").env("MEMORY_FILE_PATH", file.to_string_lossy());
    let entity = json!({"name": "vice", "entityType": "tool", "observations": ["holds well"]});
    let expected = Expected {
        era: Era::Legacy,
        version: "2025-11-25",
        counts: [9, 1, 0, 0],
        call: asked("create_entities", json!({"entities": [entity]}), "holds well"),
        misfit: asked("create_entities", json!({"entities": "vice"}), "entities"),
        reads: vec![asked("memory://knowledge-graph", Value::Null, "holds well")],
        prompt: None,
        progress: None,
        slow: None,
        abandoned: None,
        grow: None,
    };
    check(&stdio(peer), &expected).await;
}

/// The Rust SDK, of either era on one connection; the newer is spoken.
#[tokio::test]
async fn peer_rmcp_over_stdio() {
    let expected = Expected {
        era: Era::Modern,
        version: "2026-07-28",
        counts: [2, 0, 0, 0],
        call: asked("multiply", json!({"a": 2, "b": 21}), "42"),
        misfit: asked("multiply", json!({"a": 2, "b": "x"}), "b"),
        reads: Vec::new(),
        prompt: None,
        progress: None,
        slow: None,
        abandoned: None,
        grow: None,
    };
    check(&stdio(Peer::built(&example("rmcp_peer"))), &expected).await;
}

/// What a server itself refuses is its answer, told apart from a failure.
#[tokio::test]
async fn peer_filesystem_says_no_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let reached = stdio(Peer::node("mcp-server-filesystem").arg(folder.path().to_string_lossy()));
    let peer = Watched::settled(&reached, Options::default()).await;
    let called = peer.call("read_text_file", &json!({"path": "/etc/hostname"})).await.unwrap();
    assert!(called.is_error);
    assert!(called.result.get().contains("outside allowed directories"), "{}", called.result.get());
    peer.shutdown().await;
}
