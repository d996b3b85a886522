//! `watch`: changes as they come, and the words of servers that announce none.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::{dialogue::Dialogue, fake::Fake, process::still_there};

use crate::play::{Crib, scenario, world};

/// A server whose list of tools changes on its own accord, once it was listed.
fn changing(era: &str) -> Fake {
    let now = json!([
        {"name": "alpha", "inputSchema": {"type": "object"}, "description": "another"},
        {"name": "gamma", "inputSchema": {"type": "object"}},
    ]);
    Fake::scripted(&scenario(&json!({
        "era": era, "capabilities": {"tools": {"listChanged": true}, "prompts": {}},
        "steps": [
            {"expect": "tools/list"}, {"default": true}, {"sleep_ms": 1_500}, {"set": {"tools": now}},
            {"notify": {"method": "notifications/tools/list_changed"}},
        ],
    })))
}

/// Interrupts; nothing is left, and nothing is said of it.
#[track_caller]
fn interrupted(dialogue: Dialogue, fakes: &[&Fake]) -> (String, String) {
    dialogue.interrupt();
    let (code, out, errors) = dialogue.ends();
    assert_eq!(code, Some(130), "{errors}");
    assert!(!errors.contains("interrupted"), "{errors}");
    for fake in fakes {
        assert_eq!(still_there(&fake.log().pids(), Duration::from_secs(2)), []);
    }
    (out, errors)
}

#[test]
fn a_change_is_a_line_that_names_what_changed() {
    for era in ["legacy", "modern"] {
        let fake = changing(era);
        let crib = Crib::of(&fake);
        let mut watch = crib.talk(&["watch"]);
        watch.hears_on_stderr("watching s, which is ready: it announces tools");
        watch
            .hears_on_stderr("s announces no changes of its prompts: read again every 300 s or so");
        let line = watch.hears("changed alpha\n");
        let (time, rest) = line.split_once("  ").unwrap();
        assert_eq!(time.len(), "12:00:00".len(), "{line}");
        assert_eq!(rest, "s  tools: added gamma; removed beta; changed alpha\n");
        interrupted(watch, &[&fake]);
    }
}

fn line(dialogue: &mut Dialogue, part: &str) -> Value {
    let said = dialogue.hears(part) + &dialogue.hears("\n");
    let line = said.trim_end().lines().last().unwrap().to_owned();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"))
}

#[test]
fn each_line_of_json_is_one_event() {
    let fake = changing("modern");
    let crib = Crib::of(&fake);
    let mut watch = crib.talk(&["watch", "s", "--json"]);
    let first = line(&mut watch, "watching");
    assert_eq!(first["format"], "toolcrib/watch/1");
    assert_eq!((&first["event"], &first["state"]), (&json!("watching"), &json!("ready")));
    assert_eq!((&first["announced"], &first["reread_s"]), (&json!(["tools"]), &json!(300)));
    let items = line(&mut watch, "\"items\"");
    assert_eq!(items["added"], json!(["gamma"]));
    assert_eq!((&items["removed"], &items["changed"]), (&json!(["beta"]), &json!(["alpha"])));
    assert_eq!((&items["server"], &items["kind"]), (&json!("s"), &json!("tools")));
    let time = items["time"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    interrupted(watch, &[&fake]);
}

/// A server that dies and comes back; the others are not disturbed.
#[test]
fn a_server_that_falls_over_is_told() {
    let dying = Fake::scripted(&scenario(&json!({
        "spawns": [{"steps": [{"expect": "tools/list"}, {"default": true}, {"sleep_ms": 1_200}, {"exit": 3}]}, {"steps": []}]})));
    let fine = Fake::scripted(&scenario(&json!({})));
    let crib = Crib::new().with("dying", &dying).with("fine", &fine);
    let mut watch = crib.talk(&["watch"]);
    watch.hears("dying  failed: the process ended (exit code 3)\n");
    watch.hears("dying  ready\n");
    let (out, _) = interrupted(watch, &[&dying, &fine]);
    assert!(!out.contains("fine"), "{out}");
}

/// A list that nobody announces is read again after the time the server says it stays fresh.
#[test]
fn a_list_that_is_not_announced_is_read_again() {
    let now = json!([{"name": "gamma", "inputSchema": {"type": "object"}}]);
    let tool = json!({"name": "alpha", "inputSchema": {"type": "object"}});
    let listed =
        json!({"resultType": "complete", "ttlMs": 1_000, "cacheScope": "private", "tools": [tool]});
    let fake = Fake::scripted(&scenario(&json!({
        "era": "modern", "capabilities": {"tools": {}},
        "steps": [{"expect": "tools/list"}, {"reply": listed}, {"set": {"tools": now}}],
    })));
    let crib = Crib::of(&fake);
    let mut watch = crib.talk(&["watch"]);
    watch.hears_on_stderr("s announces no changes of its tools: read again every 5 to 300 s");
    watch.hears("s  tools: added gamma; removed alpha\n");
    interrupted(watch, &[&fake]);
}

/// A server with a resource, which it updates when it is subscribed to.
fn updating(era: &str, subscribe: bool) -> Fake {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": "$id"});
    let updated = json!({"method": "notifications/resources/updated", "params": {"uri": "notes://a", "_meta": meta}});
    let acknowledged = json!({"method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": "$params.notifications", "_meta": meta}});
    let read = |text: &str| {
        json!([{"expect": "resources/read"}, {"reply": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "contents": [{"uri": "notes://a", "text": text}]}}])
    };
    let mut steps = if era == "modern" {
        json!([{"expect": "subscriptions/listen", "when": {"params": {"notifications": {"resourceSubscriptions": ["notes://a"]}}}},
            {"notify": acknowledged}, {"sleep_ms": 1_000}, {"notify": updated}])
    } else {
        json!([{"expect": "resources/subscribe"}, {"reply": {}}, {"sleep_ms": 1_000}, {"notify": updated}])
    };
    let reads = read("one")
        .as_array()
        .unwrap()
        .iter()
        .chain(read("two").as_array().unwrap())
        .cloned()
        .collect::<Vec<_>>();
    steps.as_array_mut().unwrap().extend(reads);
    Fake::scripted(&scenario(&json!({
        "era": era, "capabilities": {"resources": {"subscribe": subscribe}},
        "resources": [{"uri": "notes://a", "name": "a"}], "steps": steps,
    })))
}

#[test]
fn a_resource_is_followed_and_shown() {
    for era in ["legacy", "modern"] {
        let fake = updating(era, true);
        let crib = Crib::of(&fake);
        let mut watch = crib.talk(&["watch", "notes://a", "--read"]);
        watch.hears("  s  following notes://a\none\n");
        watch.hears("  s  updated notes://a\ntwo\n");
        interrupted(watch, &[&fake]);
        let mut watch = crib.talk(&["watch", "s", "notes://a", "--json"]);
        let first = line(&mut watch, "following");
        assert_eq!((&first["announced"], &first["uri"]), (&json!(true), &json!("notes://a")));
        let second = line(&mut watch, "\"updated\"");
        assert_eq!((&second["server"], &second["result"]), (&json!("s"), &Value::Null));
        interrupted(watch, &[&fake]);
    }
}

#[test]
fn a_resource_that_is_not_announced_is_read_again() {
    let fake = updating("legacy", false);
    let crib = Crib::of(&fake);
    let mut watch = crib.talk(&["watch", "notes://a"]);
    watch.hears_on_stderr(
        "server s does not announce updates of resources: read again every 5 to 300 s",
    );
    watch.hears("  s  updated notes://a\n");
    let (_, errors) = interrupted(watch, &[&fake]);
    assert!(!errors.contains("error"), "{errors}");
    assert_eq!(fake.log().count("resources/subscribe"), 0);
}

#[test]
fn what_cannot_be_watched_is_named() {
    let fake = Fake::scripted(&scenario(&json!({})));
    let crib = Crib::of(&fake);
    let check = |args: &[&str], code: i32, words: &str| {
        let run = crib.run(&[&["watch"], args].concat());
        assert_eq!(run.code, Some(code), "{args:?} {}", run.stderr);
        assert!(run.stderr.contains(words), "{}", run.stderr);
    };
    let gone = Crib::new().with_entry("gone", json!({"command": "no-such-server"}));
    let run = gone.run(&["watch", "gone", "notes://a"]);
    assert_eq!(run.code, Some(8), "{}", run.stderr);
    check(&["nobody"], 4, "no server is called \"nobody\"");
    check(&["notes://a"], 4, "no server lists notes://a");
    check(&["s", "--read"], 2, "--read goes with the URI of a resource");
    check(&["notes://a", "notes://b"], 2, "one resource at a time");
}

/// A server over HTTP that is killed and comes back on its address, in each era: nobody tells a
/// client so, it has to find out.
#[test]
fn a_server_over_http_that_falls_over_is_told_too() {
    const SOON: Duration = Duration::from_secs(10);
    for era in ["modern", "legacy"] {
        let world = world();
        let serve = |address: &str| {
            let mut server = world.start(&["demo-server", "--http", address]);
            let line = server.line_of_stderr("http://", SOON);
            (server, line[line.find("http://").unwrap()..].trim().to_owned())
        };
        let (mut server, url) = serve("127.0.0.1:0");
        let config = json!({"mcpServers": {"far": {"url": url, "era": era}}});
        let file = world.write("far.json", &config.to_string());
        let file = file.to_str().unwrap();
        let mut watch = Dialogue::over_pipes(&world, &["--config", file, "watch"]);
        watch.hears_on_stderr("watching far, which is ready");
        // Its change stream is open when a change is heard.
        let refresh = || world.run(&["--config", file, "call", "refresh"]);
        assert_eq!(refresh().code, Some(0));
        watch.hears("added greet");
        server.child.kill().unwrap();
        server.wait(SOON);
        watch.hears("far  failed");
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let _again = serve(address.unwrap());
        watch.hears("far  ready");
        assert_eq!(refresh().code, Some(0));
        watch.hears("added greet");
        interrupted(watch, &[]);
    }
}
