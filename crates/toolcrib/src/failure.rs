//! The one error of the front: a stable code, what failed, and what to do about it.

use std::fmt;

use toolcrib_core::{code::Code, target::Target};
use toolcrib_engine::{CallError, Part, Status, SubscribeError};

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The stable code; it decides the exit code.
    pub(crate) code: Code,
    /// What failed and why.
    pub(crate) message: String,
    /// What to do, a line each.
    pub(crate) hints: Vec<String>,
}

/// What a command comes to: an exit code of its own choice, or a failure.
pub(crate) type Outcome = Result<Code, Failure>;

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Code::Config, message)
    }

    /// The same failure with one more thing to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// A server that was needed and is not there.
    pub(crate) fn of_server(part: &Part) -> Self {
        let name = part.name();
        let why = part.status.why().map(|why| format!(": {why}")).unwrap_or_default();
        let (code, hint) = match &part.status {
            Status::NeedsAuth { .. } => (
                Code::NeedsAuth,
                "put a token into its `headers`, for example Authorization = \"Bearer ${TOKEN}\""
                    .to_owned(),
            ),
            Status::Failed { code, .. } if matches!(part.config.target, Target::Http(_)) => {
                (*code, format!("toolcrib inspect {name} --trace shows every message"))
            }
            Status::Failed { code, .. } => {
                (*code, format!("toolcrib logs {name} shows what it said"))
            }
            Status::Disabled => (Code::Unreachable, format!("toolcrib enable {name}")),
            _ => (Code::Unreachable, "toolcrib status shows all servers".to_owned()),
        };
        Self::new(code, format!("server {name} {}{why}", part.status.phrase())).hint(hint)
    }
}

/// What to do when a server wants to ask somebody.
const ASKED: &str = "at a terminal, without --json and --no-input, you are asked for it";

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let failure = Self::new(error.code(), error.to_string());
        match error {
            _ if error.lacks_capability() => failure.hint(ASKED),
            CallError::Arguments { server, item, .. } => {
                failure.hint(format!("toolcrib describe {server}.{item} shows what it takes"))
            }
            CallError::Server { server, .. } => {
                failure.hint(format!("toolcrib logs {server} shows what it said"))
            }
            CallError::InputRequired { .. } => failure.hint(ASKED),
            CallError::Name(_) | CallError::UnknownUri { .. } => {
                failure.hint("toolcrib list shows what there is")
            }
            _ => failure,
        }
    }
}

impl From<SubscribeError> for Failure {
    fn from(error: SubscribeError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            // Whoever read the output has seen enough: `toolcrib list | head` is no failure.
            return Self::new(Code::Ok, "nobody reads the output any more");
        }
        Self::new(Code::Internal, format!("cannot write the output: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
