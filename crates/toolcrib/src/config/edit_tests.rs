//! What edits leave of a file.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;
use toolcrib_core::target::{Command, Endpoint, ServerConfig, Target};

use super::{
    edit::{EditError, add, remove, set_enabled},
    load,
    locate::{Candidate, Trust},
};

const FILE: &str = r#"# My servers.

# The first one,
# which is old.
[servers.old]
command = "old"   # really
enabled = true # for now

  [servers.old.env]
  A = "b"

[servers."two words"]
url = "http://h.example/"
disabled = true

[defaults]
era = "auto"
"#;

fn world(text: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("toolcrib.toml");
    fs::write(&file, text).unwrap();
    (dir, file)
}

fn command(name: &str, program: &str) -> ServerConfig {
    let command = Command { program: program.into(), ..Command::default() };
    ServerConfig::new(name, Target::Command(command))
}

/// The file after an edit, which must succeed.
fn after(text: &str, edit: impl FnOnce(&std::path::Path) -> Result<(), EditError>) -> String {
    let (_dir, file) = world(text);
    edit(&file).unwrap();
    fs::read_to_string(&file).unwrap()
}

/// The error of an edit, which must leave the file alone.
fn refused(text: &str, edit: impl FnOnce(&std::path::Path) -> Result<(), EditError>) -> String {
    let (dir, file) = world(text);
    let error = edit(&file).unwrap_err();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    error.to_string().replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn adding_keeps_what_is_there_and_reads_back_the_same() {
    let mut endpoint = Endpoint::new("https://h.example/mcp");
    endpoint.headers.insert("Authorization".into(), "Bearer ${TOKEN}".into());
    endpoint.ca_file = Some("/ca.pem".into());
    let mut remote = ServerConfig::new("remote", Target::Http(endpoint));
    remote.tools.exclude = vec!["drop_*".into()];
    remote.timeouts.call = std::time::Duration::from_millis(1_500);
    let mut local = command("local", "/bin/x");
    if let Target::Command(command) = &mut local.target {
        command.args = vec!["a b".into(), "\"q\"".into()];
        command.env.insert("K".into(), "v".into());
        command.cwd = Some("/tmp".into());
    }
    local.enabled = false;
    let (_dir, file) = world(FILE);
    add(&file, &remote, false).unwrap();
    add(&file, &local, false).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    insta::assert_snapshot!(text, @r#"
    # My servers.

    # The first one,
    # which is old.
    [servers.old]
    command = "old"   # really
    enabled = true # for now

      [servers.old.env]
      A = "b"

    [servers."two words"]
    url = "http://h.example/"
    disabled = true

    [servers.remote]
    url = "https://h.example/mcp"
    headers = { Authorization = "Bearer ${TOKEN}" }
    ca_file = "/ca.pem"
    exclude_tools = ["drop_*"]
    call_timeout_ms = 1500

    [servers.local]
    command = "/bin/x"
    args = ["a b", '"q"']
    env = { K = "v" }
    cwd = "/tmp"
    enabled = false

    [defaults]
    era = "auto"
    "#);
    let loaded = load(&[Candidate { path: file, trust: Trust::User }]);
    assert_eq!(loaded.errors, []);
    assert_eq!(loaded.find("remote").unwrap().0, remote);
    assert_eq!(loaded.find("local").unwrap().0, local);
}

#[test]
fn a_new_file_is_made_private() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("new/toolcrib.toml");
    add(&file, &command("a", "x"), false).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "[servers.a]\ncommand = \"x\"\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_name_is_replaced_only_by_force_and_in_its_place() {
    let add_old = |force| move |file: &std::path::Path| add(file, &command("old", "new"), force);
    assert_eq!(
        refused(FILE, add_old(false)),
        "toolcrib.toml already has a server `old`; replace it with --force"
    );
    insta::assert_snapshot!(after(FILE, add_old(true)), @r#"
    # My servers.

    # The first one,
    # which is old.
    [servers.old]
    command = "new"

    [servers."two words"]
    url = "http://h.example/"
    disabled = true

    [defaults]
    era = "auto"
    "#);
}

#[test]
fn inline_tables_are_edited_too() {
    let text = "servers = { a = { command = \"x\" } } # all\n";
    insta::assert_snapshot!(after(text, |file| add(file, &command("b", "y"), false)), @r#"
    servers = { a = { command = "x" } , b = { command = "y" } } # all
    "#);
    insta::assert_snapshot!(after(text, |file| set_enabled(file, "a", false)), @r#"
    servers = { a = { command = "x" , enabled = false } } # all
    "#);
    insta::assert_snapshot!(after(text, |file| remove(file, "a")), @"servers = {} # all");
}

#[test]
fn removing_keeps_the_heading_of_the_file() {
    insta::assert_snapshot!(after(FILE, |file| remove(file, "old")), @r#"
    # My servers.

    [servers."two words"]
    url = "http://h.example/"
    disabled = true

    [defaults]
    era = "auto"
    "#);
    let one = "# Heading.\n\n[servers.a]\ncommand = \"x\"\n# last\n";
    insta::assert_snapshot!(after(one, |file| remove(file, "a")), @"
    # Heading.

    # last
    ");
}

#[test]
fn enabling_and_disabling_change_one_value() {
    let check = |edit: (&str, bool), expect: String| {
        let text = after(FILE, |file| set_enabled(file, edit.0, edit.1));
        assert_eq!(text, expect, "{edit:?}");
    };
    check(("old", false), FILE.replace("enabled = true #", "enabled = false #"));
    check(("old", true), FILE.to_owned());
    check(("two words", true), FILE.replace("disabled = true\n", ""));
    check(("two words", false), FILE.replace("disabled = true\n", "enabled = false\n"));
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_the_file() {
    let unfit = refused(FILE, |file| add(file, &command("my server", "x"), false));
    let unknown = refused(FILE, |file| remove(file, "olt"));
    let broken = refused("[servers.a\n", |file| add(file, &command("b", "x"), false));
    let json = refused("{\"servers\": {}}", |file| add(file, &command("b", "x"), false));
    let list = refused("servers = []", |file| add(file, &command("b", "x"), false));
    let bad = ServerConfig::new("c", Target::Http(Endpoint::new("ftp://h")));
    let url = refused(FILE, |file| add(file, &bad, false));
    insta::assert_snapshot!([unfit, unknown, broken, json, list, url].join("\n"), @"
    `my server` is no name for a server: use 1 to 64 letters, digits, `_` and `-`, such as `my-server`
    toolcrib.toml has no server `olt`; did you mean `old`?
    toolcrib.toml:1:11: not valid TOML: unclosed table, expected `]`
    toolcrib.toml: is JSON; only TOML files are edited, change this one by hand
    toolcrib.toml: `servers` is not a table
    toolcrib.toml: server `c`: `url` does not start with http:// or https://
    ");
}

#[test]
fn an_entry_that_is_broken_can_still_be_disabled_removed_or_left() {
    let text = "[servers.bad]\ncomand = 1\n[servers.good]\ncommand = \"x\"\n";
    assert!(after(text, |file| set_enabled(file, "good", false)).ends_with("enabled = false\n"));
    assert_eq!(after(text, |file| remove(file, "bad")), "[servers.good]\ncommand = \"x\"\n");
}

#[test]
fn windows_line_ends_and_marks_do_not_break_an_edit() {
    let text = "\u{feff}# c\r\n[servers.a]\r\ncommand = \"x\"\r\n";
    let edited = after(text, |file| set_enabled(file, "a", false));
    assert!(edited.contains("# c") && edited.contains("enabled = false"), "{edited:?}");
}

#[test]
fn edits_at_the_same_time_are_all_kept() {
    let (_dir, file) = world("");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let file = &file;
            scope.spawn(move || add(file, &command(&format!("s{number}"), "x"), false).unwrap());
        }
    });
    let loaded = load(&[Candidate { path: file, trust: Trust::User }]);
    assert_eq!(loaded.servers.len(), 8);
}
