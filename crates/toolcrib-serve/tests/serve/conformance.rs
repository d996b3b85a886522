//! The server scenarios of the protocol's conformance harness, played against the example
//! `conformance_server`: what each revision requires, and what is not scored yet. Needs the peers.

use std::{path::PathBuf, time::Duration};

use tokio::{process::Command, time::timeout};
use toolcrib_testkit::peers::{self, Peer};

/// The example, as built beside this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).expect("tests stand in <target>/<profile>/deps");
    let example = folder.join("examples/conformance_server");
    let name = example.display();
    assert!(
        example.is_file(),
        "{name} is missing; build it: cargo build -p toolcrib-serve --examples"
    );
    example
}

/// One scenario in the summary: `✓ name: 2 passed, 0 failed`.
#[derive(Debug)]
struct Verdict {
    name: String,
    passed: u32,
    failed: u32,
    scored: bool,
}

impl Verdict {
    fn good(&self) -> bool {
        self.failed == 0
    }
}

fn verdicts(said: &str) -> Vec<Verdict> {
    let summary = said.split_once("=== SUMMARY ===").expect("there is a summary").1;
    let (lines, unscored) = summary.split_once("Not scored for").unwrap_or((summary, ""));
    let named = |line: &str| {
        let rest = line.trim().strip_prefix(['✓', '✗'])?.trim_start().to_owned();
        Some(rest)
    };
    let unscored: Vec<_> = unscored
        .lines()
        .filter_map(named)
        .filter_map(|line| Some(line.split_once(" (")?.0.to_owned()))
        .collect();
    let verdict = |line: String| {
        let (name, counts) = line.split_once(": ")?;
        let mut numbers = counts.split(", ").map(|count| count.split(' ').next()?.parse().ok());
        let (passed, failed) = (numbers.next()??, numbers.next()??);
        let scored = unscored.iter().all(|other| other != name);
        Some(Verdict { name: name.to_owned(), passed, failed, scored })
    };
    lines.lines().filter_map(named).filter_map(verdict).collect()
}

/// Runs what `revision` requires; gives the verdicts, of which `scored` are scored and all of those
/// are good.
async fn check(revision: &str, scored: usize) -> Vec<Verdict> {
    let server = Peer::built(&example()).listen("/mcp");
    let folder = tempfile::tempdir().unwrap();
    let mut harness = Command::new(peers::node());
    harness
        .arg(peers::bin().join("conformance"))
        .args(["server", "--url", &server.url, "--requirements", revision, "--output-dir"])
        .arg(folder.path())
        .kill_on_drop(true);
    let output = timeout(Duration::from_secs(120), harness.output()).await;
    let output = output.expect("the harness ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let all = format!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{all}", output.status);
    let verdicts = verdicts(&said);
    let bad: Vec<_> = verdicts.iter().filter(|verdict| verdict.scored && !verdict.good()).collect();
    assert!(bad.is_empty(), "{bad:?}\n{all}");
    let count = verdicts.iter().filter(|verdict| verdict.scored).count();
    assert_eq!(count, scored, "{all}");
    verdicts
}

#[tokio::test]
async fn peer_conformance_server_2026_07_28() {
    let verdicts = check("2026-07-28", 37).await;
    for pending in
        ["http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"]
    {
        let verdict = verdicts.iter().find(|verdict| verdict.name == pending);
        let passed = verdict.is_some_and(|verdict| verdict.good() && verdict.passed > 0);
        assert!(passed, "{pending}: {verdict:?}");
    }
    // The tasks extension is not served, so nothing of it is promised.
    let bad = verdicts.iter().find(|one| !one.good() && !one.name.starts_with("tasks-"));
    assert!(bad.is_none(), "{bad:?}");
}

#[tokio::test]
async fn peer_conformance_server_2025_11_25() {
    let verdicts = check("2025-11-25", 30).await;
    let bad = verdicts.iter().find(|verdict| !verdict.good());
    assert!(bad.is_none(), "{bad:?}");
}
