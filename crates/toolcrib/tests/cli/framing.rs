//! Pipes that carry more than messages, or messages written oddly.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::{fake::Fake, process, world::World};

use crate::play::{Crib, inspect, inspect_fake, scenario, world};

#[test]
fn c09_banners_and_log_lines_are_skipped() {
    let report = inspect("C09").shows_both();
    let noise = report.findings(&["Some Server, release 9.9.9"]);
    assert_eq!(noise.len(), 1, "{noise:?}");
    assert_eq!(report.findings(&["wire/noise"]).len(), 1, "one warning per server, not per line");
}

/// Much noise, and a first line too long to quote.
#[test]
fn c09_the_warning_is_short_however_long_the_noise() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"raw": {"$repeat": "banner \u{1b}[31m ", "times": 5_000}},
        {"raw": {"$repeat": "noise\n", "times": 5_000}},
        {"raw": "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\":"},
    ]})));
    let report = inspect_fake(&fake, &[]).shows_both();
    let noise = report.findings(&["wire/noise"]);
    assert_eq!(noise.len(), 1, "{noise:?}");
    let message = noise[0]["message"].as_str().unwrap();
    assert!(message.contains("banner") && message.len() < 600, "{} bytes", message.len());
    assert!(!message.contains('\u{1b}'));
}

#[test]
fn c10_json_that_is_no_message_is_noise() {
    let report = inspect("C10").shows_both().notes(&["wire/noise"]);
    assert_eq!(report.state(), "ready");
}

/// More of the kind: arrays, strings, objects that come near a message.
#[test]
fn c10_near_messages_are_noise() {
    let odd = [
        json!([]),
        json!([1, 2]),
        json!("text"),
        json!(true),
        json!({}),
        json!({"id": 1}),
        json!({"jsonrpc": "2.0"}),
        json!({"method": 7}),
        json!({"id": 2, "level": "info"}),
        json!({"jsonrpc": "1.0", "level": "x"}),
        json!([{"lvl": "i"}]),
    ];
    let mut steps = vec![json!({"expect": "initialize"})];
    steps.extend(odd.iter().map(|odd| json!({"raw": odd.to_string()})));
    steps.push(json!({"default": true}));
    let report = inspect_fake(&Fake::scripted(&scenario(&json!({"steps": steps}))), &[]);
    let report = report.shows_both();
    assert_eq!(report.state(), "ready", "{}", report.json["findings"]);
}

/// A JSON log line with an `error`, a `result` or a `method` of its own answers nothing.
#[test]
fn c10_log_lines_with_the_members_of_an_answer_are_noise() {
    let logs = [
        json!({"level": "error", "error": "disk full"}),
        json!({"level": "info", "result": "ok"}),
        json!({"level": "warn", "error": {"code": "E1", "message": "x"}, "id": null}),
        json!({"method": "GET", "path": "/x", "status": 200}),
    ];
    let mut steps =
        vec![json!({"expect": ["server/discover", "initialize", "tools/list"], "repeat": true})];
    steps.extend(logs.iter().map(|log| json!({"raw": log.to_string()})));
    steps.push(json!({"default": true}));
    let report = inspect_fake(&Fake::scripted(&scenario(&json!({"steps": steps}))), &[]);
    let report = report.shows_both();
    assert_eq!((report.state(), &report.json["complete"]["tools"]), ("ready", &Value::Bool(true)));
}

/// A server that writes its messages as editors' language servers do is understood, with a warning.
#[test]
fn framed_messages_are_read() {
    for stdin in ["ndjson", "both"] {
        let fake = Fake::scripted(&scenario(&json!({"framing": "lsp", "stdin_framing": stdin})));
        inspect_fake(&fake, &[]).shows_both().notes(&["Content-Length"]);
    }
}

/// Messages without a line break between them, or with terminal escapes before them.
#[test]
fn messages_that_share_a_line_are_read() {
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
    for before in [log.to_string(), "\u{1b}[2K\u{1b}[0m".to_owned(), "\0\0".to_owned()] {
        let fake = Fake::scripted(&scenario(&json!({"steps": [
            {"expect": "tools/list", "repeat": true}, {"raw": before, "nl": false}, {"default": true},
        ]})));
        let report = inspect_fake(&fake, &["--list-timeout", "5"]).shows_both();
        assert_eq!(report.state(), "ready", "{before:?}");
    }
}

#[test]
fn c12_an_unterminated_last_message_is_delivered() {
    inspect("C12").shows(&["alpha", "beta", "bye"]).notes_nothing();
    let crib = Crib::case("C12");
    assert_eq!(crib.calls("s.bye", &json!({}), 0), "farewell");
}

#[test]
fn c77_bytes_that_are_not_utf8_do_not_hang_a_call() {
    let crib = Crib::case("C77");
    let run = crib.call("s.alpha", &json!({}));
    assert!(run.took < Duration::from_secs(5), "{:?}", run.took);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains('\u{fffd}'), "{}", run.stdout);
}

/// A limit of 32 KiB: the server is given up at once, with the reason, and is gone.
#[test]
fn c78_a_line_without_end_is_cut_off() {
    let fake = Fake::stdio("C78");
    let report = inspect_fake(&fake, &["--max-message-bytes", "32768", "--list-timeout", "20"]);
    assert!(report.run.took < Duration::from_secs(8), "{:?}", report.run.took);
    let message = report.failed(8);
    assert!(message.contains("line too long"), "{message}");
    assert_eq!(process::still_there(&report.log.pids(), Duration::from_secs(2)), []);
}

/// Memory stays near the limit although the line is a hundred times longer.
#[test]
fn c78_memory_stays_near_the_limit() {
    let peak = |world: &World, fake: &Fake| {
        let args = fake.args();
        let mut all = vec!["inspect", "--json", "--max-message-bytes", "32768", "--", "python3"];
        all.extend(args.iter().map(String::as_str));
        let mut running = world.start(&all);
        let mut peak = 0;
        let status = format!("/proc/{}/status", running.child.id());
        while running.child.try_wait().unwrap().is_none() {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
            peak = peak.max(kb.unwrap_or(0));
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    };
    let steps = |times: u64| {
        json!({"steps": [{"expect": "tools/list"},
            {"raw": {"$repeat": "z", "times": times}, "nl": false}, {"silent": true}]})
    };
    let world = world();
    let small = peak(&world, &Fake::scripted(&scenario(&steps(40_000))));
    let large = peak(&world, &Fake::scripted(&scenario(&steps(40_000_000))));
    assert!(small > 1_000, "the process was not seen: {small} kB");
    assert!(large < small + 8_192, "{large} kB for 40 MB, {small} kB for 40 kB");
}

/// A message of exactly the default kind of size passes: the limit is no trap for honest servers.
#[test]
fn c78_a_large_honest_message_passes() {
    let big = json!({"name": "alpha", "description": {"$repeat": "x", "times": 4_000_000},
        "inputSchema": {"type": "object"}});
    let fake = Fake::scripted(&json!({"era": "legacy", "tools": [big]}));
    let report = inspect_fake(&fake, &[]).shows(&["alpha"]);
    let length = report.tool("alpha")["description"].as_str().map(str::len);
    assert_eq!((length, &report.json["complete"]["tools"]), (Some(4_000_000), &Value::Bool(true)));
}
