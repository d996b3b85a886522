//! Following a server's changes: `subscriptions/listen` on modern servers, the standing stream of
//! legacy HTTP. On a pipe legacy servers simply speak up.
//!
//! A stream that ends is opened again with growing pauses, and everything is counted as changed
//! then, since nothing is replayed. A server that announces changes but will not serve the stream
//! is left to its timers, with a note.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, method},
    surface::{Capabilities, ListKind},
    version::Era,
};

use crate::{
    channel::ExchangeError,
    handshake::{mirror_after, modern_params},
    pending::{Failure, Notice},
    session::Session,
};

/// First pause before a stream is opened again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(300);
/// A stream that lived this long starts the pauses over.
const LIVED: Duration = Duration::from_secs(30);

/// How a server's changes are heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Following {
    /// The stream is being opened.
    Opening,
    /// Changes are announced.
    Open,
    /// The stream ended or was refused; it will be tried again.
    Lost(String),
    /// The server announces no changes at all.
    NotOffered,
}

/// A running follower; dropping it stops following.
pub struct Follower {
    state: watch::Receiver<Following>,
    task: Option<tokio::task::AbortHandle>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Follower {
    /// The state as it changes.
    pub fn state(&self) -> watch::Receiver<Following> {
        self.state.clone()
    }

    /// Waits until changes are announced, or it is clear that they are not (yet), or `at_most` has
    /// passed: the moment to begin listing.
    pub async fn settled(&self, at_most: Duration) {
        let mut state = self.state.clone();
        // Timing out is fine: a late acknowledgement counts as a change.
        let _ = timeout(at_most, state.wait_for(|state| *state != Following::Opening)).await;
    }
}

impl Session {
    /// Starts following the changes this server announces.
    pub fn follow(self: &Arc<Self>) -> Follower {
        let negotiated = self.negotiated();
        let filter = filter(&negotiated.capabilities);
        if negotiated.era == Era::Legacy {
            self.open_stream();
            let state = if filter.is_some() { Following::Open } else { Following::NotOffered };
            return Follower { state: watch::channel(state).1, task: None };
        }
        let Some(filter) = filter else {
            return Follower { state: watch::channel(Following::NotOffered).1, task: None };
        };
        let (sender, state) = watch::channel(Following::Opening);
        let task = tokio::spawn(listen(Arc::clone(self), filter, sender)).abort_handle();
        Follower { state, task: Some(task) }
    }
}

/// What to listen for; `None` when the server announces nothing.
fn filter(capabilities: &Capabilities) -> Option<Raw> {
    let wanted: serde_json::Map<_, _> = [
        (ListKind::Tools, "toolsListChanged"),
        (ListKind::Prompts, "promptsListChanged"),
        (ListKind::Resources, "resourcesListChanged"),
    ]
    .into_iter()
    .filter(|(kind, _)| capabilities.flag(kind.capability(), "listChanged"))
    .map(|(_, name)| (name.to_owned(), true.into()))
    .collect();
    (!wanted.is_empty()).then(|| Raw::of(&wanted))
}

async fn listen(session: Arc<Session>, filter: Raw, state: watch::Sender<Following>) {
    let mut pause = FIRST_PAUSE;
    let mut first = true;
    loop {
        let opened = Instant::now();
        let why = listen_once(&session, &filter, &state, first).await;
        if session.closed().borrow().is_some() {
            return;
        }
        first = false;
        tracing::debug!(%why, "the change stream ended");
        let was_open = *state.borrow() == Following::Open;
        state.send_replace(Following::Lost(why));
        if was_open && opened.elapsed() >= LIVED {
            pause = FIRST_PAUSE;
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Opens the stream once and stays until it ends; says why it ended.
async fn listen_once(
    session: &Arc<Session>,
    filter: &Raw,
    state: &watch::Sender<Following>,
    first: bool,
) -> String {
    let params = Params::new().with("notifications", filter.clone());
    let params = modern_params(params, session.mux().host());
    let mirror = mirror_after(&session.negotiated());
    let (sender, mut notices) = mpsc::channel(1);
    let begun = session.mux().begin(method::LISTEN, &params, mirror, Some(sender)).await;
    let mut ticket = match begun {
        Ok(ticket) => ticket,
        Err(failure) => return describe(&failure),
    };
    let patience = Instant::now() + session.timeouts().list;
    let mut acknowledged = false;
    loop {
        tokio::select! {
            biased;
            Some(Notice::Acknowledged) = notices.recv(), if !acknowledged => {
                acknowledged = true;
                let late = *state.borrow() != Following::Opening;
                state.send_replace(Following::Open);
                if !first || late {
                    session.mux().bump_all();
                }
            }
            outcome = ticket.answer() => {
                return match outcome {
                    Ok(_) => "the server ended it".to_owned(),
                    Err(failure) => describe(&failure),
                };
            }
            () = tokio::time::sleep_until(patience), if !acknowledged => {
                return "it was not acknowledged in time".to_owned();
            }
        }
    }
}

fn describe(failure: &Failure) -> String {
    match failure {
        Failure::Rpc(error) => error.to_string(),
        Failure::Exchange(ExchangeError::StreamEnded) => "the stream broke off".to_owned(),
        Failure::Exchange(error) => error.to_string(),
        Failure::Closed(closed) => closed.to_string(),
        Failure::Violation(what) => what.clone(),
    }
}

/// Up to a quarter more, so that many followers do not return at once. The clock's low bits are
/// random enough for that.
pub fn jittered(pause: Duration) -> Duration {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    pause + pause.mul_f64(f64::from(nanos % 1_000) / 4_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_announced_changes_are_listened_for() {
        let check = |text: &str, expect: Option<&str>| {
            let capabilities = Capabilities { raw: Some(Raw::parse(text).unwrap()) };
            let filter = filter(&capabilities);
            assert_eq!(filter.as_ref().map(Raw::get), expect, "{text}");
        };
        check(r#"{"tools":{}}"#, None);
        check(r#"{"tools":{"listChanged":true}}"#, Some(r#"{"toolsListChanged":true}"#));
        check(
            r#"{"resources":{"listChanged":true},"prompts":{"listChanged":true}}"#,
            Some(r#"{"promptsListChanged":true,"resourcesListChanged":true}"#),
        );
    }

    #[test]
    fn jitter_only_adds() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(4));
            assert!(pause >= Duration::from_secs(4) && pause <= Duration::from_secs(5));
        }
    }
}
