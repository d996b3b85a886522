//! Which era and version is spoken with servers that answer the handshake oddly.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::fake::Fake;

use crate::play::{Crib, Report, inspect, inspect_fake, inspect_http, scenario, serve};

#[test]
fn c02_a_silent_probe_is_followed_by_initialize() {
    let report = inspect_fake(&Fake::stdio("C02"), &["--probe-timeout", "0.5"]).shows_both();
    let took = report.run.took;
    assert!(took >= Duration::from_millis(500), "initialize before the probe was over: {took:?}");
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    assert_eq!(report.log.methods()[..2], ["server/discover", "initialize"]);
    assert_eq!(report.json["era"], "legacy");
}

/// A late answer to the probe changes nothing once `initialize` has settled the era.
#[test]
fn c02_a_late_answer_to_the_probe_is_ignored() {
    let discovered = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"prompts": {}}});
    let refused = json!({"error": {"code": -32601, "message": "late"}});
    for answer in [refused, json!({"reply": discovered})] {
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "server/discover"}, {"sleep_ms": 700}, answer,
            {"expect": "tools/list"}, {"sleep_ms": 900}, {"default": true},
        ]})));
        let report = inspect_fake(&fake, &["--probe-timeout", "0.3"]).shows_both();
        assert_eq!(report.json["era"], "legacy", "{answer}");
        assert_eq!(report.log.count("initialize"), 1, "{answer}");
    }
}

/// While neither has answered, a late `DiscoverResult` wins: some servers are only slow.
#[test]
fn a_slow_modern_server_is_modern() {
    let fake = Fake::scripted(&scenario(&json!({"era": "modern", "steps": [
        {"expect": "server/discover", "repeat": true}, {"sleep_ms": 800}, {"default": true},
    ]})));
    let report = inspect_fake(&fake, &["--probe-timeout", "0.3"]).shows_both();
    assert_eq!(report.json["era"], "modern");
}

#[test]
fn c04_an_error_under_status_200_means_legacy() {
    let server = serve(Fake::stdio("C04"));
    let report = inspect_http(&server, &[]).shows_both().notes_nothing();
    assert_eq!(report.log.methods()[..2], ["server/discover", "initialize"]);
    let verbose = inspect_http(&server, &["-vv"]).shows_both();
    assert!(verbose.run.stderr.contains("Method not found"), "{:?}", verbose.run.stderr);
}

#[test]
fn c06_the_best_common_version_is_taken() {
    let server = serve(Fake::stdio("C06"));
    let report = inspect_http(&server, &[]).shows_both();
    assert_eq!(report.initialized_with(), ["2025-11-25"]);
    assert_eq!(report.json["protocol"], "2025-11-25");
}

/// Without a common version the failure names both lists.
#[test]
fn c06_no_common_version_names_both_lists() {
    let error = json!({"code": -32022, "message": "Unsupported protocol version",
        "data": {"supported": ["2031-01-01", "2030-06-06"], "requested": "2026-07-28"}});
    let body = json!({"jsonrpc": "2.0", "id": "$id", "error": error});
    let server = serve(Fake::scripted(&scenario(&json!({"transport": "http", "steps": [
        {"expect": "*", "repeat": true}, {"http": {"status": 400, "body": body}},
    ]}))));
    let report = inspect_http(&server, &[]);
    let message = report.failed(8);
    for version in ["2031-01-01", "2030-06-06", "2026-07-28", "2025-11-25"] {
        assert!(message.contains(version), "{version} is not in: {message}");
    }
}

/// The same refusal of `initialize` by an old server that knows none of ours.
#[test]
fn c06_an_older_common_version_is_asked_for() {
    let refusal = |supported: Value| {
        json!({"error": {"code": -32602, "message": "Unsupported protocol version",
            "data": {"supported": supported, "requested": "2025-11-25"}}})
    };
    let newest = json!({"params": {"protocolVersion": "2025-11-25"}});
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "initialize", "repeat": true, "when": newest}, refusal(json!(["2025-03-26"])),
    ]})));
    let report = inspect_fake(&fake, &[]).shows_both();
    assert_eq!(report.initialized_with(), ["2025-11-25", "2025-03-26"]);
}

#[test]
fn c07_a_version_named_in_plain_text_is_taken() {
    let server = serve(Fake::stdio("C07"));
    let report = inspect_http(&server, &[]).shows_both();
    assert_eq!(report.initialized_with(), ["2025-11-25", "2025-06-18"]);
    for request in report.log.requests("initialize") {
        assert_eq!(request["headers"]["mcp-protocol-version"], Value::Null);
    }
    assert_eq!(report.json["protocol"], "2025-06-18");
}

/// When that fails too, the server's own words are in the error.
#[test]
fn c07_the_servers_words_are_in_the_error() {
    let text = "this door takes 2025-06-18 only, and only on Sundays";
    let server = serve(Fake::scripted(&scenario(&json!({"transport": "http", "steps": [
        {"expect": "*", "repeat": true}, {"http": {"status": 400, "text": text}},
    ]}))));
    let report = inspect_http(&server, &[]);
    let message = report.failed(8);
    assert!(message.contains("only on Sundays"), "{message}");
    assert!(report.log.count("initialize") <= 2);
}

#[test]
fn c08_an_unpublished_version_is_served_with_a_warning() {
    let report = inspect("C08").shows_both().notes(&["2024-10-07"]);
    assert_eq!(report.state(), "ready");
    let both = Crib::case("C08").with_case("other", "C20");
    let stands = both.status();
    assert_eq!(
        (&stands["s"]["state"], &stands["other"]["state"]),
        (&json!("ready"), &json!("ready"))
    );
}

/// Odder answers to `initialize`: each ends at once with a text, or is served with a warning.
#[test]
fn c08_odd_versions_never_hang() {
    for version in [json!(""), json!(20_250_618), Value::Null, json!("2031-01-01"), json!("v1")] {
        let answer = json!({"protocolVersion": version, "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"}});
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "initialize", "repeat": true}, {"reply": answer},
        ]})));
        let report = inspect_fake(&fake, &["--start-timeout", "5"]);
        assert!(report.run.took < Duration::from_secs(8), "{version}: {:?}", report.run.took);
        if report.run.code == Some(0) {
            served_with_warning(report, &version);
        } else {
            let message = report.failed(8);
            assert!(message.contains("2025-11-25"), "{version}: {message}");
        }
    }
}

fn served_with_warning(report: Report, version: &Value) {
    assert_eq!(report.tools(), ["alpha", "beta"], "{version}");
    let report = report.notes(&["version"]);
    assert_eq!(report.state(), "ready");
}

#[test]
fn c73_a_404_to_the_probe_means_legacy() {
    let server = serve(Fake::stdio("C73"));
    let report = inspect_http(&server, &[]).shows_both();
    let messages: Vec<_> =
        report.log.of("in").filter(|entry| entry["method"].is_string()).collect();
    assert_eq!(
        (&messages[0]["method"], &messages[1]["method"]),
        (&json!("server/discover"), &json!("initialize"))
    );
    for (at, message) in messages.iter().enumerate() {
        let session = &message["headers"]["mcp-session-id"];
        let expect = if at < 2 { Value::Null } else { json!("sess-1") };
        assert_eq!(*session, expect, "{message}");
    }
    assert_eq!(report.log.http("GET"), Vec::<&Value>::new());
}

/// The same 404 with other bodies, and other statuses a router may answer with.
#[test]
fn c73_what_a_router_says_to_the_probe_means_legacy() {
    for (status, text) in
        [(404, ""), (404, "{\"error\":\"no session\"}"), (405, "no"), (400, "session id required")]
    {
        let server =
            serve(Fake::scripted(&scenario(&json!({"transport": "http", "session": true,
            "steps": [{"expect": "server/discover", "repeat": true},
                {"http": {"status": status, "text": text}}]}))));
        let report = inspect_http(&server, &[]);
        assert_eq!(report.run.code, Some(0), "{status} {text}: {}", report.json);
        assert_eq!(report.tools(), ["alpha", "beta"], "{status} {text}");
    }
}

/// An outage is never taken for an era.
#[test]
fn c73_an_outage_is_no_era() {
    for status in [502, 503, 504, 429] {
        let server = serve(Fake::scripted(&scenario(&json!({"transport": "http", "steps": [
            {"expect": "server/discover", "repeat": true},
            {"http": {"status": status, "text": "out of order"}}]}))));
        let report = inspect_http(&server, &[]);
        let message = report.failed(8);
        assert!(message.contains(&status.to_string()), "{message}");
        assert_eq!(report.log.count("initialize"), 0, "{status}");
    }
}

#[test]
fn c75_a_lean_discover_result_is_modern() {
    let report = inspect("C75").shows_both().notes(&["supportedVersions"]);
    assert_eq!(
        (&report.json["era"], &report.json["protocol"]),
        (&json!("modern"), &json!("2026-07-28"))
    );
    assert_eq!(report.log.count("initialize"), 0);
}
