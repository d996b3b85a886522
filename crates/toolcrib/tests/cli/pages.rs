//! `completions`, `man` and the help: what is made from the command line.

use std::{fs, process::Command};

use crate::play::world;

/// Every command, as the help lists them.
const COMMANDS: [&str; 20] = [
    "demo",
    "demo-server",
    "inspect",
    "list",
    "describe",
    "call",
    "read",
    "prompt",
    "status",
    "logs",
    "watch",
    "add",
    "remove",
    "enable",
    "disable",
    "hosts",
    "import",
    "connect",
    "completions",
    "man",
];

fn is_here(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

#[test]
fn the_help_pages_are_these() {
    let world = world();
    let mut all = String::new();
    for command in
        [None].into_iter().chain(["hosts", "import", "connect", "completions", "man"].map(Some))
    {
        let args: Vec<&str> = command.into_iter().chain(["--help"]).collect();
        let run = world.run(&args);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        all.push_str(&format!("$ toolcrib {}\n{}\n", args.join(" "), run.stdout));
    }
    insta::assert_snapshot!(world.normal(&all));
}

#[test]
fn every_shell_gets_a_script() {
    let world = world();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = world.run(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in COMMANDS {
            assert!(run.stdout.contains(word), "{word} is not completed in {shell}");
        }
    }
    assert_eq!(world.run(&["completions", "tcsh"]).code, Some(2));
}

/// The script is sourced and asked as a shell asks it.
#[test]
fn bash_completes_commands_and_hosts() {
    if !is_here("bash") {
        return;
    }
    let world = world();
    let script = world.write("completion.bash", &world.run(&["completions", "bash"]).stdout);
    let complete = |words: &[&str]| {
        let ask = "source \"$0\"; COMP_WORDS=(toolcrib \"$@\"); COMP_CWORD=$#; \
                   _toolcrib toolcrib \"${!#}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                   printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        let output = bash.args(["--norc", "-c", ask]).arg(&script).args(words).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["conn"]), ["connect"]);
    assert_eq!(complete(&["connect", "claude-d"]), ["claude-desktop"]);
    assert_eq!(complete(&["import", "--dry"]), ["--dry-run"]);
}

#[test]
fn there_is_a_page_for_every_command() {
    let world = world();
    let main = world.run(&["man"]);
    assert!(main.stdout.contains(".TH toolcrib 1"), "{}", main.stdout);
    let run = world.run(&["man", "pages/man1"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let folder = world.cwd().join("pages/man1");
    for command in COMMANDS {
        let text = fs::read_to_string(folder.join(format!("toolcrib-{command}.1"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(folder.join("toolcrib.1").exists());
    if is_here("groff") {
        let connect = folder.join("toolcrib-connect.1");
        let output =
            Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(connect).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(String::from_utf8_lossy(&output.stdout).contains("toolcrib-connect"));
    }
    let file = world.write("file", "");
    let run = world.run(&["man", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
}
