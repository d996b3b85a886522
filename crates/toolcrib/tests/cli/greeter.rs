//! The server that the README shows, run as it says there.

use crate::play::{inspect_command, names, parsed, world};

/// Cargo builds examples beside the tests.
fn greeter() -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).expect("tests stand in <target>/<profile>/deps");
    let example = folder.join("examples/greeter");
    assert!(
        example.is_file(),
        "{} is missing; build it: cargo build -p toolcrib-serve --examples",
        example.display()
    );
    example.to_str().unwrap().to_owned()
}

#[test]
fn the_server_of_the_readme_is_inspected_and_called() {
    let greeter = greeter();
    let shown = parsed(&inspect_command(&world(), &[], &[&greeter]));
    assert_eq!(shown["protocol"], "2026-07-28");
    assert_eq!(names(&shown["tools"]), ["greet"]);
    assert_eq!(shown["tools"][0]["description"], "Greet someone");
    let world = world();
    let file = world.write("crib.toml", &format!("[servers.g]\ncommand = {greeter:?}\n"));
    let call = |arguments: &str| {
        world.run(&["--config", file.to_str().unwrap(), "call", "greet", arguments])
    };
    let run = call(r#"{"name": "Ada"}"#);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "Hello, Ada!"), "{}", run.stderr);
    let run = call("{}");
    assert!(run.stderr.contains("/name is missing"), "{}", run.stderr);
}

/// Without a terminal nobody can be asked, and that is what it says in both eras.
#[test]
fn a_tool_that_asks_says_where_it_can_be_answered() {
    for era in ["modern", "legacy"] {
        let world = world();
        let command = format!(
            "command = {:?}\nargs = [\"demo-server\", \"--era\", \"{era}\"]",
            env!("CARGO_BIN_EXE_toolcrib")
        );
        let file = world.write("crib.toml", &format!("[servers.d]\n{command}\n"));
        let run =
            world.run(&["--config", file.to_str().unwrap(), "call", "borrow", "--arg", "tool=saw"]);
        assert_eq!(run.code, Some(13), "{}", run.stderr);
        assert!(run.stderr.contains("at a terminal"), "{}", run.stderr);
    }
}
