//! Lists in pages, and cursors that lie.

use serde_json::{Value, json};
use toolcrib_testkit::{fake::Fake, script};

use crate::play::{inspect, inspect_command, inspect_fake, parsed, scenario, world};

#[test]
fn c14_an_empty_cursor_for_ever_ends() {
    let report = inspect("C14").shows_both().notes(&["tools/list", "nothing new"]);
    assert!((2..=5).contains(&report.log.count("tools/list")), "{:?}", report.log.methods());
    assert_eq!(report.json["complete"]["tools"], true);
    assert_eq!(report.state(), "ready");
}

#[test]
fn c15_the_empty_string_is_a_cursor() {
    let report = inspect("C15").shows_both();
    let requests = report.log.requests("tools/list");
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert_eq!(requests[0]["params"].get("cursor"), None);
    assert_eq!(requests[1]["params"].get("cursor"), Some(&json!("")));
    assert_eq!(report.json["complete"]["tools"], true);
}

#[test]
fn c17_an_equal_cursor_alone_ends_nothing() {
    let report = inspect("C17").shows(&["one", "two", "three"]);
    assert_eq!(report.log.count("tools/list"), 3);
    assert_eq!(report.json["complete"]["tools"], true);
}

#[test]
fn c80_every_page_is_read() {
    let report = inspect("C80").reached().notes_nothing();
    let names: Vec<_> = (0..101).map(|at| format!("lar_{at}")).collect();
    assert_eq!(report.tools(), names);
    let requests = report.log.requests("tools/list");
    let cursors: Vec<_> = requests.iter().map(|entry| entry["params"].get("cursor")).collect();
    assert_eq!(cursors, [None, Some(&json!("50")), Some(&json!("100"))]);
    assert_eq!(report.json["complete"]["tools"], true);
}

/// Resources, templates and prompts are walked alike.
#[test]
fn c80_every_list_is_paged() {
    let many = |key: &str, prefix: &str| -> Vec<Value> {
        (0..7).map(|at| json!({"name": format!("n{at}"), key: format!("{prefix}{at}")})).collect()
    };
    let fake = Fake::scripted(&scenario(&json!({
        "page_size": 3, "resources": many("uri", "x://"), "prompts": many("title", "p"),
        "resourceTemplates": many("uriTemplate", "x://{a}/"),
    })));
    let report = inspect_fake(&fake, &[]).shows_both();
    for list in ["resources", "resourceTemplates", "prompts"] {
        assert_eq!(report.json[list].as_array().map(Vec::len), Some(7), "{list}");
        assert_eq!(report.json["complete"][list], true, "{list}");
    }
}

/// Two pages that name each other: ends when a page brings nothing new.
#[test]
fn c14_a_ring_of_cursors_ends() {
    let page = |cursor: &str, tool: &str, next: &str| {
        [
            json!({"expect": "tools/list", "repeat": true, "when": {"params": {"cursor": cursor}}}),
            json!({"reply": {"tools": [{"name": tool, "inputSchema": {"type": "object"}}],
                "nextCursor": next}}),
        ]
    };
    let mut steps: Vec<Value> = [page("a", "one", "b"), page("b", "two", "a")].concat();
    steps.push(json!({"expect": "tools/list", "repeat": true}));
    steps.push(json!({"reply": {"tools": [], "nextCursor": "a"}}));
    let fake = Fake::scripted(&scenario(&json!({"steps": steps})));
    let report = inspect_fake(&fake, &[]).shows(&["one", "two"]);
    assert!(report.log.count("tools/list") <= 5, "{:?}", report.log.methods());
    assert_eq!(report.json["complete"]["tools"], true);
}

/// Cursors of another type than a string are no reason to lose what came.
#[test]
fn odd_cursors_lose_nothing() {
    for odd in [json!({}), json!([]), json!(false), json!(7), Value::Null] {
        let tool = json!({"name": "one", "inputSchema": {"type": "object"}});
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/list", "repeat": true}, {"reply": {"tools": [tool], "nextCursor": odd}},
        ]})));
        let report = inspect_fake(&fake, &[]).shows(&["one"]);
        assert!(report.log.count("tools/list") <= 3, "{odd}");
    }
}

/// A page that fails in the middle keeps the items before it, says so, and concludes nothing.
#[test]
fn a_broken_page_keeps_the_ones_before_it() {
    let broken = [
        json!({"error": {"code": -32603, "message": "page store is down"}}),
        json!({"reply": {"tools": "none"}}),
        json!({"reply": 7}),
    ];
    for answer in broken {
        let tool = json!({"name": "one", "inputSchema": {"type": "object"}});
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/list", "repeat": true, "when": {"params": {"cursor": "2"}}}, answer,
            {"expect": "tools/list", "repeat": true}, {"reply": {"tools": [tool], "nextCursor": "2"}},
        ]})));
        let report = inspect_fake(&fake, &[]).shows(&["one"]).notes(&["tools/list"]);
        assert_eq!(report.json["complete"]["tools"], false, "{answer}");
        assert_eq!(report.state(), "degraded", "{answer}");
    }
}

/// A list that never ends stops at a limit: what was read is served as incomplete.
#[test]
fn row_05_an_endless_list_stops_at_a_limit() {
    let script = script::binary();
    let command =
        [&*script.to_string_lossy(), "--endless-cursor", "--page", "200", "--schema", "none"];
    let run = inspect_command(&world(), &[], &command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let json = parsed(&run);
    assert_eq!(json["complete"]["tools"], false);
    assert_eq!(json["status"]["state"], "degraded");
    let count = json["tools"].as_array().map_or(0, Vec::len);
    assert!((1_000..=50_000).contains(&count), "{count}");
}

/// One item a page for ever: the number of pages is bounded, too.
#[test]
fn row_05_endless_small_pages_stop_at_a_limit() {
    let script = script::binary();
    let command = [&*script.to_string_lossy(), "--endless-cursor", "--page", "1"];
    let run = inspect_command(&world(), &[], &command);
    let json = parsed(&run);
    assert_eq!((run.code, &json["complete"]["tools"]), (Some(0), &json!(false)));
    let count = json["tools"].as_array().map_or(0, Vec::len);
    assert!((100..=1_000).contains(&count), "{count}");
}

/// What cannot be read counts as much as what can.
#[test]
fn row_05_a_page_of_rubbish_stops_at_a_limit() {
    let fake = Fake::scripted(&json!({"era": "modern", "tools": vec![0; 60_000]}));
    let run = inspect_fake(&fake, &[]).run;
    let json = parsed(&run);
    assert_eq!((run.code, &json["complete"]["tools"]), (Some(0), &json!(false)));
    assert!(run.stdout.contains("limit of 50000 items"), "{:.500}", run.stdout);
    assert!(json["findings"].as_array().map_or(0, Vec::len) <= 1_001);
}

/// A page of 100 MB is refused by its size.
#[test]
fn row_05_a_huge_page_is_refused() {
    let script = script::binary();
    let command = [&*script.to_string_lossy(), "--tools", "2", "--page-bytes", "100000000"];
    let run = inspect_command(&world(), &[], &command);
    let message = parsed(&run)["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(run.code == Some(8) && message.contains("line too long"), "{:?} {message}", run.code);
    assert!(run.stdout.len() < 100_000, "{} bytes", run.stdout.len());
}
