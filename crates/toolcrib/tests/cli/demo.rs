//! `demo` and `demo-server`: what a newcomer runs first.

use std::time::Duration;

use serde_json::json;

use crate::play::{inspect_command, inspect_url, parsed, world};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolcrib");

#[test]
fn the_tour_shows_the_main_job() {
    let run = world().run(&["demo"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for shown in [
        "annex   ready  streamable HTTP  2026-07-28",
        "attic   ready  stdio            2025-11-25",
        "bench   ready  stdio            2026-07-28",
        "One broken tool cost its neighbours nothing",
        "add is ambiguous: annex.add, attic.add, bench.add",
        "\n42\n",
        "nothing was sent",
        "the tool greet was added",
        "Hello, Ada!",
    ] {
        assert!(run.stdout.contains(shown), "{shown:?} is missing:\n{}", run.stdout);
    }
}

#[test]
fn the_demo_server_speaks_each_era_over_stdio() {
    for (era, protocol) in
        [("modern", "2026-07-28"), ("legacy", "2025-11-25"), ("dual", "2026-07-28")]
    {
        let command = [PROGRAM, "demo-server", "--era", era];
        let shown = parsed(&inspect_command(&world(), &[], &command));
        assert_eq!(shown["protocol"], protocol, "{era}");
        let tools = shown["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["add", "search_docs", "refresh"], "{era}");
        assert_eq!(tools[0]["description"], "Add two integers");
        assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
        assert_eq!(shown["resources"][0]["uri"], "docs://handbook");
        assert_eq!(shown["resourceTemplates"][0]["uriTemplate"], "users://{user_id}/profile");
        assert_eq!(shown["prompts"][0]["name"], "review");
        assert_eq!(shown["format"], "toolcrib/inspect/1");
    }
}

#[test]
fn the_demo_server_speaks_http_until_it_is_told_to_end() {
    let world = world();
    let mut server = world.start(&["demo-server", "--http", "127.0.0.1:0"]);
    let line = server.line_of_stderr("http://", Duration::from_secs(10));
    let url = line[line.find("http://").unwrap()..].trim();
    let shown = inspect_url(url, &[]).reached().json;
    assert_eq!(
        (&shown["protocol"], &shown["transport"]),
        (&json!("2026-07-28"), &json!("streamable HTTP"))
    );
    let shown = inspect_url(url, &["--era", "legacy"]).reached().json;
    assert_eq!(shown["protocol"], "2025-11-25");
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
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "42"), "{}", run.stderr);
}
