//! What every transport gives a session: a way to send, and one stream of what comes back.
//!
//! A channel knows bytes, lines and HTTP exchanges. It knows no method, no era and no handshake;
//! ids are minted and matched by the session.

use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;
use toolcrib_core::rpc::{Message, RpcError};

/// One request on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The id minted for it.
    pub id: u64,
    /// Its method.
    pub method: String,
    /// The whole JSON-RPC message, one line.
    pub body: String,
    /// What HTTP mirrors into headers; a pipe ignores it.
    pub mirror: Mirror,
}

/// What HTTP transports mirror into headers (specification, transports/streamable-http).
#[derive(Debug, Clone, Default)]
pub struct Mirror {
    /// `MCP-Protocol-Version`; absent before a legacy handshake is done.
    pub version: Option<String>,
    /// True on modern requests: `Mcp-Method` and `Mcp-Name` are sent.
    pub modern: bool,
    /// `params.name` or `params.uri`, for `Mcp-Name`.
    pub name: Option<String>,
    /// `Mcp-Param-{0}: {1}`, values not yet encoded.
    pub params: Vec<(String, String)>,
}

/// What comes back.
#[derive(Debug)]
pub enum Inbound {
    /// A message. `origin` is the request whose HTTP exchange carried it; `None` on pipes and on
    /// streams that belong to no request.
    Message {
        /// The request whose exchange carried it.
        origin: Option<u64>,
        /// The message.
        message: Message,
    },
    /// A JSON-RPC batch.
    Batch {
        /// As above.
        origin: Option<u64>,
        /// The messages in it.
        messages: Vec<Message>,
    },
    /// Text that is no JSON-RPC; a sanitised excerpt.
    Noise(String),
    /// Bytes that were no UTF-8 had to be replaced in a message.
    Lossy,
    /// The exchange of one request ended without an answer.
    RequestFailed {
        /// The request.
        origin: u64,
        /// Why.
        error: ExchangeError,
    },
    /// The channel is gone; nothing follows.
    Closed(Closed),
}

/// Why one HTTP exchange gave no JSON-RPC answer, or gave one under an error status.
#[derive(Debug, Clone, Error)]
pub enum ExchangeError {
    /// Not a 2xx.
    #[error("{}", .0.summary())]
    Status(Box<StatusError>),
    /// 2xx with a body that is neither JSON-RPC nor an event stream.
    #[error("the answer is {content_type:?}, not JSON or an event stream: {excerpt}")]
    NotRpc {
        /// Its media type.
        content_type: String,
        /// A sanitised excerpt.
        excerpt: String,
    },
    /// The event stream ended before the answer.
    #[error("the event stream ended before the answer")]
    StreamEnded,
    /// The answer is over the limit.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// No connection: DNS, refused, TLS, reset.
    #[error("{0}")]
    Io(String),
}

/// An HTTP error status with what it said.
#[derive(Debug, Clone, Default)]
pub struct StatusError {
    /// The status code.
    pub status: u16,
    /// Media type of the body.
    pub content_type: String,
    /// Sanitised excerpt of the body.
    pub excerpt: String,
    /// The body's JSON-RPC error, if it is one.
    pub rpc: Option<RpcError>,
    /// `WWW-Authenticate`, sanitised.
    pub challenge: Option<String>,
    /// True when the request carried a session id.
    pub had_session: bool,
    /// `Retry-After` in seconds.
    pub retry_after: Option<Duration>,
}

impl StatusError {
    /// True when the server judged the request itself; a server that wants authorization, is
    /// overloaded or broken has not, whatever the body says.
    pub fn is_refusal(&self) -> bool {
        !matches!(self.status, 401 | 408 | 429 | 500..=599)
    }

    /// The server's own words when it has any, and the status.
    pub fn summary(&self) -> String {
        match (&self.rpc, self.excerpt.as_str()) {
            (Some(error), _) => format!("HTTP {}: {error}", self.status),
            (None, "") => format!("HTTP {}", self.status),
            (None, words) => format!("HTTP {}: {words}", self.status),
        }
    }
}

/// Why a channel is gone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Closed {
    /// The process ended or closed its output.
    #[error("the process ended{}", status.as_deref().map(|s| format!(" ({s})")).unwrap_or_default())]
    Exited {
        /// Exit status in words, when known.
        status: Option<String>,
    },
    /// A message was over the limit; the channel was closed and a process killed.
    #[error("line too long: more than {limit} bytes without a newline")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The event stream that carries everything ended (HTTP+SSE).
    #[error("the event stream ended")]
    StreamEnded,
    /// A server that was followed over HTTP is not there any more, or does not know us any more.
    #[error("{0}")]
    Lost(String),
    /// We closed it.
    #[error("closed")]
    ByUs,
}

/// Why something could not be sent at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    /// The channel is gone.
    #[error("the connection is closed")]
    Closed,
}

/// Where a channel puts what comes back. Bounded: a peer that floods waits.
pub type Inbox = mpsc::Sender<Inbound>;

/// How many inbound messages may wait for the session.
pub const INBOX: usize = 256;
