//! Starting a child process and ending it with everything it started.
//!
//! A command is run as it is written: no shell, no splitting of words, and an environment that
//! holds [`INHERITED`] and what is configured, nothing else of ours. Every child leads a process
//! group of its own; see `tree` for what that reaches.
//!
//! Ending takes at most [`STOP_WITHIN`]: standard input is closed, after [`EOF_WAIT`] the tree gets
//! SIGTERM, after [`TERM_WAIT`] SIGKILL, and the child is reaped. A child that ends by itself takes
//! what it left behind along. When we are killed by SIGKILL ourselves nobody is left to signal: the
//! children then read the end of their standard input, on which a server has to leave, and fail to
//! write to their output.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal};
use thiserror::Error;
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    signal::unix::{self, SignalKind},
    sync::watch,
    task,
    time::{Instant, sleep, timeout},
};
use toolcrib_core::{sanitise, target::Command};

use crate::tree::{self, Tree};

/// Variables of ours every child gets, when they are set. A name that ends in `*` stands for all
/// that begin so.
///
/// They say who the user is, where programs, temporary files, caches and certificates are, how to
/// write text, and which proxy leads outside. Nothing that usually holds a credential is among
/// them, with one exception: a proxy URL may hold a password, and without the proxy no server that
/// is downloaded on its first start (npx, uvx) could start at all. Variables that change what code
/// a program loads (`LD_PRELOAD`, `NODE_OPTIONS`, `PYTHONPATH`) are left out: configure them where
/// they are wanted.
pub const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// How long a child may take to leave once its standard input is closed.
pub const EOF_WAIT: Duration = Duration::from_secs(2);

/// How long a tree may take to leave after SIGTERM.
pub const TERM_WAIT: Duration = Duration::from_secs(2);

/// How long the kernel may take to end a child after SIGKILL; one stuck in it is given up.
pub const KILL_WAIT: Duration = Duration::from_secs(1);

/// How long what a child left behind may take to leave after SIGTERM.
pub const LEFTOVER_WAIT: Duration = Duration::from_millis(500);

/// Upper bound on ending a tree, all steps together.
pub const STOP_WITHIN: Duration = Duration::from_secs(6);

/// How long adopted orphans are given between SIGTERM and SIGKILL.
pub const ORPHAN_WAIT: Duration = Duration::from_millis(300);

/// Makes this process the parent of every descendant that loses its own parents, so that
/// [`end_orphans`] can find servers that turned themselves into daemons. For programs that start
/// servers only: all children are taken for servers then. Linux only; elsewhere it does nothing.
pub fn adopt_orphans() {
    tree::adopt();
}

/// Ends every child that is left: SIGTERM, and SIGKILL after [`ORPHAN_WAIT`]. For the end of a
/// program that called [`adopt_orphans`], when all servers have been ended in order.
pub async fn end_orphans() {
    let deadline = Instant::now() + ORPHAN_WAIT;
    let mut signal = Signal::TERM;
    // Ending one may bring the next: an orphan's own children become ours.
    for _ in 0..100 {
        if !tree::signal_children(signal) {
            return;
        }
        sleep(Duration::from_millis(20)).await;
        if Instant::now() >= deadline {
            signal = Signal::KILL;
        }
    }
}

/// Why a child could not be started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// No such program.
    #[error("command {program:?} not found{}{}", searched_in(.searched.as_deref()), advice(*.spaces))]
    NotFound {
        /// The program, sanitised.
        program: String,
        /// The child's PATH, sanitised; absent when the program is a path itself.
        searched: Option<String>,
        /// True when the whole command line seems to be written into `command`.
        spaces: bool,
    },
    /// The file is there and must not be run, or the working directory must not be entered.
    #[error(
        "command {program:?}: permission denied; the file must be executable and the working \
         directory open to you"
    )]
    Denied {
        /// The program, sanitised.
        program: String,
    },
    /// The working directory is none.
    #[error("working directory {path:?} {problem}; create it, or correct cwd")]
    Cwd {
        /// The directory, sanitised.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No process can have such a variable.
    #[error(
        "environment variable {name:?} cannot be set: its name is empty or holds `=`, or there is \
         a NUL in it; correct env"
    )]
    Env {
        /// Its name, sanitised.
        name: String,
    },
    /// Starting it failed in another way.
    #[error("command {program:?} cannot be started: {source}{}", interpreter_hint(.source))]
    Start {
        /// The program, sanitised.
        program: String,
        /// What the system says.
        source: io::Error,
    },
}

fn searched_in(path: Option<&str>) -> String {
    match path {
        None => String::new(),
        Some("") => "; PATH is empty".to_owned(),
        Some(path) => format!(" in PATH {path}"),
    }
}

const fn advice(spaces: bool) -> &'static str {
    if spaces {
        "; command contains spaces and args is empty: put the arguments into args"
    } else {
        "; install it, or give its full path"
    }
}

fn interpreter_hint(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::NotFound {
        "; the interpreter named in its first line is missing"
    } else {
        ""
    }
}

/// How far a process is to be, or has been, ended. Later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// It runs.
    Run,
    /// It ended by itself.
    Ended,
    /// It is asked to leave.
    Stop,
    /// It is killed.
    Kill,
}

/// Where a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Life {
    Running,
    /// The child has ended, in words; what it left behind may still be there.
    Ended(String),
    /// Everything is gone and the child is reaped.
    Gone(String),
}

/// A running child and its tree. Clones share it. It is kept by a task of its own, which ends the
/// tree in the order above when it is told to, when the child ends, and when the runtime goes.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pid: u32,
    tree: Arc<Tree>,
    order: watch::Sender<Order>,
    life: watch::Sender<Life>,
    /// True once, on the way out, what left the child's group was looked for.
    noted: watch::Sender<bool>,
}

/// Our ends of a child's standard streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Process {
    /// Starts `command`. Must be called inside a tokio runtime.
    pub(crate) fn start(command: &Command) -> Result<(Self, Streams), SpawnError> {
        let program = sanitise::line(&command.program, 200);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => SpawnError::Denied { program: program.clone() },
            _ => SpawnError::Start { program: program.clone(), source },
        };
        // Before the child exists, so that its end cannot be missed.
        let ends = unix::signal(SignalKind::child()).map_err(failed)?;
        let mut child = prepare(command)?.spawn().map_err(failed)?;
        let pid = child.id().unwrap_or_default();
        let streams = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let leader = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let (Some(((stdin, stdout), stderr)), Some(leader)) = (streams, leader) else {
            return Err(failed(io::Error::other("it has no standard streams")));
        };
        let process = Self {
            pid,
            tree: Arc::new(Tree::new(leader)),
            order: watch::Sender::new(Order::Run),
            life: watch::Sender::new(Life::Running),
            noted: watch::Sender::new(false),
        };
        tokio::spawn(keep(process.clone(), child, ends));
        Ok((process, Streams { stdin, stdout, stderr }))
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Orders an end. An order is never taken back or weakened.
    pub(crate) fn order(&self, order: Order) {
        self.order.send_if_modified(|now| {
            let raised = order > *now;
            *now = order.max(*now);
            raised
        });
    }

    pub(crate) fn ordered(&self) -> Order {
        *self.order.borrow()
    }

    /// Waits until at least `order` is in force.
    pub(crate) async fn wait_order(&self, order: Order) {
        // We hold a sender, so waiting cannot fail.
        let _ = self.order.subscribe().wait_for(|now| *now >= order).await;
    }

    /// How the child ended, in words; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        match &*self.life.borrow() {
            Life::Running => None,
            Life::Ended(words) | Life::Gone(words) => Some(words.clone()),
        }
    }

    /// Waits, once a stop is ordered, until closing standard input loses nobody: a child that ends
    /// at once would take along what tells who its children outside its group are.
    pub(crate) async fn wait_noted(&self) {
        let mut noted = self.noted.subscribe();
        tokio::select! {
            _ = noted.wait_for(|noted| *noted) => {}
            () = self.wait_ended() => {}
        }
    }

    /// Waits for the end of the child; what it left behind may still be there.
    pub(crate) async fn wait_ended(&self) {
        let _ = self.life.subscribe().wait_for(|life| *life != Life::Running).await;
    }

    /// Waits until the whole tree is gone, and says how the child ended.
    pub(crate) async fn wait_gone(&self) -> String {
        let _ = self.life.subscribe().wait_for(|life| matches!(life, Life::Gone(_))).await;
        self.ended().unwrap_or_default()
    }

    /// Kills the tree at once, from where nothing can be awaited.
    pub(crate) fn kill_now(&self) {
        if !matches!(*self.life.borrow(), Life::Gone(_)) {
            self.order(Order::Kill);
            self.tree.note();
            self.tree.signal(Signal::KILL);
        }
    }

    /// Looks for descendants outside the group, then signals. Reading the process table takes
    /// milliseconds, so it is kept off the tasks of others.
    async fn signal(&self, signal: Option<Signal>) {
        self.off(move |tree| {
            tree.note();
            if let Some(signal) = signal {
                tree.signal(signal);
            }
        })
        .await;
    }

    async fn has_followers(&self) -> bool {
        self.off(Tree::has_followers).await.unwrap_or(false)
    }

    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> T + Send + 'static,
    ) -> Option<T> {
        let tree = self.tree.clone();
        task::spawn_blocking(move || work(&tree)).await.ok()
    }
}

/// What the child is started with.
fn prepare(command: &Command) -> Result<tokio::process::Command, SpawnError> {
    let env = environment(command)?;
    let cwd = working_directory(command.cwd.as_deref())?;
    let program = find(command, &env, &cwd)?;
    let mut prepared = tokio::process::Command::new(program);
    prepared
        .args(&command.args)
        .env_clear()
        .envs(env)
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(prepared)
}

fn environment(command: &Command) -> Result<Vec<(OsString, OsString)>, SpawnError> {
    let mut env: Vec<_> = std::env::vars_os()
        .filter(|(name, value)| is_inherited(name.as_encoded_bytes()) && !is_function(value))
        .collect();
    for (name, value) in &command.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.expose().contains('\0') {
            return Err(SpawnError::Env { name: sanitise::line(name, 80) });
        }
        env.push((name.into(), value.expose().into()));
    }
    Ok(env)
}

fn is_inherited(name: &[u8]) -> bool {
    INHERITED.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == allowed.as_bytes(),
    })
}

/// A shell function that was exported: code, not a value.
fn is_function(value: &OsString) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

fn working_directory(cwd: Option<&Path>) -> Result<PathBuf, SpawnError> {
    let path = cwd.unwrap_or(Path::new("."));
    let problem = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some("is not a directory"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("does not exist"),
        Err(_) => Some("cannot be read"),
    };
    match (problem, std::path::absolute(path)) {
        (None, Ok(path)) => Ok(path),
        (problem, _) => Err(SpawnError::Cwd {
            path: sanitise::line(&path.to_string_lossy(), 200),
            problem: problem.unwrap_or("cannot be read"),
        }),
    }
}

/// Finds the program in the PATH the child will have.
fn find(
    command: &Command,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<PathBuf, SpawnError> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    if let Ok(found) = which::which_in(&command.program, path, cwd) {
        return Ok(cwd.join(found));
    }
    let program = sanitise::line(&command.program, 200);
    let is_path = command.program.contains('/');
    if is_path && cwd.join(&command.program).exists() {
        return Err(SpawnError::Denied { program });
    }
    Err(SpawnError::NotFound {
        program,
        searched: (!is_path)
            .then(|| path.map(|path| sanitise::line(&path.to_string_lossy(), 1_000)))
            .map(Option::unwrap_or_default),
        spaces: command.args.is_empty() && command.program.trim().contains(char::is_whitespace),
    })
}

/// Keeps one child until its tree is gone.
async fn keep(process: Process, child: Child, mut ends: unix::Signal) {
    let mut keeper = Keeper { process: process.clone(), child, swept: false };
    let words = until_ended(&process, &mut ends).await;
    process.life.send_replace(Life::Ended(words.clone()));
    process.order(Order::Ended);
    sweep(&process).await;
    keeper.swept = true;
    drop(keeper);
    process.life.send_replace(Life::Gone(words));
}

/// Waits for the end of the child, bringing it about when ordered. The child is not reaped, so
/// that its group keeps its number.
async fn until_ended(process: &Process, ends: &mut unix::Signal) -> String {
    tokio::select! {
        words = ended(process, ends) => return words,
        () = process.wait_order(Order::Stop) => {}
    }
    // Whoever holds standard input closes it on the same order, so the first step needs no signal.
    for (signal, wait) in [(None, EOF_WAIT), (Some(Signal::TERM), TERM_WAIT)] {
        process.signal(signal).await;
        process.noted.send_replace(true);
        tokio::select! {
            words = ended(process, ends) => return words,
            () = process.wait_order(Order::Kill) => break,
            () = sleep(wait) => {}
        }
    }
    process.signal(Some(Signal::KILL)).await;
    timeout(KILL_WAIT, ended(process, ends))
        .await
        .unwrap_or_else(|_| "killed, but stuck in the system".to_owned())
}

async fn ended(process: &Process, ends: &mut unix::Signal) -> String {
    loop {
        match process.tree.ended() {
            Ok(None) => {}
            Ok(Some(status)) => {
                return in_words(status.exit_status(), status.terminating_signal());
            }
            // Somebody else in this program waits for all children.
            Err(_) => return "exit status unknown".to_owned(),
        }
        let _ = ends.recv().await;
    }
}

/// Ends what the child left behind: politely, unless it is to be killed.
async fn sweep(process: &Process) {
    process.signal(None).await;
    if process.ordered() < Order::Kill && process.has_followers().await {
        process.signal(Some(Signal::TERM)).await;
        let deadline = Instant::now() + LEFTOVER_WAIT;
        while Instant::now() < deadline && process.has_followers().await {
            sleep(Duration::from_millis(20)).await;
        }
    }
    // One that was being started while we looked is found by the second look.
    for _ in 0..3 {
        process.signal(Some(Signal::KILL)).await;
        if !process.has_followers().await {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Holds the child. Reaps it when dropped, and kills the tree before that when it was not swept
/// yet, as happens when the runtime is shut down.
struct Keeper {
    process: Process,
    child: Child,
    swept: bool,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let tree = &self.process.tree;
        if !self.swept {
            tree.note();
            tree.signal(Signal::KILL);
            // A killed process is gone within a millisecond or two; nothing can be awaited here.
            for _ in 0..50 {
                if !matches!(tree.ended(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        // What cannot be reaped now is handed to tokio, which reaps it when it ends.
        tree.reap(|| {
            if let Ok(Some(status)) = self.child.try_wait() {
                tracing::debug!(pid = self.process.pid, status = describe(status), "reaped");
            }
        });
    }
}

fn describe(status: ExitStatus) -> String {
    in_words(status.code(), status.signal())
}

fn in_words(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        (None, None) => "exit status unknown".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.into_iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_put_into_words() {
        let check = |code, signal, expect: &str| assert_eq!(in_words(code, signal), expect);
        check(Some(3), None, "exit code 3");
        check(None, Some(9), "signal 9 (SIGKILL)");
        check(None, Some(64), "signal 64");
        check(None, None, "exit status unknown");
    }

    #[test]
    fn only_listed_variables_are_inherited() {
        let check = |name: &str, expect: bool| {
            assert_eq!(is_inherited(name.as_bytes()), expect, "{name}");
        };
        check("PATH", true);
        check("LC_ALL", true);
        check("XDG_RUNTIME_DIR", true);
        check("https_proxy", true);
        check("PATHS", false);
        check("LC", false);
        check("GITHUB_TOKEN", false);
        check("LD_PRELOAD", false);
        check("NODE_OPTIONS", false);
        assert!(is_function(&OsString::from("() { :;}; echo x")));
    }
}
