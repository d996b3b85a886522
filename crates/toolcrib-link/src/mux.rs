//! One connection: requests out, answers matched by id, and everything else the server sends
//! sorted: notifications counted, its requests answered or refused.
//!
//! The mux knows which era it is in only to apply the one rule that differs: a modern server sends
//! no requests and no batches (specification, basic/patterns/mrtr and transports).

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot, watch},
    task::AbortHandle,
    time::{Instant, timeout},
};
use toolcrib_core::{
    finding::{Finding, Tier},
    raw::Raw,
    rpc::{Message, Params, Progress, ReplyId, RpcError, error, message, meta, method},
    sanitise,
    surface::ListKind,
    version::Era,
};

use crate::{
    channel::{Closed, Inbound, Mirror, Outgoing},
    host::Host,
    pending::{Failure, Notice, Outcome, Pending},
    wire::Wire,
};

/// What a server says without being asked.
#[derive(Debug, Clone)]
pub enum ServerEvent {
    /// `notifications/message`: its parameters.
    Log(Raw),
    /// `notifications/resources/updated`: the URI.
    ResourceUpdated(String),
}

/// How often each list was announced as changed since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    counts: [u64; 4],
}

impl Changes {
    /// The count of one list.
    pub const fn of(&self, kind: ListKind) -> u64 {
        self.counts[kind as usize]
    }

    fn bump(&mut self, kind: ListKind) {
        self.counts[kind as usize] += 1;
    }
}

/// How many log messages and updates wait for a slow listener before the oldest are dropped.
const EVENTS: usize = 256;
/// How long a notification or a reply of ours may take to leave.
const SEND: Duration = Duration::from_secs(10);
/// How long telling the server of streams that end with the connection may take in all.
const FAREWELL: Duration = Duration::from_millis(500);

pub(crate) struct Mux {
    shared: Arc<Shared>,
    pump: AbortHandle,
}

struct Shared {
    wire: Wire,
    pending: Pending,
    era: AtomicU8,
    changes: watch::Sender<Changes>,
    events: broadcast::Sender<ServerEvent>,
    /// What came before anybody listened, for the first who does.
    early: std::sync::Mutex<Option<broadcast::Receiver<ServerEvent>>>,
    closed: watch::Sender<Option<String>>,
    /// Version header for what is sent outside a request.
    version: std::sync::Mutex<Mirror>,
    violation: OnceLock<String>,
    /// Room for replies that need nobody and are on their way.
    replies: Arc<Semaphore>,
    /// Room for requests that the host answers, which may take long.
    questions: Arc<Semaphore>,
    host: Option<Host>,
    /// How many requests of the server the host is answering.
    answering: watch::Sender<usize>,
    /// What is being answered, by the id of the request as it was sent.
    asked: std::sync::Mutex<HashMap<String, AbortHandle>>,
    /// How many operations are under way, which a question of the server may belong to.
    operations: AtomicUsize,
}

/// An operation is under way as long as this lives.
pub(crate) struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The host is answering something as long as this lives.
struct Answering<'a>(&'a watch::Sender<usize>);

impl<'a> Answering<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A request in flight. Dropping it before its answer gives the request up: the waiter is removed
/// and the server is told by the means of the transport.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    pub(crate) id: u64,
    answer: oneshot::Receiver<Outcome>,
    modern: bool,
    cancellable: bool,
    done: bool,
}

impl Mux {
    /// Starts sorting what comes through `inbox`. The host answers at most `questions` at one time.
    pub(crate) fn start(
        wire: Wire,
        inbox: mpsc::Receiver<Inbound>,
        host: Option<Host>,
        questions: usize,
    ) -> Self {
        let (events, early) = broadcast::channel(EVENTS);
        let shared = Arc::new(Shared {
            wire,
            pending: Pending::default(),
            era: AtomicU8::new(UNSETTLED),
            changes: watch::Sender::new(Changes::default()),
            events,
            early: std::sync::Mutex::new(Some(early)),
            closed: watch::Sender::new(None),
            version: std::sync::Mutex::default(),
            violation: OnceLock::new(),
            replies: Arc::new(Semaphore::new(MAX_REPLIES)),
            questions: Arc::new(Semaphore::new(questions)),
            host,
            answering: watch::Sender::new(0),
            asked: std::sync::Mutex::default(),
            operations: AtomicUsize::new(0),
        });
        let pump = tokio::spawn(pump(Arc::clone(&shared), inbox)).abort_handle();
        Self { shared, pump }
    }

    /// Tells the mux which era was negotiated and how later messages are headed.
    pub(crate) fn settle_era(&self, era: Era, mirror: Mirror) {
        self.shared.era.store(if era == Era::Modern { MODERN } else { LEGACY }, Ordering::Relaxed);
        *lock(&self.shared.version) = mirror;
    }

    /// Sends a request.
    pub(crate) async fn begin(
        &self,
        method: &'static str,
        params: &Params,
        mirror: Mirror,
        notices: Option<mpsc::Sender<Notice>>,
    ) -> Result<Ticket, Failure> {
        let listens = method == method::LISTEN;
        let wants_progress = notices.is_some() && !listens;
        let (id, answer) = self.shared.pending.enter(notices, listens)?;
        let body = if wants_progress {
            let params = params.clone().with_meta(meta::PROGRESS_TOKEN, Raw::of(&id));
            message::request(id, method, &params)
        } else {
            message::request(id, method, params)
        };
        let ticket = Ticket {
            shared: Arc::clone(&self.shared),
            id,
            answer,
            modern: mirror.modern,
            cancellable: !matches!(method, method::DISCOVER | method::INITIALIZE),
            done: false,
        };
        let outgoing = Outgoing { id, method: method.to_owned(), body, mirror };
        if self.shared.wire.send(outgoing).await.is_err() {
            tracing::debug!(id, method, "not sent: the connection is closed");
            // The pump hears the reason, and ends every waiter with it.
        }
        Ok(ticket)
    }

    /// Sends a notification; failures are logged, never fatal.
    pub(crate) async fn notify(&self, method: &str, params: &Params, mirror: Mirror) {
        self.shared.notify(method, params, mirror).await;
    }

    /// The counts of announced changes, as they grow.
    pub(crate) fn changes(&self) -> watch::Receiver<Changes> {
        self.shared.changes.subscribe()
    }

    /// Counts a change of every list, after a gap in which notifications may have been lost.
    pub(crate) fn bump_all(&self) {
        self.shared.changes.send_modify(|changes| {
            for kind in ListKind::ALL {
                changes.bump(kind);
            }
        });
    }

    /// Log messages and resource updates; the first who asks hears what came since the start.
    pub(crate) fn events(&self) -> broadcast::Receiver<ServerEvent> {
        let early = lock(&self.shared.early).take();
        early.unwrap_or_else(|| self.shared.events.subscribe())
    }

    /// Ends the connection because the other side is not there any more.
    pub(crate) fn lose(&self, why: String) {
        self.shared.end(&Failure::Closed(Closed::Lost(why.clone())), &why);
    }

    /// Why the connection is gone, once it is.
    pub(crate) fn closed(&self) -> watch::Receiver<Option<String>> {
        self.shared.closed.subscribe()
    }

    /// What this client offers.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.shared.host.as_ref()
    }

    /// How many requests of the server are being answered by the host, as it changes.
    pub(crate) fn answering(&self) -> watch::Receiver<usize> {
        self.shared.answering.subscribe()
    }

    /// Lets the server ask, as long as what is returned lives.
    pub(crate) fn under_way(&self) -> UnderWay<'_> {
        self.shared.operations.fetch_add(1, Ordering::Relaxed);
        UnderWay(&self.shared.operations)
    }

    /// The transport.
    pub(crate) fn wire(&self) -> &Wire {
        &self.shared.wire
    }

    /// Why nothing may have come, for a timeout's text.
    pub(crate) fn hint(&self) -> Option<String> {
        self.shared.pending.hint()
    }

    /// What was noticed on the wire so far.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = self.shared.pending.findings();
        if let Some(violation) = self.shared.violation.get() {
            let message = violation.clone();
            findings.push(Finding::new("wire/violation", Tier::Hard, "", message));
        }
        findings
    }

    /// Gives the connection up: everything in flight and everything later fails with `why`.
    pub(crate) fn give_up(&self, why: &str) {
        self.shared.end(&Failure::Violation(why.to_owned()), why);
    }

    /// Closes the connection and whatever is behind it; idempotent. Change streams are given up
    /// first, and the server is told so (specification, basic/patterns/subscriptions).
    pub(crate) async fn close(&self) {
        let listened = self.shared.pending.end_all_listening();
        if !self.shared.wire.cancels_by_closing() {
            let told = async {
                for id in listened {
                    self.shared.cancelled(id, "the client closes the connection").await;
                }
            };
            // A server that no longer reads is closed all the same.
            let _ = timeout(FAREWELL, told).await;
        }
        self.shared.end_by_us();
        self.shared.wire.close().await;
        self.pump.abort();
    }

    /// Kills whatever is behind the connection at once, from where nothing can be awaited.
    pub(crate) fn kill(&self) {
        self.shared.end_by_us();
        self.shared.wire.kill();
        self.pump.abort();
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        // Replies that are being made hold the wire; this ends them.
        self.shared.end_by_us();
        self.pump.abort();
    }
}

const UNSETTLED: u8 = 0;
const LEGACY: u8 = 1;
const MODERN: u8 = 2;

/// Takes what the channel delivers until it is gone.
async fn pump(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Inbound>) {
    while let Some(inbound) = inbox.recv().await {
        match inbound {
            Inbound::Message { origin, message } => shared.sort(origin, message),
            Inbound::Batch { origin, messages } => {
                if shared.is_modern() {
                    shared.violate(
                        "the server sent a JSON-RPC batch, which 2026-07-28 does not know",
                    );
                } else {
                    for message in messages {
                        shared.sort(origin, message);
                    }
                }
            }
            Inbound::Noise(excerpt) => shared.pending.note_noise(excerpt),
            Inbound::Lossy => shared.pending.note_lossy(),
            Inbound::RequestFailed { origin, error } => {
                shared.pending.settle(origin, Err(Failure::Exchange(error)));
            }
            Inbound::Closed(closed) => {
                let why = closed.to_string();
                shared.end(&Failure::Closed(closed), &why);
                return;
            }
        }
        if let Some(violation) = shared.violation.get() {
            shared.end(&Failure::Violation(violation.clone()), violation);
            shared.wire.close().await;
            return;
        }
    }
    shared.end(&Failure::Closed(Closed::StreamEnded), "the connection ended");
}

impl Shared {
    fn is_modern(&self) -> bool {
        self.era.load(Ordering::Relaxed) == MODERN
    }

    /// Ends everything in flight and everything later. The first reason stays, and is known before
    /// anybody hears of an end that it explains.
    fn end(&self, failure: &Failure, why: &str) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| why.to_owned());
            first
        });
        self.pending.end(failure);
    }

    fn end_by_us(&self) {
        self.end(&Failure::Closed(Closed::ByUs), "closed");
    }

    /// Does `work`, but no longer than the connection is there.
    async fn while_open<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = closed.wait_for(Option::is_some) => None,
        }
    }

    fn violate(&self, what: &str) {
        // The first violation is the one to report.
        let _ = self.violation.set(what.to_owned());
    }

    fn sort(self: &Arc<Self>, origin: Option<u64>, message: Message) {
        match message {
            Message::Response { id, outcome } => self.answer(origin, id, outcome),
            Message::Notification { method, params } => self.notification(&method, params.as_ref()),
            Message::Request { id, method, params } => self.request(id, method, params),
        }
    }

    fn answer(&self, origin: Option<u64>, id: ReplyId, outcome: Result<Raw, RpcError>) {
        let outcome = outcome.map_err(Failure::Rpc);
        match id {
            ReplyId::Ours(id) => self.pending.settle(id, outcome),
            ReplyId::Dressed(id) => {
                self.pending.note_dressed();
                self.pending.settle(id, outcome);
            }
            // An error without an id answers a request that could not be read: the one whose
            // exchange carried it, or the only one there is. A result without an id is nobody's.
            ReplyId::Null => match origin.or_else(|| self.pending.only()) {
                Some(id) if outcome.is_err() => self.pending.settle(id, outcome),
                _ => self.pending.note_unknown("null".to_owned()),
            },
            ReplyId::Foreign(id) => self.pending.note_unknown(id),
        }
    }

    fn notification(&self, method: &str, params: Option<&Raw>) {
        let bump = |kinds: &[ListKind]| {
            self.changes.send_modify(|changes| kinds.iter().for_each(|kind| changes.bump(*kind)));
        };
        match method {
            method::TOOLS_CHANGED => bump(&[ListKind::Tools]),
            method::PROMPTS_CHANGED => bump(&[ListKind::Prompts]),
            method::RESOURCES_CHANGED => bump(&[ListKind::Resources, ListKind::ResourceTemplates]),
            method::PROGRESS => self.progress(params),
            method::ACKNOWLEDGED => {
                if let Some((id, params)) = params.and_then(|it| Some((subscription_id(it)?, it))) {
                    self.pending.notice(id, Notice::Acknowledged(params.clone()), None);
                }
            }
            method::CANCELLED => {
                let Some(id) = params.and_then(cancelled_id) else { return };
                if !self.is_modern() {
                    if let Some(answering) = lock(&self.asked).remove(id.get()) {
                        answering.abort();
                    }
                } else if let Ok(id) = id.get().trim_matches('"').parse() {
                    self.pending.end_listening(id);
                }
            }
            method::LOG => {
                // Nobody listening is fine.
                let _ = self
                    .events
                    .send(ServerEvent::Log(params.map_or_else(Raw::empty_object, Raw::clone)));
            }
            method::RESOURCE_UPDATED => {
                #[derive(Deserialize)]
                struct Updated {
                    uri: String,
                }
                let Some(updated) = params.and_then(|params| params.read::<Updated>().ok()) else {
                    return;
                };
                if let Some(id) = params.and_then(subscription_id) {
                    // One that waits already says the same.
                    self.pending.notice(id, Notice::Updated(updated.uri.clone()), None);
                }
                let _ = self.events.send(ServerEvent::ResourceUpdated(updated.uri));
            }
            other => tracing::debug!(method = %sanitise::line(other, 80), "notification ignored"),
        }
    }

    fn progress(&self, params: Option<&Raw>) {
        let known = params.and_then(Progress::read).is_some_and(|(token, progress)| {
            let token = token.get().trim_matches('"').parse();
            let grown = Some(progress.progress);
            let notice = Notice::Progress(progress);
            token.is_ok_and(|token| self.pending.notice(token, notice, grown))
        });
        if !known {
            tracing::debug!("progress for a token that is not ours, or going backwards, dropped");
        }
    }

    /// Answers a request of the server: `ping` always, what the host offers, nothing else.
    fn request(self: &Arc<Self>, id: Raw, method: String, params: Option<Raw>) {
        if self.is_modern() {
            if method != method::PING {
                let method = sanitise::line(&method, 80);
                self.violate(&format!(
                    "the server sent a request ({method}) on a 2026-07-28 connection"
                ));
            }
            return;
        }
        let outcome = match self.admit(&method) {
            Ok(Some(room)) => return self.put_to_host(id, method, params, room),
            Ok(None) => Ok(Raw::empty_object()),
            Err(error) => Err(error),
        };
        let Ok(room) = Arc::clone(&self.replies).try_acquire_owned() else {
            tracing::debug!("a flood of requests of the server is dropped");
            return;
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            shared.reply(&id, &outcome).await;
            drop(room);
        });
    }

    /// Room at the host for what it offers, none for a `ping`, or why the request is refused.
    fn admit(&self, method: &str) -> Result<Option<OwnedSemaphorePermit>, RpcError> {
        if method == method::PING {
            return Ok(None);
        }
        if !self.host.as_ref().is_some_and(|host| host.offers(method)) {
            let method = sanitise::line(method, 80);
            tracing::debug!(method, "refused a request of the server");
            let message = format!("{method} is not offered by this client");
            return Err(RpcError::new(error::METHOD_NOT_FOUND, message));
        }
        if self.operations.load(Ordering::Relaxed) == 0 && method != method::ROOTS_LIST {
            // A person would not know what the question is about.
            let message = format!("{method} belongs to no request of this client");
            return Err(RpcError::new(error::INVALID_REQUEST, message));
        }
        Arc::clone(&self.questions).try_acquire_owned().map(Some).map_err(|_| {
            let message = "the client is being asked too much at one time".to_owned();
            RpcError::new(error::INTERNAL, message)
        })
    }

    /// Has the host answer, beside everything else.
    fn put_to_host(
        self: &Arc<Self>,
        id: Raw,
        method: String,
        params: Option<Raw>,
        room: OwnedSemaphorePermit,
    ) {
        let shared = Arc::clone(self);
        let key = id.get().to_owned();
        // Held until it is in the table, so that it takes itself out again only after that.
        let mut asked = lock(&self.asked);
        if asked.contains_key(&key) {
            tracing::debug!("a request of the server with an id that is in use is dropped");
            return;
        }
        let answering = tokio::spawn(async move {
            // A person may be asked, and take long.
            let outcome = shared.while_open(shared.answer_of_host(method, params)).await;
            lock(&shared.asked).remove(id.get());
            if let Some(Some(outcome)) = outcome {
                shared.reply(&id, &outcome).await;
            }
            drop(room);
        });
        asked.insert(key, answering.abort_handle());
    }

    async fn answer_of_host(
        &self,
        method: String,
        params: Option<Raw>,
    ) -> Option<Result<Raw, RpcError>> {
        let host = self.host.as_ref()?;
        let _answering = Answering::begin(&self.answering);
        Some(host.ask(method, params).await)
    }

    async fn reply(&self, id: &Raw, outcome: &Result<Raw, RpcError>) {
        let body = message::response(id, outcome);
        let mirror = lock(&self.version).clone();
        match self.while_open(timeout(SEND, self.wire.reply(body, mirror))).await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => tracing::debug!(%error, "reply not delivered"),
            Some(Err(_)) | None => tracing::debug!("reply not delivered in time"),
        }
    }

    /// Tells the server that request `id` is given up.
    async fn cancelled(&self, id: u64, reason: &str) {
        let params = Params::new().with("requestId", Raw::of(&id)).with("reason", Raw::of(&reason));
        let mirror = lock(&self.version).clone();
        self.notify(method::CANCELLED, &params, mirror).await;
    }

    async fn notify(&self, method: &str, params: &Params, mirror: Mirror) {
        let body = message::notification(method, params);
        match self.while_open(timeout(SEND, self.wire.notify(body, mirror))).await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => tracing::debug!(method, %error, "notification not delivered"),
            Some(Err(_)) | None => tracing::debug!(method, "notification not delivered in time"),
        }
    }
}

/// Most replies that need nobody and may be on their way at once; a flood is dropped.
const MAX_REPLIES: usize = 64;

fn subscription_id(params: &Raw) -> Option<u64> {
    #[derive(Deserialize)]
    struct Tagged {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        id: Raw,
    }
    let id = params.read::<Tagged>().ok()?.meta.id;
    id.get().trim_matches('"').parse().ok()
}

fn cancelled_id(params: &Raw) -> Option<Raw> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: Raw,
    }
    params.read::<Cancelled>().ok().map(|cancelled| cancelled.request_id)
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Ticket {
    /// Waits for the answer. May be called again after it was cancelled, not after it returned.
    pub(crate) async fn answer(&mut self) -> Outcome {
        let outcome = (&mut self.answer).await;
        self.done = true;
        outcome.unwrap_or(Err(Failure::Closed(Closed::ByUs)))
    }

    /// Waits for the answer until `deadline`; `None` when it passed.
    pub(crate) async fn answer_by(&mut self, deadline: Instant) -> Option<Outcome> {
        tokio::time::timeout_at(deadline, self.answer()).await.ok()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.done || !self.shared.pending.leave(self.id) {
            return;
        }
        if !self.cancellable {
            return;
        }
        let by_closing = self.modern && self.shared.wire.cancels_by_closing();
        self.shared.wire.cancel(self.id);
        if by_closing {
            return;
        }
        let (shared, id) = (Arc::clone(&self.shared), self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                shared.cancelled(id, "given up by the client").await;
            });
        }
    }
}
