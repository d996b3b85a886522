//! Following a server's changes: `subscriptions/listen` on modern servers, the standing stream of
//! legacy HTTP. On a pipe legacy servers simply speak up.
//!
//! A stream that ends is opened again with growing pauses, and everything is counted as changed
//! then, since nothing is replayed. A server that announces changes but will not serve the stream
//! is left to its timers, with a note.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use toolcrib_core::{
    raw::Raw,
    surface::{Capabilities, ListKind},
    version::Era,
};

use crate::{
    listen::{Heard, Pauses, listen_once},
    session::Session,
};

/// How often in a row a server that was followed may be out of reach before it counts as gone.
const UNREACHABLE: u32 = 2;

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
    let mut pauses = Pauses::new();
    let (mut first, mut was_open, mut unreachable) = (true, false, 0_u32);
    loop {
        let mut opened = None;
        let heard = |heard| {
            let Heard::Acknowledged(_) = heard else { return ControlFlow::Continue(()) };
            opened = Some(Instant::now());
            let late = *state.borrow() != Following::Opening;
            state.send_replace(Following::Open);
            if !first || late {
                session.mux().bump_all();
            }
            ControlFlow::Continue(())
        };
        let ended = listen_once(&session, &filter, heard).await;
        if session.closed().borrow().is_some() {
            return;
        }
        first = false;
        was_open |= opened.is_some();
        tracing::debug!(why = %ended.why, "the change stream ended");
        unreachable = if ended.unreachable && opened.is_none() { unreachable + 1 } else { 0 };
        if was_open && unreachable >= UNREACHABLE {
            // What was heard of it once is there no more: whoever keeps it connects anew.
            return session.mux().lose(ended.why);
        }
        state.send_replace(Following::Lost(ended.why));
        sleep(pauses.after(opened.map(|opened| opened.elapsed()))).await;
    }
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
}
