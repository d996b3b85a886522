//! Servers that ask for authorization, and refusals whose words must reach the person.

use serde_json::{Value, json};
use toolcrib_testkit::fake::Fake;

use crate::play::{Crib, inspect_http, inspect_url, scenario, serve};

const METADATA: &str = "https://auth.example.invalid/.well-known/oauth-protected-resource";

#[test]
fn c50_a_challenge_is_not_an_outage() {
    let server = serve(Fake::stdio("C50"));
    let report = inspect_http(&server, &[]);
    let message = report.failed(9);
    assert!(message.contains(METADATA), "{message}");
    assert_eq!(report.log.of("in").count(), 1, "{:#?}", report.log.entries);
    assert_eq!(report.json["error"]["code"], "needs-auth");
}

#[test]
fn c50_other_servers_are_ready() {
    let server = serve(Fake::stdio("C50"));
    let crib = Crib::of_http(&server).with_case("other", "C20");
    let stands = crib.status();
    assert_eq!(stands["s"]["state"], "needs-auth");
    assert!(stands["s"]["why"].as_str().is_some_and(|why| why.contains(METADATA)));
    assert_eq!(
        (&stands["other"]["state"], &stands["other"]["tools"]),
        (&json!("ready"), &json!(2))
    );
    assert_eq!(server.log().of("in").count(), 1);
}

/// Challenges without metadata, without a header, and refusals that are no challenge.
#[test]
fn c50_every_401_asks_for_authorization() {
    for headers in [
        json!({}),
        json!({"WWW-Authenticate": "Bearer"}),
        json!({"WWW-Authenticate": "Basic realm=\"x\""}),
        json!({"WWW-Authenticate": "Bearer resource_metadata="}),
    ] {
        let server = serve(Fake::scripted(&scenario(&json!({"transport": "http", "steps": [
            {"expect": ["*", "GET"], "repeat": true},
            {"http": {"status": 401, "headers": headers, "text": "{}"}}]}))));
        let report = inspect_http(&server, &[]);
        report.failed(9);
        assert_eq!(report.log.of("in").count(), 1, "{headers}");
    }
}

/// Authorization that is asked for only when a tool is called is no lost server.
#[test]
fn c50_a_challenge_to_a_call_is_told() {
    let server = serve(Fake::scripted(&scenario(&json!({"transport": "http", "steps": [
        {"expect": "tools/call", "repeat": true},
        {"http": {"status": 401, "headers": {"WWW-Authenticate": format!("Bearer resource_metadata=\"{METADATA}\"")},
            "text": ""}}]}))));
    let message = Crib::of_http(&server).calls("s.alpha", &json!({}), 9);
    assert!(message.contains(METADATA), "{message}");
    assert_eq!(server.log().count("tools/call"), 1);
}

#[test]
fn c104_the_servers_own_sentence_is_shown_first() {
    let server = serve(Fake::stdio("C104"));
    let report = inspect_http(&server, &[]);
    let message = report.failed(8);
    let sentence = message.find("has not switched the feature on");
    assert!(sentence.is_some(), "{message}");
    if let Some(secondary) = message.find("405") {
        assert!(sentence < Some(secondary), "{message}");
    }
    assert_eq!(report.log.requests("initialize").len(), 1);
}

/// The same sentence in other wrappings.
#[test]
fn c104_the_sentence_is_found_in_any_wrapping() {
    let sentence = "this workspace has not switched the feature on";
    for (status, body) in [
        (
            400,
            json!({"jsonrpc": "2.0", "id": Value::Null, "error": {"code": -32000, "message": sentence}}),
        ),
        (400, json!({"error": sentence})),
        (403, json!({"detail": sentence})),
        (404, json!({"message": sentence})),
        (422, json!(sentence)),
    ] {
        let server = serve(Fake::scripted(&scenario(&json!({"transport": "http", "steps": [
            {"expect": "*", "repeat": true}, {"http": {"status": status, "body": body}}]}))));
        let report = inspect_http(&server, &[]);
        assert!(report.failed(8).contains(sentence), "{status} {body}: {}", report.json);
    }
}

/// A POST that is sent on within its origin is followed, credentials and all.
#[test]
fn a_redirect_within_the_origin_is_followed() {
    for status in [307, 308] {
        let route = json!({"method": "POST", "path": "/mcp", "status": status,
            "headers": {"Location": "/mcp/"}, "text": ""});
        let server = serve(Fake::scripted(&scenario(&json!({
            "transport": "http", "path": "/mcp/", "routes": [route]}))));
        let report = inspect_url(&server.url_of("/mcp"), &["--header", "Authorization=Bearer t"]);
        report.shows_both();
        let log = server.log();
        assert!(log.of("in").all(|entry| entry["headers"]["authorization"] == "Bearer t"));
        assert_eq!(log.requests("tools/list")[0]["path"], "/mcp/");
    }
}

/// Nothing is sent to another origin, whatever the status; the error says where it would have gone.
#[test]
fn a_redirect_to_another_origin_is_not_followed() {
    let other = serve(Fake::stdio("C04"));
    for status in [301, 302, 303, 307, 308] {
        let route = json!({"method": "POST", "path": "/mcp", "status": status,
            "headers": {"Location": other.url}, "text": ""});
        let server =
            serve(Fake::scripted(&scenario(&json!({"transport": "http", "routes": [route]}))));
        let report = inspect_http(&server, &["--header", "Authorization=Bearer s3cret"]);
        let message = report.failed(8);
        assert!(message.contains(&other.url) && !message.contains("s3cret"), "{message}");
        assert_eq!(report.log.of("in").count(), 1, "{status}");
    }
    assert_eq!(other.log().of("in").count(), 0);
}

/// A circle of redirects ends, and a login page is named.
#[test]
fn a_redirect_that_leads_nowhere_is_named() {
    for (status, to) in [(307, "/mcp"), (302, "/login")] {
        let route = json!({"method": "POST", "path": "/mcp", "status": status,
            "headers": {"Location": to}, "text": ""});
        let server =
            serve(Fake::scripted(&scenario(&json!({"transport": "http", "routes": [route]}))));
        let report = inspect_http(&server, &[]);
        let message = report.failed(8);
        assert!(message.contains("redirects"), "{message}");
        assert!(report.log.of("in").count() <= 20, "{}", report.log.of("in").count());
    }
}
