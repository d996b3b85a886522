//! HTTP endpoints that answer oddly. What needs a lasting connection is shown with the engine.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::fake::{Fake, HttpFake};

use crate::play::{Crib, inspect_http, inspect_url, scenario, serve};

fn http_scenario(extra: &Value) -> HttpFake {
    let mut whole = scenario(extra);
    whole["transport"] = json!("http");
    serve(Fake::scripted(&whole))
}

/// A lost session is started anew without its id, and the call is sent once more.
#[test]
fn c45_a_forgotten_session_is_started_anew() {
    renewed(&serve(Fake::stdio("C45")));
}

#[test]
fn c100_other_words_for_a_forgotten_session() {
    renewed(&serve(Fake::stdio("C100")));
}

/// The same in an event stream under status 200, with and without an id.
#[test]
fn c100_a_forgotten_session_in_an_event_stream() {
    for id in [json!("$id"), Value::Null] {
        let error = json!({"code": -32600, "message": "Session not found"});
        let event = json!({"event": {"data": {"jsonrpc": "2.0", "id": id, "error": error}}});
        renewed(&http_scenario(&json!({"session": true, "steps": [
            {"expect": "tools/call", "repeat": true, "when": {"headers": {"mcp-session-id": "sess-1"}}},
            {"sse": true}, event,
        ]})));
    }
}

#[track_caller]
fn renewed(server: &HttpFake) {
    let text = Crib::of_http(server).calls("s.alpha", &json!({}), 0);
    assert!(text.contains(":alpha:"), "{text}");
    let log = server.log();
    let session = |entry: &&Value| entry["headers"]["mcp-session-id"].clone();
    let sessions = |method: &str| -> Vec<_> { log.requests(method).iter().map(session).collect() };
    assert_eq!(sessions("initialize"), [Value::Null, Value::Null]);
    assert_eq!(sessions("tools/call"), [json!("sess-1"), json!("sess-2")]);
}

/// Two in a row are an error: no endless renewing, and the call is not sent a third time.
#[test]
fn c45_a_session_forgotten_twice_is_an_error() {
    let server = http_scenario(&json!({"session": true, "steps": [
        {"expect": "tools/call", "repeat": true},
        {"http": {"status": 404, "text": "Session not found"}}]}));
    let run = Crib::of_http(&server).call("s.alpha", &json!({}));
    assert!(matches!(run.code, Some(8 | 12)), "{:?} {}", run.code, run.stdout);
    assert!(run.stdout.contains("Session not found"), "{}", run.stdout);
    let log = server.log();
    assert_eq!((log.count("tools/call"), log.count("initialize")), (2, 2));
}

/// An error about something else is no lost session: the call is sent once.
#[test]
fn c100_other_errors_renew_nothing() {
    let server = http_scenario(&json!({"session": true, "steps": [
        {"expect": "tools/call", "repeat": true},
        {"http": {"status": 400, "body": {"jsonrpc": "2.0", "id": "$id",
            "error": {"code": -32000, "message": "the order was not found"}}}}]}));
    let message = Crib::of_http(&server).calls("s.alpha", &json!({}), 12);
    assert!(message.contains("order was not found"), "{message}");
    let log = server.log();
    assert_eq!((log.count("tools/call"), log.count("initialize")), (1, 1));
}

/// An error of the tool's own doing under status 200 may speak of sessions, too: the call ran, and
/// must not run again.
#[test]
fn c100_a_tool_that_speaks_of_sessions_is_called_once() {
    for code in [-32603, -32602, 7] {
        let server = http_scenario(&json!({"session": true, "steps": [
            {"expect": "tools/call", "repeat": true},
            {"error": {"code": code, "message": "the browser session has expired"}}]}));
        let message = Crib::of_http(&server).calls("s.alpha", &json!({}), 12);
        assert!(message.contains("browser session"), "{message}");
        let log = server.log();
        assert_eq!((log.count("tools/call"), log.count("initialize")), (1, 1), "{code}");
    }
}

/// That at most one GET is made per session is shown with the engine, which stays.
#[test]
fn c46_a_get_that_is_no_stream_costs_nothing() {
    let server = serve(Fake::stdio("C46"));
    let report = inspect_http(&server, &[]).shows_both().notes_nothing();
    assert!(report.log.http("GET").len() <= 1, "{:?}", report.log.http("GET"));
}

#[test]
fn c47_primed_commented_multi_line_events_are_read() {
    let server = serve(Fake::stdio("C47"));
    inspect_http(&server, &[]).shows_both().notes_nothing();
}

/// Other ways to write an event stream.
#[test]
fn c47_any_event_stream_is_read() {
    let answer = r#"{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"alpha","inputSchema":{"type":"object"}}]}}"#;
    for stream in [
        format!("data:{answer}\n\n"),
        format!("data: {answer}\r\r"),
        format!("\u{feff}data: {answer}\n\n"),
        format!("event:message\r\ndata: {answer}\r\n\r\n"),
        format!("data: \n\ndata: {answer}\n\n"),
        format!("event: ping\ndata: {{}}\n\ndata: {answer}\n\n"),
        format!("event: endpoint\ndata: /x\n\nid\nretry: x\ndata: {answer}\n\n"),
        format!("data: not json\n\ndata: {answer}\n\n"),
    ] {
        let server = http_scenario(&json!({"steps": [
            {"expect": "tools/list", "repeat": true}, {"sse_raw": stream}]}));
        let report = inspect_http(&server, &["--list-timeout", "3"]).reached();
        assert_eq!(report.tools(), ["alpha"], "{stream:?}: {}", report.json["findings"]);
    }
}

#[test]
fn c49_any_success_to_a_notification_is_success() {
    let server = serve(Fake::stdio("C49"));
    let report = inspect_http(&server, &[]).shows_both().notes_nothing();
    assert_eq!(report.log.count("notifications/initialized"), 1);
}

/// Other answers to the notification; even a refusal is not fatal.
#[test]
fn c49_no_answer_to_a_notification_is_fatal() {
    let json_type = json!({"Content-Type": "application/json"});
    for answer in [
        json!({"status": 200, "text": ""}),
        json!({"status": 200, "headers": json_type, "text": "{}"}),
        json!({"status": 202, "headers": json_type, "text": "{\"jsonrpc\":"}),
        json!({"status": 201, "text": "<html>"}),
        json!({"status": 400, "text": "no notifications here"}),
        json!({"status": 500, "text": "oops"}),
    ] {
        let server = http_scenario(&json!({"session": true, "steps": [
            {"expect": "notifications/initialized", "repeat": true}, {"http": answer}]}));
        let report = inspect_http(&server, &[]);
        assert_eq!((report.run.code, report.run.stderr.as_str()), (Some(0), ""), "{answer}");
        assert_eq!(report.tools(), ["alpha", "beta"], "{answer}");
    }
}

/// Nothing is posted to another origin, credentials least of all.
#[test]
fn c105_an_endpoint_on_another_origin_is_refused() {
    let server = serve(Fake::stdio("C105"));
    let report = inspect_http(&server, &["--header", "Authorization=Bearer s3cret-token"]);
    let message = report.failed(8);
    assert!(message.contains("http://internal.example.invalid:8080/messages"), "{message}");
    assert!(report.run.took < Duration::from_secs(10), "{:?}", report.run.took);
    assert!(!format!("{}{}", report.run.stdout, report.run.stderr).contains("s3cret"));
}

/// The same with an origin that does listen: it is another port of the same host.
#[test]
fn c105_another_origin_that_listens_sees_nothing() {
    let other = serve(Fake::stdio("C04"));
    let mut case = crate::play::scenario_of("C105");
    case["endpoint"] = json!(other.url);
    let server = serve(Fake::scripted(&case));
    let report = inspect_http(&server, &["--header", "Authorization=Bearer s3cret-token"]);
    assert!(report.failed(8).contains(&other.url));
    assert_eq!(other.log().of("in").count(), 0);
}

/// The plain old transport works, with the endpoint as a path or as a URL of the same origin.
#[test]
fn c105_an_endpoint_of_the_same_origin_is_used() {
    for endpoint in
        ["/messages?sid=$sid", "http://127.0.0.1:$port/messages?sid=$sid", "messages?sid=$sid"]
    {
        let mut case = crate::play::scenario_of("C105");
        case["endpoint"] = json!(endpoint);
        let server = serve(Fake::scripted(&case));
        let report = inspect_http(&server, &[]).shows_both();
        assert_eq!(report.json["transport"], "HTTP+SSE", "{endpoint}");
    }
}

#[test]
fn c106_html_is_no_stream() {
    let server = serve(Fake::stdio("C106"));
    let report = inspect_url(&server.url_of("/sse"), &[]);
    let message = report.failed(8);
    assert!(message.contains("text/html"), "{message}");
    assert!(report.run.took < Duration::from_secs(5), "{:?}", report.run.took);
    assert_eq!(server.log().http("GET").len(), 1);
}

/// A web page under 200 on the POST: an error that says so, not an endless search.
#[test]
fn c106_html_is_no_answer() {
    let server = http_scenario(&json!({"steps": [{"expect": ["*", "GET"], "repeat": true},
        {"http": {"status": 200, "headers": {"Content-Type": "text/html"}, "text": "<!doctype html><title>app</title>"}}]}));
    let report = inspect_http(&server, &[]);
    assert!(report.failed(8).contains("text/html"), "{}", report.json);
    assert!(report.run.took < Duration::from_secs(5), "{:?}", report.run.took);
    assert!(report.log.of("in").count() <= 4);
}
