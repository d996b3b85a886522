//! Single requests: progress, timeouts, answers that come with the end of the server.

use std::time::{Duration, Instant as Clock};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib_engine::{CallError, CallOptions, Part, Status};
use toolcrib_testkit::fake::Fake;

use crate::house::{PATIENCE, call, raw, scenario, settled, stdio, text, until};

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
