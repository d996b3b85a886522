//! Where keepers post their parts, and where snapshots come from: one writer, coalesced.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};

use crate::{part::Part, snapshot::Snapshot};

/// Least time between two snapshots; what is posted in between goes into the next one.
const COALESCE: Duration = Duration::from_millis(50);

pub(crate) struct Board {
    parts: Mutex<BTreeMap<String, Arc<Part>>>,
    posted: Notify,
    snapshot: ArcSwap<Snapshot>,
    generation: watch::Sender<u64>,
}

impl Board {
    /// A board that already shows `parts`.
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        let parts: BTreeMap<_, _> =
            parts.into_iter().map(|part| (part.config.name.clone(), Arc::new(part))).collect();
        let snapshot = ArcSwap::from_pointee(Snapshot::build(0, parts.clone()));
        Self {
            parts: Mutex::new(parts),
            posted: Notify::new(),
            snapshot,
            generation: watch::Sender::new(0),
        }
    }

    /// Replaces the part of one server. One that shows what the last one showed is kept and is no
    /// event.
    pub(crate) fn post(&self, part: Part) {
        let part = Arc::new(part);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let last = parts.insert(part.config.name.clone(), Arc::clone(&part));
        drop(parts);
        if last.is_none_or(|last| !last.shows_the_same(&part)) {
            self.posted.notify_one();
        }
    }

    /// The newest snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Counts snapshots.
    pub(crate) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Publishes snapshots until dropped: the first post at once, later ones coalesced.
    pub(crate) async fn publish(self: Arc<Self>) {
        let mut generation = 0;
        loop {
            self.posted.notified().await;
            let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            generation += 1;
            self.snapshot.store(Arc::new(Snapshot::build(generation, parts)));
            self.generation.send_replace(generation);
            tokio::time::sleep(COALESCE).await;
        }
    }
}
