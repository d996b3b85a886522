//! Clients of other makers against the demo server, over both transports and in both eras: what
//! each saw of it, member by member. Needs the peers.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};
use toolcrib_testkit::{
    peers, process,
    world::{Running, World},
};

use crate::play::{parsed, world};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolcrib");

/// A client that runs in a world of its own.
struct Client {
    world: World,
    args: Vec<String>,
    /// It may lose progress notifications that come together with the answer.
    drops_progress: bool,
}

/// `peers/clients/client.py` on this SDK.
fn python(version: &str, mode: &str) -> Client {
    let world = World::new(peers::folder().join(format!("python-{version}/bin/python")));
    let args = vec![script("client.py"), mode.to_owned()];
    Client { world, args, drops_progress: false }
}

/// `peers/clients/client.mjs`.
fn typescript() -> Client {
    let modules = peers::folder().join("npm/node_modules");
    let args = vec![script("client.mjs"), modules.to_string_lossy().into_owned()];
    Client { world: World::new(peers::node()), args, drops_progress: true }
}

fn script(name: &str) -> String {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../peers/clients"));
    folder.join(name).to_string_lossy().into_owned()
}

impl Client {
    /// What it saw of the demo server that it started itself; nothing of it may be left.
    fn over_stdio(&self) -> Value {
        let seen = self.run(&["stdio", PROGRAM, "demo-server"]);
        let home = self.world.home();
        let left = process::with_variable("HOME", &home.to_string_lossy());
        assert_eq!(process::still_there(&left, Duration::from_secs(5)), []);
        seen
    }

    /// What it saw of a demo server over HTTP; that server must end in time when told.
    fn over_http(&self) -> Value {
        let world = world();
        let mut server = world.start(&["demo-server", "--http", "127.0.0.1:0"]);
        let seen = self.run(&["http", &url(&mut server)]);
        assert_eq!(server.wait(Duration::from_secs(10)), Some(Some(0)), "the server ends");
        seen
    }

    fn run(&self, more: &[&str]) -> Value {
        let args: Vec<&str> =
            self.args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let run = self.world.run(&args);
        assert_eq!(run.code, Some(0), "{}\n{}", run.stdout, run.stderr);
        parsed(&run)
    }

    fn check(&self, protocol: &str, seen: &Value) {
        assert_eq!(
            (&seen["protocol"], &seen["server"]),
            (&json!(protocol), &json!("toolcrib-demo"))
        );
        listed(seen);
        used(seen);
        progressed(seen, self.drops_progress);
        let after = &seen["after_cancel"]["structuredContent"];
        assert_eq!((after, &seen["steps_after_cancel"]), (&json!({"sum": 42}), &json!(0)));
        borrowed(seen);
        changed(seen);
    }
}

/// Where the server says that it listens.
fn url(server: &mut Running) -> String {
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

fn progressed(seen: &Value, drops_some: bool) {
    let titles = ["Borrowing a tool", "Returning a tool", "Opening hours", "Safety"];
    let searched = titles.iter().enumerate().map(|(n, title)| json!([n as f64 + 1.0, 4.0, title]));
    let counted = (1..=3).map(|n| json!([f64::from(n), 3.0, null]));
    let told = seen["progress"].as_array().unwrap().iter().map(|step| {
        let number = |at: usize| step[at].as_f64();
        json!([number(0), number(1), step[2]])
    });
    let mut expect = searched.chain(counted);
    if drops_some {
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

#[test]
fn peer_python_2_3_modern_over_stdio() {
    let client = python("2.3", "auto");
    client.check("2026-07-28", &client.over_stdio());
}

#[test]
fn peer_python_2_3_modern_over_http() {
    let client = python("2.3", "auto");
    client.check("2026-07-28", &client.over_http());
}

#[test]
fn peer_python_2_3_legacy_over_stdio() {
    let client = python("2.3", "legacy");
    client.check("2025-11-25", &client.over_stdio());
}

#[test]
fn peer_python_2_3_legacy_over_http() {
    let client = python("2.3", "legacy");
    client.check("2025-11-25", &client.over_http());
}

#[test]
fn peer_python_1_30_over_stdio() {
    let client = python("1.30", "legacy");
    client.check("2025-11-25", &client.over_stdio());
}

#[test]
fn peer_python_1_30_over_http() {
    let client = python("1.30", "legacy");
    client.check("2025-11-25", &client.over_http());
}

#[test]
fn peer_typescript_over_stdio() {
    let client = typescript();
    client.check("2025-11-25", &client.over_stdio());
}

#[test]
fn peer_typescript_over_http() {
    let client = typescript();
    client.check("2025-11-25", &client.over_http());
}
