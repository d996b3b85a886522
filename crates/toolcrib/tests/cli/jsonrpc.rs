//! Messages that break JSON-RPC, and requests a server sends to its client.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::{fake::Fake, traffic::Traffic};

use crate::play::{Crib, inspect, inspect_fake, scenario};

#[test]
fn c40_answers_for_unknown_ids_reach_nobody() {
    let flags = ["--probe-timeout", "0.5", "--start-timeout", "2"];
    let report = inspect_fake(&Fake::stdio("C40"), &flags);
    let message = report.failed(10);
    assert!(message.contains("response for unknown id 0"), "{message}");
    assert!(report.run.took < Duration::from_secs(6), "{:?}", report.run.took);
}

/// Results without an id, or with somebody else's, are nobody's either.
#[test]
fn c40_a_result_is_never_given_to_the_wrong_caller() {
    for id in [Value::Null, json!(-1), json!(999), json!("x"), json!(1.5)] {
        let wrong = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "not yours"}]}});
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/call", "repeat": true}, {"message": wrong},
            {"reply": {"content": [{"type": "text", "text": "yours"}]}},
        ]})));
        assert_eq!(Crib::of(&fake).calls("s.alpha", &json!({}), 0), "yours", "{id}");
    }
}

/// Ids that come back in another dress, and answers that come twice.
#[test]
fn c40_an_id_in_another_dress_is_understood() {
    for dress in ["$id_str", "$id_float"] {
        let answer = |text: &str| {
            json!({"message": {"jsonrpc": "2.0", "id": dress,
                "result": {"content": [{"type": "text", "text": text}]}}})
        };
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/call", "repeat": true}, answer("first"), answer("second"),
        ]})));
        assert_eq!(Crib::of(&fake).calls("s.alpha", &json!({}), 0), "first", "{dress}");
    }
}

/// Errors that are no objects, or lack their members.
#[test]
fn an_odd_error_is_an_error() {
    for error in [
        json!("broken"),
        json!({}),
        json!({"code": "E1", "message": "broken"}),
        json!({"message": "broken"}),
        json!({"code": -32000, "message": null}),
        json!({"code": -32000.5, "message": ["broken"]}),
        json!(null),
    ] {
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/call", "repeat": true},
            {"message": {"jsonrpc": "2.0", "id": "$id", "error": error}},
        ]})));
        let run = Crib::of(&fake).run(&["call", "--json", "--timeout", "3", "s.alpha"]);
        let expect = if error.is_null() { [Some(10), Some(12)] } else { [Some(12); 2] };
        assert!(expect.contains(&run.code), "{error}: {:?} {}", run.code, run.stdout);
    }
}

/// The answers to the server's requests, by id.
fn answer(log: &Traffic, id: &Value) -> Value {
    let answers = log.answers();
    let found: Vec<_> = answers.iter().filter(|answer| answer["id"] == *id).collect();
    assert_eq!(found.len(), 1, "id {id} in {answers:?}");
    (*found[0]).clone()
}

#[test]
fn c44_requests_of_the_server_are_answered_while_it_lists() {
    let report = inspect("C44").shows_both();
    let log = &report.log;
    assert_eq!(answer(log, &json!("srv-ping-1"))["result"], json!({}));
    let roots = answer(log, &json!(7));
    assert!(roots.get("result").is_some() || roots["error"]["code"] == -32601, "{roots}");
    assert_eq!(answer(log, &json!(8))["error"]["code"], -32601);
    // All three came before the tools left.
    let answered = log.entries.iter().rposition(|entry| {
        entry["message"]["method"].is_null() && entry["dir"] == "in" && !entry["message"].is_null()
    });
    let listed =
        log.entries.iter().position(|entry| !entry["message"]["result"]["tools"].is_null());
    // The default reply is not logged by every fake; the time of the listing then is 300 ms later.
    if let (Some(answered), Some(listed)) = (answered, listed) {
        assert!(answered < listed, "{:#?}", log.entries);
    }
    let asked = log.requests("tools/list")[0]["t"].as_f64().unwrap();
    let last = log
        .of("in")
        .filter(|entry| !entry["message"].is_null())
        .filter_map(|entry| entry["t"].as_f64());
    assert!(last.fold(0.0, f64::max) < asked + 0.28, "{:#?}", log.entries);
}

/// Requests nobody knows, requests without parameters, and many at once.
#[test]
fn c44_unknown_requests_are_refused() {
    let mut steps = vec![json!({"expect": "tools/list", "repeat": true})];
    for at in 0..40 {
        steps.push(json!({"request": {"id": format!("r{at}"), "method": if at % 2 == 0 { "ping" } else { "x/y" }}}));
    }
    steps.extend([json!({"sleep_ms": 500}), json!({"default": true})]);
    let report =
        inspect_fake(&Fake::scripted(&scenario(&json!({"steps": steps}))), &[]).shows_both();
    for at in 0..40 {
        let answer = answer(&report.log, &json!(format!("r{at}")));
        match at % 2 {
            0 => assert_eq!(answer["result"], json!({})),
            _ => assert_eq!(answer["error"]["code"], -32601),
        }
    }
}

/// Era smuggling: on a 2026-07-28 connection the server sends no requests and no batches.
#[test]
fn row_10_a_modern_server_may_not_send_requests() {
    for odd in [
        json!({"request": {"id": 1, "method": "sampling/createMessage", "params": {"messages": []}}}),
        json!({"request": {"id": "x", "method": "roots/list"}}),
        json!({"raw": "[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}]"}),
    ] {
        let fake = Fake::scripted(&scenario(&json!({"era": "modern", "steps": [
            {"expect": "tools/list", "repeat": true}, odd, {"sleep_ms": 200}, {"default": true},
        ]})));
        let report = inspect_fake(&fake, &[]);
        assert_eq!(report.log.answers(), Vec::<&Value>::new(), "{odd}");
        let message = report.failed(8);
        assert!(message.contains("2026-07-28"), "{odd}: {message}");
    }
}

/// A modern server that asks its client for input gets no answer, and the call says what was asked.
#[test]
fn row_10_input_this_client_does_not_offer_is_refused() {
    let asks = json!({"resultType": "input_required", "requestState": "s",
        "inputRequests": {"a": {"method": "elicitation/create", "params": {"message": "password?"}}}});
    let fake = Fake::scripted(&scenario(&json!({"era": "modern", "steps": [
        {"expect": "tools/call", "repeat": true}, {"reply": asks},
    ]})));
    let message = Crib::of(&fake).calls("s.alpha", &json!({}), 13);
    assert!(message.contains("elicitation/create"), "{message}");
    assert_eq!(fake.log().count("tools/call"), 1);
}

/// A legacy handshake that claims members of the modern era stays legacy.
#[test]
fn row_10_an_initialize_result_with_modern_members_stays_legacy() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [{"expect": "initialize"}, {"reply": {
        "protocolVersion": "2025-06-18", "supportedVersions": ["2026-07-28"], "resultType": "complete",
        "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}}]})));
    let report = inspect_fake(&fake, &[]).shows_both();
    assert_eq!(
        (&report.json["era"], &report.json["protocol"]),
        (&json!("legacy"), &json!("2025-06-18"))
    );
}
