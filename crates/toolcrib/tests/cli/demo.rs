//! `demo` and `demo-server`: what a newcomer runs first.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};

use crate::play::{inspect_command, inspect_url, names, parsed, world};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolcrib");

#[test]
fn the_tour_shows_the_main_job() {
    let run = world().run(&["demo"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.took < Duration::from_secs(10), "it took {:?}", run.took);
    for shown in [
        "annex   ready  streamable HTTP  2026-07-28",
        "attic   ready  stdio            2025-11-25",
        "bench   ready  stdio            2026-07-28",
        "One broken tool cost its neighbours nothing",
        "add is ambiguous: annex.add, attic.add, bench.add",
        "\n{\"sum\":42}\n",
        "nothing was sent",
        "the tool greet was added",
        "Hello, Ada!",
    ] {
        assert!(run.stdout.contains(shown), "{shown:?} is missing:\n{}", run.stdout);
    }
}

/// Holds the report on a demo server.
#[track_caller]
fn shows_the_demo(shown: &Value, protocol: &str, transport: &str) {
    assert_eq!(shown["protocol"], protocol);
    assert_eq!(shown["transport"], transport);
    assert_eq!(names(&shown["tools"]), ["add", "search_docs", "count", "borrow", "refresh"]);
    assert_eq!(shown["tools"][0]["description"], "Add two integers");
    assert_eq!(shown["tools"][0]["annotations"]["readOnlyHint"], true);
    assert_eq!(shown["resources"][0]["uri"], "docs://handbook");
    assert_eq!(shown["resourceTemplates"][0]["uriTemplate"], "users://{user_id}/profile");
    assert_eq!(names(&shown["prompts"]), ["review"]);
    assert_eq!(shown["format"], "toolcrib/inspect/1");
}

const ERAS: [(&str, &str); 3] =
    [("modern", "2026-07-28"), ("legacy", "2025-11-25"), ("dual", "2026-07-28")];

#[test]
fn the_demo_server_speaks_each_era_over_stdio() {
    for (era, protocol) in ERAS {
        let command = [PROGRAM, "demo-server", "--era", era];
        let shown = parsed(&inspect_command(&world(), &[], &command));
        shows_the_demo(&shown, protocol, "stdio");
    }
}

#[test]
fn the_demo_server_speaks_each_era_over_http_until_it_is_told_to_end() {
    for (era, protocol) in ERAS {
        let world = world();
        let mut server = world.start(&["demo-server", "--http", "127.0.0.1:0", "--era", era]);
        let line = server.line_of_stderr("http://", Duration::from_secs(10));
        let url = line[line.find("http://").unwrap()..].trim();
        shows_the_demo(&inspect_url(url, &[]).reached().json, protocol, "streamable HTTP");
        if era == "dual" {
            let shown = inspect_url(url, &["--era", "legacy"]).reached().json;
            shows_the_demo(&shown, "2025-11-25", "streamable HTTP");
        }
        // Its standard input stays open: what ends it is the signal.
        let input = server.child.stdin.take();
        let pid = server.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let ended = server.wait(Duration::from_secs(10));
        assert_eq!(ended, Some(Some(0)), "{era}: it ends in time and by itself");
        drop(input);
    }
}

#[test]
fn a_template_of_the_demo_server_is_read() {
    let world = world();
    let config = json!({"mcpServers": {"demo": {"command": PROGRAM, "args": ["demo-server"]}}});
    let file = world.write("mcp.json", &config.to_string());
    let file = file.to_str().unwrap();
    let run = world.run(&["--config", file, "read", "users://42/profile"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("42"), "{}", run.stdout);
    let run = world.run_with(&["--config", file, "call", "demo.add", "-"], r#"{"a":2,"b":40}"#);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), r#"{"sum":42}"#), "{}", run.stderr);
}

/// Two servers that offer the same, one that is not there, and one with a tool left out.
fn four() -> (toolcrib_testkit::world::World, String) {
    let world = world();
    let demo = json!({"command": PROGRAM, "args": ["demo-server"]});
    let mut part = demo.clone();
    part["exclude_tools"] = json!(["refresh"]);
    part["include_tools"] = json!(["add", "refresh"]);
    let gone = json!({"command": "no-such-program-here"});
    let servers = json!({"one": demo, "two": demo, "part": part, "gone": gone});
    let file = world.write("four.json", &json!({"mcpServers": servers}).to_string());
    let file = file.to_str().unwrap().to_owned();
    (world, file)
}

#[test]
fn what_several_servers_offer_is_never_picked_silently() {
    let (world, file) = four();
    let describe = |more: &[&str]| {
        world.run(&[&["--config", &file, "describe", "users://42/profile"], more].concat())
    };
    let run = describe(&[]);
    assert_eq!(run.code, Some(5), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("one, part, two"), "{}", run.stderr);
    let run = describe(&["--server", "two"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("resource template of two"), "{}", run.stdout);
}

#[test]
fn a_name_that_is_not_found_is_told_with_what_is_missing() {
    let (world, file) = four();
    let run = world.run(&["--config", &file, "call", "no_such_tool"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stderr.contains("server gone has failed"), "{}", run.stderr);
    let run = world.run(&["--config", &file, "call", "part.refresh"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stderr.contains("leaves it out"), "{}", run.stderr);
}
