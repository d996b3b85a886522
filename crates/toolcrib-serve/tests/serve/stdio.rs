//! Over a pipe.

use std::{io, sync::Arc};

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use toolcrib_serve::{EraSupport, Handler, ListKind, StdioOptions, serve_stdio};

use crate::house::{House, SOON, code, fits, initialize, legacy, modern};

pub(crate) struct Client<H = House> {
    pub(crate) house: Arc<H>,
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<io::Result<()>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Client {
    fn new(era: EraSupport) -> Self {
        Self::with(StdioOptions { era, ..StdioOptions::default() })
    }

    fn with(options: StdioOptions) -> Self {
        Self::of(House::new(), options)
    }
}

impl<H: Handler> Client<H> {
    pub(crate) fn of(house: Arc<H>, options: StdioOptions) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(theirs);
        let (stop, stopped) = oneshot::channel::<()>();
        let handler: Arc<dyn Handler> = Arc::<H>::clone(&house);
        let serving = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            serve_stdio(handler, reader, writer, options, shutdown).await
        });
        let (read, write) = tokio::io::split(ours);
        let lines = BufReader::new(read).lines();
        Self { house, write, lines, serving, stop: Some(stop) }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.write.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        timeout(SOON, self.lines.next_line()).await.expect("an answer in time").unwrap().unwrap()
    }

    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(&message.to_string()).await;
        self.next().await
    }
}

#[tokio::test]
async fn a_modern_client_is_served_without_a_handshake() {
    let mut client = Client::new(EraSupport::Dual);
    let answer = client.ask(modern("a", "server/discover", json!({}))).await;
    fits("2026-07-28", "DiscoverResult", &answer["result"]);
    assert_eq!(answer["id"], "a");
    assert_eq!(answer["result"]["instructions"], "Knock first.");
    let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "house");
    let answer = client.ask(modern(2, "tools/list", json!({}))).await;
    fits("2026-07-28", "ListToolsResult", &answer["result"]);
    assert_eq!(
        (&answer["result"]["ttlMs"], &answer["result"]["cacheScope"]),
        (&json!(5_000), &json!("public"))
    );
    let answer = client.ask(modern(3, "tools/call", json!({"name": "knock"}))).await;
    fits("2026-07-28", "CallToolResult", &answer["result"]);
    assert_eq!(code(&client.ask(modern(4, "tools/call", json!({"name": "no"}))).await), -32602);
}

#[tokio::test]
async fn what_a_handler_wrote_is_passed_on_to_the_letter() {
    for era in ["modern", "legacy"] {
        let mut client = Client::new(EraSupport::Dual);
        let request = if era == "modern" {
            modern(1, "tools/list", json!({}))
        } else {
            client.ask(initialize("2025-11-25")).await;
            legacy(2, "tools/list", json!({}))
        };
        client.send(&request.to_string()).await;
        let line = client.line().await;
        assert!(line.contains(r#""x-weight":1.0e2"#), "{era}: {line}");
        assert_eq!(line.contains("resultType"), era == "modern", "{line}");
    }
}

#[tokio::test]
async fn each_legacy_version_is_echoed_and_any_other_answered_with_the_newest() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut client = Client::new(EraSupport::Dual);
        let answer = client.ask(initialize(asked)).await;
        fits("2025-11-25", "InitializeResult", &answer["result"]);
        assert_eq!(answer["result"]["protocolVersion"], answered, "{asked}");
        let pong = client.ask(legacy(2, "ping", json!({}))).await;
        assert_eq!(pong["result"], json!({}));
    }
}

#[tokio::test]
async fn a_modern_request_needs_its_meta_and_a_version_that_is_served() {
    let mut client = Client::new(EraSupport::Dual);
    let mut request = modern(1, "tools/list", json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let answer = client.ask(request).await;
    assert_eq!(code(&answer), -32022);
    assert_eq!(answer["error"]["data"]["requested"], "2031-01-01");
    assert!(
        answer["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28"))
    );
    let mut request = modern(2, "tools/list", json!({}));
    let meta = request["params"]["_meta"].as_object_mut().unwrap();
    meta.remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(code(&client.ask(request).await), -32602);
    for gone in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        assert_eq!(code(&client.ask(modern(3, gone, json!({}))).await), -32601, "{gone}");
    }
}

#[tokio::test]
async fn a_server_of_one_era_says_so() {
    let mut client = Client::new(EraSupport::Modern);
    let answer = client.ask(initialize("2025-11-25")).await;
    assert_eq!(code(&answer), -32022);
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));
    let mut client = Client::new(EraSupport::Legacy);
    let answer = client.ask(modern(1, "server/discover", json!({}))).await;
    assert_eq!(code(&answer), -32601);
}

#[tokio::test]
async fn a_listener_hears_what_it_asked_for_and_nothing_else() {
    let mut client = Client::new(EraSupport::Dual);
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourcesListChanged": true}});
    let ack = client.ask(modern("sub", "subscriptions/listen", wanted)).await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    fits("2026-07-28", "SubscriptionsAcknowledgedNotification", &ack);
    // Resources are not declared, so they are not honoured.
    assert_eq!(ack["params"]["notifications"], json!({"toolsListChanged": true}));
    client.house.change(ListKind::Prompts);
    client.house.change(ListKind::Tools);
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
}

#[tokio::test]
async fn a_legacy_client_is_told_of_changes_unasked() {
    let mut client = Client::new(EraSupport::Dual);
    client.ask(initialize("2025-06-18")).await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.ask(legacy(2, "ping", json!({}))).await;
    client.house.change(ListKind::Tools);
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_running_request_holds_up_no_other_and_can_be_given_up() {
    let mut client = Client::new(EraSupport::Dual);
    client.send(&modern(1, "tools/call", json!({"name": "wait"})).to_string()).await;
    let answer = client.ask(modern(2, "tools/call", json!({"name": "knock"}))).await;
    assert_eq!(answer["id"], 2);
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    let answer = client.ask(modern(3, "tools/call", json!({"name": "knock"}))).await;
    assert_eq!(answer["id"], 3);
}

#[tokio::test]
async fn what_is_no_request_is_an_error_and_ends_nothing() {
    let mut client = Client::new(EraSupport::Dual);
    client.send("{broken").await;
    assert_eq!(code(&client.next().await), -32700);
    let answer = client.ask(modern(1, "tools/call", json!({"name": "knock"}))).await;
    assert_eq!(answer["id"], 1);
}

#[tokio::test]
async fn the_end_of_input_ends_the_serving_with_a_word_to_listeners() {
    let mut client = Client::new(EraSupport::Dual);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    client.ask(modern(7, "subscriptions/listen", wanted)).await;
    client.write.shutdown().await.unwrap();
    let last = client.next().await;
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(7), &json!("complete")));
    timeout(SOON, client.serving).await.expect("an end in time").unwrap().unwrap();
}

#[tokio::test]
async fn a_running_request_may_end_after_the_input_did() {
    let mut client = Client::new(EraSupport::Dual);
    client.send(&initialize("2025-11-25").to_string()).await;
    client.next().await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.send(&legacy(2, "tools/call", json!({"name": "linger"})).to_string()).await;
    client.write.shutdown().await.unwrap();
    let mut told = [client.next().await, client.next().await];
    told.sort_by_key(|message| message["id"].is_null());
    assert_eq!(told[0]["result"]["content"][0]["text"], "come in");
    assert_eq!(told[1]["method"], "notifications/tools/list_changed");
    timeout(SOON, client.serving).await.expect("an end in time").unwrap().unwrap();
}

#[tokio::test]
async fn what_does_not_end_in_time_is_dropped() {
    let mut client = Client::with(StdioOptions { drain_ms: 50, ..StdioOptions::default() });
    client.send(&modern(1, "tools/call", json!({"name": "wait"})).to_string()).await;
    timeout(SOON, client.house.waiting.notified()).await.unwrap();
    client.write.shutdown().await.unwrap();
    timeout(SOON, client.serving).await.expect("an end in time").unwrap().unwrap();
    timeout(SOON, client.house.left.notified()).await.expect("it was dropped");
}

#[tokio::test]
async fn the_word_to_stop_ends_a_change_stream_with_its_result() {
    let mut client = Client::new(EraSupport::Dual);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    client.ask(modern("s", "subscriptions/listen", wanted)).await;
    drop(client.stop.take());
    let last = client.next().await;
    fits("2026-07-28", "SubscriptionsListenResult", &last["result"]);
    assert_eq!(last["id"], "s");
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    let said = client.next().await;
    assert_eq!(said["method"], "notifications/cancelled");
    assert_eq!(said["params"]["requestId"], "s");
    timeout(SOON, client.serving).await.expect("an end in time").unwrap().unwrap();
}

#[tokio::test]
async fn a_change_stream_that_is_given_up_falls_silent() {
    let mut client = Client::new(EraSupport::Dual);
    for id in [1, 2] {
        let wanted = json!({"notifications": {"resourceSubscriptions": ["door:front"]}});
        let ack = client.ask(modern(id, "subscriptions/listen", wanted.clone())).await;
        assert_eq!(ack["params"]["notifications"], wanted["notifications"]);
    }
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    client.ask(modern(3, "tools/list", json!({}))).await;
    client.house.rewrite("door:back");
    client.house.rewrite("door:front");
    let told = client.next().await;
    fits("2026-07-28", "ResourceUpdatedNotification", &told);
    assert_eq!(told["params"]["uri"], "door:front");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 2);
    assert_eq!(client.ask(modern(4, "tools/list", json!({}))).await["id"], 4);
}

#[tokio::test]
async fn a_legacy_client_follows_a_resource_until_it_does_not() {
    let mut client = Client::new(EraSupport::Dual);
    client.ask(initialize("2025-11-25")).await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.ask(legacy(2, "resources/subscribe", json!({"uri": "door:front"}))).await;
    client.house.rewrite("door:back");
    client.house.rewrite("door:front");
    let told = client.next().await;
    fits("2025-11-25", "ResourceUpdatedNotification", &told);
    assert_eq!(told["params"], json!({"uri": "door:front"}));
    client.ask(legacy(3, "resources/unsubscribe", json!({"uri": "door:front"}))).await;
    client.house.rewrite("door:front");
    assert_eq!(client.ask(legacy(4, "ping", json!({}))).await["id"], 4);
}

#[tokio::test]
async fn batches_belong_to_the_first_two_revisions() {
    let batch = json!([
        legacy(2, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        legacy("three", "tools/call", json!({"name": "knock"})),
        7,
    ]);
    for version in ["2024-11-05", "2025-03-26"] {
        let mut client = Client::new(EraSupport::Dual);
        client.ask(initialize(version)).await;
        client.send(&batch.to_string()).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let answer = client.next().await;
            assert!(answer["id"].is_null() || answer["error"].is_null(), "{answer}");
            ids.push(answer["id"].to_string());
        }
        ids.sort();
        assert_eq!(ids, [r#""three""#, "2", "null"], "{version}");
    }
    for version in [None, Some("2025-06-18"), Some("2025-11-25")] {
        let mut client = Client::new(EraSupport::Dual);
        if let Some(version) = version {
            client.ask(initialize(version)).await;
        }
        assert_eq!(code(&client.ask(batch.clone()).await), -32600, "{version:?}");
        assert_eq!(client.ask(legacy(9, "ping", json!({}))).await["id"], 9);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ids_are_judged_and_can_be_used_again() {
    let mut client = Client::new(EraSupport::Dual);
    let call = |tool: &str| modern(1, "tools/call", json!({"name": tool}));
    // The client is another thread: it may be faster than what follows an answer.
    for _ in 0..2_000 {
        let answer = client.ask(call("knock")).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    client.send(&call("wait").to_string()).await;
    assert_eq!(code(&client.ask(call("knock")).await), -32600);
    for odd in [json!(1.5), json!(true), json!({}), json!([1])] {
        let answer = client.ask(modern(odd.clone(), "tools/list", json!({}))).await;
        assert_eq!((code(&answer), answer.get("id")), (-32600, None), "{odd}");
    }
}

#[tokio::test]
async fn a_request_needs_a_handshake_or_its_meta() {
    let mut client = Client::new(EraSupport::Dual);
    assert_eq!(code(&client.ask(legacy(1, "tools/list", json!({}))).await), -32602);
    assert!(client.ask(legacy(2, "ping", json!({}))).await["result"].is_object());
    client.ask(initialize("2025-11-25")).await;
    assert_eq!(code(&client.ask(initialize("2025-11-25")).await), -32600);
    assert!(client.ask(legacy(3, "tools/list", json!({}))).await["result"].is_object());
    // Both eras may be spoken on one pipe.
    let answer = client.ask(modern(4, "tools/list", json!({}))).await;
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_line_over_the_limit_ends_the_serving() {
    let mut options = StdioOptions::default();
    options.limits.message_bytes = 1_000;
    let mut client = Client::with(options);
    client.send(&"x".repeat(2_000)).await;
    let ended = timeout(SOON, client.serving).await.expect("an end in time").unwrap();
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

/// A cancelled request leaves its place at once, however many come in one go.
#[tokio::test]
async fn cancelled_requests_take_no_room() {
    let mut client = Client::new(EraSupport::Dual);
    let mut burst = String::new();
    for id in 0..1_000 {
        let told = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": id},
        });
        let wait = modern(id, "tools/call", json!({"name": "wait"}));
        burst += &format!("{wait}\n{told}\n");
    }
    client.send(burst.trim_end()).await;
    let answer = client.ask(modern("last", "tools/call", json!({"name": "knock"}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "come in", "{answer}");
}
