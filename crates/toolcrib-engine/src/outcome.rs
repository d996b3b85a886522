//! What can be said of a call, a read or a prompt: how it is made, what came of it, and why there is
//! no result.

use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;
use tokio::sync::mpsc;
use toolcrib_core::{
    catalog::NameError,
    check::arguments,
    code::Code,
    level::LogLevel,
    raw::Raw,
    rpc::{Progress, error::MISSING_CAPABILITY},
};
use toolcrib_link::RequestError;

use crate::{status::Status, subscribe::SubscribeError};

/// How a call, a read or a prompt is made. All members may be left out.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// How long to wait for the answer; progress begins it anew. The server's own setting when
    /// absent (one minute unless configured). Time that a handler of ours takes is not counted.
    pub timeout: Option<Duration>,
    /// How long to wait at most, however much progress there is. The server's own setting when
    /// absent; never less than `timeout`.
    pub timeout_total: Option<Duration>,
    /// Where progress goes; it is asked for only when this is present. A full channel loses
    /// progress, never the answer.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The least level of log messages that a modern server is to send with this request; the
    /// engine's own when absent. They come as [`Event::Log`](crate::Event::Log).
    pub log_level: Option<LogLevel>,
}

/// What came of a call, a read or a prompt.
#[derive(Debug, Clone)]
pub struct Called {
    /// The server that answered.
    pub server: String,
    /// The server's own name of the item: tool or prompt name, or URI.
    pub item: String,
    /// The result as sent.
    pub result: Raw,
    /// True when the tool ran and reported an error.
    pub is_error: bool,
    /// How the result misfits the output schema, when it does.
    pub misfit: Option<String>,
    /// From sending to the answer.
    pub took: Duration,
}

/// What a server proposes for an argument (specification, server/utilities/completion).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Completion {
    /// The values, best first, as the server wrote them; untrusted.
    pub values: Vec<String>,
    /// How many there are in all, when it says.
    pub total: Option<u64>,
    /// True when it says that there are more.
    pub has_more: bool,
}

/// Why there is no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The name leads to nothing, or to more than one thing.
    #[error("{0}")]
    Name(#[from] NameError),
    /// No server offers a resource with this URI.
    #[error("no server lists {uri} or a template that fits it{}", near(.candidates))]
    UnknownUri {
        /// The URI asked for.
        uri: String,
        /// What comes near.
        candidates: Vec<String>,
    },
    /// Several servers offer a resource with this URI.
    #[error("several servers offer {uri}: {}; name one with --server", servers.join(", "))]
    AmbiguousUri {
        /// The URI asked for.
        uri: String,
        /// The servers.
        servers: Vec<String>,
    },
    /// The item is not to be used.
    #[error("{item} of {server} is refused: {why}")]
    Refused {
        /// The server.
        server: String,
        /// The item.
        item: String,
        /// Why.
        why: String,
    },
    /// The arguments do not fit; nothing was sent.
    #[error("the arguments do not fit {item} of {server}; nothing was sent\n{errors}")]
    Arguments {
        /// The server.
        server: String,
        /// The tool or prompt.
        item: String,
        /// What is wrong and how to mend it.
        errors: arguments::ArgumentErrors,
    },
    /// The result does not fit the output schema, and that is an error here.
    #[error("the result of {item} of {server} does not fit its output schema: {why}")]
    Result {
        /// The server.
        server: String,
        /// The tool.
        item: String,
        /// The misfit.
        why: String,
        /// The result all the same.
        result: Raw,
    },
    /// These variables make no URI of the template; nothing was sent.
    #[error("{template} cannot be expanded: {why}; nothing was sent")]
    Template {
        /// The template.
        template: String,
        /// Why.
        why: String,
    },
    /// The server does not declare that it offers this; nothing was sent.
    #[error("server {server} does not offer {what}")]
    NotOffered {
        /// The server.
        server: String,
        /// What was wanted.
        what: &'static str,
    },
    /// Updates of the resource are not announced.
    #[error("{0}")]
    Subscribe(#[from] SubscribeError),
    /// The server is not there.
    #[error("server {server} {}{}", status.phrase(), status.why().map(|why| format!(": {why}")).unwrap_or_default())]
    Server {
        /// The server.
        server: String,
        /// How it stands.
        status: Status,
    },
    /// The server asks its client for input before it goes on.
    #[error("{item} of {server} asks for input that this client does not offer ({asks})")]
    InputRequired {
        /// The server.
        server: String,
        /// The item.
        item: String,
        /// The methods asked for.
        asks: String,
        /// The answer as sent.
        result: Raw,
    },
    /// The request failed.
    #[error("{item} of {server}: {error}")]
    Request {
        /// The server.
        server: String,
        /// The item.
        item: String,
        /// Why.
        error: RequestError,
    },
}

fn near(candidates: &[String]) -> String {
    if candidates.is_empty() { String::new() } else { format!("; near: {}", candidates.join(", ")) }
}

impl CallError {
    /// True when the server says that this client does not declare what the request needs: it wanted
    /// to ask for something.
    pub const fn lacks_capability(&self) -> bool {
        matches!(
            self,
            Self::Request { error: RequestError::Rpc(error), .. }
                if error.code == MISSING_CAPABILITY
        )
    }

    /// The stable code of this failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Name(NameError::Ambiguous { .. }) | Self::AmbiguousUri { .. } => {
                Code::AmbiguousName
            }
            Self::Name(_) | Self::UnknownUri { .. } => Code::UnknownName,
            Self::Refused { .. } | Self::NotOffered { .. } => Code::Refused,
            Self::Arguments { .. } | Self::Template { .. } => Code::InvalidArguments,
            Self::Subscribe(error) => error.code(),
            Self::Result { .. } => Code::InvalidResult,
            Self::Server { status: Status::NeedsAuth { .. }, .. } => Code::NeedsAuth,
            Self::Server { status: Status::Failed { code, .. }, .. } => *code,
            Self::Server { .. } => Code::Unreachable,
            Self::InputRequired { .. } => Code::InputRequired,
            _ if self.lacks_capability() => Code::InputRequired,
            Self::Request { error, .. } => match error {
                RequestError::Rpc(_) | RequestError::Unusable { .. } => Code::ServerError,
                RequestError::Unanswered { .. } => Code::InputRequired,
                RequestError::NeedsAuth { .. } => Code::NeedsAuth,
                RequestError::Timeout { .. } => Code::Timeout,
                // Exchanges that failed, connections that ended or were given up.
                _ => Code::Unreachable,
            },
        }
    }
}
