//! Clients of other makers against the demo server, over both transports and in both eras: what
//! each saw of it, member by member. Needs the peers.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;
use toolcrib_testkit::{peers, process, world::World};

use crate::{
    play::{parsed, world},
    seen::{Progress, check, url},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolcrib");

/// A client that runs in a world of its own.
struct Client {
    world: World,
    args: Vec<String>,
}

/// `peers/clients/client.py` on this SDK.
fn python(version: &str, mode: &str) -> Client {
    let world = World::new(peers::folder().join(format!("python-{version}/bin/python")));
    let args = vec![script("client.py"), mode.to_owned()];
    Client { world, args }
}

/// `peers/clients/client.mjs`.
fn typescript() -> Client {
    let modules = peers::folder().join("npm/node_modules");
    let args = vec![script("client.mjs"), modules.to_string_lossy().into_owned()];
    Client { world: World::new(peers::node()), args }
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
}

#[test]
fn peer_python_2_3_modern_over_stdio() {
    let client = python("2.3", "auto");
    check("2026-07-28", &client.over_stdio(), Progress::Whole);
}

#[test]
fn peer_python_2_3_modern_over_http() {
    let client = python("2.3", "auto");
    check("2026-07-28", &client.over_http(), Progress::Whole);
}

#[test]
fn peer_python_2_3_legacy_over_stdio() {
    let client = python("2.3", "legacy");
    check("2025-11-25", &client.over_stdio(), Progress::Whole);
}

#[test]
fn peer_python_2_3_legacy_over_http() {
    let client = python("2.3", "legacy");
    check("2025-11-25", &client.over_http(), Progress::Whole);
}

#[test]
fn peer_python_1_30_over_stdio() {
    let client = python("1.30", "legacy");
    check("2025-11-25", &client.over_stdio(), Progress::Whole);
}

#[test]
fn peer_python_1_30_over_http() {
    let client = python("1.30", "legacy");
    check("2025-11-25", &client.over_http(), Progress::Whole);
}

#[test]
fn peer_typescript_over_stdio() {
    let client = typescript();
    check("2025-11-25", &client.over_stdio(), Progress::Gaps);
}

#[test]
fn peer_typescript_over_http() {
    let client = typescript();
    check("2025-11-25", &client.over_http(), Progress::Gaps);
}
