//! A child process for tests: a Python program, what it said, and whether it is still there.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::mpsc::{self, Receiver},
    time::{Instant, sleep, timeout},
};
use toolcrib_core::{limits::Limits, target::Command};
use toolcrib_link::{
    channel::{Closed, INBOX, Inbound},
    stdio::Pipe,
};

/// No wait in these tests is longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A running child, its inbox and a folder of its own, which is its working directory.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) inbox: Receiver<Inbound>,
    pub(crate) folder: tempfile::TempDir,
}

/// What every Python program here may use.
const PRELUDE: &str = r#"
import json, os, signal, subprocess, sys, time
def say(text):
    sys.stdout.write(text); sys.stdout.flush()
def note(name, text):
    with open(name + ".new", "w") as f: f.write(str(text))
    os.rename(name + ".new", name)
"#;

/// A command that runs `program` with Python in `folder`.
pub(crate) fn python(folder: &Path, program: &str) -> Command {
    let file = folder.join("program.py");
    fs::write(&file, format!("{PRELUDE}{program}")).unwrap();
    Command {
        program: "python3".to_owned(),
        args: vec!["-u".to_owned(), file.to_string_lossy().into_owned()],
        cwd: Some(folder.to_path_buf()),
        ..Command::default()
    }
}

pub(crate) fn serve(program: &str) -> Server {
    serve_within(&Limits::default(), program)
}

pub(crate) fn serve_within(limits: &Limits, program: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let command = python(folder.path(), program);
    let (sender, inbox) = mpsc::channel(INBOX);
    let log = Some(folder.path().join("stderr.log"));
    let pipe = Arc::new(Pipe::start(&command, limits, log, sender, None).unwrap());
    Server { pipe, inbox, folder }
}

impl Server {
    /// The next thing that comes.
    pub(crate) async fn next(&mut self) -> Inbound {
        timeout(PATIENCE, self.inbox.recv()).await.expect("something comes").expect("not the end")
    }

    /// Everything that still comes, in short words, and why it ended.
    pub(crate) async fn rest(&mut self) -> (Vec<String>, Closed) {
        let mut said = Vec::new();
        loop {
            match self.next().await {
                Inbound::Closed(closed) => {
                    assert!(self.inbox.recv().await.is_none(), "nothing follows the end");
                    return (said, closed);
                }
                other => said.push(brief(&other)),
            }
        }
    }

    pub(crate) async fn send(&self, line: &str) {
        timeout(PATIENCE, self.pipe.send(line.to_owned())).await.expect("it reads").unwrap();
    }

    /// Waits for a file the program writes with `note`.
    pub(crate) async fn noted(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        wait_for(|| path.exists()).await;
        fs::read_to_string(path).unwrap()
    }

    pub(crate) async fn noted_pid(&self, name: &str) -> u32 {
        self.noted(name).await.parse().unwrap()
    }
}

/// `method` of a notification or request, `id=result` of a response, and so on.
pub(crate) fn brief(inbound: &Inbound) -> String {
    use toolcrib_core::rpc::Message;
    let one = |message: &Message| match message {
        Message::Request { method, .. } | Message::Notification { method, .. } => method.clone(),
        Message::Response { id, outcome: Ok(result) } => format!("{id:?}={}", result.get()),
        Message::Response { id, outcome: Err(error) } => format!("{id:?}!{error}"),
    };
    match inbound {
        Inbound::Message { message, .. } => one(message),
        Inbound::Batch { messages, .. } => {
            format!("[{}]", messages.iter().map(one).collect::<Vec<_>>().join(","))
        }
        Inbound::Noise(text) => format!("noise {text}"),
        Inbound::Lossy => "lossy".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) async fn wait_for(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited too long");
        sleep(Duration::from_millis(5)).await;
    }
}

/// True while the process table holds it at all, be it as a zombie.
pub(crate) fn is_listed(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// True while it runs. A process we did not start ourselves is reaped by somebody else, when that
/// one gets round to it.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
