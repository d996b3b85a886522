//! Where keepers post their parts, and where snapshots come from.
//!
//! Snapshots are coalesced: what is posted shortly after one goes into the next. Whoever waits for
//! the parts to be as wanted has a snapshot of that very moment published for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::sync::{broadcast, watch};

use crate::{event::Event, part::Part, snapshot::Snapshot};

/// Least time between two snapshots that nobody waits for.
const COALESCE: Duration = Duration::from_millis(50);
/// How much of what servers say waits for a slow listener before the oldest is dropped.
const SAID: usize = 1_024;

/// All parts, by server name.
pub(crate) type Parts = BTreeMap<String, Arc<Part>>;

pub(crate) struct Board {
    shown: Mutex<Shown>,
    snapshot: ArcSwap<Snapshot>,
    /// Counts posts that showed anything new.
    posts: watch::Sender<u64>,
    /// The newest snapshot again, for those who wait for the next.
    published: watch::Sender<Arc<Snapshot>>,
    /// What servers say unasked.
    said: broadcast::Sender<Event>,
}

struct Shown {
    parts: Parts,
    /// True when the newest snapshot does not show `parts`.
    stale: bool,
}

impl Board {
    /// A board that already shows `parts`.
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        let parts: Parts =
            parts.into_iter().map(|part| (part.config.name.clone(), Arc::new(part))).collect();
        let first = Arc::new(Snapshot::build(0, parts.clone()));
        Self {
            snapshot: ArcSwap::new(Arc::clone(&first)),
            shown: Mutex::new(Shown { parts, stale: false }),
            posts: watch::Sender::new(0),
            published: watch::Sender::new(first),
            said: broadcast::Sender::new(SAID),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the part of one server. One that shows what the last one showed is kept and is no
    /// event.
    pub(crate) fn post(&self, part: Part) {
        let part = Arc::new(part);
        let mut shown = self.lock();
        let last = shown.parts.insert(part.config.name.clone(), Arc::clone(&part));
        let new = last.is_none_or(|last| !last.shows_the_same(&part));
        shown.stale |= new;
        drop(shown);
        if new {
            self.posts.send_modify(|posts| *posts += 1);
        }
    }

    /// True when the parts are as `wanted`, published or not.
    pub(crate) fn is(&self, wanted: impl Fn(&Parts) -> bool) -> bool {
        wanted(&self.lock().parts)
    }

    /// The part of one server as it is now, published or not.
    pub(crate) fn part(&self, server: &str) -> Option<Part> {
        self.lock().parts.get(server).map(|part| Part::clone(part))
    }

    /// Does `what` with every part, published or not.
    pub(crate) fn each(&self, what: impl FnMut(&Arc<Part>)) {
        self.lock().parts.values().for_each(what);
    }

    /// The newest snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Counts posts.
    pub(crate) fn posts(&self) -> watch::Receiver<u64> {
        self.posts.subscribe()
    }

    /// Every snapshot from now on; the newest at once.
    pub(crate) fn published(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.published.subscribe()
    }

    /// Passes on what a server said unasked. Nobody listening is fine.
    pub(crate) fn say(&self, event: Event) {
        let _ = self.said.send(event);
    }

    /// What servers say unasked from now on.
    pub(crate) fn said(&self) -> broadcast::Receiver<Event> {
        self.said.subscribe()
    }

    /// Publishes what is posted, unless the newest snapshot shows it already.
    pub(crate) fn publish(&self) -> Arc<Snapshot> {
        // The lock is held on purpose: snapshots come out in the order of their parts.
        let mut shown = self.lock();
        if shown.stale {
            shown.stale = false;
            let generation = self.snapshot().generation() + 1;
            let next = Arc::new(Snapshot::build(generation, shown.parts.clone()));
            self.snapshot.store(Arc::clone(&next));
            self.published.send_replace(next);
        }
        self.snapshot()
    }

    /// Publishes what is posted until dropped: the first post at once, later ones coalesced.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut posts = self.posts();
        while posts.changed().await.is_ok() {
            self.publish();
            tokio::time::sleep(COALESCE).await;
        }
    }
}
