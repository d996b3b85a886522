//! HTTP+SSE of revision 2024-11-05: one stream carries everything the server says, and its first
//! event names where messages are posted.
//!
//! Nothing is posted to another origin than the configured one, and a stream that ended is not
//! taken up again: it was the connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::Url;
use thiserror::Error;
use tokio::{
    sync::Semaphore,
    task::AbortHandle,
    time::{Instant, timeout_at},
};
use toolcrib_core::{
    limits::Limits,
    sanitise,
    target::{Endpoint, redact_url},
};

use super::{
    body,
    client::SetupError,
    deliver::{Delivery, Gone},
    events::{EventReader, Resume, StreamEnd},
    peer::{Peer, lock},
};
use crate::{
    channel::{Closed, ExchangeError, Inbound, Inbox, Mirror, Outgoing, SendError},
    trace::Trace,
};

/// How long the server may take to name where messages go.
const ENDPOINT: Duration = Duration::from_secs(15);

/// Why there is no connection over HTTP+SSE.
#[derive(Debug, Clone, Error)]
pub enum OpenError {
    /// The endpoint cannot be used at all.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// No event stream: an error status, another media type, or no answer.
    #[error("no event stream: {0}")]
    NoStream(ExchangeError),
    /// The stream ended before it named an address.
    #[error("the event stream ended before it named where messages go")]
    Ended,
    /// The stream named no address in time.
    #[error("the event stream did not name where messages go in time")]
    Silent,
    /// The stream named an address on another origin.
    #[error(
        "the server wants messages at {url}, another origin than {origin}; nothing was sent there"
    )]
    OtherOrigin {
        /// The address named.
        url: String,
        /// The configured origin.
        origin: String,
    },
    /// The stream named something that is no address.
    #[error("the server wants messages at {0:?}, which is no address")]
    NoAddress(String),
}

/// A connection over HTTP+SSE. Dropping it closes it.
pub struct OldSse {
    shared: Arc<Shared>,
    reader: AbortHandle,
}

struct Shared {
    peer: Peer,
    post: Url,
    running: Mutex<HashMap<u64, AbortHandle>>,
    permits: Semaphore,
}

impl OldSse {
    /// Opens the stream and waits until it names where messages go, until `deadline` at most.
    ///
    /// # Errors
    /// There is no such stream, or it names an address that is not to be used.
    pub async fn open(
        endpoint: &Endpoint,
        limits: &Limits,
        trace: Option<Trace>,
        inbox: Inbox,
        deadline: Instant,
    ) -> Result<Self, OpenError> {
        let peer = Peer::new(endpoint, limits, trace, inbox)?;
        let deadline = deadline.min(Instant::now() + ENDPOINT);
        let (reader, post) =
            timeout_at(deadline, named_address(&peer)).await.map_err(|_| OpenError::Silent)??;
        let shared = Arc::new(Shared {
            peer,
            post,
            running: Mutex::default(),
            permits: Semaphore::new(limits.in_flight),
        });
        let reader = tokio::spawn(read(Arc::clone(&shared), reader)).abort_handle();
        Ok(Self { shared, reader })
    }

    /// Posts a request; its answer comes on the stream. When the server does not take it,
    /// [`Inbound::RequestFailed`] comes instead.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn send(&self, outgoing: Outgoing) -> Result<(), SendError> {
        if self.reader.is_finished() {
            return Err(SendError::Closed);
        }
        let id = outgoing.id;
        let shared = Arc::clone(&self.shared);
        // Held across the start, so that the task cannot remove itself before it is entered.
        let mut running = lock(&self.shared.running);
        let task = tokio::spawn(async move {
            if let Ok(_permit) = shared.permits.acquire().await
                && let Err(error) = shared.post(outgoing.body, &outgoing.mirror).await
            {
                // A session that no longer listens does not miss it.
                let _ = shared.peer.inbox.send(Inbound::RequestFailed { origin: id, error }).await;
            }
            lock(&shared.running).remove(&id);
        });
        running.insert(id, task.abort_handle());
        Ok(())
    }

    /// Posts a notification, or the answer to a request of the server. Any 2xx is success.
    ///
    /// # Errors
    /// The server refused it or could not be reached.
    pub async fn notify(&self, message: String) -> Result<(), ExchangeError> {
        self.shared.post(message, &Mirror::default()).await
    }

    /// Closes the stream and drops what is being posted; idempotent.
    pub fn close(&self) {
        self.reader.abort();
        for (_, task) in lock(&self.shared.running).drain() {
            task.abort();
        }
    }
}

impl Drop for OldSse {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    async fn post(&self, message: String, mirror: &Mirror) -> Result<(), ExchangeError> {
        let headers = self.peer.session_headers(mirror.version.as_deref(), None)?;
        let response = self.peer.post(&self.post, headers, message).await?;
        if !body::is_event_stream(&response) {
            body::discard(response).await;
        }
        Ok(())
    }
}

/// Opens the stream and reads up to the event that names an address on the same origin.
async fn named_address(peer: &Peer) -> Result<(EventReader, Url), OpenError> {
    let headers = peer.session_headers(None, None).map_err(OpenError::NoStream)?;
    let mut reader = peer.get_events(headers).await.map_err(OpenError::NoStream)?;
    loop {
        match reader.next(&mut Resume::default()).await {
            Ok(event) if event.event == "endpoint" => {
                peer.http.trace_in(&event.data);
                return address(&peer.http.url, &event.data).map(|url| (reader, url));
            }
            Ok(_) => {}
            Err(StreamEnd::Closed) => return Err(OpenError::Ended),
            Err(StreamEnd::TooLong) => {
                let limit = peer.message_bytes;
                return Err(OpenError::NoStream(ExchangeError::TooLong { limit }));
            }
        }
    }
}

fn address(base: &Url, text: &str) -> Result<Url, OpenError> {
    let url = base.join(text.trim());
    let url = url.map_err(|_| OpenError::NoAddress(sanitise::line(text, 200)))?;
    if url.origin() != base.origin() {
        return Err(OpenError::OtherOrigin {
            url: sanitise::line(&redact_url(url.as_str()), 200),
            origin: base.origin().ascii_serialization(),
        });
    }
    Ok(url)
}

/// Delivers what comes on the stream until it ends.
async fn read(shared: Arc<Shared>, mut reader: EventReader) {
    let mut resume = Resume::default();
    let mut delivery = Delivery::new(&shared.peer, None);
    let closed = loop {
        match reader.next(&mut resume).await {
            Ok(event) => {
                if let Err(Gone) = delivery.event(event).await {
                    return;
                }
            }
            Err(StreamEnd::Closed) => break Closed::StreamEnded,
            Err(StreamEnd::TooLong) => {
                break Closed::TooLong { limit: shared.peer.message_bytes };
            }
        }
    };
    // Nobody listening is fine: the end is the end.
    let _ = shared.peer.inbox.send(Inbound::Closed(closed)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_on_the_origin() {
        let base = Url::parse("http://h.example:8/a/sse?k=1").unwrap();
        let good = |text: &str, expect: &str| {
            assert_eq!(address(&base, text).unwrap().as_str(), expect, "{text}");
        };
        good("/messages?sid=1", "http://h.example:8/messages?sid=1");
        good("messages", "http://h.example:8/a/messages");
        good("http://h.example:8/m", "http://h.example:8/m");
        let bad = |text: &str, expect: &str| {
            let error = address(&base, text).unwrap_err().to_string();
            assert!(error.contains(expect), "{text}: {error}");
        };
        bad("http://internal.example.invalid:8080/m?sid=1", "internal.example.invalid:8080/m,");
        bad("https://h.example:8/m", "another origin than http://h.example:8");
        bad("//other.example/m", "http://other.example/m");
        bad("file:///etc/passwd", "file:///etc/passwd");
        bad("http://[", "no address");
    }
}
