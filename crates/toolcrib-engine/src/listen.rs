//! Listening to what happens: events made of the difference between snapshots, and what servers say
//! unasked. A listener that is slow delays nobody and loses no state: what changed meanwhile is told
//! as one difference.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{Stream, stream};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

use crate::{
    engine::Engine,
    event::{Event, between},
    snapshot::Snapshot,
};

/// Hears what happens from the moment it was made. See [`Engine::listen`].
pub struct Listener {
    /// What the events so far amount to.
    told: Arc<Snapshot>,
    published: watch::Receiver<Arc<Snapshot>>,
    said: broadcast::Receiver<Event>,
    ready: VecDeque<Event>,
    said_all: bool,
}

impl Engine {
    /// Listens to what happens from now on: status, lists, updates of resources that are subscribed
    /// to, log messages. What is known by now is in [`Listener::snapshot`] and is no event.
    ///
    /// Lists change while an engine is live ([`Mode::Live`](crate::Mode)) or is refreshed. Servers
    /// that announce nothing are read again by a timer, about every five minutes.
    pub fn listen(&self) -> Listener {
        let said = self.board().said();
        let mut published = self.board().published();
        let told = Arc::clone(&published.borrow_and_update());
        Listener { told, published, said, ready: VecDeque::new(), said_all: false }
    }
}

impl Listener {
    /// What was known when the last event was told, or at the beginning.
    pub const fn snapshot(&self) -> &Arc<Snapshot> {
        &self.told
    }

    /// The next event; `None` when the engine is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            tokio::select! {
                biased;
                changed = self.published.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                    let now = Arc::clone(&self.published.borrow_and_update());
                    self.ready.extend(between(&self.told, &now));
                    self.told = now;
                }
                said = self.said.recv(), if !self.said_all => match said {
                    Ok(event) => return Some(event),
                    Err(RecvError::Lagged(events)) => return Some(Event::Missed { events }),
                    // The snapshots tell the end.
                    Err(RecvError::Closed) => self.said_all = true,
                }
            }
        }
    }

    /// The same as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Event> + Send {
        stream::unfold(self, |mut listener| async move {
            let event = listener.next().await?;
            Some((event, listener))
        })
    }
}
