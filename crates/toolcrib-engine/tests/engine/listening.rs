//! Events: what a listener hears of status, lists, updates and log messages.

use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_engine::{Engine, Event, ListKind, Listener, LogLevel, Mode, Options, Status};
use toolcrib_testkit::fake::Fake;

use crate::house::{PATIENCE, call, http, scenario, settled, stdio, until};

async fn next(listener: &mut Listener) -> Option<Event> {
    timeout(PATIENCE, listener.next()).await.expect("an event comes")
}

fn tools(added: &[&str], removed: &[&str], changed: &[&str]) -> Event {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (added, removed, changed) = (owned(added), owned(removed), owned(changed));
    Event::Items { server: "s".to_owned(), kind: ListKind::Tools, added, removed, changed }
}

/// Names of what is added, removed and changed, in each era; a listener that comes late hears
/// nothing of what was there before.
#[tokio::test]
async fn a_changed_list_is_told_by_its_names() {
    for era in ["legacy", "modern"] {
        let now = json!([
            {"name": "alpha", "inputSchema": {"type": "object"}, "description": "another"},
            {"name": "gamma", "inputSchema": {"type": "object"}},
        ]);
        let fake = Fake::scripted(&scenario(&json!({
            "era": era, "capabilities": {"tools": {"listChanged": true}},
            "steps": [{"expect": "tools/call"}, {"set": {"tools": now}},
                {"notify": {"method": "notifications/tools/list_changed"}}, {"default": true}],
        })));
        let engine = settled(stdio(&fake)).await;
        until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
        let mut listener = engine.listen();
        call(&engine, "s.alpha").await.unwrap();
        assert_eq!(next(&mut listener).await, Some(tools(&["gamma"], &["beta"], &["alpha"])));
        assert_eq!(listener.snapshot().generation(), engine.snapshot().generation());
        engine.shutdown().await;
    }
}

/// From the first word to the last: starting, the lists, ready, stopped, and then nothing.
#[tokio::test]
async fn a_server_is_told_from_its_start_to_its_end() {
    let fake = Fake::scripted(&scenario(&json!({})));
    let engine =
        Engine::start(vec![stdio(&fake)], Options { mode: Mode::Live, ..Options::default() });
    let mut listener = engine.listen();
    let ready = Event::Status { server: "s".to_owned(), status: Status::Ready };
    let mut heard = Vec::new();
    while !heard.contains(&ready) || !heard.contains(&tools(&["alpha", "beta"], &[], &[])) {
        heard.push(next(&mut listener).await.expect("the engine is there"));
    }
    // A listener that is not asked meanwhile loses nothing.
    engine.shutdown().await;
    let stopped = Event::Status { server: "s".to_owned(), status: Status::Stopped };
    assert_eq!(next(&mut listener).await, Some(stopped));
    assert_eq!(next(&mut listener).await, None);
}

/// A server that dies and comes back: failed, starting, ready, and no list changed.
#[tokio::test]
async fn a_new_start_is_a_change_of_status_and_of_no_list() {
    let fake = Fake::scripted(&scenario(&json!({
        "spawns": [{"steps": [{"expect": "tools/call"}, {"exit": 3}]}, {"steps": []}]})));
    let engine = settled(stdio(&fake)).await;
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    let mut listener = engine.listen();
    assert!(call(&engine, "s.alpha").await.is_err());
    let mut words = Vec::new();
    while words.last() != Some(&"ready") {
        match next(&mut listener).await {
            Some(Event::Status { status, .. }) => words.push(status.word()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(words, ["failed", "starting", "ready"]);
    engine.shutdown().await;
}

/// Log messages come when they are asked for: by the session on legacy servers that declare it, by
/// each request on modern ones.
#[tokio::test]
async fn log_messages_come_when_they_are_asked_for() {
    let check = async |era: &str, level: Option<LogLevel>, set: usize, meta: Value| {
        let message = json!({"level": "warning", "data": "careful"});
        let fake = Fake::scripted(&scenario(&json!({
            "era": era, "capabilities": {"tools": {}, "logging": {}},
            "steps": [{"expect": "tools/call"},
                {"notify": {"method": "notifications/message", "params": message}}, {"default": true}],
        })));
        let options = Options { mode: Mode::Live, log_level: level, ..Options::default() };
        let engine = Engine::start(vec![stdio(&fake)], options);
        until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
        fake.wait_for(PATIENCE, |log| log.count("logging/setLevel") == set).await;
        let mut listener = engine.listen();
        call(&engine, "s.alpha").await.unwrap();
        let Some(Event::Log { message: heard, .. }) = next(&mut listener).await else { panic!() };
        assert_eq!(heard.read::<Value>().unwrap(), message);
        let log = fake.log();
        let sent = &log.requests("tools/call")[0]["params"]["_meta"];
        assert_eq!(sent["io.modelcontextprotocol/logLevel"], meta, "{era}");
        engine.shutdown().await;
    };
    check("legacy", Some(LogLevel::Warning), 1, Value::Null).await;
    check("legacy", None, 0, Value::Null).await;
    check("modern", Some(LogLevel::Warning), 0, json!("warning")).await;
    check("modern", None, 0, Value::Null).await;
}

/// A new session in place of a forgotten one sends what the old one did.
#[tokio::test]
async fn the_log_level_outlives_a_session() {
    let lost = json!({"http": {"status": 404, "text": "session not found"}});
    let fake = Fake::scripted(&scenario(&json!({
        "transport": "http", "session": true, "capabilities": {"tools": {}, "logging": {}},
        "steps": [{"expect": "tools/call"}, lost],
    })));
    let server = fake.listen().await;
    let log_level = Some(LogLevel::Warning);
    let options = Options { mode: Mode::Live, log_level, ..Options::default() };
    let engine = Engine::start(vec![http(&server)], options);
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    server.wait_for(PATIENCE, |log| log.count("logging/setLevel") == 1).await;
    call(&engine, "s.alpha").await.unwrap();
    let log = server.log();
    assert_eq!((log.count("initialize"), log.count("logging/setLevel")), (2, 2));
    assert_eq!(log.requests("logging/setLevel")[1]["params"], json!({"level": "warning"}));
    engine.shutdown().await;
}

/// What a server says while it starts is heard, before anybody could have asked for it.
#[tokio::test]
async fn log_messages_of_the_start_are_heard() {
    let message = json!({"level": "warning", "data": "early"});
    let fake = Fake::scripted(&scenario(&json!({
        "capabilities": {"tools": {}, "logging": {}},
        "steps": [{"expect": "initialize"},
            {"notify": {"method": "notifications/message", "params": message}}, {"default": true}],
    })));
    let options = Options { mode: Mode::Live, ..Options::default() };
    let engine = Engine::start(vec![stdio(&fake)], options);
    let mut listener = engine.listen();
    loop {
        if let Some(Event::Log { message: heard, .. }) = next(&mut listener).await {
            assert_eq!(heard.read::<Value>().unwrap(), message);
            break;
        }
    }
    engine.shutdown().await;
}
