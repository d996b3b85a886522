//! Child processes: whatever they do, their output is drained and nothing of them stays.

use std::time::Duration;

use serde_json::json;
use toolcrib_testkit::{fake::Fake, process::still_there};

use crate::play::{Crib, inspect, inspect_command, inspect_fake, parsed, scenario, world};

#[test]
fn c54_a_grandchild_does_not_stay() {
    let report = inspect("C54").shows_both();
    let pids = report.log.pids();
    assert_eq!(pids.len(), 2, "{:#?}", report.log.entries);
    assert_eq!(still_there(&pids, Duration::from_secs(2)), []);
}

/// Nor when the wrapper leaves by itself in the middle and its child holds the pipes.
#[test]
fn c54_a_grandchild_of_a_wrapper_that_left_does_not_stay() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"spawn_child": {"seconds": 120, "inherit": true}}, {"expect": "tools/list", "repeat": true}, {"exit": 3},
    ]})));
    let report = inspect_fake(&fake, &["--list-timeout", "10"]);
    assert!(report.run.took < Duration::from_secs(20), "{:?}", report.run.took);
    assert!(report.failed(8).contains("exit code 3"), "{}", report.json);
    let pids = report.log.pids();
    assert!(pids.len() >= 2);
    assert_eq!(still_there(&pids, Duration::from_secs(2)), []);
}

/// A process that became a daemon, with nobody between it and the server left, does not stay either.
#[test]
fn c54_a_daemon_that_a_server_left_behind_does_not_stay() {
    let world = world();
    let note = world.cwd().join("daemon.pid");
    let path = world.write(
        "server.sh",
        &format!(
            "(setsid sh -c 'sleep 60 >/dev/null 2>&1 & echo $! > {}') </dev/null >/dev/null 2>&1\n\
             exec python3 \"$@\"\n",
            note.display()
        ),
    );
    let fake = Fake::stdio("C54");
    let args = fake.args();
    let mut command = vec!["sh", path.to_str().unwrap()];
    command.extend(args.iter().map(String::as_str));
    let shown = parsed(&inspect_command(&world, &[], &command));
    assert_eq!(shown["tools"].as_array().map(Vec::len), Some(2), "{shown}");
    let daemon: u32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    assert_eq!(still_there(&[daemon], Duration::from_secs(2)), []);
}

#[test]
fn c55_a_flood_of_stderr_delays_nothing() {
    let fake = Fake::stdio("C55");
    let report = inspect_fake(&fake, &[]).shows_both().notes_nothing();
    assert!(report.run.took < Duration::from_secs(8), "{:?}", report.run.took);
    // The last part is kept for diagnosis, bounded.
    let crib = Crib::of(&fake);
    crib.calls("s.alpha", &json!({}), 0);
    let logs = crib.run(&["logs", "s"]);
    assert_eq!(logs.code, Some(0), "{}", logs.stderr);
    assert!(
        logs.stdout.contains("####") || logs.stdout.contains("31 validation errors"),
        "{} bytes",
        logs.stdout.len()
    );
    assert!(logs.stdout.len() < 2_000_000, "{}", logs.stdout.len());
}

/// The words of a server that dies are in the error.
#[test]
fn c56_the_last_words_are_in_the_error() {
    let fake = Fake::scripted(&scenario(&json!({"steps": [
        {"stderr": "boom: no \u{1b}[31mdatabase\n"}, {"exit": 3}]})));
    let report = inspect_fake(&fake, &[]);
    let message = report.failed(8);
    assert!(message.contains("boom: no") && message.contains("exit code 3"), "{message}");
    assert!(!message.contains('\u{1b}'));
    assert!((1..=4).contains(&report.log.starts()), "{}", report.log.starts());
}

/// A first start that fails is not the last word, even for a command that does not stay.
#[test]
fn c56_a_first_start_that_fails_is_repeated() {
    let report = inspect_fake(&Fake::stdio("C56"), &[]).shows_both();
    assert_eq!(report.log.starts(), 3);
}

#[test]
fn c107_a_server_that_ignores_everything_is_killed() {
    let report = inspect("C107").shows_both();
    assert!(report.run.took < Duration::from_secs(9), "{:?}", report.run.took);
    assert_eq!(still_there(&report.log.pids(), Duration::from_millis(500)), []);
    // It was asked nicely first: it saw the end of its input.
    assert_eq!(report.log.of("eof").count(), 1);
}

/// Nor does a failed handshake leave anything behind.
#[test]
fn c107_a_silent_server_that_ignores_everything_is_killed() {
    let fake = Fake::scripted(&scenario(&json!({
        "ignore_eof": true, "ignore_sigterm": true, "steps": [{"expect": "*", "repeat": true}, {"silent": true}]})));
    let report = inspect_fake(&fake, &["--probe-timeout", "0.3", "--start-timeout", "1"]);
    report.failed(10);
    assert!(report.run.took < Duration::from_secs(9), "{:?}", report.run.took);
    assert_eq!(still_there(&report.log.pids(), Duration::from_millis(500)), []);
}

/// A command that is not there is named, with the PATH that was searched; no shell is started.
#[test]
fn a_command_that_is_not_there_is_named() {
    let world = world();
    let run = inspect_command(&world, &[], &["no-such-server; touch pwned", "$(touch pwned)"]);
    let message = parsed(&run)["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(run.code, Some(8), "{message}");
    assert!(message.contains("no-such-server") && message.contains("PATH"), "{message}");
    assert!(!world.cwd().join("pwned").exists());
}

/// A child gets a small environment and what was given to it, never all of ours.
#[test]
fn a_child_sees_only_what_it_is_given() {
    let mut world = world();
    world.env("CASE_SECRET", "of the person").env("NODE_OPTIONS", "--require ./x.js");
    let fake = Fake::scripted(&scenario(&json!({})));
    let args = fake.args();
    let mut command = vec!["python3"];
    command.extend(args.iter().map(String::as_str));
    let run = inspect_command(&world, &["--env", "CASE_GIVEN=1"], &command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(fake.log().of("start").next().unwrap()["env"], json!({"CASE_GIVEN": "1"}));
}
