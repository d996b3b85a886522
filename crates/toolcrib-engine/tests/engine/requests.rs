//! Single requests: progress, timeouts, answers that come with the end of the server.

use std::time::{Duration, Instant as Clock};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib_core::version::EraPolicy;
use toolcrib_engine::{CallError, CallOptions, Command, Part, Status, Target};
use toolcrib_testkit::fake::{Fake, HttpFake};

use crate::house::{PATIENCE, call, http, raw, scenario, settled, stdio, text, until};

/// All progress that reached the caller.
async fn progress_of(fake: &Fake) -> (String, Vec<Value>) {
    let engine = settled(stdio(fake)).await;
    let (sender, mut progress) = mpsc::channel(64);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let called = engine.call("s.alpha", Some(&raw(&json!({}))), options).await.unwrap();
    engine.shutdown().await;
    let mut seen = Vec::new();
    while let Ok(progress) = progress.try_recv() {
        seen.push(progress.raw.read().unwrap());
    }
    (text(&called), seen)
}

#[tokio::test]
async fn c43_progress_with_a_token_of_ours_is_passed_on_and_no_other() {
    let (text, progress) = progress_of(&Fake::stdio("C43")).await;
    assert_eq!(text, "done");
    assert_eq!(progress.len(), 1, "{progress:?}");
    assert_eq!(progress[0]["progress"], 0.5);
}

/// Progress that goes backwards, repeats itself, or is none.
#[tokio::test]
async fn c43_progress_only_grows() {
    let mut steps = vec![json!({"expect": "tools/call", "repeat": true})];
    for progress in [json!(1), json!(0.5), json!(1), json!("2"), Value::Null, json!(3), json!(2.5)]
    {
        steps.push(json!({"notify": {"method": "notifications/progress",
            "params": {"progressToken": "$progressToken", "progress": progress}}}));
    }
    steps.push(json!({"notify": {"method": "notifications/progress"}}));
    steps.push(json!({"notify": {"method": "notifications/progress", "params": [1]}}));
    steps.push(json!({"reply": {"content": [{"type": "text", "text": "done"}]}}));
    let (text, progress) = progress_of(&Fake::scripted(&scenario(&json!({"steps": steps})))).await;
    assert_eq!(text, "done");
    let seen: Vec<_> = progress.iter().map(|params| params["progress"].clone()).collect();
    assert_eq!(seen, [json!(1), json!(3)]);
}

/// A call that gets no answer ends in time, the server is told, and the next one works.
#[tokio::test]
async fn a_call_without_an_answer_ends_in_time() {
    let fake =
        Fake::scripted(&scenario(&json!({"steps": [{"expect": "tools/call"}, {"silent": true}]})));
    let engine = settled(stdio(&fake)).await;
    let begun = Clock::now();
    let options =
        CallOptions { timeout: Some(Duration::from_millis(300)), ..CallOptions::default() };
    let error = engine.call("s.alpha", None, options).await.unwrap_err();
    assert!(
        matches!(error, CallError::Request { .. })
            && error.to_string().contains("no answer to tools/call within 3"),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(call(&engine, "s.beta").await.is_ok());
    let log = fake.wait_for(PATIENCE, |log| log.count("notifications/cancelled") == 1).await;
    let asked = log.requests("tools/call")[0]["id"].clone();
    assert_eq!(log.requests("notifications/cancelled")[0]["params"]["requestId"], asked);
    engine.shutdown().await;
}

/// The last message has no newline and is delivered; then the server counts as exited.
#[tokio::test]
async fn c12_a_server_that_says_farewell_is_gone() {
    let fake = Fake::stdio("C12");
    let engine = settled(stdio(&fake)).await;
    assert_eq!(text(&call(&engine, "s.bye").await.unwrap()), "farewell");
    let gone = |part: &Part| part.session.is_none() && part.status != Status::Ready;
    until(&engine, PATIENCE, gone).await;
    engine.shutdown().await;
}

/// Bytes that are no UTF-8 in one answer: that call returns at once, the next one works on the same
/// connection.
#[tokio::test]
async fn c77_the_next_call_on_the_same_connection_works() {
    let fake = Fake::stdio("C77");
    let engine = settled(stdio(&fake)).await;
    let begun = Clock::now();
    match call(&engine, "s.alpha").await {
        Ok(called) => assert!(text(&called).contains('\u{fffd}'), "{}", text(&called)),
        Err(error) => assert!(error.to_string().contains("UTF-8"), "{error}"),
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(text(&call(&engine, "s.beta").await.unwrap()), "C77:beta:null");
    assert_eq!(fake.log().starts(), 1);
    engine.shutdown().await;
}

/// Answers that come in another order than they were asked for reach their own callers.
#[tokio::test]
async fn c40_crossed_answers_reach_their_callers() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/call", "when": {"params": {"name": "alpha"}}}, {"sleep_ms": 400}, {"default": true},
    ]})));
    let engine = settled(stdio(&fake)).await;
    let (slow, quick) = tokio::join!(call(&engine, "s.alpha"), call(&engine, "s.beta"));
    let (slow, quick) = (text(&slow.unwrap()), text(&quick.unwrap()));
    assert!(slow.contains(":alpha:") && quick.contains(":beta:"), "{slow} {quick}");
    engine.shutdown().await;
}

/// Speaks just enough, and answers a call with progress without end.
const FLOODING: &str = r#"
import json, sys
def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked["method"], asked.get("id")
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "flood", "version": "1"}}})
    elif method == "tools/list":
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": [{"name": "flood", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        token = asked["params"]["_meta"]["progressToken"]
        done = 0
        while True:
            lines = ""
            for _ in range(500):
                done += 1
                lines += '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}\n' % (token, done)
            sys.stdout.write(lines)
"#;

/// Progress begins the wait anew, and never past the most that was allowed, however much of it
/// there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_progress_does_not_starve_the_deadline() {
    let mut config = stdio(&Fake::scripted(&json!({})));
    config.target = Target::Command(Command {
        program: "python3".to_owned(),
        args: ["-I", "-S", "-u", "-c", FLOODING].map(str::to_owned).into(),
        ..Command::default()
    });
    config.era = EraPolicy::Legacy;
    let engine = settled(config).await;
    let (sender, mut progress) = mpsc::channel(8);
    let counting = tokio::spawn(async move {
        let mut count = 0_usize;
        while progress.recv().await.is_some() {
            count += 1;
        }
        count
    });
    let options = CallOptions {
        timeout: Some(Duration::from_millis(300)),
        timeout_total: Some(Duration::from_millis(1_200)),
        progress: Some(sender),
        ..CallOptions::default()
    };
    let begun = Clock::now();
    let error = engine.call("s.flood", None, options).await.unwrap_err();
    let took = begun.elapsed();
    assert!(error.to_string().contains("no answer to tools/call"), "{error}");
    assert!(took >= Duration::from_millis(1_200), "progress begins the wait anew: {took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(counting.await.unwrap() > 100);
    engine.shutdown().await;
}

/// Whoever drops a call ends it at the server, by the means of its era and transport.
#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    for (era, over_http) in
        [("legacy", false), ("modern", false), ("legacy", true), ("modern", true)]
    {
        let transport = if over_http { "http" } else { "stdio" };
        let fake = Fake::scripted(&scenario(&json!({"era": era, "transport": transport,
            "steps": [{"expect": "tools/call", "when": {"params": {"name": "alpha"}}}, {"silent": true}]})));
        let server = if over_http { Ok(fake.listen().await) } else { Err(fake) };
        let config = match &server {
            Ok(server) => http(server),
            Err(fake) => stdio(fake),
        };
        let log = || server.as_ref().map_or_else(Fake::log, HttpFake::log);
        let engine = settled(config).await;
        let calling = engine.call("s.alpha", None, CallOptions::default());
        let end = Clock::now() + PATIENCE;
        tokio::select! {
            called = calling => panic!("{called:?}"),
            () = async {
                while log().count("tools/call") == 0 && Clock::now() < end {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            } => {}
        }
        let told = usize::from(!(era == "modern" && over_http));
        while log().count("notifications/cancelled") < told && Clock::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // A modern server over HTTP is told by the end of the stream, and by nothing else.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let log = log();
        let cancelled = log.requests("notifications/cancelled");
        assert_eq!(cancelled.len(), told, "{era} {transport}");
        if let Some(cancelled) = cancelled.first() {
            assert_eq!(cancelled["params"]["requestId"], log.requests("tools/call")[0]["id"]);
        }
        assert!(call(&engine, "s.beta").await.is_ok());
        engine.shutdown().await;
    }
}
