//! Legacy sessions over HTTP: their table, their running requests and their standing stream.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Instant,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};
use toolcrib_core::raw::Raw;

use crate::{
    change::Watch,
    exchange::{Exchange, Frame},
    lock::lock,
    service::Service,
    session::Session,
    stop::Stop,
};

/// How many messages of a request may wait for its connection.
const WAITING: usize = 16;

/// All sessions of an endpoint, by their ids.
pub(crate) struct Sessions {
    most: usize,
    table: Mutex<HashMap<String, Slot>>,
}

struct Slot {
    session: Arc<HttpSession>,
    used: Instant,
}

impl Sessions {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), table: Mutex::default() }
    }

    /// Adds a session under a new id that cannot be guessed. The one unused for longest makes room:
    /// of those that nobody is at, and of these one that never ended its handshake, so that whoever
    /// only starts sessions drives out nobody but himself.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn add(&self, session: Session, changes: Watch) -> io::Result<String> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let session = Arc::new(HttpSession {
            session,
            running: Arc::default(),
            stream: Mutex::new(Stream { parked: Some(changes), current: None, count: 0 }),
        });
        let mut table = lock(&self.table);
        if table.len() >= self.most {
            let least = |(_, slot): &(&String, &Slot)| {
                (slot.session.is_held(), slot.session.session.is_ready(), slot.used)
            };
            let oldest = table.iter().min_by_key(least).map(|(id, _)| id.clone());
            if let Some(slot) = oldest.and_then(|id| table.remove(&id)) {
                slot.session.end();
            }
        }
        table.insert(id.clone(), Slot { session, used: Instant::now() });
        Ok(id)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let mut table = lock(&self.table);
        let slot = table.get_mut(id)?;
        slot.used = Instant::now();
        Some(Arc::clone(&slot.session))
    }

    /// Ends a session, its requests and its stream; false when there is none.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let slot = lock(&self.table).remove(id);
        let Some(slot) = slot else { return false };
        slot.session.end();
        true
    }
}

impl Drop for Sessions {
    /// Whatever still runs ends with the endpoint.
    fn drop(&mut self) {
        for (_, slot) in lock(&self.table).drain() {
            slot.session.end();
        }
    }
}

/// One legacy session.
pub(crate) struct HttpSession {
    pub(crate) session: Session,
    /// The requests that are not answered yet, by their ids. A request leaves before its answer
    /// goes out, since the client may use the id again as soon as it has the answer.
    running: Arc<Mutex<HashMap<String, AbortHandle>>>,
    stream: Mutex<Stream>,
}

/// The one standing stream a session may have. Between two streams the listener is parked, so that
/// no change is lost.
struct Stream {
    parked: Option<Watch>,
    current: Option<oneshot::Sender<()>>,
    count: u64,
}

impl HttpSession {
    /// True while a request of it runs or its standing stream is open.
    fn is_held(&self) -> bool {
        let open = |replace: &oneshot::Sender<()>| !replace.is_closed();
        lock(&self.stream).current.as_ref().is_some_and(open) || self.load() > 0
    }

    /// How many requests are running.
    pub(crate) fn load(&self) -> usize {
        let mut running = lock(&self.running);
        running.retain(|_, abort| !abort.is_finished());
        running.len()
    }

    /// True while a request with this id has no answer.
    pub(crate) fn is_running(&self, id: &Raw) -> bool {
        lock(&self.running).get(id.get()).is_some_and(|abort| !abort.is_finished())
    }

    /// Runs a request apart from the connection that brought it: in these revisions a broken
    /// connection is no cancellation.
    pub(crate) fn run(&self, id: &Raw, mut exchange: Exchange) -> mpsc::Receiver<Frame> {
        let (out, frames) = mpsc::channel(WAITING);
        let (key, running) = (id.get().to_owned(), Arc::clone(&self.running));
        // Locked while the task starts, so that it cannot leave before it is entered.
        let mut entered = lock(&self.running);
        let task = tokio::spawn(async move {
            loop {
                let frame = tokio::select! {
                    biased;
                    frame = exchange.next() => frame,
                    // The connection is gone; the request goes on, and nobody can be asked.
                    () = out.closed(), if !exchange.is_hung_up() => {
                        exchange.hang_up();
                        continue;
                    }
                };
                let Some(frame) = frame else { return };
                if matches!(frame, Frame::Answer(..)) {
                    lock(&running).remove(&key);
                }
                // An error says that nobody listens any more.
                let _ = out.send(frame).await;
            }
        });
        entered.insert(id.get().to_owned(), task.abort_handle());
        drop(entered);
        frames
    }

    pub(crate) fn cancel(&self, id: &Raw) {
        if let Some(abort) = lock(&self.running).remove(id.get()) {
            abort.abort();
        }
    }

    /// Opens the standing stream; an older one ends.
    pub(crate) fn open(self: Arc<Self>, service: Arc<Service>) -> Standing {
        let (replace, replaced) = oneshot::channel();
        let mut stream = lock(&self.stream);
        let watch = stream.parked.take().unwrap_or_else(|| service.handler.changes().watch());
        stream.current = Some(replace);
        stream.count += 1;
        let count = stream.count;
        drop(stream);
        let stop = service.stop.clone();
        Standing { session: self, service, watch: Some(watch), replaced, count, stop }
    }

    fn end(&self) {
        self.session.requests.close();
        for (_, abort) in lock(&self.running).drain() {
            abort.abort();
        }
        lock(&self.stream).current = None;
    }
}

/// The standing stream of a session: what it is told of without asking.
pub(crate) struct Standing {
    session: Arc<HttpSession>,
    service: Arc<Service>,
    watch: Option<Watch>,
    replaced: oneshot::Receiver<()>,
    count: u64,
    stop: Stop,
}

impl Standing {
    /// The next message; `None` when the session or the server ends, or another stream took over.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let watch = self.watch.as_mut()?;
        let filter = || self.session.session.filter(&self.service.handler.about().offered());
        let change = tokio::select! {
            biased;
            () = self.stop.wait() => None,
            _ = &mut self.replaced => None,
            change = watch.next(filter) => change,
        }?;
        Some(change.notification(None))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut stream = lock(&self.session.stream);
        if stream.count == self.count {
            stream.parked = self.watch.take();
        }
    }
}
