//! Subscriptions to single resources, in both eras: shared, taken back, made again, refused.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_core::limits::Limits;
use toolcrib_engine::{
    CallError, Engine, Mode, Options, ResourceEvent, SubscribeError, Subscription,
};
use toolcrib_testkit::{fake::Fake, traffic::Traffic};

use crate::house::{PATIENCE, call, http, part, scenario, settled, stdio, until};

const URI: &str = "notes://a";

/// A server with a resource, whose tool `alpha` announces an update of it.
fn announcing(era: &str, extra: &Value) -> Value {
    let updated =
        json!({"method": "notifications/resources/updated", "params": {"uri": "notes://a"}});
    let mut all = scenario(&json!({
        "era": era,
        "capabilities": {"tools": {}, "resources": {"subscribe": true}},
        "resources": [{"uri": URI, "name": "a"}],
        "steps": [
            {"expect": "tools/call", "when": {"params": {"name": "alpha"}}, "repeat": true},
            {"notify": updated}, {"default": true},
        ],
    }));
    for (key, value) in extra.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

async fn subscribe(engine: &Engine) -> Result<Subscription, CallError> {
    timeout(PATIENCE, engine.subscribe(URI, None)).await.expect("subscribing ends")
}

async fn next(subscription: &mut Subscription) -> Result<ResourceEvent, SubscribeError> {
    timeout(PATIENCE, subscription.next()).await.expect("an event comes")
}

fn updated() -> ResourceEvent {
    ResourceEvent::Updated { uri: URI.to_owned() }
}

/// Two subscribers are one subscription on the wire; both hear of the update; the second to go
/// takes it back.
#[tokio::test]
async fn a_legacy_subscription_is_shared_and_taken_back() {
    let fake = Fake::scripted(&announcing("legacy", &json!({})));
    let engine = settled(stdio(&fake)).await;
    let mut one = subscribe(&engine).await.unwrap();
    let mut two = subscribe(&engine).await.unwrap();
    call(&engine, "s.alpha").await.unwrap();
    assert_eq!(next(&mut one).await.unwrap(), updated());
    assert_eq!(next(&mut two).await.unwrap(), updated());
    drop(one);
    call(&engine, "s.beta").await.unwrap();
    assert_eq!(fake.log().count("resources/unsubscribe"), 0, "somebody still wants it");
    drop(two);
    let log = fake.wait_for(PATIENCE, |log| log.count("resources/unsubscribe") == 1).await;
    assert_eq!(log.count("resources/subscribe"), 1);
    assert_eq!(log.requests("resources/unsubscribe")[0]["params"]["uri"], URI);
    // Whoever comes later begins anew, after the end of the last.
    let _three = subscribe(&engine).await.unwrap();
    let order: Vec<String> = fake.log().methods().iter().map(ToString::to_string).collect();
    let order: Vec<_> = order.iter().filter(|method| method.ends_with("subscribe")).collect();
    assert_eq!(order, ["resources/subscribe", "resources/unsubscribe", "resources/subscribe"]);
    engine.shutdown().await;
}

/// The update of another resource is none of this one; a part of it is.
#[tokio::test]
async fn a_legacy_update_is_told_by_its_uri() {
    let notify = |uri: &str| json!({"notify": {"method": "notifications/resources/updated", "params": {"uri": uri}}});
    let steps = json!([{"expect": "tools/call"}, notify("notes://ab"), notify("notes://a#2"), {"default": true}]);
    let fake = Fake::scripted(&announcing("legacy", &json!({"steps": steps})));
    let engine = settled(stdio(&fake)).await;
    let mut subscription = subscribe(&engine).await.unwrap();
    call(&engine, "s.alpha").await.unwrap();
    let event = next(&mut subscription).await.unwrap();
    assert_eq!(event, ResourceEvent::Updated { uri: "notes://a#2".to_owned() });
    engine.shutdown().await;
}

/// What a modern stream for the resource says while it is open, and then does.
fn stream(rest: &Value) -> Vec<Value> {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": "$id"});
    let mut steps = vec![
        json!({"expect": "subscriptions/listen", "repeat": true}),
        json!({"notify": {"method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": "$params.notifications", "_meta": meta}}}),
        json!({"notify": {"method": "notifications/resources/updated",
            "params": {"uri": URI, "_meta": meta}}}),
    ];
    steps.extend(rest.as_array().unwrap().iter().cloned());
    steps
}

/// A stream of its own; dropping the subscription cancels it.
#[tokio::test]
async fn a_modern_subscription_is_a_stream_that_ends_when_dropped() {
    let steps = stream(&json!([]));
    let fake = Fake::scripted(&announcing("modern", &json!({"steps": steps})));
    let engine = settled(stdio(&fake)).await;
    let mut subscription = subscribe(&engine).await.unwrap();
    assert_eq!(next(&mut subscription).await.unwrap(), updated());
    let log = fake.log();
    let asked = log.requests("subscriptions/listen")[0];
    assert_eq!(asked["params"]["notifications"], json!({"resourceSubscriptions": [URI]}));
    drop(subscription);
    let log = fake.wait_for(PATIENCE, |log| log.count("notifications/cancelled") == 1).await;
    assert_eq!(log.requests("notifications/cancelled")[0]["params"]["requestId"], asked["id"]);
    engine.shutdown().await;
}

/// Closing the engine gives the stream up before the pipe is closed.
#[tokio::test]
async fn a_stream_is_given_up_before_the_connection_closes() {
    let steps = stream(&json!([]));
    let fake = Fake::scripted(&announcing("modern", &json!({"steps": steps})));
    let engine = settled(stdio(&fake)).await;
    let subscription = subscribe(&engine).await.unwrap();
    engine.shutdown().await;
    let log = fake.log();
    assert_eq!(log.count("notifications/cancelled"), 1, "{:#?}", log.methods());
    drop(subscription);
}

/// A stream that ends is opened again, over HTTP as well, and the gap is told.
#[tokio::test]
async fn a_modern_stream_that_breaks_is_opened_again() {
    let steps = stream(&json!([{"sleep_ms": 200}, {"close": true}]));
    let scenario = announcing("modern", &json!({"transport": "http", "steps": steps}));
    let mut scenario = scenario;
    scenario["steps"][0]["sse"] = true.into();
    let server = Fake::scripted(&scenario).listen().await;
    let engine = settled(http(&server)).await;
    let mut subscription = subscribe(&engine).await.unwrap();
    assert_eq!(next(&mut subscription).await.unwrap(), updated());
    let gone = next(&mut subscription).await.unwrap();
    assert!(matches!(gone, ResourceEvent::Interrupted { .. }), "{gone:?}");
    assert_eq!(next(&mut subscription).await.unwrap(), ResourceEvent::Resumed);
    assert_eq!(next(&mut subscription).await.unwrap(), updated());
    engine.shutdown().await;
    assert!(matches!(next_end(&mut subscription).await, SubscribeError::Server { .. }));
}

/// The error with which a subscription ends, whatever comes before it.
async fn next_end(subscription: &mut Subscription) -> SubscribeError {
    loop {
        if let Err(error) = next(subscription).await {
            return error;
        }
    }
}

/// A server that dies is started again, and asked again.
#[tokio::test]
async fn a_subscription_survives_a_new_start_of_the_server() {
    let dying = json!([{"expect": "tools/call"}, {"exit": 3}]);
    let spawns = json!([{"steps": dying}, {}]);
    let fake = Fake::scripted(&announcing("legacy", &json!({"spawns": spawns})));
    let engine = settled(stdio(&fake)).await;
    let mut subscription = subscribe(&engine).await.unwrap();
    assert!(call(&engine, "s.alpha").await.is_err());
    let gone = next(&mut subscription).await.unwrap();
    assert!(matches!(gone, ResourceEvent::Interrupted { .. }), "{gone:?}");
    assert_eq!(next(&mut subscription).await.unwrap(), ResourceEvent::Resumed);
    until(&engine, PATIENCE, |part| part.session.is_some()).await;
    call(&engine, "s.alpha").await.unwrap();
    assert_eq!(next(&mut subscription).await.unwrap(), updated());
    assert_eq!(fake.log().count("resources/subscribe"), 2);
    engine.shutdown().await;
}

/// A legacy session that the server has forgotten knows no subscription either.
#[tokio::test]
async fn a_subscription_is_made_again_in_a_renewed_session() {
    let lost = json!({"http": {"status": 404, "text": "session not found"}});
    let steps = json!([{"expect": "tools/call"}, lost]);
    let scenario =
        announcing("legacy", &json!({"transport": "http", "session": true, "steps": steps}));
    let server = Fake::scripted(&scenario).listen().await;
    let engine = settled(http(&server)).await;
    let mut subscription = subscribe(&engine).await.unwrap();
    call(&engine, "s.alpha").await.unwrap();
    assert_eq!(next(&mut subscription).await.unwrap(), ResourceEvent::Resumed);
    let log = server.log();
    assert_eq!((log.count("initialize"), log.count("resources/subscribe")), (2, 2));
    engine.shutdown().await;
}

fn sent(log: &Traffic) -> usize {
    log.count("resources/subscribe") + log.count("subscriptions/listen")
}

/// Nothing is sent to a server that does not declare it.
#[tokio::test]
async fn a_server_that_announces_no_updates_is_not_asked() {
    for era in ["legacy", "modern"] {
        let capabilities = json!({"tools": {}, "resources": {}});
        let fake = Fake::scripted(&announcing(era, &json!({"capabilities": capabilities})));
        let engine = settled(stdio(&fake)).await;
        let error = subscribe(&engine).await.err().unwrap();
        assert_eq!(error.to_string(), "server s does not announce updates of resources");
        assert_eq!(sent(&fake.log()), 0);
        engine.shutdown().await;
    }
}

/// One that refuses the resource, or leaves it out, says so.
#[tokio::test]
async fn a_refused_subscription_says_why() {
    let check = async |era: &str, steps: Value, why: &str| {
        let fake = Fake::scripted(&announcing(era, &json!({"steps": steps})));
        let engine = settled(stdio(&fake)).await;
        let error = subscribe(&engine).await.err().unwrap().to_string();
        assert!(
            error.contains("announces no updates of notes://a") && error.contains(why),
            "{error}"
        );
        engine.shutdown().await;
    };
    let error = json!({"error": {"code": -32602, "message": "not this one"}});
    check("legacy", json!([{"expect": "resources/subscribe"}, error]), "not this one").await;
    check("modern", json!([{"expect": "subscriptions/listen"}, error]), "not this one").await;
    let mut steps = stream(&json!([]));
    steps[1]["notify"]["params"]["notifications"] = json!({});
    check("modern", steps.into(), "of this resource").await;
}

/// A subscription that nobody waits for any more may have been heard, answered or not.
#[tokio::test]
async fn what_was_not_answered_is_taken_back_too() {
    let steps = json!([{"expect": "resources/subscribe"}, {"silent": true}]);
    let fake = Fake::scripted(&announcing("legacy", &json!({"steps": steps})));
    let engine = settled(stdio(&fake)).await;
    tokio::select! {
        subscribed = subscribe(&engine) => panic!("{:?}", subscribed.err()),
        _ = fake.wait_for(PATIENCE, |log| log.count("resources/subscribe") == 1) => {}
    }
    fake.wait_for(PATIENCE, |log| log.count("resources/unsubscribe") == 1).await;
    engine.shutdown().await;
}

/// A server that has too much to do has refused nothing, though its answer looks like it.
#[tokio::test]
async fn an_overload_is_no_refusal() {
    let check = async |era: &str, method: &str, status: u16| {
        let error = json!({"code": -32000, "message": "later"});
        let busy = json!({"http": {"status": status,
            "body": {"jsonrpc": "2.0", "id": null, "error": error}}});
        let steps = json!([{"expect": method}, busy]);
        let fake = announcing(era, &json!({"transport": "http", "steps": steps}));
        let server = Fake::scripted(&fake).listen().await;
        let engine = settled(http(&server)).await;
        let subscribed = subscribe(&engine).await;
        assert!(subscribed.is_ok(), "{era} {status}: {:?}", subscribed.err());
        assert_eq!(sent(&server.log()), 2);
        engine.shutdown().await;
    };
    check("legacy", "resources/subscribe", 503).await;
    check("legacy", "resources/subscribe", 429).await;
    check("modern", "subscriptions/listen", 503).await;
    check("modern", "subscriptions/listen", 429).await;
}

#[tokio::test]
async fn subscriptions_of_one_server_are_bounded() {
    let fake = Fake::scripted(&announcing(
        "legacy",
        &json!({"resourceTemplates": [{"uriTemplate": "notes://{n}", "name": "n"}]}),
    ));
    let limits = Limits { subscriptions: 2, ..Limits::default() };
    let options = Options { mode: Mode::Live, limits, ..Options::default() };
    let engine = Engine::start(vec![stdio(&fake)], options);
    let subscribe = async |uri: &str| engine.subscribe(uri, None).await;
    let (_one, two) = (subscribe("notes://1").await.unwrap(), subscribe("notes://2").await);
    let _again = subscribe("notes://1").await.unwrap();
    let error = subscribe("notes://3").await.err().unwrap();
    assert_eq!(error.to_string(), "2 resources of server s are subscribed to; that is most");
    drop(two);
    fake.wait_for(PATIENCE, |log| log.count("resources/unsubscribe") == 1).await;
    assert_eq!(fake.log().count("resources/subscribe"), 2);
    engine.shutdown().await;
}

#[tokio::test]
async fn an_unknown_resource_is_not_subscribed_to() {
    let fake = Fake::scripted(&announcing("legacy", &json!({})));
    let engine = settled(stdio(&fake)).await;
    let unknown = timeout(Duration::from_secs(10), engine.subscribe("notes://b", None)).await;
    let error = unknown.unwrap().err().unwrap();
    assert_eq!(
        error.to_string(),
        "no server lists notes://b or a template that fits it; near: notes://a"
    );
    assert!(part(&engine.snapshot()).resource(URI).is_some());
    engine.shutdown().await;
}
