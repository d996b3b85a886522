//! Judges what a client of another maker saw of the demo server: one JSON object, the same whatever
//! the client, the transport and the era.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::world::Running;

/// Whether a client hands on all progress notifications.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of them.
    Whole,
    /// It drops some that come together with the answer.
    Gaps,
}

/// Holds what was seen against what the demo server serves, member by member.
#[track_caller]
pub(crate) fn check(protocol: &str, seen: &Value, progress: Progress) {
    assert_eq!((&seen["protocol"], &seen["server"]), (&json!(protocol), &json!("toolcrib-demo")));
    listed(seen);
    used(seen);
    progressed(seen, progress);
    let after = &seen["after_cancel"]["structuredContent"];
    assert_eq!((after, &seen["steps_after_cancel"]), (&json!({"sum": 42}), &json!(0)));
    borrowed(seen);
    changed(seen);
}

/// Where a demo server says that it listens.
pub(crate) fn url(server: &mut Running) -> String {
    let line = server.line_of_stderr("listening on", Duration::from_secs(30));
    line.split_whitespace().last().expect("the line ends with it").to_owned()
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.map(|item| item["text"].as_str().unwrap_or_default()).collect()
}

fn listed(seen: &Value) {
    let lists = ["tools", "resources", "templates", "prompts"].map(|list| seen[list].clone());
    let expect = [
        json!(["add", "search_docs", "count", "borrow", "refresh"]),
        json!(["docs://handbook"]),
        json!(["users://{user_id}/profile"]),
        json!(["review"]),
    ];
    assert_eq!(lists, expect);
}

fn used(seen: &Value) {
    assert_eq!(seen["called"]["structuredContent"], json!({"sum": 42}));
    assert_eq!(texts(&seen["called"]["content"]), [r#"{"sum":42}"#]);
    let misfit = &seen["misfit"];
    let words = "add: /b is missing: expected integer\n\
                 /a has the wrong type: expected integer, got \"two\"";
    assert_eq!((&misfit["isError"], texts(&misfit["content"])), (&json!(true), vec![words]));
    let handbook = &seen["handbook"][0];
    assert_eq!(handbook["mimeType"], "text/markdown");
    assert!(handbook["text"].as_str().unwrap().starts_with("# Handbook\n"), "{handbook}");
    let profile: Value = serde_json::from_str(texts(&seen["profile"])[0]).unwrap();
    assert_eq!(profile, json!({"id": "7", "name": "User 7", "role": "borrower"}));
    assert_eq!(seen["profile"][0]["uri"], "users://7/profile");
    let message = &seen["prompt"][0];
    let text = message["content"]["text"].as_str().unwrap();
    assert!(message["role"] == "user" && text.contains("```python\nx = 1\n```"), "{message}");
    assert_eq!(seen["completion"], json!(["java", "javascript"]));
}

fn progressed(seen: &Value, progress: Progress) {
    let titles = ["Borrowing a tool", "Returning a tool", "Opening hours", "Safety"];
    let searched = titles.iter().enumerate().map(|(n, title)| json!([n as f64 + 1.0, 4.0, title]));
    let counted = (1..=3).map(|n| json!([f64::from(n), 3.0, null]));
    let told = seen["progress"].as_array().unwrap().iter().map(|step| {
        let number = |at: usize| step[at].as_f64();
        json!([number(0), number(1), step[2]])
    });
    let mut expect = searched.chain(counted);
    if progress == Progress::Gaps {
        // In this order all the same. That some arrive shows the call that is given up: its first
        // step is waited for.
        for step in told {
            assert!(expect.any(|expected| expected == step), "{step} in {}", seen["progress"]);
        }
    } else {
        assert_eq!(told.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
    }
    assert!(texts(&seen["found"])[0].starts_with("## Borrowing a tool\n"), "{}", seen["found"]);
    assert_eq!(texts(&seen["counted"]), ["counted to 3"]);
}

fn borrowed(seen: &Value) {
    assert_eq!(texts(&seen["borrowed"]), ["Ada has the plane for a week"]);
    let [asked] = &seen["asked"].as_array().unwrap()[..] else { panic!("{}", seen["asked"]) };
    assert_eq!(asked["message"], "Sign for the plane");
    assert_eq!(asked["requestedSchema"]["required"], json!(["name", "days"]));
    let days = json!([{"const": "0", "title": "Until tonight"}, {"const": "7", "title": "A week"}]);
    assert_eq!(asked["requestedSchema"]["properties"]["days"]["oneOf"], days);
}

fn changed(seen: &Value) {
    assert_eq!(texts(&seen["refreshed"]), ["the tool greet was added"]);
    assert_eq!(seen["event"], "ToolsListChanged");
    let tools = json!(["add", "search_docs", "count", "borrow", "refresh", "greet"]);
    assert_eq!((&seen["tools_after"], texts(&seen["greeted"])), (&tools, vec!["Hello, Ada!"]));
}
