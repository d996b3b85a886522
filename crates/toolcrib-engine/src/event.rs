//! What happens to servers and what they show, as events; and the difference between two snapshots
//! in those terms. Pure: whoever listens decides what an event is worth.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_core::{
    raw::Raw,
    surface::{Item, ListKind, Listing},
};

use crate::{part::Part, snapshot::Snapshot, status::Status};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A server stands otherwise than before.
    Status {
        /// The server.
        server: String,
        /// How it stands now.
        status: Status,
    },
    /// A list of a server holds other usable items than before.
    Items {
        /// The server.
        server: String,
        /// Which list.
        kind: ListKind,
        /// The names (of resources: URIs) that are new, sorted. As the server wrote them: sanitise
        /// before they go to a terminal.
        added: Vec<String>,
        /// Those that are gone.
        removed: Vec<String>,
        /// Those whose definition is another one now.
        changed: Vec<String>,
    },
    /// A server announced that a resource was updated (`notifications/resources/updated`).
    Updated {
        /// The server.
        server: String,
        /// The URI, of the resource that was subscribed to or of a part of it.
        uri: String,
    },
    /// A server sent a log message (`notifications/message`).
    Log {
        /// The server.
        server: String,
        /// Its parameters as sent: `level`, `logger`, `data`; untrusted.
        message: Raw,
    },
    /// The listener did not keep up, and so many updates and log messages were dropped. Status and
    /// items are never lost.
    Missed {
        /// How many.
        events: u64,
    },
}

/// What is different in `now`, server by server in their order.
pub(crate) fn between(before: &Snapshot, now: &Snapshot) -> Vec<Event> {
    let mut events = Vec::new();
    for part in now.parts() {
        let last = before.part(part.name());
        if last.is_some_and(|last| Arc::ptr_eq(last, part)) {
            continue;
        }
        if last.is_none_or(|last| last.status != part.status) {
            let (server, status) = (part.name().to_owned(), part.status.clone());
            events.push(Event::Status { server, status });
        }
        events.extend(ListKind::ALL.into_iter().filter_map(|kind| items(last, part, kind)));
    }
    events
}

fn items(before: Option<&Arc<Part>>, now: &Part, kind: ListKind) -> Option<Event> {
    let same = before.is_some_and(|before| shares(before, now, kind));
    if same {
        return None;
    }
    let (old, new) = (before.map(|part| usable(part, kind)).unwrap_or_default(), usable(now, kind));
    let names = |of: &BTreeMap<&str, &Raw>, keep: &dyn Fn(&str, &Raw) -> bool| -> Vec<String> {
        let kept = of.iter().filter(|(name, raw)| keep(name, raw));
        kept.map(|(name, _)| (*name).to_owned()).collect()
    };
    let added = names(&new, &|name, _| !old.contains_key(name));
    let removed = names(&old, &|name, _| !new.contains_key(name));
    let changed = names(&new, &|name, raw| old.get(name).is_some_and(|old| *old != raw));
    if added.is_empty() && removed.is_empty() && changed.is_empty() {
        return None;
    }
    Some(Event::Items { server: now.name().to_owned(), kind, added, removed, changed })
}

/// True when both hold the very same items, and refuse the same ones.
fn shares(before: &Part, now: &Part, kind: ListKind) -> bool {
    fn same<T>(one: &Listing<T>, another: &Listing<T>) -> bool {
        Arc::ptr_eq(&one.items, &another.items)
    }
    let lists = match (&before.surface, &now.surface) {
        (None, None) => return true,
        (Some(one), Some(another)) => match kind {
            ListKind::Tools => same(&one.tools, &another.tools),
            ListKind::Resources => same(&one.resources, &another.resources),
            ListKind::ResourceTemplates => same(&one.templates, &another.templates),
            ListKind::Prompts => same(&one.prompts, &another.prompts),
        },
        _ => false,
    };
    lists && before.refuses_the_same(now)
}

/// The items of a list that can be used, by what identifies them.
fn usable(part: &Part, kind: ListKind) -> BTreeMap<&str, &Raw> {
    fn read<'a, T: Item + 'a>(
        part: &Part,
        items: impl Iterator<Item = &'a T>,
    ) -> BTreeMap<&'a str, &'a Raw> {
        let usable = items.filter(|item| part.refusal(T::KIND, item.key()).is_none());
        usable.map(|item| (item.key(), item.raw())).collect()
    }
    match kind {
        ListKind::Tools => read(part, part.tools()),
        ListKind::Resources => read(part, part.resources()),
        ListKind::ResourceTemplates => read(part, part.templates()),
        ListKind::Prompts => read(part, part.prompts()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolcrib_core::{
        limits::Limits,
        surface::{Capabilities, ListState, Negotiated, Surface, Tool},
        target::ServerConfig,
        version::Era,
    };

    use super::*;
    use crate::options::Checks;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    /// A snapshot of one server: of each name none (0), or a tool with the one description or the
    /// other.
    fn showing(generation: u64, kinds: [usize; 3]) -> (Snapshot, BTreeSet<String>) {
        let shown = NAMES.iter().zip(kinds).filter(|(_, kind)| *kind > 0);
        let tools: Vec<Tool> = shown
            .filter_map(|(name, kind)| {
                let tool = serde_json::json!({"name": name, "description": kind.to_string(),
                    "inputSchema": {"type": "object"}});
                Tool::read(Raw::of(&tool), &mut Vec::new())
            })
            .collect();
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let mut surface = Surface::new(Negotiated {
            era: Era::Modern,
            version: String::new(),
            how: Vec::new(),
            server: None,
            capabilities: Capabilities::default(),
            instructions: None,
            findings: Vec::new(),
        });
        surface.tools.items = tools.into();
        surface.tools.state = ListState::Complete;
        let config = Arc::new(ServerConfig::url("s", "http://localhost/"));
        let mut part = Part::new(config, Status::Starting);
        part.begin(surface);
        part.settle(Vec::new(), Checks::On, &Limits::default());
        part.status = Status::Ready;
        let parts = BTreeMap::from([("s".to_owned(), Arc::new(part))]);
        (Snapshot::build(generation, parts), names)
    }

    /// Between any two lists, what is told makes the one into the other, and names nothing twice.
    #[test]
    fn the_difference_makes_one_list_into_the_other() {
        let all = || (0..27_usize).map(|n| [n % 3, n / 3 % 3, n / 9]);
        for (one, two) in all().flat_map(|one| all().map(move |two| (one, two))) {
            let ((before, mut names), (now, expected)) = (showing(0, one), showing(1, two));
            let events = between(&before, &now);
            assert!(events.len() <= 1, "{events:?}");
            let differ = (0..3).filter(|at| one[*at] > 0 && two[*at] > 0 && one[*at] != two[*at]);
            let differ: Vec<_> = differ.map(|at| NAMES[at]).collect();
            match events.first() {
                Some(Event::Items { added, removed, changed, .. }) => {
                    assert!(removed.iter().all(|name| names.remove(name)), "{events:?}");
                    assert_eq!(*changed, differ, "{events:?}");
                    assert!(added.iter().all(|name| names.insert(name.clone())), "{events:?}");
                }
                Some(other) => panic!("{other:?}"),
                None => assert_eq!(one, two),
            }
            assert_eq!(names, expected);
        }
    }
}
