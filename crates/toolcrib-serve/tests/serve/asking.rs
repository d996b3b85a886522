//! Questions to the client: by rounds to modern ones, by requests to legacy ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_core::version::Era;
use toolcrib_serve::{
    HttpOptions, StateKey, StdioOptions,
    declare::{Context, Elicited, Failure, Prompt, Resource, Sampling, Server, Tool},
};

use crate::{
    house::{SOON, code, fits, initialize_as, legacy, modern},
    http::{Server as Socket, mirror},
    stdio::Client,
    talk::{Talk, everywhere as serve_everywhere},
};

#[derive(Deserialize, JsonSchema)]
struct Signature {
    name: String,
    age: Option<u8>,
}

async fn sign(context: Context) -> Result<String, Failure> {
    Ok(match context.elicit("signature", "Sign here").await? {
        Elicited::Accepted(Signature { name, age }) => format!("{name} {age:?}"),
        Elicited::Declined => "declined".to_owned(),
        Elicited::Cancelled => "cancelled".to_owned(),
    })
}

async fn twice(context: Context) -> Result<String, Failure> {
    let first = sign(context.clone()).await?;
    let sampled = context.sample("model", &Sampling::new(first, 9)).await?;
    Ok(format!("{}: {}", sampled.model, sampled.text()))
}

async fn together(context: Context) -> Result<String, Failure> {
    let question = Sampling::new("q", 9);
    let (signed, sampled, roots) = tokio::join!(
        sign(context.clone()),
        context.sample("model", &question),
        context.roots("roots"),
    );
    Ok(format!("{} {} {}", signed?, sampled?.text(), roots?[0].uri))
}

async fn page(context: Context) -> Result<String, Failure> {
    Ok(match context.elicit_url("page", "Look", "https://pay.example/1").await? {
        Elicited::Accepted(()) => "went".to_owned(),
        Elicited::Declined | Elicited::Cancelled => "stayed".to_owned(),
    })
}

/// Counts how often its costly part was done, however often it is begun anew.
fn counting(times: &Arc<AtomicUsize>) -> Tool {
    let times = Arc::clone(times);
    Tool::new("counting", move |context: Context| {
        let times = Arc::clone(&times);
        async move {
            let number = context
                .once("number", async { Ok(times.fetch_add(1, Ordering::Relaxed) + 1) })
                .await?;
            let signed = twice(context).await?;
            Ok::<_, Failure>(format!("{number} {signed}"))
        }
    })
}

/// Asks beside what is to be done once, and takes its time over that.
fn beside(times: &Arc<AtomicUsize>) -> Tool {
    let times = Arc::clone(times);
    Tool::new("beside", move |context: Context| {
        let times = Arc::clone(&times);
        async move {
            let (signed, number) = tokio::join!(
                sign(context.clone()),
                context.once("number", async {
                    let number = times.fetch_add(1, Ordering::Relaxed) + 1;
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    Ok(number)
                }),
            );
            Ok::<_, Failure>(format!("{} {}", signed?, number?))
        }
    })
}

async fn again(context: Context) -> Result<String, Failure> {
    let first = sign(context.clone()).await?;
    Ok(format!("{first} {}", sign(context).await?))
}

async fn inside(context: Context) -> Result<String, Failure> {
    context.once("signed", sign(context.clone())).await
}

fn desk(times: &Arc<AtomicUsize>) -> Arc<Server> {
    let server = Server::builder("desk", "1")
        .ttl_ms(5)
        .public()
        .with(Tool::new("sign", sign))
        .with(Tool::new("twice", twice))
        .with(Tool::new("together", together))
        .with(Tool::new("page", page))
        .with(counting(times))
        .with(beside(times))
        .with(Tool::new("again", again))
        .with(Tool::new("inside", inside))
        .with(Prompt::new("signed", sign))
        .with(Resource::new("desk:signed", "signed", sign));
    Arc::new(server.build().unwrap())
}

fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

async fn everywhere(capabilities: &Value, body: impl AsyncFn(Talk<Server>)) {
    serve_everywhere(|| desk(&Arc::default()), capabilities, body).await;
}

/// What a willing client answers.
fn willing(question: &Value) -> Option<Value> {
    Some(match question["method"].as_str().unwrap() {
        "elicitation/create" => json!({"action": "accept", "content": {"name": "Ada"}}),
        "sampling/createMessage" => json!({
            "role": "assistant",
            "model": "m",
            "content": {"type": "text", "text": question["params"]["messages"][0]["content"]["text"]},
        }),
        "roots/list" => json!({"roots": [{"uri": "file:///work"}]}),
        other => panic!("it asks {other}"),
    })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

#[tokio::test]
async fn questions_are_asked_and_answered() {
    everywhere(&everything(), async |mut talk| {
        for (tool, expect) in [
            ("sign", "Ada None"),
            ("twice", "m: Ada None"),
            ("together", "Ada None q file:///work"),
            ("page", "went"),
        ] {
            let answer = talk.converse(json!({"name": tool}), willing).await;
            assert_eq!(text(&answer), expect, "{tool}");
        }
        for (action, expect) in [("decline", "declined"), ("cancel", "cancelled")] {
            let given = |_: &Value| Some(json!({"action": action}));
            let answer = talk.converse(json!({"name": "sign"}), given).await;
            assert_eq!(text(&answer), expect);
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_must_fit_its_question() {
    everywhere(&everything(), async |mut talk| {
        for odd in [
            json!({"action": "accept", "content": {"name": 1}}),
            json!({"action": "accept", "content": {"name": "Ada", "age": 256}}),
            json!({"action": "accept"}),
            json!({"action": "perhaps"}),
            json!({}),
        ] {
            let answer = talk.converse(json!({"name": "sign"}), |_| Some(odd.clone())).await;
            assert_eq!(code(&answer), -32602, "{odd}");
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_is_asked_that_was_not_declared() {
    everywhere(&json!({"elicitation": {}}), async |mut talk| {
        assert_eq!(text(&talk.converse(json!({"name": "sign"}), willing).await), "Ada None");
        for (tool, required) in
            [("page", json!({"elicitation": {"url": {}}})), ("twice", json!({"sampling": {}}))]
        {
            let answer = talk.converse(json!({"name": tool}), willing).await;
            assert_eq!(code(&answer), -32021, "{tool}");
            assert_eq!(answer["error"]["data"]["requiredCapabilities"], required, "{tool}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_done_once_is_done_once_in_all_rounds() {
    for (era, socket) in
        [(Era::Modern, false), (Era::Modern, true), (Era::Legacy, false), (Era::Legacy, true)]
    {
        let times = Arc::new(AtomicUsize::new(0));
        let mut talk = Talk::new(desk(&times), era, socket, &everything()).await;
        let answer = talk.converse(json!({"name": "counting"}), willing).await;
        assert_eq!(text(&answer), "1 m: Ada None");
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn what_is_done_once_is_not_broken_off_by_a_question_beside_it() {
    for (era, socket) in
        [(Era::Modern, false), (Era::Modern, true), (Era::Legacy, false), (Era::Legacy, true)]
    {
        let times = Arc::new(AtomicUsize::new(0));
        let mut talk = Talk::new(desk(&times), era, socket, &everything()).await;
        let answer = talk.converse(json!({"name": "beside"}), willing).await;
        assert_eq!(text(&answer), "Ada None 1");
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }
}

/// A modern client would give the same answer for ever, so it is a fault in both eras.
#[tokio::test]
async fn a_key_is_for_one_question() {
    everywhere(&everything(), async |mut talk| {
        for (tool, part) in
            [("again", "was asked under before"), ("inside", "nothing can be asked")]
        {
            let answer = talk.converse(json!({"name": tool}), willing).await;
            assert_eq!(code(&answer), -32603, "{tool}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_was_settled_in_a_round_stays_settled() {
    let mut client = Client::of(desk(&Arc::default()), StdioOptions::default());
    let mut ask = async |message: Value| {
        client.send(&message.to_string()).await;
        client.next().await["result"].clone()
    };
    let signed = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let first = ask(call(1, "twice", json!({}))).await;
    let answered = json!({
        "inputResponses": {"signature": signed("Ada"), "model": {"early": true}},
        "requestState": first["requestState"],
    });
    let second = ask(call(2, "twice", answered)).await;
    let question = &second["inputRequests"]["model"]["params"]["messages"][0]["content"]["text"];
    assert_eq!(question, "Ada None", "nothing was asked under `model` yet: {second}");
    let answered = json!({
        "inputResponses": {
            "signature": signed("Mallory"),
            "model": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}},
        },
        "requestState": second["requestState"],
    });
    let third = ask(call(3, "twice", answered.clone())).await;
    assert_eq!(third["content"][0]["text"], "m: x");
    // What the model was asked still came of the first answer.
    let mut replayed = answered;
    replayed["inputResponses"].as_object_mut().unwrap().remove("model");
    let again = ask(call(4, "twice", replayed)).await;
    let question = &again["inputRequests"]["model"]["params"]["messages"][0]["content"]["text"];
    assert_eq!(question, "Ada None", "{again}");
}

#[tokio::test]
async fn parameters_that_cannot_be_compared_carry_no_state() {
    let mut client = Client::of(desk(&Arc::default()), StdioOptions::default());
    let call = call(1, "sign", json!({})).to_string();
    for junk in ["[".repeat(200) + &"]".repeat(200), "1e400".to_owned()] {
        let odd = call.replacen("\"_meta\"", &format!("\"junk\":{junk},\"_meta\""), 1);
        assert_ne!(odd, call);
        client.send(&odd).await;
        assert_eq!(code(&client.next().await), -32602);
    }
}

fn call(id: i64, tool: &str, more: Value) -> Value {
    let mut params = more;
    params["name"] = tool.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = everything();
    modern(id, "tools/call", params)
}

#[tokio::test]
async fn a_state_that_was_changed_or_is_for_something_else_is_refused() {
    let mut client = Client::of(desk(&Arc::default()), StdioOptions::default());
    let mut ask = async |message: Value| {
        client.send(&message.to_string()).await;
        client.next().await
    };
    let asked = ask(call(1, "twice", json!({"arguments": {}}))).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let given = json!({"signature": {"action": "decline"}});
    let retry =
        |state: Value| json!({"arguments": {}, "inputResponses": given, "requestState": state});
    let good = ask(call(2, "twice", retry(state.clone().into()))).await;
    assert_eq!(good["result"]["resultType"], "input_required", "{good}");
    for odd in [json!(format!("{state}x")), json!("x"), json!(""), json!(7)] {
        let answer = ask(call(3, "twice", retry(odd.clone()))).await;
        assert_eq!(code(&answer), -32602, "{odd}: {answer}");
    }
    let other = ask(call(4, "sign", retry(state.clone().into()))).await;
    assert_eq!(code(&other), -32602, "another tool's");
    // Answers of a wrong shape are asked for again, or refused.
    let odd = json!({"arguments": {}, "inputResponses": {"signature": 1}});
    let again = ask(call(5, "sign", odd)).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let odd = json!({"arguments": {}, "inputResponses": []});
    assert_eq!(code(&ask(call(6, "sign", odd)).await), -32602);
}

#[tokio::test]
async fn replicas_with_one_key_answer_for_each_other() {
    let replica = |key: u8| {
        let state_key = Some(StateKey::new([key; 32]));
        Client::of(desk(&Arc::default()), StdioOptions { state_key, ..StdioOptions::default() })
    };
    let (mut first, mut second, mut stranger) = (replica(1), replica(1), replica(2));
    first.send(&call(1, "sign", json!({})).to_string()).await;
    let state = first.next().await["result"]["requestState"].clone();
    let given = json!({"signature": {"action": "cancel"}});
    let retry = call(2, "sign", json!({"inputResponses": given, "requestState": state}));
    second.send(&retry.to_string()).await;
    assert_eq!(text(&second.next().await), "cancelled");
    stranger.send(&retry.to_string()).await;
    assert_eq!(code(&stranger.next().await), -32602);
}

#[tokio::test]
async fn prompts_and_resources_may_ask_too() {
    let mut client = Client::of(desk(&Arc::default()), StdioOptions::default());
    for (method, named, member) in [
        ("prompts/get", json!({"name": "signed"}), "messages"),
        ("resources/read", json!({"uri": "desk:signed"}), "contents"),
    ] {
        let mut params = named;
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = everything();
        client.send(&modern(1, method, params.clone()).to_string()).await;
        let asked = client.next().await["result"].clone();
        fits("2026-07-28", "InputRequiredResult", &asked);
        assert!(asked.get("ttlMs").is_none(), "an open question is nothing to keep");
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({"signature": {"action": "decline"}});
        client.send(&modern(2, method, params).to_string()).await;
        let answer = client.next().await;
        assert!(answer["result"][member].to_string().contains("declined"), "{answer}");
        if method == "resources/read" {
            let kept = (&answer["result"]["ttlMs"], &answer["result"]["cacheScope"]);
            assert_eq!(kept, (&0.into(), &"private".into()), "made for this client alone");
        }
    }
}

async fn legacy_client(options: StdioOptions) -> Client<Server> {
    let mut client = Client::of(desk(&Arc::default()), options);
    client.send(&initialize_as("2025-11-25", &everything()).to_string()).await;
    client.next().await;
    client
}

#[tokio::test]
async fn a_legacy_client_may_refuse_stay_silent_or_give_the_call_up() {
    let options = StdioOptions { answer_ms: 100, ..StdioOptions::default() };
    let mut client = legacy_client(options).await;
    let sign = |id: i64| legacy(id, "tools/call", json!({"name": "sign"})).to_string();
    client.send(&sign(2)).await;
    let asked = client.next().await["id"].clone();
    let refusal = json!({"code": -32000, "message": "not now"});
    client.send(&json!({"jsonrpc": "2.0", "id": asked, "error": refusal}).to_string()).await;
    let refused = client.next().await;
    assert_eq!(code(&refused), -32603, "its code is between the two of them");
    assert_eq!(refused["error"]["data"]["client"]["code"], -32000);

    client.send(&sign(3)).await;
    let asked = client.next().await["id"].clone();
    let told = client.next().await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&"notifications/cancelled".into(), &asked,)
    );
    assert_eq!(code(&client.next().await), -32603, "it waited long enough");
    // Late is late, and harms nothing.
    client.send(&json!({"jsonrpc": "2.0", "id": asked, "result": {}}).to_string()).await;
    client.send(&json!({"jsonrpc": "2.0", "id": 4_711, "result": {}}).to_string()).await;

    client.send(&sign(4)).await;
    let asked = client.next().await["id"].clone();
    let gone =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}});
    client.send(&gone.to_string()).await;
    client.send(&json!({"jsonrpc": "2.0", "id": asked, "result": {}}).to_string()).await;
    client.send(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
    assert_eq!(client.next().await["id"], 5);
}

#[tokio::test]
async fn over_http_a_question_needs_a_stream_and_an_end_of_the_session_ends_it() {
    let server = Socket::of(desk(&Arc::default()), HttpOptions::default()).await;
    let session = server.session_of(&initialize_as("2025-11-25", &everything())).await;
    let message = legacy(2, "tools/call", json!({"name": "sign"}));
    let plain = [
        ("Mcp-Session-Id", session.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
    ];
    let reply = server.send("POST", &plain, &message.to_string()).await;
    assert_eq!(code(&reply.json()), -32603, "nothing can be asked: {}", reply.body);
    // A batch by the same client has no stream either.
    let old = server.session_of(&initialize_as("2025-03-26", &everything())).await;
    let batch = [("Mcp-Session-Id", old.as_str()), plain[1], plain[2]];
    let reply = server.send("POST", &batch, &json!([message]).to_string()).await;
    assert_eq!(code(&reply.json()[0]), -32603, "{}", reply.body);
    // Who hangs up before the answer can be asked nothing more, and the call goes on without.
    let mut lost = server
        .begin(
            &[("Mcp-Session-Id", &session)],
            &legacy(9, "tools/call", json!({"name": "together"})),
        )
        .await;
    crate::http::read_until(&mut lost, "elicitation/create").await;
    drop(lost);
    let taken = legacy(9, "tools/call", json!({"name": "page"}));
    let mut waited = Duration::ZERO;
    // Its id is free once the call ended, which it does long before the patience for an answer.
    loop {
        let mut stream = server.begin(&[("Mcp-Session-Id", &session)], &taken).await;
        if !crate::http::read_until(&mut stream, "jsonrpc").await.contains("is running") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        waited += Duration::from_millis(10);
        assert!(waited < SOON, "the call waits for an answer that cannot come");
    }
    let mut stream = server.begin(&[("Mcp-Session-Id", &session)], &message).await;
    crate::http::read_until(&mut stream, "elicitation/create").await;
    let reply = server.send("DELETE", &[("Mcp-Session-Id", &session)], "").await;
    assert_eq!(reply.status, 204);
    let rest = timeout(SOON, crate::http::Reply::rest(stream)).await.expect("it ends");
    assert!(!rest.contains("result"), "{rest}");
    let reply = server
        .post(&[("Mcp-Session-Id", &session)], &json!({"jsonrpc":"2.0","id":1,"result":{}}))
        .await;
    assert_eq!(reply.status, 404);
    // A modern client is none of its business.
    let modern = call(3, "sign", json!({}));
    let reply = server.post(&mirror(&modern), &modern).await;
    assert_eq!(reply.json()["result"]["resultType"], "input_required");
}
