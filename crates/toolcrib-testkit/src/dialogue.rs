//! A program that is talked to while it runs: wait for what it says, then answer. Over pipes, or at
//! a terminal of its own, where Ctrl-C is a key and a question can be asked.
//!
//! Blocking, and every wait is bounded.

use std::{
    io::{Read, Write as _},
    process::ChildStdin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Running, World};

/// How long anything may take that is not measured.
const PATIENCE: Duration = Duration::from_secs(20);

/// Gives the program after it a terminal, whose other side are its own standard streams.
const AT_A_TERMINAL: &str = "\
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// A running program and what it has said.
#[derive(Debug)]
pub struct Dialogue {
    running: Running,
    stdin: Option<ChildStdin>,
    said: Arc<Said>,
    errors: Arc<Said>,
    /// How much of it was waited for already.
    heard: usize,
}

#[derive(Debug, Default)]
struct Said {
    /// What came, and whether that is all.
    text: Mutex<(String, bool)>,
    more: Condvar,
}

impl Said {
    fn lock(&self) -> MutexGuard<'_, (String, bool)> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(mut stream: impl Read + Send + 'static) -> Arc<Self> {
        let said = Arc::new(Self::default());
        let hears = Arc::clone(&said);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let read = stream.read(&mut bytes).unwrap_or(0);
                let mut text = hears.lock();
                text.0.push_str(&String::from_utf8_lossy(&bytes[..read]));
                text.1 = read == 0;
                hears.more.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        said
    }
}

impl Dialogue {
    /// Starts the program over pipes.
    pub fn over_pipes(world: &World, args: &[&str]) -> Self {
        Self::of(world.start(args))
    }

    /// Starts the program at a terminal of its own; both its streams are there.
    pub fn at_terminal(world: &World, args: &[&str]) -> Self {
        let program = world.program().to_string_lossy().into_owned();
        let mut all = vec!["-I", "-S", "-c", AT_A_TERMINAL, &program];
        all.extend(args);
        Self::of(world.start_program("python3".as_ref(), &all))
    }

    fn of(mut running: Running) -> Self {
        let child = &mut running.child;
        let stdin = child.stdin.take();
        let said = Said::of(child.stdout.take().expect("piped"));
        let errors = Said::of(child.stderr.take().expect("piped"));
        Self { running, stdin, said, errors, heard: 0 }
    }

    /// Waits until the program says this, after what was waited for before; gives what it said up
    /// to there.
    ///
    /// # Panics
    /// It does not say it in time, or ends before.
    #[track_caller]
    pub fn hears(&mut self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut text = self.said.lock();
        loop {
            let fresh = &text.0[self.heard..];
            if let Some(at) = fresh.find(words) {
                let fresh = fresh[..at + words.len()].to_owned();
                self.heard += fresh.len();
                return fresh;
            }
            let left = end.saturating_duration_since(Instant::now());
            let over = text.1 || left.is_zero();
            assert!(!over, "no {words:?} in:\n{}\n{}", text.0, self.errors.lock().0);
            text =
                self.said.more.wait_timeout(text, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// As [`Dialogue::hears`], on standard error.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn hears_on_stderr(&self, words: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.errors.lock().0.contains(words) {
            let errors = self.errors.lock().0.clone();
            assert!(Instant::now() < end, "no {words:?} in:\n{errors}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends text: with its line break a line, `\u{3}` is Ctrl-C, `\u{4}` Ctrl-D.
    ///
    /// # Panics
    /// The program no longer reads.
    pub fn says(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("not closed before");
        stdin.write_all(text.as_bytes()).expect("the program reads");
        stdin.flush().expect("the program reads");
    }

    /// Interrupts the program (SIGINT).
    pub fn interrupt(&self) {
        let pid = i32::try_from(self.running.child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(pid.expect("a process id"), Signal::INT);
    }

    /// Waits for the end: the exit code, and all that was said on both streams.
    ///
    /// # Panics
    /// It does not end in time.
    #[track_caller]
    pub fn ends(mut self) -> (Option<i32>, String, String) {
        let end = Instant::now() + PATIENCE;
        // The input stays open: at a terminal, its end would be a hang-up.
        let code = loop {
            if let Some(status) = self.running.child.try_wait().expect("a child can be waited for")
            {
                break status.code();
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.said.lock().0);
            thread::sleep(Duration::from_millis(5));
        };
        let all = |said: &Said| {
            while !said.lock().1 {
                assert!(Instant::now() < end, "a child of it holds its output");
                thread::sleep(Duration::from_millis(5));
            }
            said.lock().0.clone()
        };
        (code, all(&self.said), all(&self.errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_one_and_ctrl_c_is_heard() {
        let world = World::new("/bin/sh");
        let script = "test -t 0 && test -t 2 && echo asks; read x; echo got $x; \
                      trap 'echo stopped; exit 7' INT; echo waits; while :; do sleep 0.05; done";
        let mut dialogue = Dialogue::at_terminal(&world, &["-c", script]);
        dialogue.hears("asks");
        dialogue.says("it\n");
        assert!(dialogue.hears("got it").contains("it\r\n"), "a terminal echoes");
        dialogue.hears("waits");
        dialogue.says("\u{3}");
        let (code, said, _) = dialogue.ends();
        assert_eq!(code, Some(7), "{said}");
        assert!(said.contains("stopped"));
    }

    #[test]
    fn pipes_keep_the_two_streams_apart() {
        let world = World::new("/bin/sh");
        let script = "echo out; echo err >&2; test -t 0 || read x; exit $x";
        let mut dialogue = Dialogue::over_pipes(&world, &["-c", script]);
        dialogue.hears("out");
        dialogue.hears_on_stderr("err");
        dialogue.says("3\n");
        assert_eq!(dialogue.ends(), (Some(3), "out\n".to_owned(), "err\n".to_owned()));
    }
}
