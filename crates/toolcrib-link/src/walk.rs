//! Walking a list to its last page.
//!
//! A walk ends at a page without a cursor, at a page that brings nothing new, or at a limit. An
//! equal or an empty cursor alone ends nothing: some servers keep their position themselves, and
//! the empty string is a cursor like any other (specification, server/utilities/pagination).

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolcrib_core::{
    finding::{Finding, Tier},
    raw::{Raw, elements, present},
    rpc::{Params, error},
    sanitise,
    surface::{CacheScope, Capabilities, Item, ListKind, ListState, Listing},
    version::Era,
};

use crate::{
    channel::Closed,
    session::{Answer, RequestError, Sending, Session},
};

/// Pages without any item that are followed in a row; servers that filter after paging send them.
const EMPTY_PAGES: usize = 3;

/// One list as it was walked, with what was noticed.
#[derive(Debug)]
pub struct Walked<T> {
    /// The list.
    pub listing: Listing<T>,
    /// What was odd about it.
    pub findings: Vec<Finding>,
}

impl Session {
    /// Walks a list to its last page, within the limits and timeouts of the session.
    ///
    /// Whether the list is offered at all is the caller's question: see [`Session::offers`].
    /// Never fails as a whole: what went wrong stands in [`Listing::state`].
    pub async fn list<T: Item>(&self) -> Walked<T> {
        let mut walk = Walk::new(self);
        walk.run().await;
        walk.finish()
    }

    /// Whether the server offers a list: declared, or worth one probe because a legacy server
    /// declares nothing at all.
    pub fn offers(&self, kind: ListKind) -> Offer {
        let negotiated = self.negotiated();
        let capabilities = &negotiated.capabilities;
        if capabilities.has(kind.capability()) {
            return Offer::Declared;
        }
        let silent = capabilities.declares_no_list();
        if silent && kind == ListKind::Tools && probes_silent(negotiated.era, capabilities) {
            return Offer::Probe;
        }
        Offer::No
    }
}

fn probes_silent(era: Era, capabilities: &Capabilities) -> bool {
    // A modern server that declares something else means it; one that declares nothing at all is
    // asked like a legacy one.
    era == Era::Legacy || capabilities.raw.is_none()
}

/// Whether a list is there to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// The capability is declared.
    Declared,
    /// Not declared, but asked for once; an error then means no.
    Probe,
    /// Not declared.
    No,
}

struct Walk<'a, T> {
    session: &'a Session,
    deadline: Instant,
    cursor: Option<Raw>,
    items: Vec<T>,
    /// Hash of each key, with the hash of the raw item it came with.
    seen: HashMap<u64, u64>,
    hasher: RandomState,
    bytes: usize,
    /// Items met, those that could not be read included.
    entries: usize,
    pages: usize,
    empty_in_a_row: usize,
    ttl: Option<Duration>,
    scope: Option<CacheScope>,
    restarted: bool,
    state: ListState,
    findings: Vec<Finding>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_templates: Option<&'a RawValue>,
    #[serde(borrow)]
    prompts: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    next_cursor: Option<&'a RawValue>,
    #[serde(borrow)]
    ttl_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_scope: Option<&'a RawValue>,
}

/// What to do after a page.
enum Next {
    Page,
    End(ListState),
}

impl<'a, T: Item> Walk<'a, T> {
    fn new(session: &'a Session) -> Self {
        Self {
            session,
            deadline: Instant::now() + Duration::from_millis(session.limits().list_ms),
            cursor: None,
            items: Vec::new(),
            seen: HashMap::new(),
            hasher: RandomState::new(),
            bytes: 0,
            entries: 0,
            pages: 0,
            empty_in_a_row: 0,
            ttl: None,
            scope: None,
            restarted: false,
            state: ListState::Pending,
            findings: Vec::new(),
        }
    }

    async fn run(&mut self) {
        self.state = loop {
            match self.fetch().await {
                Ok(result) => match self.take(&result) {
                    Next::Page => {}
                    Next::End(state) => break state,
                },
                Err(error) if self.may_restart(&error) => self.restart(),
                Err(error) => break self.stopped(&error),
            }
        };
    }

    fn finish(self) -> Walked<T> {
        let listing = Listing {
            items: self.items.into(),
            state: self.state,
            ttl: self.ttl.unwrap_or_default(),
            scope: self.scope.unwrap_or_default(),
            pages: self.pages,
        };
        Walked { listing, findings: self.findings }
    }

    async fn fetch(&self) -> Result<Raw, RequestError> {
        let mut params = Params::new();
        if let Some(cursor) = &self.cursor {
            params = params.with("cursor", cursor.clone());
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let wait = self.session.timeouts().list.min(left.max(Duration::from_millis(1)));
        let sending = Sending { wait, wait_max: wait, ..Sending::default() };
        match self.session.request(T::KIND.method(), &params, sending).await? {
            Answer::Complete(result) => Ok(result),
            Answer::InputRequired(_) => Err(RequestError::Unusable {
                method: T::KIND.method(),
                why: "a list cannot ask for input".to_owned(),
            }),
        }
    }

    fn take(&mut self, result: &Raw) -> Next {
        self.pages += 1;
        let page = if result.is_object() { result.view::<Page<'_>>().ok() } else { None };
        let Some(page) = page else {
            let why =
                format!("page {} is no list: {}", self.pages, sanitise::line(result.get(), 80));
            return Next::End(self.partial(why));
        };
        self.note_freshness(&page);
        let array = match T::KIND {
            ListKind::Tools => page.tools,
            ListKind::Resources => page.resources,
            ListKind::ResourceTemplates => page.resource_templates,
            ListKind::Prompts => page.prompts,
        };
        let most = self.session.limits().list_items;
        let (items, count) = match array.map(|array| elements(array.get(), most)) {
            Some(Ok(read)) => read,
            Some(Err(error)) => {
                let why = format!("`{}` is no array: {error}", T::KIND.member());
                return Next::End(self.partial(why));
            }
            None => {
                let message = format!("page {} has no `{}`", self.pages, T::KIND.member());
                self.note("list/no-items", message);
                (Vec::new(), 0)
            }
        };
        match self.take_items(&items) {
            Ok(_) if count > items.len() => Next::End(self.full()),
            Ok(new) => self.next(page.next_cursor, count, new),
            Err(state) => Next::End(state),
        }
    }

    /// Takes the items of a page that have not come before; says how many of them were new. A page
    /// without anything new leaves nothing behind. An item that cannot be read counts like any.
    fn take_items(&mut self, items: &[&RawValue]) -> Result<usize, ListState> {
        let limits = self.session.limits();
        let room = limits.list_items.saturating_sub(self.entries);
        let mut entries = 0;
        let mut taken = Vec::with_capacity(items.len().min(room));
        let mut findings = Vec::new();
        // Keys of this page, kept apart until it is clear that the page brings anything new.
        let mut here: HashMap<u64, u64> = HashMap::with_capacity(items.len().min(room));
        for item in items {
            let raw_hash = self.hasher.hash_one(item.get());
            let raw = Raw::from(*item);
            let before = findings.len();
            let read = T::read(raw, &mut findings);
            let key = read.as_ref().map_or(raw_hash, |item| self.hasher.hash_one(item.key()));
            let known = self.seen.get(&key).or_else(|| here.get(&key));
            if known == Some(&raw_hash) {
                // The same item again, as overlapping pages bring it.
                findings.truncate(before);
                continue;
            }
            entries += 1;
            if entries > room {
                findings.truncate(before);
                break;
            }
            if known.is_none() {
                here.insert(key, raw_hash);
            }
            // Another definition under a known key is kept, too, for the checks to see.
            taken.extend(read);
        }
        let new = here.len();
        if new == 0 && entries <= room {
            return Ok(0);
        }
        self.entries += entries;
        self.seen.extend(here);
        for item in taken {
            self.bytes += item.raw().get().len();
            if self.bytes > limits.list_bytes {
                return Err(self.full());
            }
            self.items.push(item);
        }
        self.findings.extend(findings);
        if entries > room { Err(self.full()) } else { Ok(new) }
    }

    fn full(&mut self) -> ListState {
        let limits = self.session.limits();
        let why = format!(
            "stopped at the limit of {} items and {} bytes",
            limits.list_items, limits.list_bytes
        );
        self.partial(why)
    }

    fn next(&mut self, cursor: Option<&RawValue>, count: usize, new: usize) -> Next {
        let Some(cursor) = cursor.filter(|cursor| cursor.get() != "null") else {
            return Next::End(ListState::Complete);
        };
        if !cursor.get().starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            let message = format!("nextCursor is no string: {}", sanitise::line(cursor.get(), 60));
            self.note("list/odd-cursor", message);
            return Next::End(ListState::Complete);
        }
        let repeats = self.cursor.as_ref().is_some_and(|sent| sent.get() == cursor.get());
        if new == 0 && (count > 0 || repeats) {
            self.note(
                "list/cursor-loop",
                format!("page {} brings nothing new and still names a next page", self.pages),
            );
            return Next::End(ListState::Complete);
        }
        self.empty_in_a_row = if count == 0 { self.empty_in_a_row + 1 } else { 0 };
        if self.empty_in_a_row >= EMPTY_PAGES {
            let message = format!("{EMPTY_PAGES} empty pages in a row, and a next one is named");
            self.note("list/cursor-loop", message);
            return Next::End(ListState::Complete);
        }
        let limits = self.session.limits();
        if self.pages >= limits.list_pages {
            let why = format!("stopped at the limit of {} pages", limits.list_pages);
            return Next::End(self.partial(why));
        }
        if Instant::now() >= self.deadline {
            let why = format!("stopped after {} ms, at page {}", limits.list_ms, self.pages);
            return Next::End(self.partial(why));
        }
        // A cursor is held and sent back; one as large as a list costs as much.
        self.bytes += cursor.get().len();
        if self.bytes > limits.list_bytes {
            return Next::End(self.full());
        }
        self.cursor = Some(cursor.into());
        Next::Page
    }

    fn note_freshness(&mut self, page: &Page<'_>) {
        let ttl_ms = page.ttl_ms.and_then(|ttl| serde_json::from_str::<f64>(ttl.get()).ok());
        // Negative is stale at once; a week bounds what a server may ask us to keep.
        let ttl_ms = ttl_ms.unwrap_or(0.0).clamp(0.0, 7.0 * 86_400_000.0);
        let ttl = Duration::from_millis(ttl_ms as u64);
        self.ttl = Some(self.ttl.map_or(ttl, |known| known.min(ttl)));
        let public = page.cache_scope.is_some_and(|scope| scope.get() == "\"public\"");
        self.scope = match (self.scope, public) {
            (None | Some(CacheScope::Public), true) => Some(CacheScope::Public),
            _ => Some(CacheScope::Private),
        };
    }

    /// A cursor that is refused in the middle of a walk means: start again (once).
    fn may_restart(&self, error: &RequestError) -> bool {
        let refused =
            matches!(error, RequestError::Rpc(error) if error.code == error::INVALID_PARAMS);
        refused && self.cursor.is_some() && !self.restarted
    }

    fn restart(&mut self) {
        self.note("list/cursor-refused", "a cursor was refused; the walk began again".to_owned());
        self.restarted = true;
        self.cursor = None;
        self.items.clear();
        self.seen.clear();
        self.bytes = 0;
        self.entries = 0;
        self.empty_in_a_row = 0;
    }

    fn stopped(&mut self, error: &RequestError) -> ListState {
        if error.is_method_not_found() && self.pages == 0 {
            return ListState::NotOffered;
        }
        let why = match error {
            RequestError::Timeout { .. } => format!("timed out: {error}"),
            RequestError::Closed(Closed::Exited { .. }) => format!("the server went away: {error}"),
            other => other.to_string(),
        };
        self.partial(why)
    }

    fn partial(&mut self, why: String) -> ListState {
        let message = if self.items.is_empty() {
            format!("nothing could be read: {why}")
        } else {
            format!("only {} items were read: {why}", self.items.len())
        };
        self.note("list/incomplete", message);
        if self.items.is_empty() { ListState::Failed(why) } else { ListState::Partial(why) }
    }

    fn note(&mut self, rule: &'static str, message: String) {
        self.findings.push(Finding::new(rule, Tier::Soft, T::KIND.method(), message));
    }
}
