//! Serves one client over a pair of pipes, one message a line.
//!
//! Requests run concurrently; only the writer task touches the output. Nothing is written that is
//! not a message.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    task::{AbortHandle, JoinSet, yield_now},
    time::timeout,
};
use toolcrib_core::{
    limits::Limits,
    raw::Raw,
    rpc::{Decoded, Message, Params, RpcError, lines::LineCodec, message, method},
    version::Version,
};

use crate::{
    change::Watch,
    envelope::{Envelope, is_id},
    era::EraSupport,
    exchange::{Exchange, Frame},
    fault,
    handler::Handler,
    listening::Listening,
    lock::lock,
    seal::{StateKeeping, StateKey},
    service::{Route, Service},
    session::Session,
    stop::Stopper,
};

/// How many messages may wait for the writer.
const WAITING: usize = 64;

/// How a pipe is served.
#[derive(Debug, Clone)]
pub struct StdioOptions {
    /// Which eras are served.
    pub era: EraSupport,
    /// Bounds on what the client sends.
    pub limits: Limits,
    /// How long running requests may still take once the client closed its side, in milliseconds.
    pub drain_ms: u64,
    /// How long one request may take, in milliseconds.
    pub request_ms: u64,
    /// How long a legacy client may take to answer a question, in milliseconds.
    pub answer_ms: u64,
    /// What the state that modern clients carry from round to round is sealed with.
    pub state_key: Option<StateKey>,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            era: EraSupport::Dual,
            limits: Limits::default(),
            drain_ms: 2_000,
            request_ms: 3_600_000,
            answer_ms: 600_000,
            state_key: None,
        }
    }
}

/// Serves one client until it closes its side or `shutdown` resolves, then lets running requests
/// end within `drain_ms` and gives each change stream its result.
///
/// # Errors
/// Reading or writing failed, or a line was over the limit.
pub async fn serve_stdio(
    handler: Arc<dyn Handler>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    options: StdioOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stopper, stop) = Stopper::new();
    let (out, queue) = mpsc::channel(WAITING);
    let mut writing = tokio::spawn(write_lines(writer, queue));
    let drain = Duration::from_millis(options.drain_ms);
    let changes = handler.changes().watch();
    let service = Service {
        handler,
        era: options.era,
        limits: options.limits,
        request: Duration::from_millis(options.request_ms),
        answer: Duration::from_millis(options.answer_ms),
        state_key: Arc::new(StateKeeping::new(options.state_key)),
        stop,
    };
    let mut pipe = Pipe {
        service: Arc::new(service),
        out,
        changes,
        session: None,
        running: JoinSet::new(),
        aborts: Aborts::default(),
    };
    let read = tokio::select! {
        read = pipe.read(reader) => read,
        () = shutdown => Ok(()),
        written = &mut writing => return flatten(written),
    };
    stopper.stop();
    if let Some(session) = &pipe.session {
        // Nothing is read any more, so no answer can come.
        session.requests.close();
    }
    let drained = async {
        pipe.drain().await;
        drop(pipe);
        flatten((&mut writing).await)
    };
    // What is still running after that is dropped with the pipe.
    let written = timeout(drain, drained).await.unwrap_or(Ok(()));
    writing.abort();
    read.and(written)
}

fn flatten(written: Result<io::Result<()>, tokio::task::JoinError>) -> io::Result<()> {
    written.unwrap_or_else(|error| Err(io::Error::other(error)))
}

async fn write_lines(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(mut line) = queue.recv().await {
        // JSON written by others may hold line breaks between its tokens; a line may not.
        if line.contains(['\n', '\r']) {
            line = line.replace(['\n', '\r'], " ");
        }
        line.push('\n');
        writer.write_all(line.as_bytes()).await?;
        if queue.is_empty() {
            writer.flush().await?;
        }
    }
    writer.shutdown().await
}

struct Pipe {
    service: Arc<Service>,
    out: mpsc::Sender<String>,
    changes: Watch,
    session: Option<Session>,
    running: JoinSet<()>,
    aborts: Aborts,
}

/// The requests that are not answered yet, by their ids. A request leaves before its answer goes
/// out, since the client may use the id again as soon as it has the answer.
type Aborts = Arc<Mutex<HashMap<String, AbortHandle>>>;

impl Pipe {
    async fn read(&mut self, mut reader: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut codec = LineCodec::new(self.service.limits.message_bytes);
        let mut buffer = vec![0_u8; 64 << 10];
        let mut lines = Vec::new();
        loop {
            tokio::select! {
                count = reader.read(&mut buffer) => {
                    let count = count?;
                    let fits = if count == 0 {
                        lines.extend(codec.finish());
                        Ok(())
                    } else {
                        codec.push(&buffer[..count], &mut lines)
                    };
                    for line in lines.drain(..) {
                        self.take(&line.text).await;
                    }
                    fits.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                    if count == 0 {
                        return Ok(());
                    }
                }
                Some(_) = self.running.join_next() => {}
                Some(note) = next_note(&mut self.changes, self.session.as_ref(), &self.service) => {
                    self.send(note).await;
                }
            }
        }
    }

    /// Lets running requests end; what they change is still told.
    async fn drain(&mut self) {
        loop {
            let ended = tokio::select! {
                biased;
                Some(note) = next_note(&mut self.changes, self.session.as_ref(), &self.service) => {
                    self.send(note).await;
                    continue;
                }
                ended = self.running.join_next() => ended,
            };
            if ended.is_none() {
                return;
            }
        }
    }

    async fn take(&mut self, text: &str) {
        match Decoded::read(text) {
            Decoded::Message(message) => self.take_message(message).await,
            Decoded::Batch(messages, odd) if messages.len() + odd > fault::MOST_BATCHED => {
                self.send(fault::without_id(&fault::large_batch())).await;
            }
            Decoded::Batch(messages, odd) if self.takes_batches() => {
                for message in messages {
                    self.take_message(message).await;
                }
                for _ in 0..odd {
                    self.send(fault::without_id(&fault::invalid_request("not a message"))).await;
                }
            }
            Decoded::Batch(..) => {
                let error = fault::invalid_request("batches are not part of this revision");
                self.send(fault::without_id(&error)).await;
            }
            Decoded::Noise(_) => self.send(fault::without_id(&fault::not_a_message(text))).await,
        }
    }

    async fn take_message(&mut self, message: Message) {
        match message {
            Message::Request { id, method, params } => self.take_request(id, method, params).await,
            Message::Notification { method, params } => {
                self.take_notification(&method, params.as_ref());
            }
            Message::Response { id, outcome } => {
                if let Some(session) = &self.session {
                    session.requests.settle(&id, outcome);
                }
            }
        }
    }

    async fn take_request(&mut self, id: Raw, method: String, params: Option<Raw>) {
        if self.running.len() >= self.service.limits.in_flight {
            // Those that were cancelled or answered just now are only waiting to be taken away.
            yield_now().await;
            while self.running.try_join_next().is_some() {}
        }
        if let Err(error) = self.accept(&id) {
            let answer = if is_id(&id) {
                Frame::answer(&id, &Err(error)).into_text()
            } else {
                fault::without_id(&error)
            };
            return self.send(answer).await;
        }
        let envelope = Envelope::read(params.as_ref());
        let route = if self.service.is_modern(&method, &envelope, false) {
            self.service.modern(method, params, envelope, |_| Ok(()))
        } else {
            self.service.legacy(self.session.as_ref(), method, params, &envelope)
        };
        match route {
            Route::Refuse(error) => self.answer(&id, Err(error)).await,
            Route::Answer(result) => self.answer(&id, Ok(result)).await,
            Route::Start(session, result) => {
                self.session = Some(*session);
                self.answer(&id, Ok(result)).await;
            }
            Route::Handle(job) => {
                let exchange = Exchange::new(Arc::clone(&self.service), id.clone(), *job);
                let key = id.get().to_owned();
                let work = relay(exchange, key, Arc::clone(&self.aborts), self.out.clone());
                self.spawn(&id, work);
            }
            Route::Listen(granted) => {
                let listening = Listening::new(&self.service, id.clone(), granted);
                self.spawn(&id, follow(listening, id.clone(), self.out.clone()));
            }
        }
    }

    fn accept(&self, id: &Raw) -> Result<(), RpcError> {
        if !is_id(id) {
            Err(fault::not_an_id())
        } else if lock(&self.aborts).contains_key(id.get()) {
            Err(fault::invalid_request("a request with this id is running"))
        } else if self.running.len() >= self.service.limits.in_flight {
            Err(fault::internal("too many requests are running; try again later"))
        } else {
            Ok(())
        }
    }

    fn take_notification(&mut self, method: &str, params: Option<&Raw>) {
        match method {
            method::INITIALIZED => {
                if let Some(session) = &self.session {
                    session.set_ready();
                    self.changes = self.service.handler.changes().watch();
                }
            }
            method::CANCELLED => {
                let id = params.and_then(cancelled_id);
                if let Some(abort) = id.and_then(|id| lock(&self.aborts).remove(id.get())) {
                    abort.abort();
                }
            }
            _ => {}
        }
    }

    /// Batches were part of the first two revisions.
    fn takes_batches(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.version <= Version::V2025_03_26)
    }

    fn spawn(&mut self, id: &Raw, work: impl Future<Output = ()> + Send + 'static) {
        // Locked while the work starts, so that it cannot leave before it is entered.
        let mut aborts = lock(&self.aborts);
        let abort = self.running.spawn(work);
        aborts.insert(id.get().to_owned(), abort);
    }

    async fn answer(&self, id: &Raw, outcome: Result<Raw, RpcError>) {
        self.send(Frame::answer(id, &outcome).into_text()).await;
    }

    async fn send(&self, text: String) {
        // An error says that the writer is gone; the serving loop sees that by itself.
        let _ = self.out.send(text).await;
    }
}

/// The next change a legacy client is told of without asking.
async fn next_note(
    changes: &mut Watch,
    session: Option<&Session>,
    service: &Service,
) -> Option<String> {
    let session = session.filter(|session| session.is_ready())?;
    let filter = || session.filter(&service.handler.about().offered());
    changes.next(filter).await.map(|change| change.notification(None))
}

/// `requestId` of a cancellation.
pub(crate) fn cancelled_id(params: &Raw) -> Option<Raw> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: Raw,
    }
    params.read::<Cancelled>().ok().map(|cancelled| cancelled.request_id)
}

async fn relay(mut exchange: Exchange, key: String, aborts: Aborts, out: mpsc::Sender<String>) {
    while let Some(frame) = exchange.next().await {
        if matches!(frame, Frame::Answer(..)) {
            lock(&aborts).remove(&key);
        }
        if out.send(frame.into_text()).await.is_err() {
            return;
        }
    }
}

async fn follow(mut listening: Listening, id: Raw, out: mpsc::Sender<String>) {
    while let Some(text) = listening.next().await {
        if out.send(text).await.is_err() {
            return;
        }
    }
    // On a pipe the specification wants the end of a stream said both ways: by the result, which is
    // out by now, and by this.
    let params = Params::new().with("requestId", id);
    let _ = out.send(message::notification(method::CANCELLED, &params)).await;
}
