//! The HTTP transports against scripted servers on real sockets.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{sync::mpsc, time::timeout};
use toolcrib_core::{
    limits::Limits,
    rpc::{Message, ReplyId},
    target::Endpoint,
};
use toolcrib_link::{
    channel::{ExchangeError, INBOX, Inbound, Mirror, Outgoing, StatusError},
    http::Streamable,
    trace::Direction,
};

use crate::web::{Reply, Request, Web};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A client and what it delivers.
struct Client {
    http: Streamable,
    inbox: mpsc::Receiver<Inbound>,
}

impl Client {
    fn new(endpoint: &Endpoint) -> Self {
        Self::bounded(endpoint, &Limits::default())
    }

    fn bounded(endpoint: &Endpoint, limits: &Limits) -> Self {
        let (sender, inbox) = mpsc::channel(INBOX);
        Self { http: Streamable::new(endpoint, limits, None, sender).unwrap(), inbox }
    }

    fn to(web: &Web) -> Self {
        Self::new(&Endpoint::new(web.url()))
    }

    async fn next(&mut self) -> Inbound {
        timeout(10 * SECOND, self.inbox.recv()).await.expect("in time").expect("open")
    }

    /// The result of one request, as text; panics on a failure.
    async fn ask(&mut self, outgoing: Outgoing) -> String {
        let asked = outgoing.id;
        self.http.send(outgoing).await.unwrap();
        match self.next().await {
            Inbound::Message {
                origin: Some(origin),
                message: Message::Response { id: ReplyId::Ours(id), outcome },
            } if origin == asked && id == asked => match outcome {
                Ok(result) => result.get().to_owned(),
                Err(error) => error.to_string(),
            },
            other => panic!("{other:?}"),
        }
    }

    /// How one request fails.
    async fn fail(&mut self, outgoing: Outgoing) -> ExchangeError {
        self.http.send(outgoing).await.unwrap();
        loop {
            match self.next().await {
                Inbound::RequestFailed { error, .. } => return error,
                Inbound::Noise(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn status(&mut self, outgoing: Outgoing) -> StatusError {
        match self.fail(outgoing).await {
            ExchangeError::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    async fn nothing_more(&mut self) {
        let more = timeout(Duration::from_millis(100), self.inbox.recv()).await;
        assert!(more.is_err(), "{more:?}");
    }
}

pub(crate) fn legacy(id: u64, method: &str) -> Outgoing {
    let version = (method != "initialize").then(|| "2025-11-25".to_owned());
    outgoing(id, method, Mirror { version, ..Mirror::default() })
}

fn modern(id: u64, method: &str) -> Outgoing {
    let version = Some("2026-07-28".to_owned());
    outgoing(id, method, Mirror { version, modern: true, ..Mirror::default() })
}

fn outgoing(id: u64, method: &str, mirror: Mirror) -> Outgoing {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#);
    Outgoing { id, method: method.to_owned(), body, mirror }
}

pub(crate) fn result(request: &Request) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"ok":1.0}}}}"#, request.id())
}

const OK: &str = r#"{"ok":1.0}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < 5 * SECOND, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_modern_request_carries_its_mirror_and_no_session() {
    let web = Web::start(|request, _| Reply::json(result(request))).await;
    let mut endpoint = Endpoint::new(web.url());
    endpoint.headers.insert("Authorization".into(), "Bearer t0k".into());
    let mut client = Client::new(&endpoint);
    client.http.set_session(Some("left-over".into()));
    let mut call = modern(3, "tools/call");
    call.mirror.name = Some("zürich ".into());
    call.mirror.params = vec![("Region".into(), "a\tb".into()), ("Empty".into(), String::new())];
    assert_eq!(client.ask(call).await, OK);
    let seen = &web.seen()[0];
    let check = |name: &str, expect: Option<&str>| {
        assert_eq!(seen.header(name), expect, "{name}");
    };
    check("accept", Some("application/json, text/event-stream"));
    check("content-type", Some("application/json"));
    check("mcp-protocol-version", Some("2026-07-28"));
    check("mcp-method", Some("tools/call"));
    check("mcp-name", Some("=?base64?esO8cmljaCA=?="));
    check("mcp-param-region", Some("=?base64?YQli?="));
    check("mcp-param-empty", Some(""));
    check("authorization", Some("Bearer t0k"));
    check("mcp-session-id", None);
    check("accept-encoding", None);
    assert!(seen.header("user-agent").unwrap().starts_with("toolcrib/"));
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/mcp"));
}

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let web = Web::start(|request, n| match request.method.as_str() {
        "POST" if n == 0 => Reply::json(result(request)).header("Mcp-Session-Id", "s-1"),
        "POST" => Reply::json(result(request)),
        _ => Reply::new(405, "", ""),
    })
    .await;
    let mut client = Client::to(&web);
    client.http.set_session(Some("old".into()));
    client.ask(legacy(1, "initialize")).await;
    assert_eq!(client.http.session_id().as_deref(), Some("s-1"));
    client.ask(legacy(2, "tools/list")).await;
    client.http.end_session().await;
    client.http.end_session().await;
    let seen = web.seen();
    let check = |at: usize, session: Option<&str>, version: Option<&str>| {
        assert_eq!(seen[at].header("mcp-session-id"), session, "{at}");
        assert_eq!(seen[at].header("mcp-protocol-version"), version, "{at}");
        assert_eq!(seen[at].header("mcp-method"), None, "{at}");
    };
    check(0, None, None);
    check(1, Some("s-1"), Some("2025-11-25"));
    check(2, Some("s-1"), Some("2025-11-25"));
    assert_eq!((seen[2].method.as_str(), seen.len()), ("DELETE", 3));
    assert!(client.http.send(legacy(3, "tools/list")).await.is_err());
}

#[tokio::test]
async fn a_session_id_that_breaks_the_rule_is_not_used_and_said() {
    let web =
        Web::start(|request, _| Reply::json(result(request)).header("Mcp-Session-Id", "s 1")).await;
    let mut client = Client::to(&web);
    client.http.send(legacy(1, "initialize")).await.unwrap();
    assert!(matches!(client.next().await, Inbound::Noise(words) if words.contains("session id")));
    assert!(matches!(client.next().await, Inbound::Message { .. }));
    assert_eq!(client.http.session_id(), None);
}

#[tokio::test]
async fn c47_priming_events_comments_and_data_lines_are_read() {
    let web = Web::start(|request, _| {
        let id = request.id();
        Reply::events(": hello\r\n\r\nid: st:0\r\nretry: 50\r\ndata:\r\n\r\n")
            .write("event: ping\ndata: {}\n\n")
            .write(format!("event: message\ndata: {CHANGED}\n\n"))
            .wait(20)
            .write(format!("id: st:1\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\ndata: \"resu"))
            .wait(20)
            .write("lt\":{\"ok\":1.0}}\n\n")
    })
    .await;
    let mut client = Client::to(&web);
    client.http.send(legacy(7, "tools/list")).await.unwrap();
    let first = client.next().await;
    assert!(
        matches!(
            &first,
            Inbound::Message { origin: Some(7), message: Message::Notification { .. } }
        ),
        "{first:?}"
    );
    let second = client.next().await;
    assert!(
        matches!(
            &second,
            Inbound::Message { message: Message::Response { id: ReplyId::Ours(7), .. }, .. }
        ),
        "{second:?}"
    );
    client.nothing_more().await;
    assert_eq!(web.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_comes_at_once_though_its_stream_stays_open() {
    let web =
        Web::start(|request, _| Reply::events(&format!("data: {}\n\n", result(request))).hold())
            .await;
    let mut client = Client::to(&web);
    let started = Instant::now();
    assert_eq!(client.ask(modern(1, "tools/list")).await, OK);
    assert!(started.elapsed() < SECOND);
    until("the stream is closed", || web.dropped() == 1).await;
}

#[tokio::test]
async fn c49_any_good_status_accepts_a_notification() {
    let web = Web::start(|_, n| match n {
        0 => Reply::json("null"),
        1 => Reply::new(204, "", ""),
        2 => Reply::json("{}"),
        3 => Reply::new(200, "", ""),
        4 => Reply::new(202, "text/plain", "Accepted"),
        5 => Reply::events(": open\n\n").hold(),
        _ => Reply::new(400, "application/json", r#"{"error":{"code":-32600,"message":"no"}}"#),
    })
    .await;
    let client = Client::to(&web);
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for n in 0..6 {
        let sent = client.http.notify(body.to_owned(), Mirror::default()).await;
        assert!(sent.is_ok(), "{n}: {sent:?}");
    }
    let error = client.http.notify(body.to_owned(), Mirror::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "HTTP 400: no (error -32600)");
}

#[tokio::test]
async fn requests_one_after_another_share_a_connection() {
    let web = Web::start(|request, n| match n {
        1 => Reply::new(202, "text/plain", "Accepted"),
        2 => Reply::new(200, "text/event-stream", format!("data: {}\n\n", result(request))),
        3 => Reply::new(404, "text/html", "<h1>no</h1>"),
        _ => Reply::json(result(request)),
    })
    .await;
    let mut client = Client::to(&web);
    client.ask(modern(1, "tools/list")).await;
    client.http.notify(CHANGED.to_owned(), Mirror::default()).await.unwrap();
    client.ask(modern(2, "tools/list")).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    client.status(modern(3, "tools/list")).await;
    client.ask(modern(4, "tools/list")).await;
    assert_eq!((web.seen().len(), web.connections()), (5, 1));
}

#[tokio::test]
async fn c46_what_is_no_event_stream_is_asked_for_once() {
    let replies: [fn() -> Reply; 4] = [
        || Reply::new(200, "text/plain", "This is an MCP endpoint, use POST."),
        || Reply::new(404, "", ""),
        || Reply::new(405, "", ""),
        || Reply::new(406, "", ""),
    ];
    let mut checks = tokio::task::JoinSet::new();
    for reply in replies {
        checks.spawn(async move {
            let web = Web::start(move |request, _| match request.method.as_str() {
                "GET" => reply(),
                _ => Reply::json(result(request)).header("mcp-session-id", "s"),
            })
            .await;
            let mut client = Client::to(&web);
            client.ask(legacy(1, "initialize")).await;
            client.http.open_stream(Mirror::default());
            until("one GET", || web.count("GET") == 1).await;
            client.http.open_stream(Mirror::default());
            assert_eq!(client.ask(legacy(2, "tools/list")).await, OK);
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            assert_eq!(web.count("GET"), 1);
            client.nothing_more().await;
        });
    }
    checks.join_all().await;
}

#[tokio::test]
async fn the_stream_for_notifications_is_taken_up_again_where_it_ended() {
    let web = Web::start(|request, _| match request.header("last-event-id") {
        None => Reply::events(&format!("id: e1\nretry: 300\ndata: {CHANGED}\n\n")),
        Some("e1") => Reply::events(&format!("data: {CHANGED}\n\n")).hold(),
        Some(other) => panic!("{other}"),
    })
    .await;
    let mut client = Client::to(&web);
    client.http.set_session(Some("s".into()));
    client.http.open_stream(legacy(1, "x").mirror);
    for _ in 0..2 {
        let got = client.next().await;
        assert!(matches!(&got, Inbound::Message { origin: None, .. }), "{got:?}");
    }
    let seen = web.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(300));
    for request in &seen {
        assert_eq!(request.header("accept"), Some("text/event-stream"));
        assert_eq!(request.header("mcp-session-id"), Some("s"));
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    client.http.set_session(None);
    until("the stream is closed", || web.dropped() == 1).await;
}

#[tokio::test]
async fn c100_an_answer_without_a_usable_id_answers_the_request_that_carried_it() {
    let web = Web::start(|request, n| {
        let error = |id: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"session not known"}}}}"#)
        };
        match n {
            0 => Reply::new(400, "application/json", error("null")),
            1 => Reply::events(&format!("event: message\ndata: {}\n\n", error("null"))),
            2 => Reply::new(200, "text/plain", error("\"server-error\"")),
            3 => Reply::events(&format!("event: error\ndata: {}\n\n", error("null"))),
            4 => Reply::events("data: Session not found\n\n"),
            _ => Reply::json(result(request).replace(&format!("\"id\":{}", request.id()), "\"id\":null")),
        }
    })
    .await;
    let mut client = Client::to(&web);
    client.http.set_session(Some("gone".into()));
    let status = client.status(legacy(1, "tools/call")).await;
    assert_eq!((status.status, status.had_session), (400, true));
    assert_eq!(status.rpc.unwrap().code, -32000);
    for id in 2..5 {
        assert_eq!(client.ask(legacy(id, "tools/call")).await, "session not known (error -32000)");
    }
    let error = client.fail(legacy(5, "tools/call")).await.to_string();
    assert!(error.contains("Session not found"), "{error}");
    // A result under no id is nobody's.
    client.http.send(legacy(6, "tools/call")).await.unwrap();
    assert!(matches!(client.next().await, Inbound::Message { .. }));
    assert!(matches!(client.next().await, Inbound::RequestFailed { origin: 6, .. }));
}

#[tokio::test]
async fn c50_a_challenge_is_handed_up_after_one_request() {
    let challenge = r#"Bearer resource_metadata="https://auth.example.invalid/.well-known/x""#;
    let web = Web::start(move |_, _| {
        Reply::new(401, "application/json", r#"{"error":"invalid_token"}"#)
            .header("WWW-Authenticate", challenge)
            .header("Retry-After", "7")
    })
    .await;
    let mut client = Client::to(&web);
    let status = client.status(modern(1, "server/discover")).await;
    assert_eq!(status.challenge.as_deref(), Some(challenge));
    assert_eq!(status.retry_after, Some(7 * SECOND));
    assert_eq!((status.status, status.had_session, status.rpc.is_none()), (401, false, true));
    assert_eq!(web.seen().len(), 1);
}

#[tokio::test]
async fn c104_the_sentence_of_the_server_is_kept() {
    let sentence = "this workspace has not switched the feature on";
    let check = async |content_type: &'static str, body: String, expect: &str| {
        let web = Web::start(move |_, _| Reply::new(400, content_type, body.clone())).await;
        let status = Client::to(&web).status(modern(1, "server/discover")).await;
        assert_eq!(status.summary(), expect);
    };
    let rpc =
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{sentence}"}}}}"#);
    let expect = format!("HTTP 400: {sentence} (error -32000)");
    check("application/json", rpc.clone(), &expect).await;
    check("text/html", rpc.clone(), &expect).await;
    check("text/event-stream", format!("data: {rpc}\n\n"), &expect).await;
    check(
        "text/plain",
        format!("{sentence}\u{1b}[0m"),
        &format!("HTTP 400: {sentence}\\u{{1b}}[0m"),
    )
    .await;
    check("", String::new(), "HTTP 400").await;
}

#[tokio::test]
async fn no_redirect_leaves_the_origin() {
    let other = Web::start(|request, _| Reply::json(result(request))).await;
    let elsewhere = format!("{}/mcp?token=t", other.origin);
    for (method, status) in [("POST", 307), ("POST", 308), ("POST", 302), ("GET", 302)] {
        let location = elsewhere.clone();
        let web =
            Web::start(move |_, _| Reply::new(status, "", "").header("location", &location)).await;
        let mut endpoint = Endpoint::new(web.url());
        endpoint.headers.insert("Authorization".into(), "Bearer t0k".into());
        let mut client = Client::new(&endpoint);
        if method == "GET" {
            client.http.open_stream(Mirror::default());
            until("one GET", || web.count("GET") == 1).await;
        } else {
            let got = client.status(modern(1, "server/discover")).await;
            assert_eq!(got.status, status);
            assert!(got.excerpt.contains(&format!("redirects to {}/mcp, another", other.origin)));
            assert!(!got.excerpt.contains("token=t"), "{}", got.excerpt);
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_method_and_body() {
    let web = Web::start(|request, _| match request.path.as_str() {
        "/mcp" => Reply::new(307, "", "").header("location", "/mcp/"),
        "/mcp/" => Reply::json(result(request)),
        path => Reply::new(308, "", "").header("location", path),
    })
    .await;
    let mut client = Client::to(&web);
    assert_eq!(client.ask(modern(1, "tools/list")).await, OK);
    let seen = web.seen();
    assert_eq!((seen.len(), seen[1].path.as_str()), (2, "/mcp/"));
    assert_eq!(seen[1].header("mcp-method"), Some("tools/list"));

    let mut looped = Client::new(&Endpoint::new(format!("{}/loop", web.origin)));
    let status = looped.status(modern(1, "tools/list")).await;
    assert_eq!((status.status, status.excerpt.as_str()), (308, "redirects more than 5 times"));
}

#[tokio::test]
async fn a_post_is_not_turned_into_a_get_by_a_redirect() {
    let web = Web::start(|_, _| Reply::new(302, "", "").header("location", "/login")).await;
    let status = Client::to(&web).status(modern(1, "tools/list")).await;
    assert!(status.excerpt.contains("/login; configure that URL"), "{}", status.excerpt);
    assert_eq!(web.seen().len(), 1);
}

#[tokio::test]
async fn over_long_answers_end_at_the_limit() {
    let limits = Limits { message_bytes: 10_000, ..Limits::default() };
    let check = async |reply: fn() -> Reply| {
        let web = Web::start(move |_, _| reply()).await;
        let mut client = Client::bounded(&Endpoint::new(web.url()), &limits);
        let error = client.fail(legacy(1, "tools/list")).await;
        assert!(matches!(error, ExchangeError::TooLong { limit: 10_000 }), "{error:?}");
    };
    check(|| Reply::json(vec![b' '; 10_001])).await;
    check(|| Reply::open(200, "application/json").write(vec![b' '; 20_000]).hold()).await;
    check(|| Reply::events("id: 1\ndata: ").write(vec![b'x'; 20_000]).hold()).await;
    check(|| Reply::events("id: 1\n").write("data: xxxxxxxxxx\n".repeat(2_000)).hold()).await;
}

#[tokio::test]
async fn a_compressed_answer_is_refused_unread() {
    let web = Web::start(|_, n| match n {
        0 => Reply::json(vec![0x1f; 500]).header("content-encoding", "gzip"),
        1 => Reply::events("x").header("content-encoding", "br"),
        _ => Reply::new(500, "application/json", "xx").header("content-encoding", "gzip"),
    })
    .await;
    let mut client = Client::to(&web);
    let error = client.fail(modern(1, "tools/list")).await.to_string();
    assert!(error.contains("compressed (gzip), which was not asked for"), "{error}");
    let error = client.fail(modern(2, "tools/list")).await.to_string();
    assert!(error.contains("compressed (br)"), "{error}");
    assert_eq!(client.status(modern(3, "tools/list")).await.summary(), "HTTP 500");
}

#[tokio::test]
async fn comments_without_end_are_not_held() {
    let limits = Limits { message_bytes: 1_000, ..Limits::default() };
    let web = Web::start(|request, _| {
        let mut flood = b":".to_vec();
        flood.resize(4 << 20, b'x');
        Reply::events("")
            .write(flood)
            .write(":\r\n".repeat(200_000))
            .write(format!("data: {}\n\n", result(request)))
    })
    .await;
    let mut client = Client::bounded(&Endpoint::new(web.url()), &limits);
    assert_eq!(client.ask(modern(1, "tools/list")).await, OK);
}

#[tokio::test]
async fn a_broken_stream_loses_the_request_unless_it_can_be_resumed() {
    let check = async |outgoing: Outgoing, text: &'static str| {
        let web = Web::start(move |_, _| Reply::events(text)).await;
        let error = Client::to(&web).fail(outgoing).await;
        assert!(matches!(error, ExchangeError::StreamEnded), "{error:?}");
        assert_eq!(web.seen().len(), 1);
    };
    check(modern(1, "tools/call"), "id: 1\nretry: 1\ndata:\n\n").await;
    check(legacy(1, "tools/call"), ": nothing to resume from\n\n").await;
    check(legacy(1, "tools/call"), "id: 1\n\nid:\n\n").await;
    check(legacy(1, "tools/call"), "id: 1").await;
}

#[tokio::test]
async fn an_answer_is_polled_for_where_its_stream_ended() {
    let web = Web::start(|request, n| match n {
        0 => Reply::events("id: p0\nretry: 400\ndata:\n\n"),
        1 => Reply::new(503, "", ""),
        2 => Reply::events(&format!("id: p1\nretry: 100\ndata: {CHANGED}\n\n")),
        _ => {
            assert_eq!(request.header("last-event-id"), Some("p1"));
            Reply::events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":1.0}}\n\n")
        }
    })
    .await;
    let mut client = Client::to(&web);
    client.http.set_session(Some("s".into()));
    client.http.send(legacy(1, "tools/call")).await.unwrap();
    let first = client.next().await;
    assert!(matches!(&first, Inbound::Message { origin: Some(1), .. }), "{first:?}");
    let second = client.next().await;
    assert!(
        matches!(&second, Inbound::Message { message: Message::Response { .. }, .. }),
        "{second:?}"
    );
    let seen = web.seen();
    let methods: Vec<_> = seen.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["POST", "GET", "GET", "GET"]);
    assert_eq!(seen[1].header("last-event-id"), Some("p0"));
    assert_eq!(seen[1].header("mcp-session-id"), Some("s"));
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(400));
}

#[tokio::test]
async fn polling_ends_when_nothing_new_comes() {
    let web = Web::start(|request, _| match request.method.as_str() {
        "POST" => Reply::events("id: p0\nretry: 1\ndata:\n\n"),
        _ => Reply::events(": nothing\n\n"),
    })
    .await;
    let error = Client::to(&web).fail(legacy(1, "tools/call")).await;
    assert!(matches!(error, ExchangeError::StreamEnded), "{error:?}");
    assert_eq!(web.count("GET"), 5);
}

#[tokio::test]
async fn cancelling_closes_the_connection_and_nothing_comes() {
    let web = Web::start(|request, n| match n {
        0 => Reply::events(": open\n\n").hold(),
        _ => Reply::json(result(request)),
    })
    .await;
    let mut client = Client::to(&web);
    client.http.send(modern(1, "subscriptions/listen")).await.unwrap();
    until("the request arrives", || web.seen().len() == 1).await;
    // A running exchange is no obstacle to another one.
    assert_eq!(client.ask(modern(2, "tools/list")).await, OK);
    assert_eq!(web.dropped(), 0);
    client.http.cancel(1);
    until("the connection is closed", || web.dropped() == 1).await;
    client.nothing_more().await;
}

#[tokio::test]
async fn dropping_the_connection_drops_its_exchanges() {
    let web = Web::start(|_, _| Reply::events(": open\n\n").hold()).await;
    let client = Client::to(&web);
    client.http.send(modern(1, "subscriptions/listen")).await.unwrap();
    client.http.open_stream(Mirror::default());
    until("both arrive", || web.seen().len() == 2).await;
    drop(client);
    until("both are closed", || web.dropped() == 2).await;
}

#[tokio::test]
async fn what_is_no_answer_is_shown() {
    let web = Web::start(|_, n| match n {
        0 => Reply::new(200, "text/html; charset=utf-8", "<!doctype html>\n<title>app</title>"),
        1 => Reply::new(202, "", ""),
        _ => Reply::json("{\"jsonrpc\":"),
    })
    .await;
    let mut client = Client::to(&web);
    let check = async |client: &mut Client, id: u64, expect: &str| {
        assert_eq!(client.fail(modern(id, "tools/list")).await.to_string(), expect);
    };
    let lead = "the answer is \"text/html\", not JSON or an event stream:";
    check(&mut client, 1, &format!("{lead} <!doctype html> <title>app</title>")).await;
    let lead = "the answer is \"\", not JSON or an event stream:";
    check(&mut client, 2, &format!("{lead} HTTP 202 without a body")).await;
    let lead = "the answer is \"application/json\", not JSON or an event stream:";
    check(&mut client, 3, &format!("{lead} {{\"jsonrpc\":")).await;
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_secrets() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut client = Client::new(&Endpoint::new(format!("http://u:s3c@{address}/mcp?key=s3c")));
    let error = client.fail(modern(1, "server/discover")).await.to_string();
    assert!(error.starts_with(&format!("cannot connect to http://{address}/mcp: ")), "{error}");
    assert!(error.contains("refused") && !error.contains("s3c"), "{error}");
}

#[tokio::test]
async fn the_trace_shows_the_wire_and_no_secret() {
    let web = Web::start(|request, _| {
        Reply::json(result(request)).header("mcp-session-id", "s3c").header("set-cookie", "s3c=1")
    })
    .await;
    let mut endpoint = Endpoint::new(web.url());
    endpoint.headers.insert("X-Key".into(), "s3c".into());
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let trace = Arc::new(move |direction: Direction, text: &str| {
        kept.lock().unwrap().push((direction, text.to_owned()));
    });
    let (sender, inbox) = mpsc::channel(INBOX);
    let http = Streamable::new(&endpoint, &Limits::default(), Some(trace), sender).unwrap();
    let mut client = Client { http, inbox };
    client.ask(legacy(1, "initialize")).await;
    client.ask(legacy(2, "tools/list")).await;
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert!(web.seen()[1].head().contains("s3c"));
    for (direction, text) in lines.iter() {
        assert!(!text.contains("s3c"), "{direction:?} {text}");
    }
    let (direction, head) = &lines[4];
    assert_eq!(*direction, Direction::Out);
    assert!(head.starts_with(&format!("POST {}; x-key: ***; ", web.url())), "{head}");
    assert!(head.contains("mcp-session-id: ***") && head.contains("accept: application/json"));
    assert_eq!(lines[3], (Direction::In, r#"{"jsonrpc":"2.0","id":1,"result":{"ok":1.0}}"#.into()));
}
