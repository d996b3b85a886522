//! Following one resource: a listen stream of its own on modern servers (specification,
//! basic/patterns/subscriptions), `resources/subscribe` on legacy ones.
//!
//! A stream that ends is opened again with growing pauses for as long as the connection lives. What
//! happened in between is not known, and is told as such. Contents are never read here.

use std::{ops::ControlFlow, pin::pin, time::Duration};

use thiserror::Error;
use tokio::{
    sync::{broadcast::error::RecvError, watch},
    time::{Instant, sleep, timeout},
};
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, RpcError, message::member, method},
    version::Era,
};

use crate::{
    listen::{Heard, Pauses, listen_once},
    mux::ServerEvent,
    session::{RequestError, Sending, Session},
};

/// How long taking a legacy subscription back may take.
const TAKEN_BACK_WITHIN: Duration = Duration::from_secs(2);

/// What becomes of a resource that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// Updates are announced from now on. What happened before, nobody knows.
    Open,
    /// It was updated: its URI, or that of a part of it.
    Updated(String),
    /// Updates are not announced for the time being, with why; it is tried again.
    Lost(String),
}

/// Why a resource is not followed (any longer).
#[derive(Debug, Clone, Error)]
pub enum WatchError {
    /// The server does not declare `resources.subscribe`; nothing was sent.
    #[error(
        "the server does not announce updates of resources (resources.subscribe is not declared)"
    )]
    NotOffered,
    /// The server took the request and left this resource out.
    #[error("the server does not announce updates of this resource")]
    NotHonoured,
    /// The server refused it.
    #[error("{0}")]
    Refused(RpcError),
    /// The connection ended.
    #[error("{0}")]
    Closed(String),
}

impl Session {
    /// True when the server declares that it announces updates of resources.
    pub fn announces_updates(&self) -> bool {
        self.negotiated().capabilities.flag("resources", "subscribe")
    }

    /// Follows one resource until `stop` is ready or the connection ends; `told` hears what becomes
    /// of it. Dropping the future closes a modern stream; a legacy subscription is taken back only
    /// after `stop`. One caller per URI: two would take back each other's subscription.
    ///
    /// # Errors
    /// The server offers no such thing or refused it, or the connection ended.
    pub async fn watch(
        &self,
        uri: &str,
        told: impl FnMut(Watched),
        stop: impl Future<Output = ()>,
    ) -> Result<(), WatchError> {
        if !self.announces_updates() {
            return Err(WatchError::NotOffered);
        }
        if self.negotiated().era == Era::Legacy {
            return self.watch_legacy(uri, told, stop).await;
        }
        tokio::select! {
            biased;
            () = stop => Ok(()),
            error = self.watch_modern(uri, told) => Err(error),
        }
    }

    async fn watch_modern(&self, uri: &str, mut told: impl FnMut(Watched)) -> WatchError {
        let filter = Raw::of(&serde_json::json!({"resourceSubscriptions": [uri]}));
        let mut pauses = Pauses::new();
        let mut was_open = false;
        loop {
            let (mut opened, mut honoured) = (None, true);
            let heard = |heard| match heard {
                Heard::Acknowledged(granted) => {
                    opened = Some(Instant::now());
                    honoured = granted.is_none_or(|granted| grants(&granted, uri));
                    if !honoured {
                        return ControlFlow::Break(());
                    }
                    told(Watched::Open);
                    ControlFlow::Continue(())
                }
                Heard::Updated(uri) => {
                    told(Watched::Updated(uri));
                    ControlFlow::Continue(())
                }
            };
            let listening = listen_once(self, &filter, heard).await;
            if let Some(why) = self.closed().borrow().clone() {
                return WatchError::Closed(why);
            }
            if !honoured {
                return WatchError::NotHonoured;
            }
            was_open |= opened.is_some();
            // Once it was served, a refusal is a matter of the moment.
            if let Some(error) = listening.refused.filter(|_| !was_open) {
                return WatchError::Refused(error);
            }
            told(Watched::Lost(listening.why));
            sleep(pauses.after(opened.map(|opened| opened.elapsed()))).await;
        }
    }

    async fn watch_legacy(
        &self,
        uri: &str,
        told: impl FnMut(Watched),
        stop: impl Future<Output = ()>,
    ) -> Result<(), WatchError> {
        let mut sent = false;
        let stopped = self.keep_subscribed(uri, told, stop, &mut sent).await;
        // One that was not answered may have been heard all the same. The server may be gone by
        // now; then nothing is left to take back.
        if stopped.is_ok() && sent {
            let taking_back = self.ask(method::UNSUBSCRIBE, uri);
            let _ = timeout(TAKEN_BACK_WITHIN, taking_back).await;
        }
        stopped
    }

    /// Subscribes and listens until it is told to stop; `sent` says whether the server was asked.
    async fn keep_subscribed(
        &self,
        uri: &str,
        mut told: impl FnMut(Watched),
        stop: impl Future<Output = ()>,
        sent: &mut bool,
    ) -> Result<(), WatchError> {
        self.open_stream();
        let mut stop = pin!(stop);
        let mut events = self.events();
        let mut closed = self.closed();
        let mut renewed = self.renewed();
        let mut pauses = Pauses::new();
        let mut was_open = false;
        loop {
            renewed.borrow_and_update();
            let subscribing = async {
                *sent = true;
                self.ask(method::SUBSCRIBE, uri).await
            };
            let subscribed = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                subscribed = subscribing => subscribed,
            };
            match subscribed {
                Ok(()) => {
                    was_open = true;
                    told(Watched::Open);
                }
                // Once it was served, a refusal is a matter of the moment.
                Err(RequestError::Rpc(error)) if !was_open => {
                    return Err(WatchError::Refused(error));
                }
                Err(error) => {
                    if let Some(why) = closed.borrow().clone() {
                        return Err(WatchError::Closed(why));
                    }
                    told(Watched::Lost(error.to_string()));
                    tokio::select! {
                        () = &mut stop => return Ok(()),
                        () = sleep(pauses.after(None)) => continue,
                    }
                }
            }
            loop {
                tokio::select! {
                    biased;
                    () = &mut stop => return Ok(()),
                    event = events.recv() => match event {
                        Ok(ServerEvent::ResourceUpdated(updated)) if is_within(&updated, uri) => {
                            told(Watched::Updated(updated));
                        }
                        // It may be among those that were lost.
                        Err(RecvError::Lagged(_)) => told(Watched::Updated(uri.to_owned())),
                        Ok(_) => {}
                        Err(RecvError::Closed) => {
                            return Err(WatchError::Closed(gone(&mut closed).await));
                        }
                    },
                    why = gone(&mut closed) => return Err(WatchError::Closed(why)),
                    Ok(()) = renewed.changed() => break,
                }
            }
        }
    }

    async fn ask(&self, method: &'static str, uri: &str) -> Result<(), RequestError> {
        let wait = self.timeouts().list;
        let sending = Sending { wait, wait_max: wait, ..Sending::default() };
        let params = Params::new().with("uri", Raw::of(&uri));
        self.request_until_judged(method, &params, sending).await.map(drop)
    }
}

/// Waits until the connection is gone, and says why.
async fn gone(closed: &mut watch::Receiver<Option<String>>) -> String {
    let why = closed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
    why.unwrap_or_else(|| "the connection ended".to_owned())
}

/// True when the part of a listen request that is honoured names this resource. A server that
/// answers with something else than a list is taken at its word.
fn grants(granted: &Raw, uri: &str) -> bool {
    match member(granted, "resourceSubscriptions") {
        Some(list) => list.read::<Vec<String>>().is_ok_and(|list| list.iter().any(|it| it == uri)),
        None => false,
    }
}

/// True for the URI itself and for what is a part of it, which servers may announce in its place.
fn is_within(updated: &str, uri: &str) -> bool {
    updated.strip_prefix(uri).is_some_and(|rest| {
        rest.is_empty() || uri.ends_with('/') || rest.starts_with(['/', '#', '?'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_and_its_parts_are_told_from_others() {
        let check = |updated: &str, uri: &str, expect: bool| {
            assert_eq!(is_within(updated, uri), expect, "{updated} of {uri}");
        };
        check("notes://a", "notes://a", true);
        check("notes://a/b", "notes://a", true);
        check("notes://a#1", "notes://a", true);
        check("notes://ab", "notes://a", false);
        check("notes://a", "notes://a/b", false);
        check("notes://a/b", "notes://a/", true);
    }

    #[test]
    fn only_what_is_granted_is_followed() {
        let check = |granted: &str, expect: bool| {
            assert_eq!(grants(&Raw::parse(granted).unwrap(), "a://b"), expect, "{granted}");
        };
        check(r#"{"resourceSubscriptions":["a://c","a://b"]}"#, true);
        check(r#"{"resourceSubscriptions":[]}"#, false);
        check(r#"{"toolsListChanged":true}"#, false);
        check(r#"{"resourceSubscriptions":true}"#, false);
    }
}
