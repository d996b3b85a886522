//! What an engine promises at its edges: before a server is there, when one has gone, and at its
//! own sudden end.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolcrib_core::{
    surface::ListKind,
    target::{ServerConfig, Target},
};
use toolcrib_testkit::fake::Fake;

use super::Engine;
use crate::{CallOptions, options::Options, status::Status};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// A server with one tool whose first `failures` starts fail.
fn fake(failures: usize) -> Fake {
    let tool = json!({"name": "alpha", "inputSchema": {"type": "object"}});
    let mut spawns: Vec<Value> = vec![json!({"steps": [{"exit": 1}]}); failures];
    spawns.push(json!({"steps": []}));
    Fake::scripted(&json!({"era": "legacy", "tools": [tool], "spawns": spawns}))
}

fn engine(fake: &Fake) -> Engine {
    let config = ServerConfig::new("s", Target::Command(fake.command()));
    Engine::start(vec![config], Options::default())
}

fn tools(engine: &Engine) -> usize {
    engine.snapshot().part("s").unwrap().tools().count()
}

#[tokio::test]
async fn a_refresh_of_a_failed_server_ends_when_its_list_is_read() {
    let fake = fake(4);
    let engine = engine(&fake);
    let snapshot = engine.settled(&[ListKind::Tools], Some(soon())).await;
    let status = &snapshot.part("s").unwrap().status;
    assert!(matches!(status, Status::Failed { .. }), "{status:?}");
    engine.refresh("s", &[ListKind::Tools], soon()).await;
    assert_eq!(tools(&engine), 1);
    engine.shutdown().await;
}

#[tokio::test]
async fn a_refresh_while_connecting_ends_when_the_list_is_read() {
    let fake = fake(0);
    let engine = engine(&fake);
    engine.refresh("s", &[ListKind::Tools], soon()).await;
    assert_eq!(tools(&engine), 1);
    engine.shutdown().await;
}

#[tokio::test]
async fn a_resource_is_waited_for_while_its_server_starts() {
    let resource = json!({"uri": "memo://a", "name": "a"});
    let fake = Fake::scripted(&json!({"era": "legacy", "resources": [resource]}));
    let engine = engine(&fake);
    let read = engine.read("memo://a", None, CallOptions::default()).await.unwrap();
    assert_eq!(read.server, "s");
    let error = engine.read("memo://b", None, CallOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("near: memo://a"), "{error}");
    engine.shutdown().await;
}

#[tokio::test]
async fn dropping_an_engine_ends_its_processes_whoever_holds_a_snapshot() {
    let fake = fake(0);
    let engine = engine(&fake);
    let held = engine.settled(&[ListKind::Tools], Some(soon())).await;
    let session = held.part("s").unwrap().session.clone().unwrap();
    let process = format!("/proc/{}", session.pid().unwrap());
    drop(engine);
    let deadline = soon();
    while Path::new(&process).exists() {
        assert!(Instant::now() < deadline, "{process} is still there");
        sleep(Duration::from_millis(20)).await;
    }
    drop(held);
}
