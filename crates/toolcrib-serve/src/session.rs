//! What a legacy client settled by its handshake.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use toolcrib_core::{level::LogLevel, raw::Raw, version::Version};

use crate::{about::Offered, ask::Requests, change::Filter, lock::lock};

/// Most resources one session may follow.
const FOLLOWED: usize = 1_000;

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
    followed: Mutex<BTreeSet<String>>,
}

impl Session {
    pub(crate) fn new(version: Version, capabilities: Raw, client_info: Option<Raw>) -> Self {
        Self {
            version,
            capabilities,
            client_info,
            requests: Arc::default(),
            ready: AtomicBool::new(false),
            level: Mutex::new(LogLevel::Info),
            followed: Mutex::default(),
        }
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
        if followed.len() >= FOLLOWED && !followed.contains(&uri) {
            return false;
        }
        followed.insert(uri);
        true
    }

    pub(crate) fn unfollow(&self, uri: &str) {
        lock(&self.followed).remove(uri);
    }

    /// What this client is told of without asking, and what it asked for.
    pub(crate) fn filter(&self, offered: &Offered) -> Filter {
        Filter { resource_subscriptions: lock(&self.followed).clone(), ..offered.changes() }
    }
}
