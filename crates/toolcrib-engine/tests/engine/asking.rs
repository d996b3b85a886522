//! Handlers for what servers ask of their client, in both eras.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::time::sleep;
use toolcrib_core::code::Code;
use toolcrib_engine::{
    CallError, CallOptions, Called, Declined, Elicited, Engine, Handlers, Mode, Options, Root,
    Sampled, Status,
};
use toolcrib_testkit::{fake::Fake, traffic::Traffic};

use crate::house::{PATIENCE, call, scenario, stdio, until};

/// A server whose tool `alpha` asks `method` of the client before it answers.
fn asking(era: &str, method: &str, params: &Value) -> Fake {
    let steps = if era == "modern" {
        json!([
            {"expect": "tools/call", "when": {"params": {"inputResponses": {}}}, "repeat": true}, {"default": true},
            {"expect": "tools/call", "when": {"params": {"name": "alpha"}}, "repeat": true},
            {"reply": {"resultType": "input_required", "requestState": "so far",
                "inputRequests": {"first": {"method": method, "params": params}}}},
        ])
    } else {
        json!([
            {"expect": "tools/call", "when": {"params": {"name": "alpha"}}, "repeat": true},
            {"request": {"id": "q1", "method": method, "params": params}}, {"sleep_ms": 1_000}, {"default": true},
        ])
    };
    Fake::scripted(&scenario(&json!({"era": era, "steps": steps})))
}

async fn engine(fake: &Fake, handlers: Handlers) -> Engine {
    let options = Options { mode: Mode::Live, handlers, ..Options::default() };
    let engine = Engine::start(vec![stdio(fake)], options);
    until(&engine, PATIENCE, |part| part.status == Status::Ready).await;
    engine
}

/// What the server was answered: the result, or the error.
fn answered(era: &str, log: &Traffic) -> Value {
    if era == "modern" {
        let calls = log.requests("tools/call");
        let params = &calls.last().unwrap()["params"];
        assert_eq!(params["requestState"], "so far");
        return params["inputResponses"]["first"].clone();
    }
    let answers = log.answers();
    let answer = answers.iter().find(|answer| answer["id"] == "q1").expect("an answer");
    answer.get("result").or_else(|| answer.get("error")).unwrap().clone()
}

async fn check(method: &str, params: Value, handlers: Handlers, expect: Value) {
    for era in ["legacy", "modern"] {
        let fake = asking(era, method, &params);
        let engine = engine(&fake, handlers.clone()).await;
        call(&engine, "s.alpha").await.unwrap();
        assert_eq!(answered(era, &fake.log()), expect, "{era}");
        engine.shutdown().await;
    }
}

fn form() -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "minLength": 2}}}})
}

#[tokio::test]
async fn a_form_reaches_its_handler_and_the_answer_the_server() {
    let handlers = Handlers::new().on_form(|question| async move {
        assert_eq!((&*question.server, &*question.message), ("s", "Who?"));
        let name = question.form.fields[0].name.clone();
        Elicited::Accept(Map::from_iter([(name, json!("Ada"))]))
    });
    let expect = json!({"action": "accept", "content": {"name": "Ada"}});
    check("elicitation/create", form(), handlers, expect).await;
}

#[tokio::test]
async fn declining_and_cancelling_are_told_apart() {
    let decline = Handlers::new().on_form(|_| async { Elicited::Decline });
    check("elicitation/create", form(), decline, json!({"action": "decline"})).await;
    let cancel = Handlers::new().on_form(|_| async { Elicited::Cancel });
    check("elicitation/create", form(), cancel, json!({"action": "cancel"})).await;
}

#[tokio::test]
async fn a_url_is_consented_to_without_content() {
    let url = json!({"mode": "url", "message": "Sign in", "elicitationId": "e1", "url": "https://a.example/x"});
    let handlers = Handlers::new().on_url(|question| async move {
        assert_eq!(question.host, "a.example");
        Elicited::Accept(Map::new())
    });
    check("elicitation/create", url, handlers, json!({"action": "accept"})).await;
}

#[tokio::test]
async fn a_model_and_roots_are_asked() {
    let sampling = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "2+2"}}], "maxTokens": 5});
    let handlers = Handlers::new().on_sampling(|question| async move {
        assert_eq!(question.max_tokens, Some(5));
        Ok(Sampled::text("m", "4"))
    });
    let expect = json!({"role": "assistant", "model": "m", "stopReason": "endTurn",
        "content": {"type": "text", "text": "4"}});
    check("sampling/createMessage", sampling, handlers, expect).await;
    let handlers = Handlers::new().on_roots(|server| async move {
        vec![Root { uri: format!("file:///{server}"), name: None }]
    });
    check("roots/list", json!({}), handlers, json!({"roots": [{"uri": "file:///s"}]})).await;
}

/// Only what has a handler is declared; anything else is refused, and a modern answer handed up.
#[tokio::test]
async fn what_has_no_handler_is_neither_declared_nor_answered() {
    let handlers = Handlers::new().on_sampling(|_| async { Err(Declined("no".to_owned())) });
    let fake = asking("legacy", "elicitation/create", &form());
    let engine_ = engine(&fake, handlers.clone()).await;
    call(&engine_, "s.alpha").await.unwrap();
    assert_eq!(answered("legacy", &fake.log())["code"], -32601);
    let declared = fake.log().requests("initialize")[0]["params"]["capabilities"].clone();
    assert_eq!(declared, json!({"sampling": {}}));
    engine_.shutdown().await;
    let fake = asking("modern", "elicitation/create", &form());
    let engine = engine(&fake, handlers).await;
    let error = call(&engine, "s.alpha").await.unwrap_err();
    assert_eq!(error.code(), Code::InputRequired);
    assert_eq!(fake.log().count("tools/call"), 1);
    engine.shutdown().await;
}

async fn quick(engine: &Engine) -> Result<Called, CallError> {
    let timeout = Some(Duration::from_millis(400));
    engine.call("s.alpha", None, CallOptions { timeout, ..CallOptions::default() }).await
}

/// The time that a person takes is not the server's; what the server takes after it is.
#[tokio::test]
async fn a_person_may_take_their_time() {
    for era in ["legacy", "modern"] {
        let fake = asking(era, "elicitation/create", &form());
        let handlers = Handlers::new().on_form(|_| async {
            sleep(Duration::from_millis(900)).await;
            Elicited::Decline
        });
        let engine = engine(&fake, handlers).await;
        let called = quick(&engine).await;
        assert!(called.is_ok(), "{era}: {:?}", called.err());
        engine.shutdown().await;
    }
}

/// A server that asks for ever, or for too much, is left.
#[tokio::test]
async fn a_server_that_asks_without_end_is_left() {
    let ask = |count: usize| {
        let request = json!({"method": "roots/list"});
        let requests: Map<_, _> = (0..count).map(|n| (n.to_string(), request.clone())).collect();
        json!({"resultType": "input_required", "inputRequests": requests})
    };
    let check = async |reply: Value, words: &str, answered: usize| {
        let fake = Fake::scripted(&scenario(&json!({"era": "modern",
            "steps": [{"expect": "tools/call", "repeat": true}, {"reply": reply}]})));
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let handlers = Handlers::new().on_roots(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Vec::new() }
        });
        let engine = engine(&fake, handlers).await;
        let error = call(&engine, "s.alpha").await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(asked.load(Ordering::Relaxed), answered, "nobody is asked for nothing");
        engine.shutdown().await;
    };
    check(ask(1), "asked for input more than 8 times", 9).await;
    check(ask(17), "17 inputs", 0).await;
    let mut long = ask(1);
    long["requestState"] = "x".repeat(2 << 20).into();
    check(long, "bytes", 0).await;
}

/// A question that belongs to no call reaches nobody; where files may be is not asked of a person.
#[tokio::test]
async fn a_question_out_of_the_blue_is_refused() {
    let ask = |id: &str, method: &str, params: Value| json!({"request": {"id": id, "method": method, "params": params}});
    let sampling = json!({"messages": [], "maxTokens": 1});
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/list", "repeat": true}, {"default": true},
        ask("q1", "elicitation/create", form()), ask("q2", "sampling/createMessage", sampling),
        ask("q3", "roots/list", json!({})),
    ]})));
    let handlers = Handlers::new()
        .on_form(|_| async { Elicited::Decline })
        .on_sampling(|_| async { Err(Declined("no".to_owned())) })
        .on_roots(|_| async { Vec::new() });
    let engine = engine(&fake, handlers).await;
    let log = fake.wait_for(PATIENCE, |log| answers_from(log, 'q').len() == 3).await;
    let mut answers = answers_from(&log, 'q');
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(answers[0]["error"]["code"], -32600, "{answers:?}");
    assert_eq!(answers[1]["error"]["code"], -32600, "{answers:?}");
    assert_eq!(answers[2]["result"], json!({"roots": []}));
    engine.shutdown().await;
}

/// A legacy server that takes its question back needs no answer, and nobody goes on with it.
#[tokio::test]
async fn a_question_that_is_taken_back_is_dropped() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/call"},
        {"request": {"id": "q1", "method": "elicitation/create", "params": form()}}, {"sleep_ms": 300},
        {"notify": {"method": "notifications/cancelled", "params": {"requestId": "q1"}}},
        {"sleep_ms": 300}, {"default": true},
    ]})));
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = Arc::clone(&asked);
    let handlers = Handlers::new().on_form(move |_| {
        let at_work = Arc::clone(&asks);
        async move {
            at_work.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        }
    });
    let engine = engine(&fake, handlers).await;
    call(&engine, "s.alpha").await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let dropped = async {
        // One is the test's, one the handler's; a third would be the question's.
        while Arc::strong_count(&asked) > 2 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, dropped).await.expect("nobody is left asking");
    assert!(answers_from(&fake.log(), 'q').is_empty());
    engine.shutdown().await;
}

/// Forms that nobody answers hold up neither a `ping` nor the refusal of further ones.
#[tokio::test]
async fn open_forms_starve_nothing_else() {
    let ask = |n: usize| json!({"request": {"id": format!("q{n}"), "method": "elicitation/create", "params": form()}});
    let mut steps = vec![json!({"expect": "tools/call"})];
    steps.extend((0..70).map(ask));
    steps.push(json!({"request": {"id": "p", "method": "ping"}}));
    steps.push(json!({"silent": true}));
    let fake = Fake::scripted(&scenario(&json!({"steps": steps})));
    let handlers = Handlers::new().on_form(|_| std::future::pending());
    let engine = engine(&fake, handlers).await;
    tokio::select! {
        called = engine.call("s.alpha", None, CallOptions::default()) => panic!("{called:?}"),
        log = fake.wait_for(PATIENCE, |log| answers_from(log, 'p').len() == 1
            && answers_from(log, 'q').len() == 54) => {
            let refused = answers_from(&log, 'q');
            assert!(refused.iter().all(|answer| answer["error"]["code"] == -32603), "{refused:?}");
        }
    }
    engine.shutdown().await;
}

/// A handler that panics is an error of ours, and the server hears of it.
#[tokio::test]
async fn a_handler_that_panics_answers_all_the_same() {
    let fake = asking("legacy", "elicitation/create", &form());
    let handlers = Handlers::new().on_form(|_| async { panic!("as a handler may") });
    let engine = engine(&fake, handlers).await;
    call(&engine, "s.alpha").await.unwrap();
    assert_eq!(answered("legacy", &fake.log())["code"], -32603);
    engine.shutdown().await;
}

/// Why a modern server got no answer is told to who called.
#[tokio::test]
async fn why_nothing_was_answered_is_told() {
    let check = async |method: &str, params: Value, handlers: Handlers, why: &str| {
        let fake = asking("modern", method, &params);
        let engine = engine(&fake, handlers).await;
        let error = call(&engine, "s.alpha").await.unwrap_err();
        assert_eq!(error.code(), Code::InputRequired);
        let words = format!("alpha of s: it asks for input ({method}) and got none: {why}");
        assert!(error.to_string().starts_with(&words), "{error}");
        engine.shutdown().await;
    };
    let model = Handlers::new().on_sampling(|_| async { Err(Declined("not today".to_owned())) });
    let question = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "2+2"}}], "maxTokens": 5});
    check("sampling/createMessage", question, model, "not today").await;
    let misfit = Handlers::new().on_form(|_| async { Elicited::Accept(Map::new()) });
    check("elicitation/create", form(), misfit.clone(), "the client has no answer that fits").await;
    check("elicitation/create", json!({"requestedSchema": 1}), misfit, "").await;
}

/// Nobody is asked for a part of what a server wants.
#[tokio::test]
async fn a_form_beside_a_url_that_nobody_opens_is_not_asked() {
    let url =
        json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "https://a.example"});
    let ask = |params: Value| json!({"method": "elicitation/create", "params": params});
    let fake = Fake::scripted(&scenario(
        &json!({"era": "modern", "steps": [{"expect": "tools/call"},
        {"reply": {"resultType": "input_required", "inputRequests": {"a": ask(form()), "b": ask(url)}}}]}),
    ));
    let handlers = Handlers::new().on_form(|_| async { panic!("nobody is to be asked") });
    let engine = engine(&fake, handlers).await;
    let error = call(&engine, "s.alpha").await.unwrap_err();
    assert!(matches!(error, CallError::InputRequired { .. }), "{error}");
    engine.shutdown().await;
}

/// What was answered to the requests of the server whose ids begin like this.
fn answers_from(log: &Traffic, start: char) -> Vec<Value> {
    let ours = |answer: &Value| answer["id"].as_str().is_some_and(|id| id.starts_with(start));
    log.answers().into_iter().filter(|answer| ours(answer)).cloned().collect()
}
