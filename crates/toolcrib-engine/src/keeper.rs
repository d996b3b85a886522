//! The slow loop of one server: connect, list everything, follow changes, and begin again when the
//! connection ends. A keeper touches nothing but its own part.

use std::{sync::Arc, time::SystemTime};

use futures_util::StreamExt;
use tokio::{
    sync::{Semaphore, broadcast::error::RecvError, mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use toolcrib_core::{
    code::Code,
    finding::{Finding, Tier},
    level::LogLevel,
    surface::ListKind,
    target::ServerConfig,
};
use toolcrib_link::{ConnectError, Follower, Following, ServerEvent, Session, jitter::jittered};

use crate::{
    board::Board,
    event::Event,
    lists::{Asked, Lists},
    memory::Memory,
    options::{Mode, Options},
    pace::Backoff,
    part::Part,
    reach::{in_turn, reach, remember},
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

    /// Records a failed connection, which also answers whoever asked for a refresh. Says when the
    /// next attempt is due; `None` when only an order may start one.
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
        // Before anything else: what a server says while it starts is heard, too.
        let mut events = session.events();
        let follower = (self.options.mode == Mode::Live).then(|| session.follow());
        if let Some(follower) = &follower {
            follower.settled(ACKNOWLEDGED_WITHIN).await;
        }
        let mut lists = Lists::begin(session, part, std::mem::take(&mut self.asked));
        part.session = Some(Arc::clone(session));
        self.post(part, noticed(&lists, session, follower.as_ref())).await;
        let mut changes = session.changes();
        let mut closed = session.closed();
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
                // Last, so that a flood of them starves nothing.
                event = events.recv() => self.pass_on(event),
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

/// How long the first list waits for the change stream to be acknowledged.
const ACKNOWLEDGED_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);
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
