//! Real MCP servers of other makers, as `./check peers` fetches them: their command lines, and
//! running ones that serve HTTP on a free port until they are dropped.
//!
//! Where they are says the variable `TOOLCRIB_PEERS`. Nothing is fetched here.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;
use toolcrib_core::{secret::Secret, target};

use crate::process;

/// How long a peer may take to listen: interpreters are slow to start on a busy machine.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// The folder of all peers.
///
/// # Panics
/// The variable is not set, or leads nowhere.
pub fn folder() -> PathBuf {
    let Some(folder) = env::var_os("TOOLCRIB_PEERS").map(PathBuf::from) else {
        panic!(
            "TOOLCRIB_PEERS is not set: this test talks to real servers; run it through \
             `./check test`, or fetch them with `./check peers` and set it to <target>/peers"
        );
    };
    assert!(
        folder.join("npm/stamp").is_file(),
        "TOOLCRIB_PEERS={} holds no peers; fetch them with `./check peers`",
        folder.display()
    );
    folder
}

/// The command line of a peer.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Program, arguments and environment.
    pub command: target::Command,
}

impl Peer {
    /// The server of `peers/python-VERSION`.
    pub fn python(version: &str) -> Self {
        let name = format!("python-{version}");
        let script = repository().join("peers").join(&name).join("server.py");
        Self::of(folder().join(name).join("bin/python"), [script])
    }

    /// A server from npm, by the name of its command.
    pub fn node(name: &str) -> Self {
        Self::of(node(), [bin().join(name)])
    }

    /// A server that this repository builds itself.
    pub fn built(program: &Path) -> Self {
        Self::of(program.to_owned(), [])
    }

    fn of<const N: usize>(program: PathBuf, args: [PathBuf; N]) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let args = args.iter().map(|arg| text(arg)).collect();
        Self {
            command: target::Command {
                program: text(&program),
                args,
                ..target::Command::default()
            },
        }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.command.args.push(arg.into());
        self
    }

    /// With a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.command.env.insert(name.to_owned(), Secret::new(value.into()));
        self
    }

    /// Started only after so many seconds of silence, by a shell in its place.
    #[must_use]
    pub fn slow_to_start(self, seconds: f64) -> Self {
        let mut args = vec!["-c".to_owned(), format!("sleep {seconds}; exec \"$0\" \"$@\"")];
        args.push(self.command.program);
        args.extend(self.command.args);
        let program = "/bin/sh".to_owned();
        Self { command: target::Command { program, args, ..self.command } }
    }

    /// Starts it and waits until it listens, serving `path`. It has to take a free port when asked
    /// for port 0.
    ///
    /// # Panics
    /// It ends, or does not listen in time; what it printed is in the message.
    pub fn listen(&self, path: &str) -> HttpPeer {
        let output = NamedTempFile::new().expect("a temporary file");
        let stream =
            || Stdio::from(File::options().append(true).open(output.path()).expect("ours"));
        let child = Command::new(&self.command.program)
            .args(&self.command.args)
            .envs(exposed(&self.command.env))
            .stdin(Stdio::null())
            .stdout(stream())
            .stderr(stream())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", self.command.program));
        let mut peer = HttpPeer { url: String::new(), child, output };
        let end = Instant::now() + STARTS_WITHIN;
        let port = loop {
            if let Some(port) = process::listening_port(peer.child.id()) {
                break port;
            }
            let ended = peer.child.try_wait().expect("a child can be waited for");
            assert!(
                ended.is_none() && Instant::now() < end,
                "{:?} does not listen ({ended:?}):\n{}",
                self.command.args,
                peer.output()
            );
            thread::sleep(Duration::from_millis(20));
        };
        peer.url = format!("http://127.0.0.1:{port}{path}");
        peer
    }
}

fn exposed(env: &BTreeMap<String, Secret>) -> impl Iterator<Item = (&str, &str)> {
    env.iter().map(|(name, value)| (name.as_str(), value.expose()))
}

/// The Node.js that runs the servers from npm.
pub fn node() -> PathBuf {
    bin().join("node")
}

/// The folder of all commands from npm, `node` among them.
pub fn bin() -> PathBuf {
    folder().join("npm/node_modules/.bin")
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A peer that serves HTTP; killed with all its children when dropped.
#[derive(Debug)]
pub struct HttpPeer {
    /// Where it serves.
    pub url: String,
    child: Child,
    output: NamedTempFile,
}

impl HttpPeer {
    /// What it printed so far, on both streams.
    pub fn output(&self) -> String {
        fs::read(self.output.path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

impl Drop for HttpPeer {
    fn drop(&mut self) {
        // Once reaped its id may be another's.
        if let Ok(None) = self.child.try_wait() {
            process::kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}
