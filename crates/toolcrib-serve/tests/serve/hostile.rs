//! What a client should not do, over HTTP: it gets the right refusal, and nobody else notices.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use toolcrib_serve::{
    HttpOptions,
    declare::{Server as Declared, Tool},
};

use crate::{
    house::{House, SOON, code, legacy, modern},
    http::{Reply, Server, mirror, read_until},
};

async fn house(options: HttpOptions) -> Server<House> {
    Server::of(House::new(), options).await
}

/// Somebody else is served, and soon.
async fn is_well(server: &Server<House>) {
    let call = modern(1, "tools/call", json!({"name": "knock"}));
    let reply = timeout(SOON, server.modern(&call)).await.expect("it is served");
    assert_eq!(reply.json()["result"]["content"][0]["text"], "come in");
}

async fn connect(server: &Server<House>, more: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         {more}\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn bodies_that_are_no_message_are_refused() {
    let server = house(HttpOptions::default()).await;
    let odd: [(&[u8], i64); 9] = [
        (b"", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}", -32700),
        (b"nonsense", -32700),
        (b"null", -32600),
        (b"[]", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
    ];
    for (body, expect) in odd {
        let mut stream = connect(&server, &format!("Content-Length: {}", body.len())).await;
        stream.write_all(body).await.unwrap();
        let reply = Reply::of(stream).await;
        let shown = String::from_utf8_lossy(body);
        assert_eq!((reply.status, code(&reply.json())), (400, expect), "{shown}");
    }
    is_well(&server).await;
}

/// A hundred megabytes, said in advance or not.
#[tokio::test]
async fn a_body_without_measure_is_cut_off() {
    let server = house(HttpOptions::default()).await;
    let reply = Reply::of(connect(&server, "Content-Length: 104857600").await).await;
    assert_eq!(reply.status, 413, "nothing of it was waited for");
    let mut stream = connect(&server, "Transfer-Encoding: chunked").await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let mut sent = 0;
    // An error says that the other side hung up.
    while sent < 100 && stream.write_all(chunk.as_bytes()).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "all of it was taken");
    is_well(&server).await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_call_with_it() {
    let server = house(HttpOptions::default()).await;
    let wait = modern(7, "tools/call", json!({"name": "wait"}));
    for _ in 0..20 {
        let stream = server.begin(&mirror(&wait), &wait).await;
        timeout(SOON, server.house.waiting.notified()).await.expect("it began");
        drop(stream);
        timeout(SOON, server.house.left.notified()).await.expect("it was dropped");
    }
    is_well(&server).await;
}

#[tokio::test]
async fn an_id_in_flight_is_taken() {
    let server = house(HttpOptions::default()).await;
    let session = server.session_of(&crate::house::initialize("2025-11-25")).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let wait = legacy("a", "tools/call", json!({"name": "wait"}));
    let first = server.begin(&headers, &wait).await;
    timeout(SOON, server.house.waiting.notified()).await.expect("it began");
    assert_eq!(code(&server.post(&headers, &wait).await.json()), -32600);
    let knock = legacy("b", "tools/call", json!({"name": "knock"}));
    for _ in 0..3 {
        let reply = server.post(&headers, &knock).await;
        assert!(reply.messages()[0].get("result").is_some(), "an id is free once it is answered");
    }
    drop(first);
    is_well(&server).await;
}

/// Both ends of a connection are in this process, so the number is what its descriptors allow.
#[tokio::test]
async fn a_thousand_idle_listeners_hold_up_nobody() {
    let declared = Declared::builder("s", "1").with(Tool::new("one", async || "1"));
    let declared = declared.build().unwrap();
    let server = Server::of(Arc::new(declared.clone()), HttpOptions::default()).await;
    let listen = |id: usize| {
        modern(
            id as i64,
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        )
    };
    let mut streams = Vec::new();
    for id in 0..1_000 {
        let message = listen(id);
        let mut stream = server.begin(&mirror(&message), &message).await;
        read_until(&mut stream, "acknowledged").await;
        streams.push(stream);
    }
    let call = modern(1, "tools/call", json!({"name": "one"}));
    let reply = timeout(SOON, server.modern(&call)).await.expect("others are served");
    assert_eq!(reply.status, 200);
    declared.add(Tool::new("two", async || "2")).unwrap();
    for stream in &mut streams {
        read_until(stream, "notifications/tools/list_changed").await;
    }
}

#[tokio::test]
async fn what_is_too_much_is_put_off() {
    let server = house(HttpOptions { running: 2, ..HttpOptions::default() }).await;
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {}}));
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = server.begin(&mirror(&listen), &listen).await;
        read_until(&mut stream, "acknowledged").await;
        streams.push(stream);
    }
    for message in [&listen, &modern(2, "tools/call", json!({"name": "knock"}))] {
        let reply = server.modern(message).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
        assert_eq!(reply.json()["id"], message["id"]);
    }
    drop(streams.pop());
    let mut waited = Duration::ZERO;
    // The other side sees the end of a connection when it next writes or polls.
    while server.modern(&modern(3, "tools/call", json!({"name": "knock"}))).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        waited += Duration::from_millis(10);
        assert!(waited < SOON, "its place is free again");
    }
}

/// Arguments that the schema wants repeated in headers.
#[tokio::test]
async fn headers_must_repeat_the_arguments_they_are_for() {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
        },
    });
    let tool = Tool::new("move", async |given: Value| given.to_string()).input_schema(schema);
    let declared = Declared::builder("s", "1").with(tool).build().unwrap();
    let server = Server::of(Arc::new(declared), HttpOptions::default()).await;
    let check = async |arguments: Value, headers: &[(&str, &str)], good: bool| {
        let call = modern(1, "tools/call", json!({"name": "move", "arguments": arguments}));
        let mut all = mirror(&call);
        all.extend_from_slice(headers);
        let reply = server.post(&all, &call).await;
        if good {
            assert_eq!(reply.status, 200, "{arguments} {headers:?}: {}", reply.body);
        } else {
            let refused = (reply.status, code(&reply.json()));
            assert_eq!(refused, (400, -32020), "{arguments} {headers:?}");
        }
    };
    check(json!({}), &[], true).await;
    check(json!({"region": "eu"}), &[("Mcp-Param-Region", "eu")], true).await;
    check(json!({"region": "é"}), &[("mcp-param-region", "=?base64?w6k=?=")], true).await;
    check(json!({"count": 42}), &[("Mcp-Param-Count", "42.0")], true).await;
    check(json!({"count": 42.0}), &[("Mcp-Param-Count", "42")], true).await;
    check(json!({"region": null}), &[], true).await;
    check(json!({"region": "eu"}), &[], false).await;
    check(json!({"region": "eu"}), &[("Mcp-Param-Region", "us")], false).await;
    check(json!({"region": "1"}), &[("Mcp-Param-Region", "1.0")], false).await;
    check(json!({"region": "eu"}), &[("Mcp-Param-Region", "=?base64?*?=")], false).await;
    check(json!({}), &[("Mcp-Param-Region", "eu")], false).await;
    check(json!({"count": 1}), &[("Mcp-Param-Count", "2")], false).await;
    check(
        json!({"region": "eu"}),
        &[("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "eu")],
        false,
    )
    .await;
}

/// A connection that sends nothing, and one that never ends its head.
#[tokio::test]
async fn connections_that_say_nothing_hold_up_nobody() {
    let server = house(HttpOptions::default()).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(b"POST /mcp HTTP/1.1\r\nHost:").await.unwrap();
        silent.push(stream);
    }
    is_well(&server).await;
    let mut buffer = [0; 16];
    let quiet = timeout(Duration::from_millis(20), silent[0].read(&mut buffer)).await;
    assert!(quiet.is_err(), "it is not answered before it asked");
}

/// They leave room for others after a while, whether they began to ask or not.
#[tokio::test]
async fn connections_that_say_nothing_are_closed() {
    let options = HttpOptions { head_ms: 100, connections: 3, ..HttpOptions::default() };
    let server = house(options).await;
    let mut streams = Vec::new();
    for said in ["", "POST /mcp HTTP/1.1\r\nHost:", "x"] {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    is_well(&server).await;
    // One that was answered may be silent no longer than the others.
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let head = format!("GET /none HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    stream.write_all(head.as_bytes()).await.unwrap();
    streams.push(stream);
    for mut stream in streams {
        let mut rest = Vec::new();
        let end = timeout(SOON, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "{}", String::from_utf8_lossy(&rest));
    }
}

#[tokio::test]
async fn no_other_protocol_is_spoken() {
    let server = house(HttpOptions::default()).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, stream.read_to_end(&mut answer)).await.expect("an end").unwrap();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
}

/// What is kept for a client, or repeated to it, is bounded.
#[tokio::test]
async fn a_client_cannot_make_the_server_keep_much() {
    let server = house(HttpOptions::default()).await;
    let long = "x".repeat(70 << 10);
    let hello = crate::house::initialize_as("2025-11-25", &json!({"experimental": {"x": long}}));
    assert_eq!(code(&server.post(&[], &hello).await.json()), -32602, "a long introduction");
    let session = server.session_of(&crate::house::initialize("2025-11-25")).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let follow = async |uri: &str| {
        let reply =
            server.post(&headers, &legacy(2, "resources/subscribe", json!({"uri": uri}))).await;
        reply.json().get("result").is_some()
    };
    assert!(follow(&format!("a:{long}")).await);
    assert!(!follow(&format!("b:{long}")).await, "too long in all");
    assert!(follow("c:").await && follow("c:").await, "one more that fits, twice");
    let many: Vec<_> = (0..1_001).map(|number| format!("d:{number}")).collect();
    for (uris, expect) in [(&many[..1_000], 200), (&many[..], 400)] {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        let listen = modern(3, "subscriptions/listen", filter);
        let mut stream = server.begin(&mirror(&listen), &listen).await;
        read_until(&mut stream, &format!("HTTP/1.1 {expect}")).await;
    }
    for (id, expect) in [("i".repeat(1_022), 200), ("i".repeat(1_023), 400)] {
        let call = modern(id, "tools/call", json!({"name": "knock"}));
        assert_eq!(server.modern(&call).await.status, expect);
    }
    let token = json!({"progressToken": long});
    let call = modern(4, "tools/call", json!({"name": "count", "_meta": token}));
    assert_eq!(server.modern(&call).await.messages().len(), 1, "no progress by that token");
    is_well(&server).await;
}

#[tokio::test]
async fn a_batch_has_a_measure() {
    let server = house(HttpOptions::default()).await;
    let session = server.session_of(&crate::house::initialize("2025-03-26")).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let batch = |odd: usize| {
        let mut members = vec![legacy(1, "ping", json!({}))];
        members.resize(1 + odd, json!(1));
        Value::Array(members)
    };
    let reply = server.post(&headers, &batch(999)).await;
    assert_eq!((reply.status, reply.messages().len()), (200, 1_000));
    let reply = server.post(&headers, &batch(1_000)).await;
    assert_eq!((reply.status, code(&reply.json())), (400, -32600));
}

/// Whoever only starts sessions drives out nobody who is at his own.
#[tokio::test]
async fn a_flood_of_handshakes_leaves_others_their_sessions() {
    let server = house(HttpOptions { sessions: 4, ..HttpOptions::default() }).await;
    let hello = crate::house::initialize("2025-11-25");
    let (idle, held) = (server.session_of(&hello).await, server.session_of(&hello).await);
    let mut stream = server.send_only("GET", &[("Mcp-Session-Id", &held)]).await;
    read_until(&mut stream, "text/event-stream").await;
    for _ in 0..10 {
        assert_eq!(server.post(&[], &hello).await.status, 200);
    }
    let list = legacy(2, "tools/list", json!({}));
    for session in [&held, &idle] {
        assert_eq!(server.post(&[("Mcp-Session-Id", session)], &list).await.status, 200);
    }
    // Four that are all made use of: of those that nobody is at, the oldest goes.
    for _ in 0..3 {
        server.session_of(&hello).await;
    }
    assert_eq!(server.post(&[("Mcp-Session-Id", &held)], &list).await.status, 200);
    assert_eq!(server.post(&[("Mcp-Session-Id", &idle)], &list).await.status, 404);
}

#[tokio::test]
async fn head_takes_no_stream_away() {
    let server = house(HttpOptions::default()).await;
    let session = server.session_of(&crate::house::initialize("2025-11-25")).await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let mut stream = server.send_only("GET", &headers).await;
    read_until(&mut stream, "text/event-stream").await;
    assert_eq!(server.send("HEAD", &headers, "").await.status, 405);
    server.house.change(toolcrib_serve::ListKind::Tools);
    read_until(&mut stream, "notifications/tools/list_changed").await;
}
