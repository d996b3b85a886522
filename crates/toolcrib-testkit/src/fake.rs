//! Plays a scenario: as the command line of a stdio server, or as an HTTP server that runs until
//! it is dropped. Needs python3, nothing else.
//!
//! Each fake has a folder of its own for its log and its count of starts; nothing is shared
//! between tests.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};
use toolcrib_core::target;

use crate::{case, process, traffic::Traffic};

/// How long a fake may live whatever happens to the test, in seconds.
const MAX_LIFE_S: &str = "120";

/// A scenario ready to be played.
#[derive(Debug)]
pub struct Fake {
    scenario: PathBuf,
    server: Option<String>,
    folder: TempDir,
}

impl Fake {
    /// The scenario of a case, to be started by whoever runs [`Fake::command`].
    pub fn stdio(id: &str) -> Self {
        Self { scenario: case::scenario(id), server: None, folder: folder() }
    }

    /// A scenario of the test's own; `cases/fakeserver.py` says what one may hold.
    pub fn scripted(scenario: &Value) -> Self {
        let folder = folder();
        let path = folder.path().join("scenario.json");
        std::fs::write(&path, scenario.to_string()).expect("the folder is ours");
        Self { scenario: path, server: None, folder }
    }

    /// The scenario of a case, served over HTTP.
    pub async fn http(id: &str) -> HttpFake {
        Self::stdio(id).listen().await
    }

    /// Plays this one of the scenario's several servers; the first when not said.
    #[must_use]
    pub fn server(mut self, name: &str) -> Self {
        self.server = Some(name.to_owned());
        self
    }

    /// The program that plays.
    pub fn program(&self) -> &'static str {
        "python3"
    }

    /// Its arguments; all paths are absolute.
    pub fn args(&self) -> Vec<String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        // Isolated and without site packages: it starts in a third of the time.
        let mut args: Vec<String> = ["-I", "-S", "-B"].map(str::to_owned).into();
        args.push(text(case::player()));
        args.push(text(self.scenario.clone()));
        args.extend(["--log".to_owned(), text(self.log_path())]);
        args.extend(["--state".to_owned(), text(self.folder.path().join("starts"))]);
        args.extend(["--max-life", MAX_LIFE_S].map(str::to_owned));
        if let Some(server) = &self.server {
            args.extend(["--server".to_owned(), server.clone()]);
        }
        args
    }

    /// Program and arguments as a target.
    pub fn command(&self) -> target::Command {
        target::Command {
            program: self.program().to_owned(),
            args: self.args(),
            ..target::Command::default()
        }
    }

    /// Where it writes its log.
    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join("log.jsonl")
    }

    /// What it has seen and done so far.
    pub fn log(&self) -> Traffic {
        Traffic::read(&self.log_path())
    }

    /// The log once `seen` holds of it.
    ///
    /// # Panics
    /// It does not hold within `within`.
    pub async fn wait_for(&self, within: Duration, seen: impl Fn(&Traffic) -> bool) -> Traffic {
        let end = Instant::now() + within;
        loop {
            let log = self.log();
            if seen(&log) {
                return log;
            }
            assert!(Instant::now() < end, "not seen within {within:?}: {:#?}", log.entries);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts it as an HTTP server on a free port of loopback.
    ///
    /// # Panics
    /// It does not listen within ten seconds.
    pub async fn listen(self) -> HttpFake {
        let mut child = Command::new(self.program())
            .args(self.args())
            .args(["--http", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the fault cases need python3 in PATH");
        let stderr = child.stderr.take().expect("piped");
        // Owned from here on: a panic below must not leave the server behind.
        let mut fake = HttpFake { url: String::new(), child, fake: self };
        let (found, url) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut found = Some(found);
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let (Some(url), Some(found)) = (line.strip_prefix("LISTEN "), found.take()) {
                    let _ = found.send(url.to_owned());
                }
            }
        });
        fake.url = timeout(Duration::from_secs(10), url)
            .await
            .expect("the fake server listens in time")
            .expect("the fake server starts");
        fake
    }
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("toolcrib-fake-").tempdir().expect("a temporary folder")
}

/// A scenario played over HTTP; killed with all its children when dropped.
#[derive(Debug)]
pub struct HttpFake {
    /// Where it serves, `http://127.0.0.1:PORT/mcp` as a rule.
    pub url: String,
    child: Child,
    fake: Fake,
}

impl HttpFake {
    /// The same server under another path.
    pub fn url_of(&self, path: &str) -> String {
        let authority = self.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        format!("{authority}{path}")
    }

    /// What it has seen and done so far.
    pub fn log(&self) -> Traffic {
        self.fake.log()
    }

    /// As [`Fake::wait_for`].
    pub async fn wait_for(&self, within: Duration, seen: impl Fn(&Traffic) -> bool) -> Traffic {
        self.fake.wait_for(within, seen).await
    }
}

impl Drop for HttpFake {
    fn drop(&mut self) {
        process::kill_group(self.child.id());
        let _ = self.child.wait();
    }
}
