//! Over HTTP, byte by byte.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};
use toolcrib_serve::{EraSupport, HttpOptions, ListKind, serve_http};

use crate::house::{House, SOON, code, fits, initialize, legacy, modern};

pub(crate) struct Server {
    pub(crate) house: Arc<House>,
    address: String,
    stop: Option<oneshot::Sender<()>>,
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
    pub(crate) async fn new(era: EraSupport) -> Self {
        Self::with(HttpOptions { era, ..HttpOptions::default() }).await
    }

    async fn with(options: HttpOptions) -> Self {
        let house = House::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let handler = Arc::clone(&house);
        tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            serve_http(listener, handler, options, shutdown).await
        });
        Self { house, address, stop: Some(stop) }
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

    async fn send(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> Reply {
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

    async fn modern(&self, message: &Value) -> Reply {
        self.post(&mirror(message), message).await
    }

    /// Starts a session; gives its id.
    pub(crate) async fn session(&self, version: &str) -> String {
        let reply = self.post(&[], &initialize(version)).await;
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
