//! Streamable HTTP of both eras: every message of ours is a POST, and its answer comes as JSON or
//! as an event stream.
//!
//! A legacy server may hand out a session and let a broken answer be taken up again; a modern one
//! has neither. Ids, eras and the decision to try again belong to the session above.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::Response;
use tokio::{
    sync::Semaphore,
    task::AbortHandle,
    time::{sleep, timeout},
};
use toolcrib_core::{
    limits::Limits,
    rpc::{
        Decoded, Message,
        header::SESSION_ID,
        method::{INITIALIZE, LISTEN},
    },
    sanitise,
    target::Endpoint,
};

use super::{
    body,
    client::SetupError,
    deliver::{Delivery, Gone},
    events::{EventReader, Resume, StreamEnd},
    peer::{Peer, lock},
    stream,
};
use crate::{
    channel::{ExchangeError, Inbound, Inbox, Mirror, Outgoing, SendError},
    trace::Trace,
};

/// How long a server may take to close a stream after its answer before we close it.
const LINGER: Duration = Duration::from_millis(250);
/// How long ending a session may take.
const END: Duration = Duration::from_secs(2);
/// How many times in a row a broken answer is asked for again without anything new coming.
const RESUMES: u32 = 5;

/// A connection over streamable HTTP. Dropping it drops every exchange.
pub struct Streamable {
    shared: Arc<Shared>,
}

struct Shared {
    peer: Peer,
    /// Requests in flight.
    running: Mutex<HashMap<u64, AbortHandle>>,
    permits: Semaphore,
    /// The stream for what belongs to no request, and the session it was opened for.
    stream: Mutex<Option<(Option<String>, AbortHandle)>>,
    /// The version of the last legacy message, for what is sent of our own accord.
    version: Mutex<Option<String>>,
    closed: AtomicBool,
}

impl Streamable {
    /// Prepares to talk to `endpoint`; nothing is sent.
    ///
    /// # Errors
    /// The URL, a header or a certificate file cannot be used.
    pub fn new(
        endpoint: &Endpoint,
        limits: &Limits,
        trace: Option<Trace>,
        inbox: Inbox,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            shared: Arc::new(Shared {
                peer: Peer::new(endpoint, limits, trace, inbox)?,
                running: Mutex::default(),
                permits: Semaphore::new(limits.in_flight),
                stream: Mutex::default(),
                version: Mutex::default(),
                closed: AtomicBool::new(false),
            }),
        })
    }

    /// Starts the exchange of one request. Its messages come through the inbox; when it ends
    /// without an answer, [`Inbound::RequestFailed`] does.
    ///
    /// # Errors
    /// The connection was closed.
    pub async fn send(&self, outgoing: Outgoing) -> Result<(), SendError> {
        if self.shared.closed.load(Ordering::Relaxed) || self.shared.peer.inbox.is_closed() {
            return Err(SendError::Closed);
        }
        let id = outgoing.id;
        let shared = Arc::clone(&self.shared);
        // Held across the start, so that the task cannot remove itself before it is entered.
        let mut running = lock(&self.shared.running);
        let task = tokio::spawn(async move {
            shared.run(&outgoing).await;
            lock(&shared.running).remove(&id);
        });
        running.insert(id, task.abort_handle());
        Ok(())
    }

    /// Posts a notification, or the answer to a request of the server. Any 2xx is success.
    ///
    /// # Errors
    /// The server refused it or could not be reached; seldom a reason to give up.
    pub async fn notify(&self, message: String, mirror: Mirror) -> Result<(), ExchangeError> {
        let shared = &self.shared;
        let method = match Decoded::read(&message) {
            Decoded::Message(Message::Notification { method, .. }) => Some(method),
            _ => None,
        };
        shared.note_version(&mirror);
        let headers = shared.peer.mirror_headers(&mirror, method.as_deref())?;
        let response = shared.peer.post(&shared.peer.http.url, headers, message).await?;
        if !body::is_event_stream(&response) {
            body::discard(response).await;
        }
        Ok(())
    }

    /// Drops the exchange of a request; its connection is closed, and nothing more comes of it.
    pub fn cancel(&self, id: u64) {
        if let Some(task) = lock(&self.shared.running).remove(&id) {
            task.abort();
        }
    }

    /// The session id a legacy server handed out in its answer to `initialize`.
    pub fn session_id(&self) -> Option<String> {
        self.shared.peer.session()
    }

    /// Sets or forgets the session id; a stream of another session is closed.
    pub fn set_session(&self, id: Option<String>) {
        let mut stream = lock(&self.shared.stream);
        if stream.as_ref().is_some_and(|(session, _)| *session != id) {
            abort(stream.take());
        }
        self.shared.peer.set_session(id);
    }

    /// Opens the legacy stream for what belongs to no request, in the background; a second call in
    /// the same session does nothing.
    pub fn open_stream(&self, mirror: Mirror) {
        let session = self.shared.peer.session();
        let mut stream = lock(&self.shared.stream);
        if self.shared.closed.load(Ordering::Relaxed)
            || stream.as_ref().is_some_and(|(opened_for, _)| *opened_for == session)
        {
            return;
        }
        abort(stream.take());
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            stream::keep(&shared.peer, mirror.version.as_deref()).await;
        });
        *stream = Some((session, task.abort_handle()));
    }

    /// Drops everything that is under way.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Drops every exchange and tells a legacy server that its session is over; idempotent, takes
    /// two seconds at most.
    pub async fn end_session(&self) {
        self.stop();
        let peer = &self.shared.peer;
        if peer.session().is_none() {
            return;
        }
        let version = lock(&self.shared.version).clone();
        let headers = peer.session_headers(version.as_deref(), None);
        peer.set_session(None);
        if let Ok(headers) = headers {
            match timeout(END, peer.delete(headers)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the session was not ended"),
                Err(_) => tracing::debug!("the session was not ended in time"),
            }
        }
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        self.stop();
    }
}

fn abort(stream: Option<(Option<String>, AbortHandle)>) {
    if let Some((_, task)) = stream {
        task.abort();
    }
}

impl Shared {
    fn stop(&self) {
        self.closed.store(true, Ordering::Relaxed);
        abort(lock(&self.stream).take());
        for (_, task) in lock(&self.running).drain() {
            task.abort();
        }
    }

    fn note_version(&self, mirror: &Mirror) {
        if !mirror.modern && mirror.version.is_some() {
            lock(&self.version).clone_from(&mirror.version);
        }
    }

    /// One exchange, from the POST to the answer or the reason why there is none.
    async fn run(&self, outgoing: &Outgoing) {
        let Ok(_permit) = self.permits.acquire().await else { return };
        if let Err(error) = self.exchange(outgoing).await {
            let failed = Inbound::RequestFailed { origin: outgoing.id, error };
            // A session that no longer listens does not miss it.
            let _ = self.peer.inbox.send(failed).await;
        }
    }

    async fn exchange(&self, outgoing: &Outgoing) -> Result<(), ExchangeError> {
        let initialize = outgoing.method == INITIALIZE;
        self.note_version(&outgoing.mirror);
        let mut headers = self.peer.mirror_headers(&outgoing.mirror, Some(&outgoing.method))?;
        if initialize {
            headers.remove(SESSION_ID);
        }
        let url = &self.peer.http.url;
        let response = self.peer.post(url, headers, outgoing.body.clone()).await?;
        if initialize && !self.peer.adopt_session(response.headers()) {
            let words = "the session id is not visible ASCII or too long; it is not used";
            // As in `run`.
            let _ = self.peer.inbox.send(Inbound::Noise(words.to_owned())).await;
        }
        let mut delivery = Delivery::new(&self.peer, Some(outgoing.id));
        let done = if body::is_event_stream(&response) {
            self.answer_in_stream(response, outgoing, &mut delivery).await
        } else {
            self.answer_in_body(response, &mut delivery).await
        };
        match done {
            Ok(done) => done,
            // Nobody is left to hear of a failure.
            Err(Gone) => Ok(()),
        }
    }

    async fn answer_in_body(
        &self,
        response: Response,
        delivery: &mut Delivery<'_>,
    ) -> Result<Result<(), ExchangeError>, Gone> {
        let status = response.status().as_u16();
        let content_type = body::media_type(response.headers());
        let bytes = match body::check_encoding(&response) {
            Ok(()) => body::read(response, self.peer.message_bytes).await,
            Err(error) => Err(error),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error)),
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            let excerpt = format!("HTTP {status} without a body");
            return Ok(Err(ExchangeError::NotRpc { content_type, excerpt }));
        }
        let text = String::from_utf8_lossy(&bytes);
        let lossy = matches!(text, std::borrow::Cow::Owned(_));
        let text = text.trim_start_matches('\u{feff}');
        delivery.text(text, lossy).await?;
        if delivery.answered {
            return Ok(Ok(()));
        }
        let excerpt = sanitise::line(text, self.peer.excerpt_chars);
        Ok(Err(ExchangeError::NotRpc { content_type, excerpt }))
    }

    /// Reads an event stream up to the answer, over as many connections as a legacy server wants.
    async fn answer_in_stream(
        &self,
        response: Response,
        outgoing: &Outgoing,
        delivery: &mut Delivery<'_>,
    ) -> Result<Result<(), ExchangeError>, Gone> {
        let mirror = &outgoing.mirror;
        let mut resume = Resume::default();
        let mut attempts = 0;
        let mut reader = match self.peer.events(response) {
            // Any other request has a clock of its own.
            Ok(reader) if outgoing.method == LISTEN => {
                Some(reader.expecting_keep_alives(self.peer.stream_idle))
            }
            Ok(reader) => Some(reader),
            Err(error) => return Ok(Err(error)),
        };
        loop {
            if let Some(mut reader) = reader.take() {
                match read_to_answer(&mut reader, &mut resume, delivery, &mut attempts).await? {
                    None => return Ok(Ok(())),
                    Some(StreamEnd::TooLong) => {
                        let limit = self.peer.message_bytes;
                        return Ok(Err(ExchangeError::TooLong { limit }));
                    }
                    Some(StreamEnd::Closed) => {}
                }
            }
            if mirror.modern || resume.last_id.is_none() || attempts >= RESUMES {
                return Ok(Err(delivery.missing("text/event-stream")));
            }
            sleep(stream::delay(&resume, attempts)).await;
            attempts += 1;
            let version = mirror.version.as_deref();
            let opened = match self.peer.session_headers(version, resume.last_id.as_deref()) {
                Ok(headers) => self.peer.get_events(headers).await,
                Err(error) => Err(error),
            };
            match opened {
                Ok(opened) => reader = Some(opened),
                Err(ExchangeError::Io(error)) => tracing::debug!(error, "not resumed yet"),
                Err(ExchangeError::Status(status)) if status.status >= 500 => {}
                Err(error) => {
                    tracing::debug!(%error, "the answer's stream cannot be resumed");
                    return Ok(Err(delivery.missing("text/event-stream")));
                }
            }
        }
    }
}

/// Delivers events up to the answer and, briefly, what follows it, so that the connection can be
/// used again. Returns how the stream ended if it had no answer.
async fn read_to_answer(
    reader: &mut EventReader,
    resume: &mut Resume,
    delivery: &mut Delivery<'_>,
    attempts: &mut u32,
) -> Result<Option<StreamEnd>, Gone> {
    while !delivery.answered {
        match reader.next(resume).await {
            Ok(event) => {
                if !event.data.is_empty() || event.id.is_some() {
                    *attempts = 0;
                }
                delivery.event(event).await?;
            }
            Err(end) => return Ok(Some(end)),
        }
    }
    let rest = async {
        while let Ok(event) = reader.next(resume).await {
            delivery.event(event).await?;
        }
        Ok(())
    };
    match timeout(LINGER, rest).await {
        Ok(Err(Gone)) => Err(Gone),
        _ => Ok(None),
    }
}
