//! The two streams: [`Out`] carries data to stdout, [`Talk`] words to stderr.

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};

use crate::failure::Failure;

/// Standard output. Colours vanish off a terminal and under `NO_COLOR`.
pub(crate) struct Out {
    stream: anstream::AutoStream<io::Stdout>,
}

impl Out {
    pub(crate) fn new() -> Self {
        Self { stream: anstream::stdout() }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.stream.write_all(text.as_ref().as_bytes())?;
        self.stream.write_all(b"\n")
    }

    /// Writes a heading.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        let bold = Style::new().bold();
        self.line(format!("{bold}{text}{bold:#}"))
    }
}

/// Standard error.
pub(crate) struct Talk;

impl Talk {
    /// Says something.
    pub(crate) fn say(text: impl AsRef<str>) {
        // Nobody reads it any more when this fails.
        let _ = writeln!(anstream::stderr(), "{}", text.as_ref());
    }

    /// Warns.
    pub(crate) fn warn(text: impl AsRef<str>) {
        let yellow = AnsiColor::Yellow.on_default();
        Self::say(format!("{yellow}warning:{yellow:#} {}", text.as_ref()));
    }

    /// Says that something is wrong.
    pub(crate) fn error(text: impl AsRef<str>) {
        let red = AnsiColor::Red.on_default().bold();
        Self::say(format!("{red}error:{red:#} {}", text.as_ref()));
    }

    /// Says what to do about it.
    pub(crate) fn hint(text: impl AsRef<str>) {
        let cyan = AnsiColor::Cyan.on_default();
        Self::say(format!("{cyan}hint:{cyan:#} {}", text.as_ref()));
    }

    /// Says why a command failed and what to do.
    pub(crate) fn fail(failure: &Failure) {
        Self::error(failure.to_string());
        failure.hints.iter().for_each(Self::hint);
    }

    /// True when a person is there to answer.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a yes-or-no question; anything but yes is no.
    pub(crate) fn ask(question: &str) -> bool {
        let _ = write!(anstream::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer).is_ok();
        read && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }
}
