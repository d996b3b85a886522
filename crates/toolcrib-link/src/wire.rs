//! The transports behind one closed enum, so that a session does not care which one it has.

use crate::{
    channel::{ExchangeError, Mirror, Outgoing, SendError},
    http::{OldSse, Streamable},
    stdio::Pipe,
};

/// A live transport.
pub(crate) enum Wire {
    /// A child process.
    Pipe(Pipe),
    /// Streamable HTTP, modern or legacy.
    Http(Streamable),
    /// HTTP+SSE of 2024-11-05.
    OldSse(OldSse),
}

impl Wire {
    /// Sends a request; its answer comes through the inbox.
    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<(), SendError> {
        match self {
            Self::Pipe(pipe) => pipe.send(outgoing.body).await,
            Self::Http(http) => http.send(outgoing).await,
            Self::OldSse(sse) => sse.send(outgoing).await,
        }
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, body: String, mirror: Mirror) -> Result<(), ExchangeError> {
        match self {
            Self::Pipe(pipe) => pipe.send(body).await.map_err(closed),
            Self::Http(http) => http.notify(body, mirror).await,
            Self::OldSse(sse) => sse.notify(body).await,
        }
    }

    /// Sends the answer to a request of the server.
    pub(crate) async fn reply(&self, body: String, mirror: Mirror) -> Result<(), ExchangeError> {
        self.notify(body, mirror).await
    }

    /// Drops whatever the transport holds for a request.
    pub(crate) fn cancel(&self, id: u64) {
        match self {
            Self::Http(http) => http.cancel(id),
            Self::Pipe(_) | Self::OldSse(_) => {}
        }
    }

    /// True when closing the exchange is how this transport cancels a modern request.
    pub(crate) const fn cancels_by_closing(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Opens the legacy stream for what belongs to no request, where the transport has one.
    pub(crate) fn open_stream(&self, mirror: Mirror) {
        if let Self::Http(http) = self {
            http.open_stream(mirror);
        }
    }

    /// True when a legacy session id is in use.
    pub(crate) fn has_session(&self) -> bool {
        matches!(self, Self::Http(http) if http.session_id().is_some())
    }

    /// Forgets the legacy session id.
    pub(crate) fn drop_session(&self) {
        if let Self::Http(http) = self {
            http.set_session(None);
        }
    }

    /// The last words on standard error, when there is a process.
    pub(crate) fn stderr(&self, lines: usize) -> Option<String> {
        match self {
            Self::Pipe(pipe) => {
                Some(pipe.stderr().last_lines(lines)).filter(|tail| !tail.is_empty())
            }
            Self::Http(_) | Self::OldSse(_) => None,
        }
    }

    /// The process id, when there is a process.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Pipe(pipe) => Some(pipe.pid()),
            Self::Http(_) | Self::OldSse(_) => None,
        }
    }

    /// Kills the process behind it and drops what is under way; nothing is waited for.
    pub(crate) fn kill(&self) {
        match self {
            Self::Pipe(pipe) => pipe.kill(),
            Self::Http(http) => http.stop(),
            Self::OldSse(sse) => sse.close(),
        }
    }

    /// Ends the session and the process behind it; idempotent.
    pub(crate) async fn close(&self) {
        match self {
            Self::Pipe(pipe) => {
                pipe.shutdown().await;
            }
            Self::Http(http) => http.end_session().await,
            Self::OldSse(sse) => sse.close(),
        }
    }
}

fn closed(error: SendError) -> ExchangeError {
    ExchangeError::Io(error.to_string())
}

/// What kind of transport a session runs over, for a person.
pub(crate) const fn name(wire: &Wire) -> &'static str {
    match wire {
        Wire::Pipe(_) => "stdio",
        Wire::Http(_) => "streamable HTTP",
        Wire::OldSse(_) => "HTTP+SSE",
    }
}
