//! Over HTTP, byte by byte.

use std::{io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use toolcrib_serve::{EraSupport, Handler, HttpOptions, ListKind, serve_http};

use crate::house::{House, SOON, code, fits, initialize, legacy, modern};

pub(crate) struct Server<H = House> {
    pub(crate) house: Arc<H>,
    pub(crate) address: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The messages, be it one or an event stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.header("content-type") != Some("text/event-stream") {
            return vec![self.json()];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Reply {
    /// Whatever a connection still brings.
    pub(crate) async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads a connection to its end.
    pub(crate) async fn of(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("an answer in time").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }
}

impl Server {
    async fn new(era: EraSupport) -> Self {
        Self::with(HttpOptions { era, ..HttpOptions::default() }).await
    }

    async fn with(options: HttpOptions) -> Self {
        Self::of(House::new(), options).await
    }
}

impl<H: Handler> Server<H> {
    pub(crate) async fn of(house: Arc<H>, options: HttpOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let handler: Arc<dyn Handler> = Arc::<H>::clone(&house);
        let serving = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            serve_http(listener, handler, options, shutdown).await
        });
        Self { house, address, stop: Some(stop), serving }
    }

    /// Sends a request and gives the open connection.
    async fn open(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let mut head = format!("{verb} /mcp HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request without a body and gives the open connection.
    pub(crate) async fn send_only(&self, verb: &str, headers: &[(&str, &str)]) -> TcpStream {
        self.open(verb, headers, "").await
    }

    pub(crate) async fn send(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        Reply::of(self.open(verb, headers, body).await).await
    }

    /// Posts a message and gives the open connection.
    pub(crate) async fn begin(&self, more: &[(&str, &str)], message: &Value) -> TcpStream {
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        headers.extend_from_slice(more);
        self.open("POST", &headers, &message.to_string()).await
    }

    pub(crate) async fn post(&self, more: &[(&str, &str)], message: &Value) -> Reply {
        Reply::of(self.begin(more, message).await).await
    }

    pub(crate) async fn modern(&self, message: &Value) -> Reply {
        self.post(&mirror(message), message).await
    }

    /// Starts a session; gives its id.
    async fn session(&self, version: &str) -> String {
        self.session_of(&initialize(version)).await
    }

    pub(crate) async fn session_of(&self, initialize: &Value) -> String {
        let reply = self.post(&[], initialize).await;
        let id = reply.header("mcp-session-id").expect("a session").to_owned();
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&[("Mcp-Session-Id", &id)], &told).await.status, 202);
        id
    }
}

/// The headers that say what a modern message says.
pub(crate) fn mirror(message: &Value) -> Vec<(&str, &str)> {
    let params = &message["params"];
    let mut headers = vec![("MCP-Protocol-Version", "2026-07-28")];
    headers.extend(message["method"].as_str().map(|method| ("Mcp-Method", method)));
    let name = params["name"].as_str().or(params["uri"].as_str());
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    headers
}

/// Reads until `part` has come.
pub(crate) async fn read_until(stream: &mut TcpStream, part: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0_u8; 4_096];
    while !text.contains(part) {
        let read = timeout(SOON, stream.read(&mut buffer)).await.expect("more in time").unwrap();
        assert_ne!(read, 0, "{part:?} never came: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    text
}

#[tokio::test]
async fn a_modern_client_is_served_by_single_posts() {
    let server = Server::new(EraSupport::Dual).await;
    let reply = server.modern(&modern(1, "server/discover", json!({}))).await;
    assert_eq!(reply.status, 200);
    fits("2026-07-28", "DiscoverResult", &reply.json()["result"]);
    let reply = server.modern(&modern(2, "tools/call", json!({"name": "knock"}))).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "come in");
    assert_eq!(reply.header("mcp-session-id"), None);
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let server = Server::new(EraSupport::Dual).await;
    let call = modern(5, "tools/call", json!({"name": "knock"}));
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    for headers in [
        vec![version, method],
        vec![version, method, ("Mcp-Name", "other")],
        vec![version, ("Mcp-Method", "tools/list"), ("Mcp-Name", "knock")],
        vec![version, ("Mcp-Name", "knock")],
        vec![("MCP-Protocol-Version", "2025-11-25"), method, ("Mcp-Name", "knock")],
        vec![method, ("Mcp-Name", "knock")],
        vec![version, method, ("Mcp-Name", "knock"), ("Mcp-Name", "knock")],
        vec![version, method, ("Mcp-Name", "=?base64?a25v*?=")],
    ] {
        let reply = server.post(&headers, &call).await;
        assert_eq!((reply.status, code(&reply.json())), (400, -32020), "{headers:?}");
        assert_eq!(reply.json()["id"], 5);
    }
    // "knock" in the Base64 sentinel.
    let reply = server.post(&[version, method, ("Mcp-Name", "=?base64?a25vY2s=?=")], &call).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn errors_have_the_status_of_their_kind() {
    let server = Server::new(EraSupport::Dual).await;
    for gone in ["initialize", "ping", "logging/setLevel", "resources/unsubscribe", "no/such"] {
        let reply = server.modern(&modern(1, gone, json!({}))).await;
        assert_eq!((reply.status, code(&reply.json())), (404, -32601), "{gone}");
    }
    let mut request = modern(2, "tools/list", json!({}));
    let meta = request["params"]["_meta"].as_object_mut().unwrap();
    meta.remove("io.modelcontextprotocol/clientCapabilities");
    let reply = server.modern(&request).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32602));
    let reply = server.send("POST", &[("Content-Type", "application/json")], "{broken").await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32700));
    assert_eq!(server.send("PUT", &[], "").await.status, 405);
}

#[tokio::test]
async fn strangers_are_sent_away() {
    let server = Server::new(EraSupport::Dual).await;
    let request = modern(1, "server/discover", json!({}));
    for header in [
        ("Host", "evil.example"),
        ("Origin", "https://evil.example"),
        ("Origin", "https://127.0.0.1.evil.example"),
        ("Origin", "null"),
    ] {
        let reply = server.post(&[header], &request).await;
        assert_eq!(reply.status, 403, "{header:?}");
    }
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "server/discover");
    let reply =
        server.post(&[("Origin", "http://localhost:3000"), version, method], &request).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn a_legacy_client_has_a_session() {
    let server = Server::new(EraSupport::Dual).await;
    let reply = server.post(&[], &initialize("2025-06-18")).await;
    fits("2025-11-25", "InitializeResult", &reply.json()["result"]);
    let id = reply.header("mcp-session-id").expect("a session").to_owned();
    assert!(id.len() >= 16 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
    let session = ("Mcp-Session-Id", id.as_str());
    let version = ("MCP-Protocol-Version", "2025-06-18");
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post(&[session, version], &told).await.status, 202);
    let list = legacy(2, "tools/list", json!({}));
    let reply = server.post(&[session, version], &list).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(server.post(&[version], &list).await.status, 400);
    assert_eq!(server.post(&[("Mcp-Session-Id", "no-such"), version], &list).await.status, 404);
    let mut stream =
        server.open("GET", &[session, version, ("Accept", "text/event-stream")], "").await;
    read_until(&mut stream, "text/event-stream").await;
    server.house.change(ListKind::Tools);
    read_until(&mut stream, "notifications/tools/list_changed").await;
    assert!(server.send("DELETE", &[session], "").await.status < 300);
    assert_eq!(server.post(&[session, version], &list).await.status, 404);
}

#[tokio::test]
async fn a_modern_server_has_no_sessions() {
    let server = Server::new(EraSupport::Modern).await;
    assert_eq!(server.send("GET", &[("Accept", "text/event-stream")], "").await.status, 405);
    assert_eq!(server.send("DELETE", &[], "").await.status, 405);
    let reply = server.post(&[], &initialize("2025-11-25")).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32022));
}

#[tokio::test]
async fn a_change_stream_is_acknowledged_tagged_and_ended() {
    let mut server = Server::new(EraSupport::Dual).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let request = modern(41, "subscriptions/listen", wanted).to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    let mut stream = server.open("POST", &headers, &request).await;
    read_until(&mut stream, "notifications/subscriptions/acknowledged").await;
    server.house.change(ListKind::Tools);
    let told = read_until(&mut stream, "notifications/tools/list_changed").await;
    assert!(told.contains(r#""io.modelcontextprotocol/subscriptionId":41"#), "{told}");
    drop(server.stop.take());
    let last = read_until(&mut stream, r#""result""#).await;
    assert!(last.contains(r#""id":41"#), "{last}");
}

#[tokio::test]
async fn what_is_malformed_is_a_bad_request() {
    let server = Server::new(EraSupport::Dual).await;
    let discover = modern(1, "server/discover", json!({}));
    for key in ["protocolVersion", "clientCapabilities"] {
        let mut request = discover.clone();
        let meta = request["params"]["_meta"].as_object_mut().unwrap();
        meta.remove(&format!("io.modelcontextprotocol/{key}"));
        let reply = server.modern(&request).await;
        assert_eq!((reply.status, code(&reply.json())), (400, -32602), "{key}");
        assert_eq!(reply.json()["id"], 1);
    }
    let mut request = discover.clone();
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let headers = [("MCP-Protocol-Version", "2031-01-01"), ("Mcp-Method", "server/discover")];
    let reply = server.post(&headers, &request).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32022));
    fits("2026-07-28", "UnsupportedProtocolVersionError", &reply.json());
    let reply = server.post(&mirror(&discover), &json!([discover])).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32600));
    let reply = server.post(&[], &json!([discover])).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32600));
    let reply = server.modern(&modern(1.5, "server/discover", json!({}))).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32600));
    let reply = server.send("POST", &[("Content-Type", "text/plain")], "{}").await;
    assert_eq!(reply.status, 415);
    let kinds = [("Content-Type", "application/json"), ("Accept", "image/png")];
    assert_eq!(server.send("POST", &kinds, &discover.to_string()).await.status, 406);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let mut options = HttpOptions::default();
    options.limits.message_bytes = 1_000;
    let server = Server::with(options).await;
    let mut request = modern(1, "server/discover", json!({}));
    assert_eq!(server.modern(&request).await.status, 200);
    request["params"]["padding"] = "x".repeat(1_000).into();
    assert_eq!(server.modern(&request).await.status, 413);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = Server::with(HttpOptions { body_ms: 50, ..HttpOptions::default() }).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{",
        server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(Reply::of(stream).await.status, 408);
}

#[tokio::test]
async fn a_notification_is_taken_without_a_word() {
    let server = Server::new(EraSupport::Dual).await;
    let mut told = modern(1, "notifications/cancelled", json!({"requestId": 1}));
    told.as_object_mut().unwrap().remove("id");
    let reply = server.modern(&told).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
    let session = server.session("2025-11-25").await;
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let reply = server.post(&[("Mcp-Session-Id", &session)], &answer).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
    let reply = server.post(&mirror(&told), &answer).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32600));
}

#[tokio::test]
async fn a_legacy_server_knows_no_modern_client() {
    let server = Server::new(EraSupport::Legacy).await;
    // No code of the modern era: a client that tries both falls back on this.
    let reply = server.modern(&modern(1, "server/discover", json!({}))).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32601));
    let session = server.session("2025-11-25").await;
    let list = legacy(2, "tools/list", json!({}));
    let reply = server.post(&[("Mcp-Session-Id", &session)], &list).await;
    assert_eq!(reply.json()["result"].get("resultType"), None);
}

#[tokio::test]
async fn each_legacy_version_is_echoed_over_http_too() {
    let server = Server::new(EraSupport::Dual).await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("never", "2025-11-25"),
    ] {
        let reply = server.post(&[], &initialize(asked)).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], answered, "{asked}");
    }
    let session = server.session("2025-11-25").await;
    for (version, status) in [("2025-11-25", 200), ("2026-07-28", 400), ("never", 400)] {
        let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", version)];
        let reply = server.post(&headers, &legacy(2, "ping", json!({}))).await;
        assert_eq!(reply.status, status, "{version}: {}", reply.body);
    }
}

#[tokio::test]
async fn batches_belong_to_the_first_revision_over_http() {
    let server = Server::new(EraSupport::Dual).await;
    let session = server.session("2025-03-26").await;
    let id = ("Mcp-Session-Id", session.as_str());
    let batch = json!([
        legacy("a", "tools/call", json!({"name": "meet"})),
        legacy(2, "ping", json!({})),
        legacy(3, "tools/call", json!({"name": "meet"})),
        legacy(4, "no/such", json!({})),
        initialize("2025-03-26"),
        7,
    ]);
    let told = |messages: Vec<Value>| {
        let mut told: Vec<_> = messages
            .iter()
            .map(|answer| (answer["id"].to_string(), answer["error"]["code"].as_i64()))
            .collect();
        told.sort();
        told
    };
    let expected = [
        ("\"a\"".to_owned(), None),
        ("1".to_owned(), Some(-32600)),
        ("2".to_owned(), None),
        ("3".to_owned(), None),
        ("4".to_owned(), Some(-32601)),
        ("null".to_owned(), Some(-32600)),
    ];
    let reply = server.post(&[id], &batch).await;
    assert_eq!(told(reply.messages()), expected);
    let kinds = [("Content-Type", "application/json"), ("Accept", "application/json"), id];
    let reply = server.send("POST", &kinds, &batch.to_string()).await;
    assert_eq!(told(reply.json().as_array().unwrap().clone()), expected);
    let silent = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(server.post(&[id], &silent).await.status, 202);
    let session = server.session("2025-06-18").await;
    let reply = server.post(&[("Mcp-Session-Id", &session)], &batch).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32600));
}

#[tokio::test]
async fn a_lost_connection_gives_up_no_legacy_request() {
    let server = Server::new(EraSupport::Dual).await;
    let session = server.session("2025-11-25").await;
    let id = ("Mcp-Session-Id", session.as_str());
    let call = legacy(2, "tools/call", json!({"name": "linger"}));
    let mut standing = server.open("GET", &[id, ("Accept", "text/event-stream")], "").await;
    read_until(&mut standing, "text/event-stream").await;
    let stream = server.begin(&[id], &call).await;
    timeout(SOON, server.house.waiting.notified()).await.unwrap();
    drop(stream);
    read_until(&mut standing, "notifications/tools/list_changed").await;
    // The end of the session ends what runs in it.
    let _stream = server.begin(&[id], &legacy(3, "tools/call", json!({"name": "wait"}))).await;
    timeout(SOON, server.house.waiting.notified()).await.unwrap();
    assert_eq!(server.send("DELETE", &[id], "").await.status, 204);
    timeout(SOON, server.house.left.notified()).await.expect("it was dropped");
    timeout(SOON, standing.read_to_end(&mut Vec::new())).await.expect("its stream ended").unwrap();
}

#[tokio::test]
async fn changes_between_two_standing_streams_are_told() {
    let server = Server::new(EraSupport::Dual).await;
    let session = server.session("2025-11-25").await;
    let headers = [("Mcp-Session-Id", session.as_str()), ("Accept", "text/event-stream")];
    assert_eq!(server.send("GET", &[headers[0], ("Accept", "a/b")], "").await.status, 406);
    server.house.change(ListKind::Tools);
    let mut first = server.open("GET", &headers, "").await;
    read_until(&mut first, "notifications/tools/list_changed").await;
    let mut second = server.open("GET", &headers, "").await;
    read_until(&mut second, "text/event-stream").await;
    timeout(SOON, first.read_to_end(&mut Vec::new())).await.expect("the first ended").unwrap();
    server.house.change(ListKind::Tools);
    read_until(&mut second, "notifications/tools/list_changed").await;
    // The server runs on this thread: by then it has seen the end of the connection.
    drop(second);
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.house.change(ListKind::Tools);
    let mut third = server.open("GET", &headers, "").await;
    read_until(&mut third, "notifications/tools/list_changed").await;
}

#[tokio::test]
async fn the_session_unused_for_longest_makes_room() {
    let server = Server::with(HttpOptions { sessions: 2, ..HttpOptions::default() }).await;
    let [one, two] = [server.session("2025-11-25").await, server.session("2025-11-25").await];
    let ping = legacy(2, "ping", json!({}));
    assert_eq!(server.post(&[("Mcp-Session-Id", &one)], &ping).await.status, 200);
    let three = server.session("2025-11-25").await;
    for (session, status) in [(one, 200), (two, 404), (three, 200)] {
        assert_eq!(server.post(&[("Mcp-Session-Id", &session)], &ping).await.status, status);
    }
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let server = Server::with(HttpOptions { keep_alive_ms: 20, ..HttpOptions::default() }).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let request = modern("k", "subscriptions/listen", wanted);
    let mut stream = server.begin(&mirror(&request), &request).await;
    let head = read_until(&mut stream, "\r\n:\r\n\r\n").await.to_lowercase();
    assert!(head.contains("x-accel-buffering: no"), "{head}");
    assert!(head.contains(r#""io.modelcontextprotocol/subscriptionid":"k""#), "{head}");
}

#[tokio::test]
async fn a_running_request_may_end_after_the_word_to_stop() {
    let mut server = Server::new(EraSupport::Dual).await;
    let call = modern(1, "tools/call", json!({"name": "linger"}));
    let stream = server.begin(&mirror(&call), &call).await;
    timeout(SOON, server.house.waiting.notified()).await.unwrap();
    drop(server.stop.take());
    let waited = timeout(Duration::from_millis(50), &mut server.serving).await;
    assert!(waited.is_err(), "it did not wait for the request: {waited:?}");
    let reply = Reply::of(stream).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "come in");
    timeout(SOON, &mut server.serving).await.expect("an end in time").unwrap().unwrap();
    assert!(TcpStream::connect(&server.address).await.is_err(), "it still listens");
}
