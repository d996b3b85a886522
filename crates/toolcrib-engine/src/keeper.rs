//! The slow loop of one server: connect, list everything, follow changes, and begin again when the
//! connection ends. A keeper touches nothing but its own part.

use std::{sync::Arc, time::SystemTime};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    sync::{Semaphore, broadcast::error::RecvError, mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use toolcrib_core::{
    code::Code,
    finding::{Finding, Tier},
    level::LogLevel,
    surface::{Item, ListKind, ListState, Listing, Prompt, Resource, Surface, Template, Tool},
    target::ServerConfig,
    version::Era,
};
use toolcrib_link::{
    ConnectError, Connecting, Follower, Following, Offer, ServerEvent, Session, Walked, connect,
    listen::jittered,
};

use crate::{
    board::Board,
    event::Event,
    memory::Memory,
    options::{Mode, Options},
    pace::{Backoff, Pace},
    part::Part,
    status::Status,
};

/// What a keeper is told.
pub(crate) enum Order {
    /// List these again now, connecting first if need be; answered when done.
    Refresh { kinds: Vec<ListKind>, done: oneshot::Sender<()> },
    /// List again whatever the server said would be stale by now.
    Touch,
    /// Close the session and end.
    Stop,
}

/// Which lists somebody waits for, and how they are told.
pub(crate) type Asked = (Vec<ListKind>, oneshot::Sender<()>);

pub(crate) struct Keeper {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) options: Arc<Options>,
    pub(crate) board: Arc<Board>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) orders: mpsc::Receiver<Order>,
    /// Refreshes asked for while there was no session; the next one's lists answer them.
    pub(crate) asked: Vec<Asked>,
    /// Turns to start a server, shared by all keepers.
    pub(crate) starts: Arc<Semaphore>,
}

/// Why a session was left.
enum Left {
    Stopped,
    Ended(String),
}

impl Keeper {
    /// Keeps the server until told to stop.
    pub(crate) async fn run(mut self) {
        let mut part = Part::new(Arc::clone(&self.config), Status::Starting);
        let mut backoff = Backoff::new();
        let mut failures = 0_u32;
        loop {
            let awaited = failures == 0 || !self.asked.is_empty();
            if awaited || self.options.mode == Mode::Live {
                part.status = Status::Starting;
                part.session = None;
                self.board.post(part.clone());
            }
            let connected = tokio::select! {
                connected = in_turn(
                    &self.starts,
                    reach(&self.config, &self.options, &self.memory),
                ) => connected,
                () = stop_ordered(&mut self.orders, &mut self.asked) => break,
            };
            let pause = match connected {
                Ok(session) => {
                    failures = 0;
                    let began = Instant::now();
                    match self.serve(&mut part, &session).await {
                        Left::Stopped => break,
                        Left::Ended(why) => {
                            session.close().await;
                            if session.era_was_wrong() {
                                remember(&self.memory, &self.config, Memory::forget).await;
                            }
                            if began.elapsed() > LIVED {
                                backoff = Backoff::new();
                            }
                            let code = Code::Unreachable;
                            self.pause(&mut part, why, code, &mut backoff)
                        }
                    }
                }
                Err(error) => {
                    failures += 1;
                    self.failed(&mut part, &error, failures, &mut backoff)
                }
            };
            if !self.rest(pause).await {
                break;
            }
        }
        part.status = Status::Stopped;
        part.session = None;
        self.board.post(part);
    }

    /// Records a failed connection, the answer to whoever asked for a refresh; says how long to wait before the next attempt, `None` when
    /// only an order may start one.
    fn failed(
        &mut self,
        part: &mut Part,
        error: &ConnectError,
        failures: u32,
        backoff: &mut Backoff,
    ) -> Option<Instant> {
        // A server whose first start fails gets one more chance even when nobody stays to wait.
        if self.options.mode == Mode::Once && error.is_exit() && failures == 1 {
            return Some(Instant::now() + backoff.pause());
        }
        let why = error.to_string();
        let next = match error {
            ConnectError::NeedsAuth { .. } => {
                part.status = Status::NeedsAuth { why };
                self.board.post(part.clone());
                None
            }
            ConnectError::Expand(_) | ConnectError::Endpoint(_) => {
                part.status = Status::Failed { code: error.code(), why, retry: None };
                self.board.post(part.clone());
                None
            }
            _ => self.pause(part, why, error.code(), backoff),
        };
        self.asked.clear();
        next
    }

    fn pause(
        &self,
        part: &mut Part,
        why: String,
        code: Code,
        backoff: &mut Backoff,
    ) -> Option<Instant> {
        let pause = (self.options.mode == Mode::Live).then(|| backoff.pause());
        let retry = pause.map(|pause| SystemTime::now() + pause);
        part.status = Status::Failed { code, why, retry };
        part.session = None;
        self.board.post(part.clone());
        pause.map(|pause| Instant::now() + pause)
    }

    /// Waits for the next attempt; false when told to stop. A refresh starts it at once.
    async fn rest(&mut self, until: Option<Instant>) -> bool {
        loop {
            let order = match until {
                Some(until) => tokio::select! {
                    order = self.orders.recv() => order,
                    () = sleep_until(until) => return true,
                },
                None => self.orders.recv().await,
            };
            match order {
                Some(Order::Refresh { kinds, done }) => {
                    self.asked.push((kinds, done));
                    return true;
                }
                Some(Order::Touch) => {}
                Some(Order::Stop) | None => return false,
            }
        }
    }

    /// Lists everything and follows changes until the connection ends or an order comes.
    async fn serve(&mut self, part: &mut Part, session: &Arc<Session>) -> Left {
        let follower = (self.options.mode == Mode::Live).then(|| session.follow());
        if let Some(follower) = &follower {
            follower.settled(ACKNOWLEDGED_WITHIN).await;
        }
        let mut lists = Lists::begin(session, part, std::mem::take(&mut self.asked));
        part.session = Some(Arc::clone(session));
        self.post(part, noticed(&lists, session, follower.as_ref())).await;
        let mut changes = session.changes();
        let mut closed = session.closed();
        let mut events = session.events();
        if let Some(level) = self.options.log_level {
            ask_for_logs(session, level);
        }
        let mut timer = Instant::now() + relist_every();
        let mut rounds = 0_u32;
        loop {
            let due = lists.due().unwrap_or(timer).min(timer);
            tokio::select! {
                biased;
                Some(done) = lists.walking.next() => {
                    lists.take(part, session, done);
                    // A list that ended with the connection is part of its end, told below.
                    if session.closed().borrow().is_none() {
                        self.post(part, noticed(&lists, session, follower.as_ref())).await;
                        lists.answer();
                    }
                }
                why = ended(&mut closed) => {
                    while let Some(done) = lists.walking.next().await {
                        lists.take(part, session, done);
                    }
                    self.settle(part, noticed(&lists, session, follower.as_ref())).await;
                    let stderr = session.stderr(8).map(|tail| format!("\n{tail}"));
                    return Left::Ended(format!("{why}{}", stderr.unwrap_or_default()));
                }
                Ok(()) = changes.changed(), if self.options.mode == Mode::Live => {
                    changes.borrow_and_update();
                    lists.note_changes(session);
                }
                event = events.recv() => self.pass_on(event),
                order = self.orders.recv() => match order {
                    Some(Order::Refresh { kinds, done }) => lists.refresh(&kinds, done),
                    Some(Order::Touch) => lists.touch(part, session),
                    Some(Order::Stop) | None => {
                        session.close().await;
                        return Left::Stopped;
                    }
                },
                () = sleep_until(due) => {
                    if Instant::now() >= timer {
                        timer = Instant::now() + relist_every();
                        rounds = rounds.wrapping_add(1);
                        let trusted = is_announced(follower.as_ref())
                            && !rounds.is_multiple_of(UNTRUSTED_ROUND);
                        if self.options.mode == Mode::Live && !trusted {
                            lists.refresh_all();
                        }
                    }
                    lists.start_due(session);
                }
            }
        }
    }

    /// Passes on what the server says unasked.
    fn pass_on(&self, event: Result<ServerEvent, RecvError>) {
        let server = self.config.name.clone();
        self.board.say(match event {
            Ok(ServerEvent::Log(message)) => Event::Log { server, message },
            Ok(ServerEvent::ResourceUpdated(uri)) => Event::Updated { server, uri },
            Err(RecvError::Lagged(events)) => Event::Missed { events },
            // The end of the connection is heard otherwise.
            Err(RecvError::Closed) => return,
        });
    }

    async fn post(&self, part: &mut Part, findings: Vec<Finding>) {
        self.settle(part, findings).await;
        self.board.post(part.clone());
    }

    /// Recomputes what follows from what was read and noticed so far. A hostile schema takes its
    /// time to be judged, so that is kept off the tasks of others.
    async fn settle(&self, part: &mut Part, findings: Vec<Finding>) {
        let (mut settling, options) = (part.clone(), Arc::clone(&self.options));
        let settled = tokio::task::spawn_blocking(move || {
            settling.settle(findings, options.checks, &options.limits);
            settling
        });
        match settled.await {
            Ok(settled) => *part = settled,
            Err(error) => {
                let why = format!("what it shows could not be checked: {error}");
                part.status = Status::Degraded { why };
            }
        }
    }
}

/// What was odd about the lists and the connection so far.
fn noticed(lists: &Lists, session: &Session, follower: Option<&Follower>) -> Vec<Finding> {
    let mut findings = lists.findings.iter().flatten().cloned().collect::<Vec<_>>();
    findings.extend(session.findings());
    if let Some(Following::Lost(why)) = follower.map(|follower| follower.state().borrow().clone()) {
        let message = format!(
            "changes are announced, but the stream ended: {why}; lists are read again by timer"
        );
        findings.push(Finding::new("change/no-stream", Tier::Info, "", message));
    }
    findings
}

/// Asks a legacy server for log messages, beside everything else.
fn ask_for_logs(session: &Arc<Session>, level: LogLevel) {
    let session = Arc::clone(session);
    tokio::spawn(async move {
        if let Err(error) = session.set_log_level(level).await {
            tracing::debug!(%error, "the log level was not set");
        }
    });
}

/// Does `start` when there is a turn. A turn ends with it or after [`TURN`], so that servers that
/// hang hold up nobody for long.
async fn in_turn<T>(starts: &Arc<Semaphore>, start: impl Future<Output = T>) -> T {
    // It is never closed; without a permit there is simply no bound.
    let permit = Arc::clone(starts).acquire_owned().await.ok();
    let (done, ended) = oneshot::channel::<()>();
    tokio::spawn(async move {
        // Either way the turn is over.
        let _ = tokio::time::timeout(TURN, ended).await;
        drop(permit);
    });
    let started = start.await;
    drop(done);
    started
}

/// Connects once, in the era that is remembered, and remembers what is found.
async fn reach(
    config: &Arc<ServerConfig>,
    options: &Options,
    memory: &Arc<Memory>,
) -> Result<Arc<Session>, ConnectError> {
    let now = SystemTime::now();
    let known_era = if options.probe_afresh { None } else { memory.recall(config, now) };
    let name = &config.name;
    let connecting = Connecting {
        limits: options.limits.clone(),
        log_file: options.logs.as_ref().map(|logs| logs.join(format!("{name}.log"))),
        trace: options.trace.as_ref().map(|trace| trace(name)),
        known_era,
        host: options.handlers.host(name, &options.limits),
    };
    let lookup = |name: &str| std::env::var(name).ok();
    let outcome = connect(config, &lookup, connecting).await;
    match &outcome {
        Ok(session) => {
            let (negotiated, now) = (session.negotiated(), SystemTime::now());
            let learn = move |memory: &Memory, config: &ServerConfig| {
                memory.learn(config, &negotiated, now);
            };
            remember(memory, config, learn).await;
        }
        Err(ConnectError::Handshake { .. }) => remember(memory, config, Memory::forget).await,
        Err(_) => {}
    }
    outcome.map(Arc::new)
}

/// Changes the memory, off the tasks of others, since its file may be on a slow disk. A disk that
/// hangs is not waited for.
async fn remember(
    memory: &Arc<Memory>,
    config: &Arc<ServerConfig>,
    change: impl FnOnce(&Memory, &ServerConfig) + Send + 'static,
) {
    let (memory, config) = (Arc::clone(memory), Arc::clone(config));
    let changing = tokio::task::spawn_blocking(move || change(&memory, &config));
    if tokio::time::timeout(REMEMBERED_WITHIN, changing).await.is_err() {
        tracing::debug!("the era is still being written down");
    }
}

/// How long a server waits for its era to be written down.
const REMEMBERED_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);
/// How long the first list waits for the change stream to be acknowledged.
const ACKNOWLEDGED_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);
/// Most servers that are started at the same time.
pub(crate) const STARTS: usize = 64;
/// How long one of them may hold its turn.
const TURN: std::time::Duration = std::time::Duration::from_secs(2);
/// A session that lived this long starts the pauses over.
const LIVED: std::time::Duration = std::time::Duration::from_secs(60);

/// Every so many rounds of the timer, lists are read again although their changes are announced: a
/// stream that is silent for ever cannot be told from one that is broken.
const UNTRUSTED_ROUND: u32 = 6;

/// How often the lists of a server that announces nothing are read again.
fn relist_every() -> std::time::Duration {
    jittered(std::time::Duration::from_secs(300))
}

fn is_announced(follower: Option<&Follower>) -> bool {
    follower.is_some_and(|follower| *follower.state().borrow() == Following::Open)
}

/// Waits until the connection is gone, and says why.
async fn ended(closed: &mut watch::Receiver<Option<String>>) -> String {
    match closed.wait_for(Option::is_some).await {
        Ok(why) => why.clone().unwrap_or_default(),
        Err(_) => "the connection ended".to_owned(),
    }
}

/// Waits for the order to stop; a refresh is served by the lists that are read once connected.
async fn stop_ordered(orders: &mut mpsc::Receiver<Order>, asked: &mut Vec<Asked>) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Refresh { kinds, done } => asked.push((kinds, done)),
            Order::Touch => {}
            Order::Stop => return,
        }
    }
}

/// A finished walk.
enum Done {
    Tools(Walked<Tool>),
    Resources(Walked<Resource>),
    Templates(Walked<Template>),
    Prompts(Walked<Prompt>),
}

struct Finished {
    kind: ListKind,
    began: Instant,
    /// The change count when the walk began.
    seen: u64,
    done: Done,
}

/// The four lists of one session, and which of them are being walked.
struct Lists {
    offers: [Offer; 4],
    paces: [Pace; 4],
    due: [Option<Instant>; 4],
    running: [bool; 4],
    walking: FuturesUnordered<BoxFuture<'static, Finished>>,
    findings: [Vec<Finding>; 4],
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
    fn begin(session: &Arc<Session>, part: &mut Part, asked: Vec<Asked>) -> Self {
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
    fn due(&self) -> Option<Instant> {
        self.due
            .iter()
            .zip(self.running)
            .filter(|(_, running)| !running)
            .filter_map(|(due, _)| *due)
            .min()
    }

    fn start_due(&mut self, session: &Arc<Session>) {
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
    fn note_changes(&mut self, session: &Session) {
        let now = Instant::now();
        let changes = *session.changes().borrow();
        for kind in ListKind::ALL {
            // While a walk runs, its end compares the counts.
            if !self.running[kind as usize] && changes.of(kind) != self.paces[kind as usize].seen {
                self.schedule(kind, self.paces[kind as usize].next(now));
            }
        }
    }

    fn refresh(&mut self, kinds: &[ListKind], done: oneshot::Sender<()>) {
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

    fn refresh_all(&mut self) {
        for kind in ListKind::ALL {
            self.schedule(kind, Instant::now());
        }
    }

    /// Schedules what a modern server said would be stale by now.
    fn touch(&mut self, part: &Part, session: &Session) {
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
    fn take(&mut self, part: &mut Part, session: &Session, finished: Finished) {
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
    fn answer(&mut self) {
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
