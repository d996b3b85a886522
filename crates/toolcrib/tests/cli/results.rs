//! Results and lists with more, or other, than the schema of the revision says.

use serde_json::{Value, json};
use toolcrib_testkit::fake::Fake;

use crate::play::{Crib, inspect, inspect_fake, parsed, scenario};

#[test]
fn c29_an_error_result_is_not_judged() {
    for strict in [&["call", "--json", "s.push"][..], &["call", "--json", "--strict", "s.push"]] {
        let run = Crib::case("C29").run(strict);
        assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
        let json = parsed(&run);
        assert_eq!((&json["code"], json.get("misfit")), (&json!("tool-error"), None));
        assert_eq!(json["result"]["isError"], true);
        assert_eq!(json["result"]["content"][0]["text"], "push refused: remote is ahead");
    }
    let text = Crib::case("C29").run(&["call", "s.push"]);
    assert_eq!((text.code, text.stdout.trim()), (Some(1), "push refused: remote is ahead"));
}

/// A result that does not fit is kept with a warning, and an error under --strict.
#[test]
fn c29_a_good_result_is_judged() {
    let mut case = crate::play::scenario_of("C29");
    case["call_results"]["push"] = json!({"content": [{"type": "text", "text": "pushed"}], "structuredContent": {"success": "yes"}});
    let fake = Fake::scripted(&case);
    let crib = Crib::of(&fake);
    let run = crib.run(&["call", "s.push"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "pushed"));
    assert!(run.stderr.contains("output schema"), "{}", run.stderr);
    assert_eq!(crib.run(&["call", "--strict", "s.push"]).code, Some(7));
}

/// The client's half: what a gateway makes of the array is for the gateway's tests.
#[test]
fn c31_a_bare_array_is_handed_through() {
    let crib = Crib::case("C31");
    for (tool, text) in [("s.news", "[{\"id\":1}]"), ("s.typed", "[]")] {
        let run = crib.run(&["call", "--json", "--strict", tool]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        let json = parsed(&run);
        assert_eq!(json["result"]["structuredContent"], json!([{"id": 1}]));
        assert_eq!(json["result"]["content"], json!([{"type": "text", "text": text}]));
        assert_eq!(json.get("misfit"), None);
    }
}

/// Results of any shape are handed through, and none hangs.
#[test]
fn c31_any_result_is_handed_through() {
    let results = [
        json!({"content": [{"type": "hologram", "data": 1}], "x": {"y": 1.0}}),
        json!({"content": []}),
        json!({"content": null, "structuredContent": 7}),
        json!({"toolResult": {"a": 1}}),
        json!({"content": "plain"}),
        json!([1, 2]),
        json!("text"),
    ];
    for result in results {
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/call", "repeat": true}, {"reply": result},
        ]})));
        let crib = Crib::of(&fake);
        let run = crib.run(&["call", "--json", "s.alpha"]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        assert_eq!(parsed(&run)["result"], result);
        assert_eq!(crib.run(&["call", "s.alpha"]).code, Some(0), "{result}");
    }
}

#[test]
fn c32_odd_members_are_kept() {
    let report = inspect("C32").shows_both();
    let alpha = report.tool("alpha");
    assert_eq!(alpha["_meta"], json!({"_fastmcp": {"tags": []}, "x/y/z": 1}));
    assert_eq!(alpha["icons"][0]["src"].as_str().map(str::len), Some(8_000 * 26));
    assert_eq!(
        (&alpha["futureField"], alpha.get("title")),
        (&json!({"a": [1]}), Some(&Value::Null))
    );
    assert_eq!(report.json["complete"]["tools"], true);
}

/// One odd item never costs its neighbours.
#[test]
fn c32_one_odd_item_costs_no_other() {
    let good = json!({"name": "good", "inputSchema": {"type": "object"}});
    for odd in [
        json!(null),
        json!(7),
        json!("tool"),
        json!([]),
        json!({}),
        json!({"name": 7}),
        json!({"name": ""}),
        json!({"name": null}),
        json!({"title": "x"}),
    ] {
        let fake = Fake::scripted(&json!({"era": "legacy", "steps": [
            {"expect": "tools/list", "repeat": true}, {"reply": {"tools": [odd, good]}}]}));
        let report = inspect_fake(&fake, &[]).reached();
        assert!(report.tools().contains(&"good"), "{odd}: {:?}", report.tools());
        assert_eq!(report.json["complete"]["tools"], true, "{odd}");
        assert!(report.json["findings"].as_array().is_some_and(|all| !all.is_empty()), "{odd}");
    }
    // Members of the wrong type cost nothing at all.
    let loose = json!({"name": "t", "title": 7, "description": ["x"], "annotations": "none",
        "icons": {"a": 1}, "_meta": 3, "outputSchema": "object", "inputSchema": {"type": "object"}});
    let fake = Fake::scripted(&json!({"era": "legacy", "tools": [loose, good]}));
    let report = inspect_fake(&fake, &[]).shows(&["t", "good"]);
    assert_eq!(*report.tool("t"), loose);
    assert_eq!(Crib::of(&fake).calls("s.t", &json!({}), 0), "fake:t:{}");
}

#[test]
fn c93_extra_members_of_the_handshake_are_no_matter() {
    let report = inspect("C93").shows_both().notes_nothing();
    assert_eq!(report.state(), "ready");
    assert_eq!(report.json["server"], json!({"name": "c", "version": 3, "icons": "none"}));
    assert_eq!(report.json["capabilities"]["vendor"], json!({"x": 1}));
}

/// Other oddities of the handshake: none is a reason to fail.
#[test]
fn c93_odd_members_of_the_handshake_are_no_reason_to_fail() {
    for (key, odd) in [
        ("serverInfo", json!(null)),
        ("serverInfo", json!("name")),
        ("serverInfo", json!({})),
        ("serverInfo", json!({"name": null, "version": []})),
        ("instructions", json!({"a": 1})),
        ("instructions", json!(null)),
        ("_meta", json!(7)),
    ] {
        let mut answer = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "n", "version": "1"}});
        answer[key] = odd.clone();
        let steps = json!([{"expect": "initialize", "repeat": true}, {"reply": answer}]);
        let report = inspect_fake(&Fake::scripted(&scenario(&json!({"steps": steps}))), &[]);
        assert_eq!(report.run.code, Some(0), "{key} {odd}: {}", report.json);
        assert_eq!(report.tools(), ["alpha", "beta"], "{key} {odd}");
    }
}
