//! Input schemas that are odd, and what calls make of them.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::fake::Fake;

use crate::play::{Crib, Report, inspect, inspect_fake, inspect_http, serve};

/// A legacy server with one tool `t` of this schema, and a plain neighbour `good`.
pub(crate) fn with_schema(schema: &Value) -> Fake {
    Fake::scripted(&json!({"era": "legacy", "tools": [
        {"name": "t", "inputSchema": schema}, {"name": "good", "inputSchema": {"type": "object"}},
    ]}))
}

/// Listed, with a finding that holds these parts; the neighbour is callable.
#[track_caller]
pub(crate) fn listed_with(fake: &Fake, parts: &[&str]) -> Report {
    let report = inspect_fake(fake, &[]).shows(&["t", "good"]).notes(parts);
    Crib::of(fake).calls("s.good", &json!({}), 0);
    report
}

#[test]
fn c22_null_keywords_are_dropped() {
    inspect("C22").shows(&["good", "nullreq"]).notes(&["nullreq", "required"]);
    let crib = Crib::case("C22");
    assert_eq!(crib.calls("s.good", &json!({}), 0), "C22:good:{}");
    assert_eq!(crib.calls("s.nullreq", &json!({"a": 1}), 0), "C22:nullreq:{\"a\": 1}");
}

/// Other keywords set to null, at any depth.
#[test]
fn c22_any_keyword_may_be_null() {
    let inner = json!({"type": "object", "properties": null, "required": null, "enum": null,
        "items": null, "anyOf": null, "pattern": null, "minimum": null, "description": null});
    let schema = json!({"type": "object", "properties": {"a": inner, "b": {"type": "integer"}}});
    let fake = with_schema(&schema);
    listed_with(&fake, &["tool t", "null"]);
    let crib = Crib::of(&fake);
    crib.calls("s.t", &json!({"a": {"x": 1}, "b": 1}), 0);
    crib.calls("s.t", &json!({"b": "one"}), 6);
}

/// Either look-around is judged, or the pattern is skipped with a finding and everything passes.
#[test]
fn c24_a_pattern_with_look_around_never_hides_the_tool() {
    let report = inspect("C24").shows(&["setpw"]);
    let skipped = !report.findings(&["setpw", "pattern"]).is_empty();
    let crib = Crib::case("C24");
    crib.calls("s.setpw", &json!({"pw": "Passw0rd", "u": "Straße"}), 0);
    crib.calls("s.setpw", &json!({"pw": "short"}), if skipped { 0 } else { 6 });
    crib.calls("s.setpw", &json!({"u": "7"}), if skipped { 0 } else { 6 });
    let run = crib.call("s.setpw", &json!({"slow": format!("{}!", "a".repeat(200))}));
    assert_eq!(run.code, Some(6), "{}", run.stdout);
    assert!(run.took < Duration::from_secs(5), "{:?}", run.took);
}

/// That the exported schema is finite is for the gateway's tests; it is kept as it came here.
#[test]
fn c25_a_recursive_schema_is_kept_and_judged() {
    let report = inspect("C25").shows(&["tree"]).notes_nothing();
    let root = &report.tool("tree")["inputSchema"]["properties"]["root"];
    assert_eq!(*root, json!({"$ref": "#/$defs/node"}));
    let crib = Crib::case("C25");
    let tree = |leaf: Value| json!({"root": {"v": 1, "kids": [{"v": 2, "kids": [{"v": leaf}]}]}});
    crib.calls("s.tree", &tree(json!(3)), 0);
    let message = crib.calls("s.tree", &tree(json!("three")), 6);
    assert!(
        message.contains("kids[0].kids[0].v") || message.contains("/kids/0/kids/0/v"),
        "{message}"
    );
}

#[test]
fn c26_older_and_unknown_dialects_work() {
    inspect("C26").shows(&["d7", "d19", "dx"]).notes(&["tool dx", "my-dialect"]);
    let crib = Crib::case("C26");
    crib.calls("s.d7", &json!({"pair": [1, "x"]}), 0);
    crib.calls("s.d7", &json!({"pair": ["x", 1]}), 6);
    crib.calls("s.d7", &json!({"pair": [1, "x", 2]}), 6);
    crib.calls("s.d19", &json!({}), 0);
    crib.calls("s.dx", &json!({"any": 1}), 0);
}

/// Dialects written without `#`, with https, or as something that is no URI.
#[test]
fn c26_a_dialect_may_be_written_oddly() {
    for dialect in [
        json!("https://json-schema.org/draft-07/schema"),
        json!("http://json-schema.org/draft-04/schema#"),
        json!("http://json-schema.org/schema"),
        json!("draft-07"),
        json!(7),
        json!(""),
    ] {
        let schema = json!({"$schema": dialect, "type": "object",
            "properties": {"n": {"type": "integer"}}});
        let fake = with_schema(&schema);
        let crib = Crib::of(&fake);
        crib.calls("s.t", &json!({"n": 1}), 0);
        crib.calls("s.t", &json!({"n": "x"}), 6);
    }
}

#[test]
fn c27_unknown_keywords_and_formats_judge_nothing() {
    inspect("C27").shows(&["upd"]).notes_nothing();
    let crib = Crib::case("C27");
    let check = |arguments: Value, code: i32| {
        crib.calls("s.upd", &arguments, code);
    };
    check(json!({"corr": null}), 0);
    check(json!({"corr": 5}), 0);
    check(json!({"corr": "x"}), 6);
    check(json!({"owner": null}), 6);
    check(json!({"size": 18_446_744_073_709_551_615_u64, "when": "whenever", "k": "fixed"}), 0);
    check(json!({"size": -1}), 6);
    check(json!({"k": "loose"}), 6);
}

#[test]
fn c85_an_array_for_properties_is_an_empty_object() {
    inspect("C85")
        .shows(&["good", "php", "php_nested"])
        .notes(&["tool php"])
        .notes(&["php_nested"]);
    let crib = Crib::case("C85");
    for tool in ["s.good", "s.php", "s.php_nested"] {
        crib.calls(tool, &json!({}), 0);
    }
    crib.calls("s.php_nested", &json!({"opt": {"any": 1}}), 0);
    crib.calls("s.php_nested", &json!({"opt": 1}), 6);
}

#[test]
fn c87_a_dangling_reference_costs_its_branch_only() {
    inspect("C87").shows(&["find"]).notes(&["tool find", "#/$defs/Group"]);
    let crib = Crib::case("C87");
    crib.calls("s.find", &json!({"q": "x"}), 0);
    crib.calls("s.find", &json!({}), 6);
    crib.calls("s.find", &json!({"q": 1}), 6);
    // Skipped, or refused with the reference named; twice alike.
    let with_branch = json!({"q": "x", "who": {"of": {"a": 1}}});
    let run = crib.call("s.find", &with_branch);
    if run.code != Some(0) {
        assert!(crib.calls("s.find", &with_branch, 6).contains("#/$defs/Group"));
    }
}

/// What is exported for it is for the gateway's tests.
#[test]
fn c88_a_missing_schema_takes_any_object() {
    let report = inspect("C88").shows(&["good", "noschema", "nullschema"]);
    let report = report.notes(&["tool noschema"]).notes(&["tool nullschema"]);
    assert_eq!(report.state(), "ready");
    let crib = Crib::case("C88");
    for tool in ["s.good", "s.noschema", "s.nullschema"] {
        crib.calls(tool, &json!({"any": [1]}), 0);
        crib.calls(tool, &json!([1]), 6);
    }
}

/// Schemas that are no objects, or no schemas of an object.
#[test]
fn c88_what_is_no_schema_never_hides_the_tool() {
    for schema in [
        json!("object"),
        json!(7),
        json!([1]),
        json!(true),
        json!({"type": 7}),
        json!({"type": "objekt"}),
        json!({"type": "string"}),
        json!({"properties": {"a": "string"}}),
        json!({"type": "object", "required": "a"}),
        json!({"type": "object", "properties": {"a": {"minLength": "3"}}}),
    ] {
        listed_with(&with_schema(&schema), &["tool t"]);
    }
}

#[test]
fn c89_an_illegal_header_excludes_its_tool_over_http() {
    let server = serve(Fake::stdio("C89"));
    let report = inspect_http(&server, &[]).shows(&["ok"]);
    let refused = report.json["refused"].as_array().unwrap();
    let items: Vec<_> = refused.iter().map(|refused| refused["item"].as_str().unwrap()).collect();
    assert_eq!(items, ["bad_name", "dup", "deep"]);
    assert!(
        refused
            .iter()
            .all(|refused| refused["why"].as_str().is_some_and(|why| why.contains("header")))
    );
    let crib = Crib::of_http(&server);
    crib.calls("s.ok", &json!({"region": "eu-1"}), 0);
    let called = server.log();
    let headers = &called.requests("tools/call")[0]["headers"];
    assert_eq!(headers["mcp-param-region"], "eu-1");
    assert_eq!(
        (&headers["mcp-method"], &headers["mcp-name"]),
        (&json!("tools/call"), &json!("ok"))
    );
    crib.calls("s.dup", &json!({"a": "1"}), 11);
    assert_eq!(server.log().count("tools/call"), 1);
}

/// Values that a header cannot carry as they are travel encoded; the fake compares the name.
#[test]
fn c89_values_no_header_can_carry_are_encoded() {
    let server = serve(Fake::stdio("C89"));
    let crib = Crib::of_http(&server);
    crib.calls("s.ok", &json!({"region": "süd\r\nX: 1"}), 0);
    let log = server.log();
    let region = log.requests("tools/call")[0]["headers"]["mcp-param-region"].as_str().unwrap();
    assert!(region.starts_with("=?base64?") && region.ends_with("?="), "{region}");
}

/// The client's half: the same through the gateway comes with the gateway.
#[test]
fn c90_arguments_are_absent_or_an_object() {
    let fake = Fake::stdio("C90");
    let crib = Crib::of(&fake);
    let sent = || {
        let calls: Vec<_> = fake
            .log()
            .requests("tools/call")
            .into_iter()
            .map(|call| call["params"].get("arguments").cloned())
            .collect();
        calls
    };
    assert_eq!(crib.run(&["call", "s.whoami"]).code, Some(0));
    assert!(matches!(&sent()[..], [None]) || sent() == [Some(json!({}))], "{:?}", sent());
    let run = crib.run(&["call", "s.need"]);
    assert_eq!(run.code, Some(6), "{}", run.stderr);
    assert!(run.stderr.contains('x'), "{}", run.stderr);
    for odd in [json!(null), json!("{}"), json!([]), json!(1)] {
        crib.calls("s.whoami", &odd, 6);
    }
    assert_eq!(sent().len(), 1, "{:?}", sent());
}
