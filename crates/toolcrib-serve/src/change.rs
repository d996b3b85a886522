//! What a server announces: that a list or a resource changed, and who wants to hear of it.
//!
//! An announcement carries no content; whoever hears it lists or reads again. A slow listener that
//! missed some is told of everything it asked for, never of nothing.

use std::{
    borrow::Borrow,
    collections::{BTreeSet, VecDeque},
};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::broadcast::{self, error::RecvError};
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, message, meta, method},
};

/// How many announcements a listener may be behind before it is told of everything.
const BACKLOG: usize = 256;

/// Most resources one listener may follow, and most bytes of their URIs.
const FOLLOWED: usize = 1_000;
const FOLLOWED_BYTES: usize = 128 << 10;

/// The lists that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `resources/list` and `resources/templates/list`
    Resources,
    /// `prompts/list`
    Prompts,
}

/// One announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A list changed.
    List(ListKind),
    /// The content of the resource with this URI changed.
    Resource(String),
}

impl Change {
    /// The notification for it, tagged with the listen request it belongs to.
    pub(crate) fn notification(&self, subscription: Option<&Raw>) -> String {
        let (method, mut params) = match self {
            Self::List(ListKind::Tools) => (method::TOOLS_CHANGED, Params::new()),
            Self::List(ListKind::Resources) => (method::RESOURCES_CHANGED, Params::new()),
            Self::List(ListKind::Prompts) => (method::PROMPTS_CHANGED, Params::new()),
            Self::Resource(uri) => {
                (method::RESOURCE_UPDATED, Params::new().with("uri", Raw::of(uri)))
            }
        };
        if let Some(id) = subscription {
            params = params.with_meta(meta::SUBSCRIPTION_ID, id.clone());
        }
        message::notification(method, &params)
    }
}

/// Where a handler announces changes; every clone reaches the same listeners.
#[derive(Debug, Clone)]
pub struct Changes(broadcast::Sender<Change>);

impl Changes {
    /// With no listener yet.
    pub fn new() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }

    /// Tells every listener; without one, nobody.
    pub fn announce(&self, change: Change) {
        // An error only says that nobody listens.
        let _ = self.0.send(change);
    }

    /// Starts to listen: what is announced from now on is heard.
    pub(crate) fn watch(&self) -> Watch {
        Watch { receiver: self.0.subscribe(), owed: VecDeque::new() }
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

/// One listener.
#[derive(Debug)]
pub(crate) struct Watch {
    receiver: broadcast::Receiver<Change>,
    owed: VecDeque<Change>,
}

impl Watch {
    /// The next announcement that `filter` wants; `None` when nobody can announce any more.
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next<F: Borrow<Filter>>(
        &mut self,
        filter: impl Fn() -> F,
    ) -> Option<Change> {
        loop {
            if let Some(change) = self.owed.pop_front() {
                return Some(change);
            }
            match self.receiver.recv().await {
                Ok(change) if filter().borrow().wants(&change) => return Some(change),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.owed.extend(filter().borrow().everything()),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Which announcements one listener wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Filter {
    pub(crate) tools_list_changed: bool,
    pub(crate) prompts_list_changed: bool,
    pub(crate) resources_list_changed: bool,
    pub(crate) resource_subscriptions: BTreeSet<String>,
}

impl Filter {
    /// True when it follows no more resources than one listener may.
    pub(crate) fn is_modest(&self) -> bool {
        let uris = &self.resource_subscriptions;
        uris.len() <= FOLLOWED && uris.iter().map(String::len).sum::<usize>() <= FOLLOWED_BYTES
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::List(ListKind::Tools) => self.tools_list_changed,
            Change::List(ListKind::Resources) => self.resources_list_changed,
            Change::List(ListKind::Prompts) => self.prompts_list_changed,
            Change::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    fn everything(&self) -> Vec<Change> {
        [ListKind::Tools, ListKind::Resources, ListKind::Prompts]
            .into_iter()
            .map(Change::List)
            .chain(self.resource_subscriptions.iter().cloned().map(Change::Resource))
            .filter(|change| self.wants(change))
            .collect()
    }

    /// As the acknowledgement says it: what is not granted is left out.
    pub(crate) fn granted(&self) -> Raw {
        let mut out = Map::new();
        for (key, granted) in [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ] {
            if granted {
                out.insert(key.to_owned(), Value::Bool(true));
            }
        }
        if !self.resource_subscriptions.is_empty() {
            let uris = self.resource_subscriptions.iter().cloned().map(Value::String).collect();
            out.insert("resourceSubscriptions".to_owned(), Value::Array(uris));
        }
        Raw::of(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_that_fell_behind_is_told_of_all_it_asked_for() {
        let changes = Changes::new();
        let mut watch = changes.watch();
        for _ in 0..=BACKLOG {
            changes.announce(Change::List(ListKind::Prompts));
        }
        let filter = || Filter {
            tools_list_changed: true,
            resource_subscriptions: BTreeSet::from(["a:b".to_owned()]),
            ..Filter::default()
        };
        assert_eq!(watch.next(filter).await, Some(Change::List(ListKind::Tools)));
        assert_eq!(watch.next(filter).await, Some(Change::Resource("a:b".to_owned())));
    }
}
