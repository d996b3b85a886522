//! HTTP+SSE of 2024-11-05 against scripted servers on real sockets.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use toolcrib_core::{
    limits::Limits,
    rpc::{Message, ReplyId},
    target::Endpoint,
};
use toolcrib_link::{
    channel::{Closed, ExchangeError, INBOX, Inbound},
    http::{OldSse, OpenError},
};

use crate::{
    http::{SECOND, legacy, until},
    web::{Reply, Web},
};

async fn open(url: &str) -> (Result<OldSse, OpenError>, mpsc::Receiver<Inbound>) {
    let (sender, inbox) = mpsc::channel(INBOX);
    let limits = Limits { message_bytes: 10_000, ..Limits::default() };
    let mut endpoint = Endpoint::new(url);
    endpoint.headers.insert("Authorization".into(), "Bearer t0k".into());
    let deadline = Instant::now() + SECOND;
    (OldSse::open(&endpoint, &limits, None, sender, deadline).await, inbox)
}

async fn next(inbox: &mut mpsc::Receiver<Inbound>) -> Inbound {
    timeout(5 * SECOND, inbox.recv()).await.expect("in time").expect("open")
}

async fn refusal(reply: impl Fn() -> Reply + Send + Sync + 'static) -> (String, Web) {
    let web = Web::start(move |_, _| reply()).await;
    let (opened, _inbox) = open(&web.url()).await;
    (opened.err().expect("refused").to_string(), web)
}

#[tokio::test]
async fn messages_are_posted_where_the_stream_says_and_answered_on_it() {
    let web = Web::start(|request, _| match request.method.as_str() {
        "GET" => Reply::events(": hi\n\nevent: endpoint\ndata: /messages?sid=7\n\n")
            .wait(200)
            .write("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"),
        _ if request.body.contains("\"id\":2") => {
            Reply::new(400, "application/json", r#"{"error":{"code":-32600,"message":"no"}}"#)
        }
        _ => Reply::new(202, "text/plain", "Accepted"),
    })
    .await;
    let (opened, mut inbox) = open(&web.url()).await;
    let sse = opened.unwrap();
    sse.send(legacy(2, "tools/list")).await.unwrap();
    let failed = next(&mut inbox).await;
    assert!(
        matches!(&failed, Inbound::RequestFailed { origin: 2, error: ExchangeError::Status(_) }),
        "{failed:?}"
    );
    sse.send(legacy(1, "tools/list")).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    sse.notify(body.to_owned()).await.unwrap();
    let answer = next(&mut inbox).await;
    assert!(
        matches!(
            &answer,
            Inbound::Message {
                origin: None,
                message: Message::Response { id: ReplyId::Ours(1), .. }
            }
        ),
        "{answer:?}"
    );
    assert!(matches!(next(&mut inbox).await, Inbound::Closed(Closed::StreamEnded)));
    until("the reader ends", || web.count("POST") == 3).await;
    tokio::task::yield_now().await;
    assert_eq!(web.count("GET"), 1);
    for request in web.seen().iter().filter(|request| request.method == "POST") {
        assert_eq!(request.path, "/messages?sid=7");
        assert_eq!(request.header("authorization"), Some("Bearer t0k"));
    }
}

#[tokio::test]
async fn c105_messages_are_not_sent_to_another_origin() {
    let other = Web::start(|_, _| Reply::new(202, "", "")).await;
    let named = format!("{}/messages", other.origin);
    let data = format!("event: endpoint\ndata: {named}?sid=1\n\n");
    let (error, web) = refusal(move || Reply::events(&data).hold()).await;
    assert!(error.contains(&format!("wants messages at {named}, another origin")), "{error}");
    until("the stream is closed", || web.dropped() == 1).await;
    assert!(other.seen().is_empty());
    assert_eq!(web.seen().len(), 1);
}

#[tokio::test]
async fn c106_a_page_is_no_stream() {
    let (error, web) =
        refusal(|| Reply::new(200, "text/html", "<!doctype html><title>app</title>")).await;
    assert!(error.contains("text/html") && error.contains("<title>app"), "{error}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(web.seen().len(), 1);
}

#[tokio::test]
async fn a_stream_that_names_no_address_is_given_up() {
    let check = async |reply: fn() -> Reply, expect: &str| {
        let (error, _) = refusal(reply).await;
        assert!(error.contains(expect), "{error}");
    };
    check(|| Reply::new(405, "", ""), "no event stream: HTTP 405").await;
    check(|| Reply::events(": hi\n\n"), "ended before it named").await;
    check(|| Reply::events(": hi\n\n").hold(), "did not name where messages go in time").await;
    check(|| Reply::events("event: endpoint\ndata: http://[\n\n"), "which is no address").await;
    check(|| Reply::events("event: x\ndata: ").write(vec![b'x'; 20_000]), "than 10000 bytes").await;
}

#[tokio::test]
async fn an_over_long_event_closes_the_connection() {
    let web = Web::start(|_, _| {
        Reply::events("event: endpoint\ndata: /m\n\ndata: ").write(vec![b'x'; 20_000]).hold()
    })
    .await;
    let (opened, mut inbox) = open(&web.url()).await;
    let _sse = opened.unwrap();
    let closed = next(&mut inbox).await;
    assert!(matches!(closed, Inbound::Closed(Closed::TooLong { limit: 10_000 })), "{closed:?}");
}

#[tokio::test]
async fn closing_closes_the_stream() {
    let web = Web::start(|_, _| Reply::events("event: endpoint\ndata: /m\n\n").hold()).await;
    let (opened, _inbox) = open(&web.url()).await;
    let sse = opened.unwrap();
    sse.close();
    until("the stream is closed", || web.dropped() == 1).await;
    assert!(sse.send(legacy(1, "tools/list")).await.is_err());
}
