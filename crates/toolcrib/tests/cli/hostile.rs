//! Hostile input: bombs and lies that must end in a clear word, with nothing else lost.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::{fake::Fake, process::still_there, script};

use crate::{
    play::{Crib, inspect_command, inspect_fake, inspect_url, parsed, raw_server, scenario, world},
    schema::{listed_with, with_schema},
};

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn row_01_redos_ends_in_bounded_time() {
    let evil = format!("{}!", "a".repeat(40));
    let patterns = [
        r"^(?=(a+)+$)(a+)+$",
        r"(\w{1,1000}){1,1000}",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"(a|aa)+$",
        r"(.*a){25}",
    ];
    for pattern in patterns {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}, "n": {"type": "integer"}}});
        let fake = with_schema(&schema);
        inspect_fake(&fake, &[]).shows(&["t", "good"]);
        let crib = Crib::of(&fake);
        let run = crib.call("s.t", &json!({"a": evil}));
        assert!(run.took < PATIENCE, "{pattern}: {:?}", run.took);
        assert!(matches!(run.code, Some(0 | 6)), "{pattern}: {:?} {}", run.code, run.stdout);
        // What can be judged still is.
        crib.calls("s.t", &json!({"n": "x"}), 6);
    }
}

#[test]
fn row_02_nothing_is_fetched_for_a_schema() {
    let (url, hits) = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec(), None);
    let host = url.trim_start_matches("http:").to_owned();
    let with = |key: &str, reference: &str| json!({"type": "object", "properties": {"a": {key: reference}}});
    let schemas = [
        with("$ref", &url),
        with("$ref", "file:///etc/passwd"),
        with("$ref", &host),
        with("$dynamicRef", &url),
        json!({"$schema": url, "type": "object"}),
        json!({"$id": url, "type": "object", "properties": {"a": {"$ref": "other.json"}}}),
        json!({"type": "object", "properties": {"a": {"$id": url, "$ref": "x.json#/y"}}}),
    ];
    for schema in schemas {
        let fake = with_schema(&schema);
        listed_with(&fake, &["tool t"]);
        Crib::of(&fake).call("s.t", &json!({"a": 1}));
    }
    assert_eq!(hits.count(), 0);
}

/// Nested as deep as a thousand and fifty thousand: a finding or an error, the program alive.
#[test]
fn row_03_deep_nesting_breaks_nothing() {
    let script = script::binary();
    for depth in ["100", "1000", "50000"] {
        let command = [&*script.to_string_lossy(), "--tools", "3", "--depth", depth];
        let run = inspect_command(&world(), &[], &command);
        assert!(run.took < PATIENCE, "{depth}: {:?}", run.took);
        assert_eq!(run.code, Some(0), "{depth}: {:.500}", run.stderr);
        let json = parsed_shallow(&run.stdout);
        assert!(json.contains("tool_1") && json.contains("tool_2"), "{depth}: {json:.300}");
        assert!(json.contains("nest") || json.contains("deep"), "{depth}: {json:.300}");
    }
}

/// The output without what the parser of a test would refuse.
fn parsed_shallow(text: &str) -> String {
    text.replace("{\"a\":{\"properties\":", "")
}

#[test]
fn row_03_deep_arguments_break_nothing() {
    let fake = Fake::scripted(&scenario(&json!({})));
    let crib = Crib::of(&fake);
    for depth in [200, 10_000, 100_000] {
        let arguments = format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        let config = crib.run(&["list", "--json"]);
        assert_eq!(config.code, Some(0));
        let file = crib.world.cwd().join("servers.json");
        let args = ["--config", &*file.to_string_lossy(), "call", "--json", "s.alpha", "-"];
        let run = crib.world.run_with(&args, &arguments);
        assert!(matches!(run.code, Some(0 | 2 | 6)), "{depth}: {:?} {:.300}", run.code, run.stderr);
        assert!(run.took < PATIENCE, "{depth}: {:?}", run.took);
    }
}

#[test]
fn row_04_a_reference_bomb_is_counted_before_it_goes_off() {
    let mut bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}, "n": {"type": "integer"}}, "$defs": {}});
    for at in 0..28 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        bomb["$defs"][format!("d{at}")] = json!({"allOf": [next, next]});
    }
    bomb["$defs"]["d28"] = json!({"type": "integer"});
    judged_in_time(&bomb, &["tool t"]);
}

#[test]
fn row_04_references_in_a_circle_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"type": "object", "allOf": [{"$ref": "#"}]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"anyOf": [{"$ref": "#/$defs/x"}]}}}),
    ] {
        judged_in_time(&schema, &["tool t"]);
    }
}

fn judged_in_time(schema: &Value, parts: &[&str]) {
    let fake = with_schema(schema);
    let report = listed_with(&fake, parts);
    assert!(report.run.took < PATIENCE, "{:?}", report.run.took);
    let run = Crib::of(&fake).call("s.t", &json!({"a": 1}));
    assert!(run.took < PATIENCE, "{:?}", run.took);
    assert!(matches!(run.code, Some(0 | 6)), "{:?} {}", run.code, run.stdout);
}

#[test]
fn row_06_two_tools_of_one_name_are_both_refused() {
    let tool = |name: &str, about: &str| json!({"name": name, "description": about, "inputSchema": {"type": "object"}});
    let fake = Fake::scripted(&json!({"era": "legacy", "tools": [
        tool("read", "one"), tool("read", "two"), tool("other", "x"),
    ]}));
    let report = inspect_fake(&fake, &[]).shows(&["other"]).notes(&["read"]);
    assert!(report.json["refused"].as_array().is_some_and(|refused| !refused.is_empty()));
    let run = Crib::of(&fake).call("s.read", &json!({}));
    assert!(matches!(run.code, Some(4 | 11)), "{:?} {}", run.code, run.stdout);
    assert_eq!(fake.log().count("tools/call"), 0);
}

#[test]
fn row_06_look_alikes_are_noted() {
    let tool =
        |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
    let fake = Fake::scripted(&json!({"era": "legacy", "tools": [
        tool("Read"), tool("read"), tool("re\u{430}d"), tool("write"),
    ]}));
    let report = inspect_fake(&fake, &[]).reached().notes(&["re\u{430}d"]);
    assert!(!report.findings(&["Read", "read"]).is_empty(), "{}", report.json["findings"]);
    assert!(report.tools().contains(&"write"));
    let crib = Crib::of(&fake);
    assert_eq!(crib.calls("s.Read", &json!({}), 0), "fake:Read:{}");
    assert_eq!(crib.calls("s.read", &json!({}), 0), "fake:read:{}");
}

/// Nothing a server says reaches a terminal as a control sequence.
#[test]
fn row_07_escapes_do_not_reach_the_terminal() {
    let evil = "\u{1b}[8m\u{1b}]52;c;aGk=\u{7}\u{202e}\u{e0041}\u{85}\u{200b}x";
    let named = |name: String| json!({"name": name, "title": evil, "description": evil, "inputSchema": {"type": "object", "properties": {evil: {"type": "string"}}}});
    let fake = Fake::scripted(&json!({
        "era": "legacy", "instructions": evil, "serverInfo": {"name": evil, "version": evil},
        "tools": [named(format!("t{evil}")), named("plain".to_owned())],
        "resources": [{"uri": format!("x://{evil}"), "name": evil, "mimeType": evil}],
        "prompts": [{"name": evil, "description": evil}],
        "steps": [{"stderr": format!("{evil}\n")}, {"raw": evil},
            {"expect": "tools/call"}, {"error": {"code": -32000, "message": evil}}],
    }));
    let crib = Crib::of(&fake);
    let args = fake.args();
    let mut inspect = vec!["inspect", "--trace", "--", "python3"];
    inspect.extend(args.iter().map(String::as_str));
    for args in [
        &inspect[..],
        &["list"],
        &["status"],
        &["call", "s.plain"],
        &["describe", "s.plain"],
        &["logs", "s"],
        &["call", "s.plai"],
    ] {
        for run in [crib.run(args), crib.run(&[&["--json"], args].concat())] {
            let text = format!("{}{}", run.stdout, run.stderr);
            let bad: Vec<char> = text.chars().filter(|c| is_unsafe(*c)).collect();
            assert!(bad.is_empty(), "{args:?}: {bad:?} in {text:?}");
        }
    }
}

fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// A name with escapes is not to be used; its neighbours are.
#[test]
fn row_07_a_name_with_escapes_is_noted() {
    let script = script::binary();
    let run = inspect_command(
        &world(),
        &[],
        &[&*script.to_string_lossy(), "--tools", "2", "--ansi-names"],
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let json = parsed(&run);
    assert!(json["findings"].to_string().contains("names/"), "{}", json["findings"]);
    assert!(!run.stdout.contains('\u{1b}'));
}

#[test]
fn row_08_a_line_without_end_is_not_held() {
    let script = script::binary();
    let world = world();
    let command =
        [&*script.to_string_lossy(), "--tools", "1", "--page-bytes", "200000000", "--no-newline"];
    let run = inspect_command(&world, &["--list-timeout", "20"], &command);
    let message = parsed(&run)["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(run.code == Some(8) && message.contains("line too long"), "{:?} {message}", run.code);
    assert!(run.took < Duration::from_secs(20), "{:?}", run.took);
}

/// Floods of noise on both streams, with the answers between them.
#[test]
fn row_08_floods_delay_no_answer() {
    let flood =
        json!({"raw": {"$repeat": "flood of noise on standard output\n", "times": 100_000}});
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/list", "repeat": true}, flood, {"stderr": "flood\n", "times": 30_000}, {"default": true}]})));
    let report = inspect_fake(&fake, &[]).shows_both();
    assert!(report.run.took < PATIENCE, "{:?}", report.run.took);
    assert!(report.run.stdout.len() < 20_000, "{}", report.run.stdout.len());
}

/// Streams that never come to an answer are given up in time.
#[test]
fn row_08_streams_without_an_answer_are_given_up() {
    let head = |kind: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n").into_bytes();
    let ms = Duration::from_millis;
    let servers = [
        // Comments for ever.
        raw_server(head("text/event-stream"), Some((b": still here\n\n".to_vec(), ms(20)))),
        // An event that never ends.
        raw_server(head("text/event-stream"), Some((b"data: x\n".to_vec(), ms(1)))),
        // One byte at a time.
        raw_server(head("application/json"), Some((b"[".to_vec(), ms(100)))),
        // A status line that never comes to its end.
        raw_server(Vec::new(), Some((b"H".to_vec(), ms(100)))),
        // Nothing at all.
        raw_server(Vec::new(), Some((Vec::new(), ms(100)))),
    ];
    for (url, hits) in servers {
        let report = inspect_url(
            &url,
            &["--probe-timeout", "0.5", "--start-timeout", "2", "--max-message-bytes", "65536"],
        );
        assert!(matches!(report.run.code, Some(8 | 10)), "{:?} {}", report.run.code, report.json);
        assert!(report.run.took < Duration::from_secs(10), "{:?}", report.run.took);
        assert!((1..=20).contains(&hits.count()), "{}", hits.count());
    }
}

/// An unending answer is cut off at the limit, long before its time is over.
#[test]
fn row_08_an_unending_body_is_cut_off() {
    for kind in ["application/json", "text/event-stream"] {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n{{\"data\":\"").into_bytes();
        let (url, _) = raw_server(head, Some((vec![b'x'; 65_536], Duration::from_millis(1))));
        let report =
            inspect_url(&url, &["--max-message-bytes", "1000000", "--start-timeout", "20"]);
        let message = report.failed(8);
        assert!(message.contains("too long") || message.contains("longer than"), "{message}");
        assert!(report.run.took < PATIENCE, "{:?}", report.run.took);
    }
}

/// What floods is stopped with everything it started.
#[test]
fn row_08_a_flooding_server_does_not_stay() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"expect": "tools/list", "repeat": true}, {"notify": {"method": "notifications/message", "params": {"level": "info", "data": "x"}}, "times": 30_000}, {"default": true}]})));
    let report = inspect_fake(&fake, &[]).shows_both();
    assert!(report.run.took < Duration::from_secs(20), "{:?}", report.run.took);
    assert_eq!(still_there(&report.log.pids(), Duration::from_secs(2)), []);
}

/// A compressed answer is not unpacked beyond any limit: it is refused, or read within the cap.
#[test]
fn row_23_a_compression_bomb_is_not_unpacked() {
    // gzip of nothing much, claimed for the body; what matters is that it is not decoded.
    let body = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 4, 0, 0x43, 0xbe, 0xb7, 0xe8, 1, 0, 0, 0];
    let mut response = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    response.extend(body);
    let (url, _) = raw_server(response, None);
    let report = inspect_url(&url, &["--start-timeout", "5"]);
    let message = report.failed(8);
    assert!(message.contains("gzip"), "{message}");
}

#[test]
fn row_23_a_header_bomb_is_refused() {
    let many: String = (0..20_000).map(|at| format!("X-{at}: y\r\n")).collect();
    for headers in [many, format!("X-A: {}\r\n", "y".repeat(10_000_000))] {
        let response =
            format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\n{{}}").into_bytes();
        let (url, _) = raw_server(response, None);
        let report = inspect_url(&url, &["--start-timeout", "5"]);
        assert!(matches!(report.run.code, Some(8 | 10)), "{}", report.json);
        assert!(report.run.took < PATIENCE, "{:?}", report.run.took);
        assert!(report.run.stdout.len() < 10_000, "{}", report.run.stdout.len());
    }
}

/// Header names that are twins but for case, or smuggle a line; more in the schema cases.
#[test]
fn row_23_header_names_that_smuggle_are_refused() {
    let with = |header: &str| json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}}});
    for header in ["A\r\nB", "", "a b", "ä", "A:B"] {
        let server = crate::play::serve(Fake::scripted(
            &json!({"era": "modern", "transport": "http", "tools": [with(header)]}),
        ));
        let report = crate::play::inspect_http(&server, &[]).shows(&[]);
        assert_eq!(report.json["refused"][0]["item"], "t", "{header:?}");
    }
}
