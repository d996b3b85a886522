//! The scripted servers themselves, over real pipes and sockets.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{fake::Fake, process, script};

struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Pipe {
    fn start(program: impl AsRef<std::ffi::OsStr>, args: &[String]) -> Self {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["id"], 7);
        answer
    }

    fn end(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn native(flags: &[&str]) -> Pipe {
    let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    Pipe::start(env!("CARGO_BIN_EXE_toolcrib-script"), &flags)
}

fn modern() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
           "io.modelcontextprotocol/clientCapabilities": {}})
}

#[test]
fn the_native_server_lists_all_its_pages() {
    let mut pipe = native(&["--tools", "25", "--page", "10"]);
    let discovered = pipe.ask("server/discover", &json!({"_meta": modern()}));
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut params = json!({"_meta": modern()});
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let page = pipe.ask("tools/list", &params)["result"].clone();
        assert_eq!(page["resultType"], "complete");
        names.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((names.len(), &names[24]), (25, &json!("tool_24")));
    let called = pipe.ask("tools/call", &json!({"name": "tool_1", "arguments": {"id": 1}}));
    assert_eq!(called["result"], json!({"content": [{"type": "text", "text": "{\"id\":1}"}]}));
    pipe.end();
}

#[test]
fn the_native_server_keeps_to_its_era() {
    let check = |era: &str, method: &str, code: i64| {
        let mut pipe = native(&["--era", era]);
        let answer = pipe.ask(method, &json!({"protocolVersion": "2025-11-25"}));
        assert_eq!(answer["error"]["code"].as_i64().unwrap_or(0), code, "{era} {method}");
        pipe.end();
    };
    check("legacy", "server/discover", -32601);
    check("legacy", "initialize", 0);
    check("modern", "initialize", -32022);
    check("modern", "server/discover", 0);
    check("dual", "initialize", 0);
    check("dual", "server/discover", 0);
}

#[test]
fn an_endless_list_brings_new_tools_on_every_page() {
    let mut pipe = native(&["--endless-cursor", "--page", "2"]);
    let page = pipe.ask("tools/list", &json!({"cursor": "1000000"}));
    assert_eq!(page["result"]["tools"][1]["name"], "tool_2000001");
    assert_eq!(page["result"]["nextCursor"], "1000001");
    pipe.end();
}

#[test]
fn other_rooms_find_the_native_server() {
    assert!(script::binary().is_file());
}

#[test]
fn a_stdio_fake_plays_its_scenario_and_keeps_a_log() {
    let fake = Fake::stdio("C02");
    let mut pipe = Pipe::start(fake.program(), &fake.args());
    let initialized = pipe.ask("initialize", &json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(pipe.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().len(), 2);
    let pid = pipe.child.id();
    pipe.end();
    let log = fake.log();
    assert_eq!((log.starts(), log.pids()), (1, vec![pid]));
    assert_eq!(log.methods(), ["initialize", "tools/list"]);
    assert_eq!(log.count("tools/list"), 1);
}

#[test]
fn starts_are_counted_across_restarts_and_servers_are_chosen() {
    let fake = Fake::scripted(&json!({"servers": {"a": {"tools": []}, "b": {"spawns": [
        {"serverInfo": {"name": "first"}}, {"serverInfo": {"name": "second"}}]}}}))
    .server("b");
    for name in ["first", "second", "second"] {
        let mut pipe = Pipe::start(fake.program(), &fake.args());
        assert_eq!(pipe.ask("initialize", &json!({}))["result"]["serverInfo"]["name"], name);
        pipe.end();
    }
    assert_eq!(fake.log().starts(), 3);
}

#[tokio::test]
async fn an_http_fake_serves_until_it_is_dropped() {
    let fake = Fake::http("C04").await;
    assert!(fake.url.starts_with("http://127.0.0.1:") && fake.url.ends_with("/mcp"));
    let authority = fake.url_of("").trim_start_matches("http://").to_owned();
    let mut socket = TcpStream::connect(&authority).unwrap();
    write!(socket, "GET /mcp HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    let log = fake.wait_for(Duration::from_secs(5), |log| log.http("GET").len() == 1).await;
    let pids = log.pids();
    assert_eq!(pids.len(), 1);
    drop(fake);
    assert_eq!(process::still_there(&pids, Duration::from_secs(5)), []);
}
