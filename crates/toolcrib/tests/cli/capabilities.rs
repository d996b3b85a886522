//! What a server declares, and what is asked of it then.

use serde_json::{Value, json};
use toolcrib_testkit::fake::Fake;

use crate::play::{inspect, inspect_fake, names, scenario};

const LISTS: [&str; 4] =
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];

#[test]
fn c19_a_server_that_declares_nothing_is_asked_once() {
    let report = inspect("C19").shows_both().notes(&["tools not advertised"]);
    assert_eq!(LISTS.map(|list| report.log.count(list)), [1, 0, 0, 0]);
    assert_eq!(report.state(), "ready");
}

/// An error there is silent.
#[test]
fn c19_an_error_to_that_question_is_silent() {
    let fake = Fake::scripted(&scenario(&json!({"capabilities": {}})));
    let report = inspect_fake(&fake, &[]).shows(&[]).notes_nothing();
    assert_eq!((report.state(), report.log.count("tools/list")), ("ready", 1));
}

/// Silence, other errors and odd answers are no failure either: it was only a question.
#[test]
fn c19_no_answer_to_that_question_fails_nothing() {
    let answers = [
        json!({"error": {"code": -32000, "message": "no"}}),
        json!({"reply": {"tools": null}}),
        json!({"silent": true}),
    ];
    for answer in answers {
        let steps = json!([{"expect": "tools/list", "repeat": true}, answer]);
        let fake = Fake::scripted(&scenario(&json!({"capabilities": {}, "steps": steps})));
        let report = inspect_fake(&fake, &["--list-timeout", "1"]).shows(&[]);
        assert_eq!(report.state(), "ready", "{answer}: {}", report.json["status"]);
    }
}

/// What is declared beside tools does not make them askable.
#[test]
fn c19_a_server_that_declares_prompts_only_is_not_asked_for_tools() {
    let fake = Fake::scripted(&scenario(&json!({"capabilities": {"prompts": {}, "logging": {}}})));
    let report = inspect_fake(&fake, &[]).shows(&[]);
    assert_eq!(LISTS.map(|list| report.log.count(list)), [0, 0, 0, 1]);
}

/// The array that answers a ping is not met here: this client sends none.
#[test]
fn c20_empty_arrays_are_empty_objects() {
    let report = inspect("C20").shows_both();
    assert_eq!((report.state(), report.log.count("tools/list")), ("ready", 1));
}

/// Every object a PHP server may encode as an array, at once.
#[test]
fn c20_empty_arrays_everywhere() {
    let tool =
        json!({"name": "alpha", "inputSchema": [], "annotations": [], "_meta": [], "icons": []});
    let fake = Fake::scripted(&json!({"era": "legacy", "steps": [
        {"expect": "initialize"},
        {"reply": {"protocolVersion": "2025-06-18", "capabilities": {"tools": [], "prompts": []},
            "serverInfo": [], "_meta": []}},
        {"expect": "tools/list"}, {"reply": {"tools": [tool], "_meta": []}},
        {"expect": "prompts/list"},
        {"reply": {"prompts": [{"name": "p", "arguments": {}, "_meta": []}]}},
    ]}));
    let report = inspect_fake(&fake, &[]).shows(&["alpha"]);
    assert_eq!((report.state(), names(&report.json["prompts"])), ("ready", vec!["p"]));
}

#[test]
fn c82_any_value_but_null_declares_a_list() {
    let report = inspect("C82").shows_both().notes(&["tools", "capab"]);
    assert_eq!(LISTS.map(|list| report.log.count(list)), [1, 0, 0, 0]);
}

#[test]
fn c82_odd_values_declare_a_list() {
    for value in [json!(true), json!("yes"), json!(1), json!({"listChanged": "yes"})] {
        let fake = Fake::scripted(&scenario(&json!({"capabilities": {"tools": value}})));
        let report = inspect_fake(&fake, &[]).shows_both();
        assert_eq!(report.log.count("tools/list"), 1, "{value}");
    }
}

#[test]
fn c83_a_server_without_tools_is_ready() {
    let report = inspect("C83").shows(&[]).notes_nothing();
    assert_eq!((report.state(), names(&report.json["prompts"])), ("ready", vec!["greet"]));
    assert_eq!(LISTS.map(|list| report.log.count(list)), [0, 0, 0, 1]);
}

/// Declared and not served: a note, and the rest is there. Templates are declared with resources,
/// so that their absence is nothing to note.
#[test]
fn c83_a_declared_list_that_is_not_served_costs_nothing_else() {
    let gone = json!({"error": {"code": -32601, "message": "Method not found"}});
    let fake = Fake::scripted(&scenario(&json!({
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "resources": [{"uri": "x://a", "name": "a"}],
        "steps": [{"expect": ["prompts/list", "resources/templates/list"], "repeat": true}, gone],
    })));
    let report = inspect_fake(&fake, &[]).shows_both().notes(&["prompts/list"]);
    assert_eq!(report.findings(&["resources/templates/list"]), Vec::<&Value>::new());
    assert_eq!((report.state(), names(&report.json["resources"])), ("ready", vec!["a"]));
}

/// The list that hangs is missed, the others are shown, and the reason is said. How soon they are
/// visible is shown with the engine.
#[test]
fn c84_a_list_that_never_answers_is_timed_out() {
    let report = inspect_fake(&Fake::stdio("C84"), &["--list-timeout", "1"]).shows_both();
    assert_eq!(report.state(), "degraded");
    let why = report.json["status"]["why"].as_str().unwrap();
    assert!(why.contains("resources") && why.contains("timed out"), "{why}");
    assert_eq!(report.json["complete"]["tools"], true);
    assert_eq!(report.json["complete"]["resources"], false);
}
