//! Finding items by name, and what is checked before anything is sent.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib_core::code::Code;
use toolcrib_engine::{CallError, CallOptions, Completing, Completion, Engine, ListKind, Options};
use toolcrib_testkit::fake::Fake;

use crate::house::{PATIENCE, raw, stdio};

fn shop() -> Value {
    json!({
        "era": "modern",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "tools": [{"name": "get-sum", "inputSchema": {"type": "object", "required": ["a"],
            "properties": {"a": {"type": "number"}}}}],
        "resources": [{"uri": "notes://today", "name": "today"}],
        "resourceTemplates": [{"uriTemplate": "notes://{year}/{month}", "name": "archive"}],
        "prompts": [{"name": "review", "arguments": [{"name": "code", "required": true}, {"name": "language"}]}],
        "steps": [{"expect": "completion/complete", "repeat": true},
            {"reply": {"resultType": "complete", "completion": {"values": ["rust", "ruby"], "total": 7, "hasMore": true}}}],
    })
}

/// Two servers of the same kind, `s` and `t`.
async fn engine(one: &Fake, two: &Fake) -> Engine {
    let mut second = stdio(two);
    second.name = "t".to_owned();
    let engine = Engine::start(vec![stdio(one), second], Options::default());
    let snapshot = engine.settled(&ListKind::ALL, Some(Instant::now() + PATIENCE)).await;
    assert!(snapshot.is_settled(&ListKind::ALL));
    engine
}

fn error<T>(found: Result<T, CallError>) -> (Code, String) {
    let error = found.err().expect("nothing to be found");
    (error.code(), error.to_string())
}

#[tokio::test]
async fn items_are_found_by_each_of_their_names() {
    let (one, mut other) = (shop(), shop());
    other["prompts"] = json!([]);
    other["resourceTemplates"] = json!([]);
    let (one, two) = (Fake::scripted(&one), Fake::scripted(&other));
    let engine = engine(&one, &two).await;
    let snapshot = engine.snapshot();
    for name in ["s.get-sum", "s__get-sum"] {
        let found = snapshot.tool(name).unwrap();
        assert_eq!((found.server(), &*found.name), ("s", "get-sum"));
    }
    assert_eq!(snapshot.prompt("review").unwrap().server(), "s");
    assert_eq!(snapshot.resource("notes://today", Some("t")).unwrap().name, "today");
    assert_eq!(snapshot.template("notes://{year}/{month}", None).unwrap().server(), "s");
    let unknown = |name: &str| error(snapshot.tool(name)).1;
    assert_eq!(unknown("s.get_sum"), "nothing is called s.get_sum; did you mean s.get-sum?");
    assert_eq!(
        error(snapshot.tool("get-sum")),
        (Code::AmbiguousName, "get-sum is ambiguous: s.get-sum, t.get-sum".to_owned())
    );
    assert_eq!(error(snapshot.resource("notes://today", None)).0, Code::AmbiguousName);
    let near = error(snapshot.resource("notes://tomorrow", None)).1;
    assert!(near.ends_with("near: notes://today, notes://{year}/{month}"), "{near}");
    engine.shutdown().await;
}

#[tokio::test]
async fn nothing_is_sent_that_does_not_fit() {
    let (one, two) = (Fake::scripted(&shop()), Fake::scripted(&json!({"era": "modern"})));
    let engine = engine(&one, &two).await;
    let none = CallOptions::default;
    engine.check("get-sum", Some(&raw(&json!({"a": 1})))).await.unwrap();
    let misfit = engine.check("get-sum", Some(&raw(&json!({"a": "x"})))).await;
    assert_eq!(error(misfit).0, Code::InvalidArguments);
    let prompt = async |arguments: Value| {
        error(engine.prompt("review", Some(&raw(&arguments)), none()).await).1
    };
    let missing = prompt(json!({"language": "c"})).await;
    assert!(
        missing.ends_with("nothing was sent\n/code is missing: expected a string"),
        "{missing}"
    );
    let unknown = prompt(json!({"code": "x", "lang": "c"})).await;
    assert!(unknown.ends_with("/lang is unknown; did you mean language?"), "{unknown}");
    let template = async |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables: BTreeMap<_, _> = pairs.collect();
        engine.read_template("notes://{year}/{month}", &variables, None, none()).await
    };
    let missing = error(template(&[("year", "2026")]).await);
    assert_eq!(missing.0, Code::InvalidArguments);
    assert!(missing.1.contains("month missing; nothing was sent"), "{}", missing.1);
    let unknown = error(template(&[("year", "1"), ("month", "2"), ("day", "3")]).await).1;
    assert!(unknown.contains("day unknown"), "{unknown}");
    let asked = one.log();
    let acts = ["tools/call", "prompts/get", "resources/read"].map(|method| asked.count(method));
    assert_eq!(acts, [0, 0, 0]);
    template(&[("year", "20 26"), ("month", "7")]).await.unwrap();
    assert_eq!(one.log().requests("resources/read")[0]["params"]["uri"], "notes://20%2026/7");
    engine.shutdown().await;
}

#[tokio::test]
async fn arguments_are_completed_where_that_is_offered() {
    let mut plain = shop();
    plain["capabilities"] = json!({"prompts": {}});
    let (one, two) = (Fake::scripted(&shop()), Fake::scripted(&plain));
    let engine = engine(&one, &two).await;
    let others = BTreeMap::from([("code".to_owned(), "x".to_owned())]);
    let complete = async |of: Completing<'_>, others: &BTreeMap<String, String>| {
        engine.complete(of, ("language", "ru"), others, CallOptions::default()).await
    };
    let completion = complete(Completing::Prompt("s.review"), &others).await.unwrap();
    let values = vec!["rust".to_owned(), "ruby".to_owned()];
    assert_eq!(completion, Completion { values, total: Some(7), has_more: true });
    let template = Completing::Template("notes://{year}/{month}", None);
    complete(template, &BTreeMap::new()).await.unwrap();
    let log = one.log();
    let sent = log.requests("completion/complete");
    let sent = |at: usize, member: &str| sent[at]["params"][member].clone();
    assert_eq!(sent(0, "ref"), json!({"type": "ref/prompt", "name": "review"}));
    assert_eq!(sent(0, "argument"), json!({"name": "language", "value": "ru"}));
    assert_eq!(sent(0, "context"), json!({"arguments": {"code": "x"}}));
    assert_eq!(sent(1, "ref"), json!({"type": "ref/resource", "uri": "notes://{year}/{month}"}));
    assert_eq!(sent(1, "context"), Value::Null);
    let refused = error(complete(Completing::Prompt("t.review"), &others).await);
    let words = "server t does not offer completion of arguments".to_owned();
    assert_eq!(refused, (Code::Refused, words));
    assert_eq!(two.log().count("completion/complete"), 0);
    engine.shutdown().await;
}

/// What is not to be used is not read either, whether or not the server is named.
#[tokio::test]
async fn a_refused_resource_is_neither_read_nor_subscribed_to() {
    let mut odd = shop();
    odd["resources"] = json!([{"uri": "odd://a", "name": "a"}, {"uri": "odd://a", "name": "b"}]);
    let (one, two) = (Fake::scripted(&odd), Fake::scripted(&shop()));
    let engine = engine(&one, &two).await;
    for server in [None, Some("s")] {
        let read = error(engine.read("odd://a", server, CallOptions::default()).await);
        assert_eq!(read.0, Code::Refused);
        assert!(read.1.contains("two different resources under this name"), "{}", read.1);
        assert_eq!(engine.subscribe("odd://a", server).await.err().unwrap().code(), Code::Refused);
    }
    assert_eq!(one.log().count("resources/read"), 0);
    engine.shutdown().await;
}
