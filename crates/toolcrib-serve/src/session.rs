//! What a legacy client settled by its handshake.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use toolcrib_core::{level::LogLevel, raw::Raw, version::Version};

use crate::{about::Offered, ask::Requests, change::Filter, lock::lock};

/// Longest texts of a client that a session keeps: what it can do, and who it is.
const KEPT_BYTES: usize = 64 << 10;

/// One legacy session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) version: Version,
    pub(crate) capabilities: Raw,
    pub(crate) client_info: Option<Raw>,
    /// What this client was asked and has not answered.
    pub(crate) requests: Arc<Requests>,
    ready: AtomicBool,
    level: Mutex<LogLevel>,
    followed: Mutex<Filter>,
}

impl Session {
    /// `None` when the client says more about itself than is kept.
    pub(crate) fn new(
        version: Version,
        capabilities: Raw,
        client_info: Option<Raw>,
    ) -> Option<Self> {
        let info = client_info.as_ref().map_or(0, |info| info.get().len());
        if capabilities.get().len() + info > KEPT_BYTES {
            return None;
        }
        Some(Self {
            version,
            capabilities,
            client_info,
            requests: Arc::default(),
            ready: AtomicBool::new(false),
            level: Mutex::new(LogLevel::Info),
            followed: Mutex::default(),
        })
    }

    /// The client said `notifications/initialized`: it may be told of changes.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn level(&self) -> LogLevel {
        *lock(&self.level)
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *lock(&self.level) = level;
    }

    /// Follows a resource; false when too many are followed already.
    pub(crate) fn follow(&self, uri: String) -> bool {
        let mut followed = lock(&self.followed);
        let is_new = followed.resource_subscriptions.insert(uri.clone());
        let fits = followed.is_modest();
        if is_new && !fits {
            followed.resource_subscriptions.remove(&uri);
        }
        fits
    }

    pub(crate) fn unfollow(&self, uri: &str) {
        lock(&self.followed).resource_subscriptions.remove(uri);
    }

    /// What this client is told of without asking, and what it asked for.
    pub(crate) fn filter(&self, offered: &Offered) -> Filter {
        let followed = lock(&self.followed).resource_subscriptions.clone();
        Filter { resource_subscriptions: followed, ..offered.changes() }
    }
}
