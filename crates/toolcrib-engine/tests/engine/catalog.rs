//! When the parts of a catalog become visible.

use std::time::{Duration, Instant as Clock, SystemTime, UNIX_EPOCH};

use serde_json::json;
use toolcrib_core::surface::ListKind;
use toolcrib_engine::{Engine, Mode, Options, Status};
use toolcrib_testkit::fake::Fake;

use crate::house::{PATIENCE, call, live, part, scenario, settled, stdio, tools, until};

/// The tools are there within a second of being asked for; the list that hangs is timed out later,
/// and the server is degraded, not failed.
#[tokio::test]
async fn c84_a_list_that_hangs_does_not_hold_the_others_back() {
    let fake = Fake::stdio("C84");
    let mut config = stdio(&fake);
    config.timeouts.list = Duration::from_secs(3);
    let engine = live(config);
    let snapshot = until(&engine, PATIENCE, |part| part.tools().count() == 2).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let asked = fake.log().requests("tools/list")[0]["t"].as_f64().unwrap();
    assert!(now - asked < 1.0, "the tools waited {} s", now - asked);
    assert_eq!(part(&snapshot).status, Status::Starting);
    assert!(call(&engine, "s.alpha").await.is_ok());
    let done = |part: &toolcrib_engine::Part| matches!(part.status, Status::Degraded { .. });
    let snapshot = until(&engine, PATIENCE, done).await;
    let why = part(&snapshot).status.why().unwrap();
    assert!(why.contains("resources") && why.contains("timed out"), "{why}");
    assert_eq!(tools(&snapshot), ["alpha", "beta"]);
    engine.shutdown().await;
}

/// A hanging server holds nothing back of another one.
#[tokio::test]
async fn c84_a_server_that_hangs_does_not_hold_another_back() {
    let silent =
        Fake::scripted(&json!({"steps": [{"expect": "*", "repeat": true}, {"silent": true}]}));
    let fine = Fake::scripted(&scenario(&json!({})));
    let mut hanging = stdio(&silent);
    hanging.name = "hanging".to_owned();
    let begun = Clock::now();
    let options = Options { mode: Mode::Live, ..Options::default() };
    let engine = Engine::start(vec![hanging, stdio(&fine)], options);
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(call(&engine, "s.alpha").await.is_ok());
    assert!(engine.snapshot().part("hanging").is_some_and(|part| part.status == Status::Starting));
    engine.shutdown().await;
}

/// A list that fails later never replaces the complete one that is there.
#[tokio::test]
async fn a_list_that_fails_later_keeps_the_last_complete_one() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/list"}, {"default": true},
        {"expect": "tools/list", "repeat": true}, {"error": {"code": -32603, "message": "no database"}},
    ]})));
    let engine = settled(stdio(&fake)).await;
    engine.refresh("s", &[ListKind::Tools], tokio::time::Instant::now() + PATIENCE).await;
    assert_eq!(fake.log().count("tools/list"), 2);
    assert_eq!(tools(&engine.snapshot()), ["alpha", "beta"]);
    engine.shutdown().await;
}

/// A tool the server calls unknown is looked for once, with a new list.
#[tokio::test]
async fn a_tool_the_server_no_longer_knows_is_listed_again() {
    let gamma = json!([{"name": "gamma", "inputSchema": {"type": "object"}}]);
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/list"}, {"default": true}, {"set": {"tools": gamma}},
    ]})));
    let engine = settled(stdio(&fake)).await;
    assert!(call(&engine, "s.alpha").await.is_err());
    let snapshot = until(&engine, PATIENCE, |part| part.tools().count() == 1).await;
    assert_eq!(tools(&snapshot), ["gamma"]);
    assert_eq!((fake.log().count("tools/list"), fake.log().count("tools/call")), (2, 1));
    engine.shutdown().await;
}
