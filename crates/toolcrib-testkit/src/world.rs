//! A fake world: a temporary home and folder in which the real program runs, with a clean
//! environment, a deadline, and output that reads the same on every machine.
//!
//! Blocking. Nothing of the person's own home or settings is read or written.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::process;

/// A temporary home, a working folder and an environment.
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    binary: PathBuf,
    env: BTreeMap<OsString, OsString>,
    deadline: Duration,
}

/// What one run of the program came to.
#[derive(Debug)]
pub struct Run {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

impl World {
    /// A new world around this program; a test of the crate `toolcrib` gives
    /// `env!("CARGO_BIN_EXE_toolcrib")`.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("toolcrib-world-")
            .tempdir()
            .expect("a temporary folder can be made");
        let mut world = Self {
            folder,
            binary: binary.into(),
            env: BTreeMap::new(),
            deadline: Duration::from_secs(30),
        };
        for folder in [world.home(), world.state(), world.cwd()] {
            fs::create_dir_all(folder).expect("the folder is ours");
        }
        world.env.insert("HOME".into(), world.home().into());
        world.env.insert("TOOLCRIB_HOME".into(), world.state().into());
        world.env.insert("LANG".into(), "C.UTF-8".into());
        if let Some(path) = std::env::var_os("PATH") {
            world.env.insert("PATH".into(), path);
        }
        world
    }

    /// The home folder.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where the program keeps all its state.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The folder it runs in.
    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("cwd")
    }

    /// Sets a variable for the runs that follow.
    pub fn env(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Changes the deadline of the runs that follow; 30 seconds when not said.
    pub fn deadline(&mut self, deadline: Duration) -> &mut Self {
        self.deadline = deadline;
        self
    }

    /// Writes a file into the working folder (or elsewhere, when the path is absolute).
    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.cwd().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("the folder is ours");
        }
        fs::write(&path, text).expect("the folder is ours");
        path
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// It does not end within the deadline (it is killed), or leaves its output open.
    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, "")
    }

    /// Runs the program to its end with this on its standard input.
    ///
    /// # Panics
    /// As [`World::run`].
    pub fn run_with(&self, args: &[&str], input: &str) -> Run {
        let begin = Instant::now();
        let mut running = self.start(args);
        let mut stdin = running.child.stdin.take().expect("piped");
        let input = input.to_owned();
        thread::spawn(move || {
            // A program that does not read its input is free to leave.
            let _ = stdin.write_all(input.as_bytes());
        });
        let stdout = collect(running.child.stdout.take().expect("piped"));
        let stderr = collect(running.child.stderr.take().expect("piped"));
        let code = running.wait(self.deadline);
        let took = begin.elapsed();
        let text = |from: mpsc::Receiver<String>| {
            from.recv_timeout(Duration::from_secs(5))
                .unwrap_or_else(|_| panic!("{args:?} ended, and a child of it holds its output"))
        };
        let (stdout, stderr) = (text(stdout), text(stderr));
        match code {
            Some(code) => Run { code, stdout, stderr, took },
            None => panic!("{args:?} ran over {:?}\n{stdout}\n{stderr}", self.deadline),
        }
    }

    /// Starts the program and leaves it running; it is killed when dropped.
    pub fn start(&self, args: &[&str]) -> Running {
        self.start_program(&self.binary, args)
    }

    /// The program under test.
    pub(crate) fn program(&self) -> &Path {
        &self.binary
    }

    /// Starts another program in this world.
    pub(crate) fn start_program(&self, program: &Path, args: &[&str]) -> Running {
        let child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(&self.env)
            .current_dir(self.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        Running { child }
    }

    /// Output that reads the same in every run: this world's folders, ports of loopback, the
    /// version and durations are replaced by `[HOME]`, `[PORT]`, `[VERSION]`, `[TIME]`.
    pub fn normal(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (folder, name) in
            [(self.home(), "[HOME]"), (self.state(), "[STATE]"), (self.cwd(), "[CWD]")]
        {
            text = text.replace(&*folder.to_string_lossy(), name);
            if let Ok(real) = folder.canonicalize() {
                text = text.replace(&*real.to_string_lossy(), name);
            }
        }
        let text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
        let text = without_ports(&text);
        without_times(&text)
    }
}

/// A program that is running.
#[derive(Debug)]
pub struct Running {
    /// The process; its streams may be taken.
    pub child: Child,
}

impl Running {
    /// The first line on standard error that holds `part`; the lines after it are read and
    /// dropped.
    ///
    /// # Panics
    /// There is none within `within`, or standard error was taken before.
    pub fn line_of_stderr(&mut self, part: &str, within: Duration) -> String {
        let stderr = BufReader::new(self.child.stderr.take().expect("not taken before"));
        let (found, line) = mpsc::channel();
        let wanted = part.to_owned();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if line.contains(&wanted) {
                    let _ = found.send(line);
                }
            }
        });
        line.recv_timeout(within).unwrap_or_else(|_| panic!("no line with {part:?} on stderr"))
    }

    /// Closes its standard input and waits for its end: `Some(exit code)`, or `None` when it did
    /// not end in time.
    pub fn wait(&mut self, within: Duration) -> Option<Option<i32>> {
        drop(self.child.stdin.take());
        let end = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Some(status.code());
            }
            if Instant::now() >= end {
                process::kill_group(self.child.id());
                let _ = self.child.wait();
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once reaped its id may be another's.
        if let Ok(None) = self.child.try_wait() {
            process::kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (done, text) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = done.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

fn without_ports(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = ["127.0.0.1:", "localhost:"]
        .iter()
        .filter_map(|host| rest.find(host).map(|at| at + host.len()))
        .min()
    {
        out.push_str(&rest[..at]);
        let digits = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            out.push_str("[PORT]");
        }
        rest = &rest[at + digits..];
    }
    out + rest
}

/// Replaces `12 ms`, `1.5s` and the like, not the digits inside words.
fn without_times(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let inside_word =
            rest[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let digits =
            rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len() - at);
        let (number, after) = rest[at..].split_at(digits);
        let blank = usize::from(after.starts_with(' '));
        let unit = ["ms", "µs", "s"].into_iter().find(|unit| {
            after[blank..]
                .strip_prefix(unit)
                .is_some_and(|next| !next.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        out.push_str(&rest[..at]);
        match unit {
            Some(unit) if !inside_word => {
                out.push_str("[TIME]");
                rest = &after[blank + unit.len()..];
            }
            _ => {
                out.push_str(number);
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_reads_the_same_everywhere() {
        let world = World::new("/bin/sh");
        let check = |text: &str, expect: &str| assert_eq!(world.normal(text), expect);
        check("http://127.0.0.1:34567/mcp", "http://127.0.0.1:[PORT]/mcp");
        check("localhost: none", "localhost: none");
        check("took 12 ms, then 1.5s.", "took [TIME], then [TIME].");
        check("3 servers, 2 spaces, tool_7 s, 10", "3 servers, 2 spaces, tool_7 s, 10");
        check(&format!("in {}/a", world.cwd().display()), "in [CWD]/a");
    }

    #[test]
    fn a_run_sees_only_this_world() {
        let mut world = World::new("/bin/sh");
        world.env("EXTRA", "1");
        let script = "cat; echo $TOOLCRIB_HOME $EXTRA; pwd >&2; env | wc -l; exit 3";
        let run = world.run_with(&["-c", script], "in\n");
        assert_eq!((run.code, run.stderr.trim()), (Some(3), &*world.cwd().to_string_lossy()));
        let lines: Vec<_> = run.stdout.lines().map(str::trim).collect();
        assert_eq!(lines[..2], ["in", &format!("{} 1", world.state().display())]);
        // HOME, TOOLCRIB_HOME, LANG, PATH, EXTRA and what a shell sets itself: PWD, SHLVL, _.
        assert!(lines[2].parse::<usize>().unwrap() <= 8, "{lines:?}");
    }

    #[test]
    #[should_panic(expected = "ran over")]
    fn a_run_that_hangs_is_killed() {
        let mut world = World::new("/bin/sh");
        world.deadline(Duration::from_millis(200)).run(&["-c", "exec sleep 60"]);
    }
}
