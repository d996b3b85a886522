//! Lists that are announced as changed: too often, too early, or over a stream that is not there.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use toolcrib_core::limits::Limits;
use toolcrib_engine::{Engine, Mode, Options, Status};
use toolcrib_testkit::{fake::Fake, traffic::Traffic};

use crate::house::{PATIENCE, call, http, part, scenario, settled, stdio, tools, until};

/// When each request of a method came, in seconds.
fn times(log: &Traffic, method: &str) -> Vec<f64> {
    log.requests(method).iter().filter_map(|entry| entry["t"].as_f64()).collect()
}

/// The server announces a change whenever it is asked: the gaps grow, and nothing is published.
#[tokio::test]
async fn c37_a_list_that_announces_itself_is_asked_ever_more_rarely() {
    let fake = Fake::stdio("C37");
    let engine = settled(stdio(&fake)).await;
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    sleep(Duration::from_millis(1_200)).await;
    let generation = engine.snapshot().generation();
    sleep(Duration::from_millis(5_000)).await;
    let snapshot = engine.snapshot();
    assert_eq!(tools(&snapshot), ["alpha", "beta"]);
    assert_eq!(snapshot.generation(), generation, "an unchanged list is no event");
    let times = times(&fake.log(), "tools/list");
    let early = times.iter().filter(|time| **time < times[0] + 3.0).count();
    assert!(early <= 5, "{early} requests in the first 3 s: {times:?}");
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 2, "announced changes are looked at: {times:?}");
    assert!(gaps.windows(2).skip(1).all(|pair| pair[1] > pair[0]), "{gaps:?}");
    engine.shutdown().await;
}

#[tokio::test]
async fn c38_a_burst_is_one_change() {
    let fake = Fake::stdio("C38");
    let engine = settled(stdio(&fake)).await;
    let before = fake.log().count("tools/list");
    call(&engine, "s.alpha").await.unwrap();
    let snapshot = until(&engine, PATIENCE, |part| part.tools().count() == 3).await;
    assert_eq!(tools(&snapshot), ["alpha", "beta", "gamma"]);
    // Nothing more comes of the burst.
    sleep(Duration::from_millis(2_500)).await;
    let log = fake.log();
    let after = log.count("tools/list") - before;
    assert!((1..=3).contains(&after), "{after} lists for one burst");
    let announced = log
        .of("out")
        .filter(|entry| entry["message"]["method"] == "notifications/tools/list_changed");
    let last = announced.filter_map(|entry| entry["t"].as_f64()).fold(0.0, f64::max);
    let listed = *times(&log, "tools/list").last().unwrap();
    assert!(listed >= last, "the last list is older than the last change");
    engine.shutdown().await;
}

#[tokio::test]
async fn c97_a_change_during_a_listing_leads_to_one_more() {
    let fake = Fake::stdio("C97");
    let engine = settled(stdio(&fake)).await;
    let fresh = |part: &toolcrib_engine::Part| part.tools().any(|tool| tool.name == "fresh");
    let snapshot = until(&engine, PATIENCE, fresh).await;
    assert_eq!(tools(&snapshot), ["fresh"]);
    assert_eq!(fake.log().count("tools/list"), 2);
    engine.shutdown().await;
}

/// Resources and their templates change together, prompts apart.
#[tokio::test]
async fn c97_each_list_has_its_own_changes() {
    let lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
    let check = async |method: &str, expect: [usize; 4]| {
        let fake = Fake::scripted(&scenario(&json!({
            "capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true}, "prompts": {"listChanged": true}},
            "steps": [{"expect": "tools/call"}, {"notify": {"method": method}}, {"reply": {"content": []}}],
        })));
        let engine = settled(stdio(&fake)).await;
        until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
        call(&engine, "s.alpha").await.unwrap();
        sleep(Duration::from_millis(1_500)).await;
        assert_eq!(lists.map(|list| fake.log().count(list)), expect, "{method}");
        engine.shutdown().await;
    };
    check("notifications/tools/list_changed", [2, 1, 1, 1]).await;
    check("notifications/resources/list_changed", [1, 2, 2, 1]).await;
    check("notifications/prompts/list_changed", [1, 1, 1, 2]).await;
    check("notifications/other/list_changed", [1, 1, 1, 1]).await;
}

#[tokio::test]
async fn c98_a_change_stream_that_ends_costs_no_list() {
    let server = Fake::http("C98").await;
    let engine = settled(http(&server)).await;
    let snapshot = until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    assert_eq!(tools(&snapshot), ["alpha", "beta"]);
    sleep(Duration::from_secs(5)).await;
    let log = server.log();
    let times = times(&log, "subscriptions/listen");
    let early = times.iter().filter(|time| **time <= times[0] + 5.0).count();
    assert!((1..=4).contains(&early), "{early} attempts in 5 s: {times:?}");
    let snapshot = engine.snapshot();
    assert_eq!(part(&snapshot).status, Status::Ready);
    let note = part(&snapshot).findings.iter().any(|finding| finding.rule == "change/no-stream");
    assert!(note, "{:?}", part(&snapshot).findings);
    engine.shutdown().await;
}

/// A stream that is acknowledged and ends again and again is opened with growing pauses, and each
/// gap is bridged by a new list.
#[tokio::test]
async fn c98_a_stream_that_breaks_is_opened_again() {
    let acknowledged = json!({"event": {"data": {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"toolsListChanged": true}, "_meta": {"io.modelcontextprotocol/subscriptionId": "$id"}}}}});
    let server = Fake::scripted(&scenario(&json!({
        "era": "modern", "transport": "http", "capabilities": {"tools": {"listChanged": true}},
        "steps": [{"expect": "subscriptions/listen"}, {"sse": true}, acknowledged, {"sleep_ms": 300}, {"close": true}],
    }))).listen().await;
    let engine = settled(http(&server)).await;
    let log = server.wait_for(PATIENCE, |log| log.count("subscriptions/listen") == 2).await;
    assert_eq!(log.count("initialize"), 0);
    server.wait_for(PATIENCE, |log| log.count("tools/list") >= 2).await;
    assert_eq!(tools(&engine.snapshot()), ["alpha", "beta"]);
    engine.shutdown().await;
}

/// A change announced on the modern stream is listed; one the server adds on Tuesday is usable.
#[tokio::test]
async fn a_tool_that_is_added_is_usable() {
    let three: Vec<Value> = ["alpha", "beta", "gamma"]
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .into();
    for transport in ["stdio", "http"] {
        let scenario = scenario(&json!({
            "era": "modern", "transport": transport, "capabilities": {"tools": {"listChanged": true}},
            "steps": [{"expect": "tools/call", "when": {"params": {"name": "alpha"}}}, {"set": {"tools": three}},
                {"notify": {"method": "notifications/tools/list_changed"}, "via": if transport == "http" { "get" } else { "out" }},
                {"reply": {"resultType": "complete", "content": []}}],
        }));
        let fake = Fake::scripted(&scenario);
        let (engine, _server);
        if transport == "http" {
            let server = fake.listen().await;
            engine = settled(http(&server)).await;
            server.wait_for(PATIENCE, |log| log.count("subscriptions/listen") == 1).await;
            _server = Some(server);
        } else {
            engine = settled(stdio(&fake)).await;
            _server = None;
        }
        call(&engine, "s.alpha").await.unwrap();
        until(&engine, PATIENCE, |part| part.tools().count() == 3).await;
        assert!(call(&engine, "s.gamma").await.is_ok(), "{transport}");
        engine.shutdown().await;
    }
}

/// A stream whose keep-alives stop is opened again; one that never had any may be silent.
#[tokio::test]
async fn a_stream_whose_keep_alives_stop_is_opened_again() {
    let check = async |keep_alives: usize, expect: usize| {
        let acknowledged = json!({"event": {"data": {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"toolsListChanged": true}, "_meta": {"io.modelcontextprotocol/subscriptionId": "$id"}}}}});
        let mut steps =
            vec![json!({"expect": "subscriptions/listen"}), json!({"sse": true}), acknowledged];
        for _ in 0..keep_alives {
            steps.extend([json!({"sleep_ms": 50}), json!({"comment": "still there"})]);
        }
        steps.push(json!({"silent": true}));
        let server = Fake::scripted(&scenario(&json!({
            "era": "modern", "transport": "http", "capabilities": {"tools": {"listChanged": true}}, "steps": steps,
        }))).listen().await;
        let limits = Limits { stream_idle_ms: 500, ..Limits::default() };
        let options = Options { mode: Mode::Live, limits, ..Options::default() };
        let engine = Engine::start(vec![http(&server)], options);
        server.wait_for(PATIENCE, |log| log.count("subscriptions/listen") == 1).await;
        sleep(Duration::from_millis(4_000)).await;
        assert_eq!(server.log().count("subscriptions/listen"), expect, "{keep_alives}");
        engine.shutdown().await;
    };
    tokio::join!(check(0, 1), check(8, 2));
}
