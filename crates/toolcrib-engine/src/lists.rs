//! The four lists of one session: which of them are being walked, which are due, who waits for
//! them, and how a finished walk goes into the part.
//!
//! Knows no connection and no order beyond the session it was begun with.

use std::sync::Arc;

use futures_util::{future::BoxFuture, stream::FuturesUnordered};
use tokio::{sync::oneshot, time::Instant};
use toolcrib_core::{
    finding::{Finding, Tier},
    surface::{Item, ListKind, ListState, Listing, Prompt, Resource, Surface, Template, Tool},
    version::Era,
};
use toolcrib_link::{Offer, Session, Walked};

use crate::{pace::Pace, part::Part};

/// Which lists somebody waits for, and how they are told.
pub(crate) type Asked = (Vec<ListKind>, oneshot::Sender<()>);

/// A finished walk.
enum Done {
    Tools(Walked<Tool>),
    Resources(Walked<Resource>),
    Templates(Walked<Template>),
    Prompts(Walked<Prompt>),
}

pub(crate) struct Finished {
    kind: ListKind,
    began: Instant,
    /// The change count when the walk began.
    seen: u64,
    done: Done,
}

/// The four lists of one session, and which of them are being walked.
pub(crate) struct Lists {
    offers: [Offer; 4],
    paces: [Pace; 4],
    due: [Option<Instant>; 4],
    running: [bool; 4],
    pub(crate) walking: FuturesUnordered<BoxFuture<'static, Finished>>,
    /// What was odd about each.
    pub(crate) findings: [Vec<Finding>; 4],
    waiting: Vec<Waiting>,
}

/// Somebody who waits for lists to be read.
struct Waiting {
    /// The lists that are still to be read for it, and whether that has begun.
    kinds: Vec<(ListKind, bool)>,
    done: oneshot::Sender<()>,
}

impl Lists {
    /// Starts walking every list the server offers, for those who `asked` among others.
    pub(crate) fn begin(session: &Arc<Session>, part: &mut Part, asked: Vec<Asked>) -> Self {
        let mut surface = Surface::new((*session.negotiated()).clone());
        let mut lists = Self {
            offers: ListKind::ALL.map(|kind| session.offers(kind)),
            paces: [Pace::new(); 4],
            due: [None; 4],
            running: [false; 4],
            walking: FuturesUnordered::new(),
            findings: Default::default(),
            waiting: Vec::new(),
        };
        for (kinds, done) in asked {
            lists.wait(&kinds, done);
        }
        for kind in ListKind::ALL {
            if lists.offers[kind as usize] == Offer::No {
                set_state(&mut surface, kind, ListState::NotOffered);
            } else {
                lists.start(session, kind);
            }
        }
        part.begin(surface);
        lists
    }

    fn start(&mut self, session: &Arc<Session>, kind: ListKind) {
        self.due[kind as usize] = None;
        self.running[kind as usize] = true;
        for (waited, begun) in self.waiting.iter_mut().flat_map(|waiting| &mut waiting.kinds) {
            *begun |= *waited == kind;
        }
        let session = Arc::clone(session);
        self.walking.push(Box::pin(async move {
            let began = Instant::now();
            let seen = session.changes().borrow().of(kind);
            let done = match kind {
                ListKind::Tools => Done::Tools(session.list().await),
                ListKind::Resources => Done::Resources(session.list().await),
                ListKind::ResourceTemplates => Done::Templates(session.list().await),
                ListKind::Prompts => Done::Prompts(session.list().await),
            };
            Finished { kind, began, seen, done }
        }));
    }

    /// When the next walk is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
            .iter()
            .zip(self.running)
            .filter(|(_, running)| !running)
            .filter_map(|(due, _)| *due)
            .min()
    }

    pub(crate) fn start_due(&mut self, session: &Arc<Session>) {
        let now = Instant::now();
        for kind in ListKind::ALL {
            let index = kind as usize;
            if !self.running[index] && self.due[index].is_some_and(|due| due <= now) {
                self.start(session, kind);
            }
        }
    }

    fn schedule(&mut self, kind: ListKind, at: Instant) {
        let index = kind as usize;
        if self.offers[index] != Offer::No {
            self.due[index] = Some(self.due[index].map_or(at, |due| due.min(at)));
        }
    }

    /// A change was announced for some list: the pace says when it is walked again.
    pub(crate) fn note_changes(&mut self, session: &Session) {
        let now = Instant::now();
        let changes = *session.changes().borrow();
        for kind in ListKind::ALL {
            // While a walk runs, its end compares the counts.
            if !self.running[kind as usize] && changes.of(kind) != self.paces[kind as usize].seen {
                self.schedule(kind, self.paces[kind as usize].next(now));
            }
        }
    }

    pub(crate) fn refresh(&mut self, kinds: &[ListKind], done: oneshot::Sender<()>) {
        let now = Instant::now();
        for kind in kinds {
            self.schedule(*kind, now);
        }
        self.wait(kinds, done);
    }

    /// Tells `done` when walks of `kinds` that are yet to begin have ended.
    fn wait(&mut self, kinds: &[ListKind], done: oneshot::Sender<()>) {
        let offered = kinds.iter().filter(|kind| self.offers[**kind as usize] != Offer::No);
        let kinds: Vec<_> = offered.map(|kind| (*kind, false)).collect();
        if !kinds.is_empty() {
            self.waiting.push(Waiting { kinds, done });
        }
    }

    pub(crate) fn refresh_all(&mut self) {
        for kind in ListKind::ALL {
            self.schedule(kind, Instant::now());
        }
    }

    /// Schedules what a modern server said would be stale by now.
    pub(crate) fn touch(&mut self, part: &Part, session: &Session) {
        if session.negotiated().era == Era::Legacy {
            return;
        }
        let now = Instant::now();
        for (kind, ttl) in part.ttls() {
            if let Some(stale) = self.paces[kind as usize].stale_at(ttl)
                && stale <= now
                && !self.running[kind as usize]
            {
                self.schedule(kind, now);
            }
        }
    }

    /// Takes a finished walk into the part.
    pub(crate) fn take(&mut self, part: &mut Part, session: &Session, finished: Finished) {
        let Finished { kind, began, seen, done } = finished;
        let index = kind as usize;
        self.running[index] = false;
        let probed = self.offers[index] == Offer::Probe;
        let (changed, findings) = part.take(kind, |surface, whole| match done {
            Done::Tools(walked) => keep(&mut surface.tools, whole, walked, probed),
            Done::Resources(walked) => keep(&mut surface.resources, whole, walked, probed),
            Done::Templates(walked) => keep(&mut surface.templates, whole, walked, probed),
            Done::Prompts(walked) => keep(&mut surface.prompts, whole, walked, probed),
        });
        self.findings[index] = findings;
        self.paces[index].walked(began, seen, changed);
        part.listed(kind);
        // A change announced while the walk ran: the answer may be older than it.
        let count = session.changes().borrow().of(kind);
        if count != seen {
            self.schedule(kind, self.paces[index].next(Instant::now()));
        }
        for waiting in &mut self.waiting {
            waiting.kinds.retain(|(waited, begun)| *waited != kind || !begun);
        }
    }

    /// Tells those for whom nothing is left to be read.
    pub(crate) fn answer(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let (done, waiting) = waiting.into_iter().partition(|waiting| waiting.kinds.is_empty());
        self.waiting = waiting;
        for Waiting { done, .. } in done {
            // Whoever asked may have stopped waiting.
            let _ = done.send(());
        }
    }
}

fn set_state(surface: &mut Surface, kind: ListKind, state: ListState) {
    match kind {
        ListKind::Tools => surface.tools.state = state,
        ListKind::Resources => surface.resources.state = state,
        ListKind::ResourceTemplates => surface.templates.state = state,
        ListKind::Prompts => surface.prompts.state = state,
    }
}

/// Puts a walked list in the place of the last one. A list that could not be read to its end never
/// replaces a complete one. Says whether anything changed.
fn keep<T: Item + PartialEq>(
    slot: &mut Listing<T>,
    whole: &mut bool,
    walked: Walked<T>,
    probed: bool,
) -> (bool, Vec<Finding>) {
    let Walked { mut listing, mut findings } = walked;
    if probed {
        if listing.is_complete() && !listing.items.is_empty() {
            let message = format!("{} not advertised, but listed", T::KIND.member());
            findings.push(Finding::new("handshake/not-advertised", Tier::Soft, "", message));
        } else {
            listing.state = ListState::NotOffered;
            findings.clear();
        }
    } else if listing.state == ListState::NotOffered && T::KIND != ListKind::ResourceTemplates {
        let message =
            format!("{} is declared, but {} is not served", T::KIND.capability(), T::KIND.method());
        findings.push(Finding::new("handshake/not-served", Tier::Soft, T::KIND.method(), message));
    }
    if !listing.is_complete() && *whole {
        // Within a session the list stays what it was; a new session's says that it broke off.
        let settles = !slot.is_complete();
        if settles {
            slot.state = listing.state;
        }
        return (settles, findings);
    }
    *whole = listing.is_complete();
    let same = slot.items == listing.items;
    if same {
        listing.items = Arc::clone(&slot.items);
    }
    let changed = !same || slot.state != listing.state;
    *slot = listing;
    (changed, findings)
}
