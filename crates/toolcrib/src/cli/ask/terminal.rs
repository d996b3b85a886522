//! The person at the terminal: one question at a time, line by line, and Ctrl-C as an answer of its
//! own. Questions go to standard error, so that standard output stays data.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, OnceLock, PoisonError},
    thread,
};

use tokio::sync::{Mutex as Turn, MutexGuard, mpsc, oneshot};

use crate::{cli::wait, show::Talk};

/// How many lines may have been typed before somebody reads them.
const AHEAD: usize = 16;

/// The lines that are typed; whoever holds it has the turn to ask.
type Lines = Turn<mpsc::Receiver<Option<String>>>;

/// The one question that is open, to be told of an interrupt.
static OPEN: Mutex<Option<oneshot::Sender<()>>> = Mutex::new(None);

/// True when a person is there to answer.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Takes an interrupt as the answer to the open question; false when none is open.
pub(crate) fn interrupted() -> bool {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    open.is_some_and(|question| question.send(()).is_ok())
}

/// A question that is open. Closed when dropped.
pub(super) struct Conversation {
    lines: MutexGuard<'static, mpsc::Receiver<Option<String>>>,
    interrupt: oneshot::Receiver<()>,
}

impl Conversation {
    /// Waits for the turn to ask, and begins. What was typed before is no answer.
    pub(super) async fn begin() -> Self {
        let mut lines = typed().lock().await;
        while lines.try_recv().is_ok() {}
        let (question, interrupt) = oneshot::channel();
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
        wait::hide();
        Self { lines, interrupt }
    }

    /// Asks for a line; `None` when the person interrupts or ends the input.
    pub(super) async fn line(&mut self, prompt: &str) -> Option<String> {
        // Nobody sees it any more when this fails, and then no line comes either.
        let _ = write!(anstream::stderr(), "{prompt}");
        let _ = anstream::stderr().flush();
        let line = tokio::select! {
            biased;
            _ = &mut self.interrupt => None,
            line = self.lines.recv() => line.flatten(),
        };
        if line.is_none() {
            Talk::say("");
        }
        line
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).take();
        wait::show();
    }
}

/// Reads the terminal from the first question on, in a thread of its own: a read cannot be given
/// up, and must hold nobody.
fn typed() -> &'static Lines {
    static LINES: OnceLock<Lines> = OnceLock::new();
    LINES.get_or_init(|| {
        let (sender, lines) = mpsc::channel(AHEAD);
        thread::spawn(move || {
            loop {
                let mut line = String::new();
                let read = io::stdin().read_line(&mut line);
                let over = read.is_err();
                let line = Some(line).filter(|line| !line.is_empty());
                if sender.blocking_send(line).is_err() || over {
                    return;
                }
            }
        });
        Turn::new(lines)
    })
}
