//! Legacy HTTP sessions that are forgotten, and streams that are none.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use toolcrib_engine::Status;
use toolcrib_testkit::{
    fake::{Fake, HttpFake},
    traffic::Traffic,
};

use crate::house::{PATIENCE, call, http, scenario, settled, text, until};

/// The session header of each request of a method or verb.
fn sessions(log: &Traffic, method: &str) -> Vec<Value> {
    let of = |entry: &&Value| entry["headers"]["mcp-session-id"].clone();
    let verbs = log.http(method);
    log.requests(method).iter().chain(&verbs).map(of).collect()
}

async fn http_scenario(extra: &Value) -> HttpFake {
    let mut whole = scenario(extra);
    whole["transport"] = json!("http");
    Fake::scripted(&whole).listen().await
}

#[tokio::test]
async fn c45_a_forgotten_session_is_started_anew_and_followed_again() {
    let mut case: Value = serde_json::from_str(
        &std::fs::read_to_string(toolcrib_testkit::case::scenario("C45")).unwrap(),
    )
    .unwrap();
    case["get_stream"] = json!(true);
    let server = Fake::scripted(&case).listen().await;
    let engine = settled(http(&server)).await;
    server.wait_for(PATIENCE, |log| log.http("GET").len() == 1).await;
    let called = call(&engine, "s.alpha").await.unwrap();
    assert!(text(&called).contains(":alpha:"));
    let log = server.wait_for(PATIENCE, |log| log.http("GET").len() == 2).await;
    assert_eq!(sessions(&log, "initialize"), [Value::Null, Value::Null]);
    assert_eq!(sessions(&log, "tools/call"), [json!("sess-1"), json!("sess-2")]);
    assert_eq!(sessions(&log, "GET"), [json!("sess-1"), json!("sess-2")]);
    // What changed in between was not announced: the lists are read again.
    server.wait_for(PATIENCE, |log| sessions(log, "tools/list").contains(&json!("sess-2"))).await;
    engine.shutdown().await;
    // The session is ended politely.
    assert_eq!(sessions(&server.log(), "DELETE"), [json!("sess-2")]);
}

/// Many calls that lose the session together start one new one.
#[tokio::test]
async fn c45_one_renewal_serves_all_who_lost_the_session() {
    let server = Fake::http("C45").await;
    let engine = settled(http(&server)).await;
    let calls = futures_util::future::join_all((0..8).map(|_| call(&engine, "s.alpha"))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(server.log().count("initialize"), 2);
    engine.shutdown().await;
}

#[tokio::test]
async fn c46_a_get_that_is_no_stream_is_not_repeated() {
    let server = Fake::http("C46").await;
    one_get(&server).await;
}

/// The statuses that say the same.
#[tokio::test]
async fn c46_no_refusal_of_a_stream_is_repeated() {
    for status in [400, 404, 405, 406, 501] {
        let server = http_scenario(&json!({"session": true, "steps": [
            {"expect": "GET", "repeat": true}, {"http": {"status": status, "text": "no"}}]}))
        .await;
        one_get(&server).await;
    }
}

async fn one_get(server: &HttpFake) {
    let engine = settled(http(server)).await;
    until(&engine, PATIENCE, |part| part.status == Status::Ready && part.tools().count() == 2)
        .await;
    server.wait_for(PATIENCE, |log| log.http("GET").len() == 1).await;
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(server.log().http("GET").len(), 1, "{:#?}", server.log().entries);
    assert!(call(&engine, "s.alpha").await.is_ok());
    engine.shutdown().await;
}

/// The list changes after a lost session, too: a call that is refused as unknown leads to a list.
#[tokio::test]
async fn c100_other_words_renew_the_session_of_a_running_engine() {
    let server = Fake::http("C100").await;
    let engine = settled(http(&server)).await;
    for tool in ["s.alpha", "s.beta", "s.alpha"] {
        assert!(call(&engine, tool).await.is_ok(), "{tool}");
    }
    let log = server.log();
    assert_eq!((log.count("initialize"), log.count("tools/call")), (2, 4));
    engine.shutdown().await;
}
