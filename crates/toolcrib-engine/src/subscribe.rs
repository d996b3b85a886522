//! Subscriptions to single resources: as many as wanted, one on the wire per server and URI.
//!
//! One task per resource holds the subscription through reconnects, for as long as anybody wants
//! it, and takes it back when the last one is dropped. It touches no part and no list.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use thiserror::Error;
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        watch,
    },
    task::AbortHandle,
    time::Instant,
};
use toolcrib_core::{code::Code, sanitise};
use toolcrib_link::{Session, WatchError, Watched};

use crate::{board::Board, options::Mode, status::Status};

/// How many events of one resource wait for a slow subscriber; more say nothing new.
const EVENTS: usize = 64;

/// What becomes of a resource that is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceEvent {
    /// The server announced an update; the content has to be read to be known.
    Updated {
        /// The URI, of the resource or of a part of it. As the server wrote it.
        uri: String,
    },
    /// Updates are announced again after an interruption, and may have been missed meanwhile.
    Resumed,
    /// Updates are not announced for the time being; this is mended when it can be.
    Interrupted {
        /// Why.
        why: String,
    },
}

/// Why a resource is not subscribed to (any longer).
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The server does not declare `resources.subscribe`; nothing was sent.
    #[error("server {server} does not announce updates of resources")]
    NotOffered {
        /// The server.
        server: String,
    },
    /// The server refuses it for this resource.
    #[error("server {server} announces no updates of {uri}: {why}")]
    Refused {
        /// The server.
        server: String,
        /// The resource.
        uri: String,
        /// Why.
        why: String,
    },
    /// The server is not there and will not be.
    #[error("server {server} {}{}", status.phrase(), status.why().map(|why| format!(": {why}")).unwrap_or_default())]
    Server {
        /// The server.
        server: String,
        /// How it stands.
        status: Status,
    },
    /// As many resources of the server are subscribed to as the limits allow.
    #[error("{limit} resources of server {server} are subscribed to; that is most")]
    TooMany {
        /// The server.
        server: String,
        /// How many.
        limit: usize,
    },
    /// The server did not take the subscription in time.
    #[error("server {server} did not confirm the subscription in time")]
    Timeout {
        /// The server.
        server: String,
    },
    /// The engine is gone.
    #[error("the engine was shut down")]
    Ended,
}

impl SubscribeError {
    /// The stable code of this failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::NotOffered { .. } | Self::Refused { .. } | Self::TooMany { .. } => Code::Refused,
            Self::Server { status: Status::NeedsAuth { .. }, .. } => Code::NeedsAuth,
            Self::Server { .. } => Code::Unreachable,
            Self::Timeout { .. } => Code::Timeout,
            Self::Ended => Code::Cancelled,
        }
    }
}

/// A subscription to one resource; dropping it ends it. Made by
/// [`Engine::subscribe`](crate::Engine::subscribe).
pub struct Subscription {
    server: String,
    uri: String,
    told: broadcast::Receiver<ResourceEvent>,
    state: watch::Receiver<State>,
    // Held for its end.
    _lease: Lease,
}

impl Subscription {
    /// The server that announces the updates.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The URI that is subscribed to.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The next event. Dropping the future loses nothing; a subscriber that does not keep up is told
    /// of one update for many.
    ///
    /// # Errors
    /// The subscription is over for good.
    pub async fn next(&mut self) -> Result<ResourceEvent, SubscribeError> {
        let event = tokio::select! {
            biased;
            event = self.told.recv() => event,
            error = ending(&mut self.state) => return Err(error),
        };
        match event {
            Ok(event) => Ok(event),
            Err(RecvError::Lagged(_)) => Ok(ResourceEvent::Updated { uri: self.uri.clone() }),
            Err(RecvError::Closed) => Err(ending(&mut self.state).await),
        }
    }
}

/// Waits until a subscription is over, and says why.
async fn ending(state: &mut watch::Receiver<State>) -> SubscribeError {
    match state.wait_for(|state| matches!(state, State::Ended(_))).await.as_deref() {
        Ok(State::Ended(error)) => error.clone(),
        _ => SubscribeError::Ended,
    }
}

/// How a subscription stands.
#[derive(Debug, Clone)]
enum State {
    Opening,
    Open,
    Interrupted,
    Ended(SubscribeError),
}

/// One resource that is followed, whoever wants it.
struct Followed {
    told: broadcast::Sender<ResourceEvent>,
    state: watch::Sender<State>,
    wanted: watch::Sender<usize>,
}

type Key = (String, String);

/// All resources that are followed.
pub(crate) struct Subscriptions {
    table: Mutex<Table>,
    board: Arc<Board>,
    mode: Mode,
    /// Most resources of one server.
    limit: usize,
}

type Table = HashMap<Key, (Arc<Followed>, AbortHandle)>;

/// Somebody wants a resource to be followed.
struct Lease(Arc<Followed>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.wanted.send_modify(|wanted| *wanted -= 1);
    }
}

impl Subscriptions {
    pub(crate) fn new(board: Arc<Board>, mode: Mode, limit: usize) -> Arc<Self> {
        Arc::new(Self { table: Mutex::default(), board, mode, limit })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes, and waits until the server has taken the subscription.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        server: &str,
        uri: &str,
        deadline: Instant,
    ) -> Result<Subscription, SubscribeError> {
        let mut subscription = self.enter(server, uri)?;
        let settled = |state: &State| matches!(state, State::Open | State::Ended(_));
        let waiting = subscription.state.wait_for(settled);
        let state = match tokio::time::timeout_at(deadline, waiting).await {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) => return Err(SubscribeError::Ended),
            Err(_) => return Err(SubscribeError::Timeout { server: server.to_owned() }),
        };
        match state {
            State::Ended(error) => Err(error),
            _ => Ok(subscription),
        }
    }

    /// Joins those who follow a resource, or begins to follow it.
    fn enter(self: &Arc<Self>, server: &str, uri: &str) -> Result<Subscription, SubscribeError> {
        let key = (server.to_owned(), uri.to_owned());
        let mut table = self.lock();
        let others = table.keys().filter(|other| other.0 == server && **other != key).count();
        if others >= self.limit {
            return Err(SubscribeError::TooMany { server: server.to_owned(), limit: self.limit });
        }
        let (followed, _) = table.entry(key.clone()).or_insert_with(|| {
            let followed = Arc::new(Followed {
                told: broadcast::Sender::new(EVENTS),
                state: watch::Sender::new(State::Opening),
                wanted: watch::Sender::new(0),
            });
            let follow = Arc::clone(self).follow(key, Arc::clone(&followed));
            let task = tokio::spawn(follow).abort_handle();
            (followed, task)
        });
        // While the table is held, so that the task does not end for want of anybody.
        followed.wanted.send_modify(|wanted| *wanted += 1);
        Ok(Subscription {
            server: server.to_owned(),
            uri: uri.to_owned(),
            told: followed.told.subscribe(),
            state: followed.state.subscribe(),
            _lease: Lease(Arc::clone(followed)),
        })
    }

    /// Follows a resource through as many sessions as there are, until nobody wants it.
    async fn follow(self: Arc<Self>, key: Key, followed: Arc<Followed>) {
        let (server, uri) = (&*key.0, &*key.1);
        let error = loop {
            let session = tokio::select! {
                biased;
                () = unwanted(&followed) => {
                    if self.leave(&key, &followed) { return } else { continue }
                }
                session = self.session(server) => match session {
                    Ok(session) => session,
                    Err(status) => break SubscribeError::Server { server: server.into(), status },
                }
            };
            let told = |watched| followed.tell(watched);
            match session.watch(uri, told, unwanted(&followed)).await {
                Ok(()) if self.leave(&key, &followed) => return,
                // Somebody came just as the last one went.
                Ok(()) => {}
                Err(WatchError::Closed(why)) => followed.tell(Watched::Lost(why)),
                Err(WatchError::NotOffered) => {
                    break SubscribeError::NotOffered { server: server.into() };
                }
                Err(error @ (WatchError::NotHonoured | WatchError::Refused(_))) => {
                    let (uri, why) = (sanitise::line(uri, 200), error.to_string());
                    break SubscribeError::Refused { server: server.into(), uri, why };
                }
            }
        };
        self.lock().remove(&key);
        followed.state.send_replace(State::Ended(error));
    }

    /// Ends following when still nobody wants it; whoever comes later begins anew.
    fn leave(&self, key: &Key, followed: &Followed) -> bool {
        let mut table = self.lock();
        let done = *followed.wanted.borrow() == 0;
        if done {
            table.remove(key);
        }
        done
    }

    /// The live session of a server, once there is one; its status when there will be none.
    async fn session(&self, server: &str) -> Result<Arc<Session>, Status> {
        let mut posts = self.board.posts();
        loop {
            posts.borrow_and_update();
            let Some(part) = self.board.part(server) else { return Err(Status::Stopped) };
            let live = part.session.filter(|session| session.closed().borrow().is_none());
            if let Some(session) = live {
                return Ok(session);
            }
            let over = match &part.status {
                Status::Disabled | Status::Stopped => true,
                Status::NeedsAuth { .. } | Status::Failed { retry: None, .. } => true,
                Status::Failed { .. } => self.mode == Mode::Once,
                Status::Starting | Status::Ready | Status::Degraded { .. } => false,
            };
            if over {
                return Err(part.status);
            }
            // The board lives as long as this does.
            let _ = posts.changed().await;
        }
    }

    /// Ends all of them at once; servers are not told.
    pub(crate) fn end(&self) {
        for (_, (followed, task)) in self.lock().drain() {
            task.abort();
            followed.state.send_if_modified(|state| {
                let open = !matches!(state, State::Ended(_));
                *state = State::Ended(SubscribeError::Ended);
                open
            });
        }
    }
}

async fn unwanted(followed: &Followed) {
    // The sender is held by whoever calls this.
    let _ = followed.wanted.subscribe().wait_for(|wanted| *wanted == 0).await;
}

impl Followed {
    fn tell(&self, watched: Watched) {
        let (state, event) = match watched {
            Watched::Open => {
                let first = matches!(*self.state.borrow(), State::Opening);
                (Some(State::Open), (!first).then_some(ResourceEvent::Resumed))
            }
            Watched::Updated(uri) => (None, Some(ResourceEvent::Updated { uri })),
            Watched::Lost(why) => {
                let was_open = matches!(*self.state.borrow(), State::Open);
                let event = was_open.then_some(ResourceEvent::Interrupted { why });
                // Whoever waits for the first confirmation goes on waiting.
                (was_open.then_some(State::Interrupted), event)
            }
        };
        if let Some(state) = state {
            self.state.send_replace(state);
        }
        if let Some(event) = event {
            // Nobody may be left to hear it.
            let _ = self.told.send(event);
        }
    }
}
