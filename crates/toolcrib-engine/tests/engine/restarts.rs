//! Servers that do not start, or fall over: tried again, not too often, and gone in the end.

use std::time::{Duration, Instant as Clock};

use serde_json::json;
use tokio::time::{Instant, sleep};
use toolcrib_core::surface::ListKind;
use toolcrib_engine::Status;
use toolcrib_testkit::{fake::Fake, process::still_there};

use crate::house::{PATIENCE, call, live, scenario, settled, starts, stdio, until};

#[tokio::test]
async fn c56_a_server_that_fails_to_start_is_started_again() {
    let fake = Fake::stdio("C56");
    let engine = live(stdio(&fake));
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    let starts = starts(&fake);
    assert_eq!(starts.len(), 3);
    assert!(starts[2] - starts[1] > starts[1] - starts[0], "growing gaps: {starts:?}");
    assert!(call(&engine, "s.alpha").await.is_ok());
    engine.shutdown().await;
}

/// One that never starts is tried ever more rarely; a refresh tries at once.
#[tokio::test]
async fn c56_a_refresh_tries_at_once() {
    let fake = Fake::scripted(&json!({"steps": [{"exit": 3}]}));
    let engine = live(stdio(&fake));
    sleep(Duration::from_secs(6)).await;
    let before = fake.log().starts();
    assert!((3..=10).contains(&before), "{before} starts in 6 s");
    let failed = |part: &toolcrib_engine::Part| matches!(part.status, Status::Failed { .. });
    until(&engine, PATIENCE, failed).await;
    let begun = Clock::now();
    engine.refresh("s", &[ListKind::Tools], Instant::now() + PATIENCE).await;
    fake.wait_for(Duration::from_millis(1_500), |log| log.starts() > before).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    engine.shutdown().await;
}

/// A server that dies in the middle comes back, and its tools stay visible meanwhile.
#[tokio::test]
async fn c56_a_server_that_dies_comes_back() {
    let fake = Fake::scripted(&scenario(&json!({"spawns": [
        {"steps": [{"expect": "tools/call"}, {"exit": 1}]}, {"steps": []}]})));
    let engine = settled(stdio(&fake)).await;
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    let error = call(&engine, "s.alpha").await.unwrap_err();
    assert!(error.to_string().contains("exit code 1"), "{error}");
    let gone = until(&engine, PATIENCE, |part| part.session.is_none()).await;
    assert_eq!(crate::house::tools(&gone), ["alpha", "beta"]);
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    assert!(call(&engine, "s.alpha").await.is_ok());
    assert_eq!(fake.log().starts(), 2);
    engine.shutdown().await;
}

/// A list that breaks off after a reconnect never replaces the complete one of the session before.
#[tokio::test]
async fn a_broken_list_of_a_new_session_keeps_the_complete_one() {
    let broken = json!({"code": -32603, "message": "out of order"});
    let half =
        json!({"tools": [{"name": "alpha", "inputSchema": {"type": "object"}}], "nextCursor": "x"});
    for steps in [
        json!([{"expect": "tools/list", "repeat": true}, {"error": broken}]),
        json!([{"expect": "tools/list", "when": {"no_params": ["cursor"]}, "repeat": true},
            {"reply": half}, {"expect": "tools/list", "repeat": true}, {"error": broken}]),
    ] {
        let fake = Fake::scripted(&scenario(&json!({"spawns": [
            {"steps": [{"expect": "tools/call"}, {"exit": 1}]}, {"steps": steps}]})));
        let engine = settled(stdio(&fake)).await;
        let _ = call(&engine, "s.alpha").await;
        let degraded =
            until(&engine, PATIENCE, |part| matches!(part.status, Status::Degraded { .. })).await;
        assert_eq!(crate::house::tools(&degraded), ["alpha", "beta"]);
        let surface = crate::house::part(&degraded).surface.clone().unwrap();
        assert!(!surface.tools.is_complete(), "{:?}", surface.tools.state);
        engine.shutdown().await;
    }
}

/// Shut down within the documented six seconds, reaped, with every child.
#[tokio::test]
async fn c107_shutting_down_takes_six_seconds_at_most() {
    let stubborn = || {
        Fake::scripted(&scenario(&json!({"ignore_eof": true, "ignore_sigterm": true,
            "steps": [{"spawn_child": {"seconds": 120, "inherit": true}}]})))
    };
    let fakes = [stubborn(), stubborn(), stubborn()];
    let configs = fakes.iter().enumerate().map(|(at, fake)| {
        let mut config = stdio(fake);
        config.name = format!("s{at}");
        config
    });
    let options =
        toolcrib_engine::Options { mode: toolcrib_engine::Mode::Live, ..Default::default() };
    let engine = toolcrib_engine::Engine::start(configs.collect(), options);
    let snapshot = engine.settled(&[ListKind::Tools], Some(Instant::now() + PATIENCE)).await;
    assert!(snapshot.parts().all(|part| part.tools().count() == 2));
    let begun = Clock::now();
    engine.shutdown().await;
    assert!(begun.elapsed() < Duration::from_millis(6_500), "{:?}", begun.elapsed());
    for fake in &fakes {
        let pids = fake.log().pids();
        assert_eq!(pids.len(), 2);
        // Ours is reaped by us; what it left behind, by whoever adopts orphans here.
        assert_eq!(still_there(&pids[..1], Duration::from_millis(300)), []);
        assert_eq!(still_there(&pids, Duration::from_secs(3)), []);
    }
}

/// Dropping an engine kills what it started.
#[tokio::test]
async fn c54_a_dropped_engine_leaves_nothing() {
    let fake = Fake::stdio("C54");
    let engine = settled(stdio(&fake)).await;
    drop(engine);
    sleep(Duration::from_millis(100)).await;
    let pids = fake.log().pids();
    let left = tokio::task::spawn_blocking(move || still_there(&pids, Duration::from_secs(2)))
        .await
        .unwrap();
    assert_eq!(left, []);
}
