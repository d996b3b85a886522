//! One `subscriptions/listen` request and what is heard on it (specification,
//! basic/patterns/subscriptions). Nothing is retried here, and nothing is made of what is heard.

use std::{ops::ControlFlow, time::Duration};

use tokio::{sync::mpsc, time::Instant};
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, RpcError, message::member, method},
};

use crate::{
    channel::ExchangeError,
    handshake::{mirror_after, modern_params},
    jitter::jittered,
    pending::{Failure, Notice},
    session::Session,
};

/// First pause before a stream is opened again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(300);
/// A stream that lived this long starts the pauses over.
const LIVED: Duration = Duration::from_secs(30);
/// How many notices wait while one is taken. An update that finds no room says what those before
/// it say.
const NOTICES: usize = 16;

/// What is heard on a listen stream.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The server has taken the request, and honours this much of it; absent when it does not say.
    Acknowledged(Option<Raw>),
    /// A resource was updated: its URI, or that of a part of it.
    Updated(String),
}

/// Why a listen stream ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// In words.
    pub(crate) why: String,
    /// The error with which the server refused it, when it did.
    pub(crate) refused: Option<RpcError>,
    /// True when there was no connection at all.
    pub(crate) unreachable: bool,
}

impl Ended {
    fn of(failure: Failure) -> Self {
        let why = match &failure {
            Failure::Rpc(error) => error.to_string(),
            Failure::Exchange(ExchangeError::StreamEnded) => "the stream broke off".to_owned(),
            Failure::Exchange(error) => error.to_string(),
            Failure::Closed(closed) => closed.to_string(),
            Failure::Violation(what) => what.clone(),
        };
        let unreachable = matches!(failure, Failure::Exchange(ExchangeError::Io(_)));
        let refused = match failure {
            Failure::Rpc(error) => Some(error),
            Failure::Exchange(ExchangeError::Status(status)) if status.is_refusal() => status.rpc,
            _ => None,
        };
        Self { why, refused, unreachable }
    }

    fn because(why: &str) -> Self {
        Self { why: why.to_owned(), refused: None, unreachable: false }
    }
}

/// Opens a stream and stays until it ends, or whoever hears it breaks off. Dropping the future
/// closes it and tells the server.
pub(crate) async fn listen_once(
    session: &Session,
    filter: &Raw,
    mut heard: impl FnMut(Heard) -> ControlFlow<()>,
) -> Ended {
    let params = Params::new().with("notifications", filter.clone());
    let params = modern_params(params, session.mux().host());
    let mirror = mirror_after(&session.negotiated());
    let (sender, mut notices) = mpsc::channel(NOTICES);
    let begun = session.mux().begin(method::LISTEN, &params, mirror, Some(sender)).await;
    let mut ticket = match begun {
        Ok(ticket) => ticket,
        Err(failure) => return Ended::of(failure),
    };
    let patience = Instant::now() + session.timeouts().list;
    let mut acknowledged = false;
    loop {
        tokio::select! {
            biased;
            Some(notice) = notices.recv() => {
                let heard = match notice {
                    Notice::Acknowledged(params) => {
                        acknowledged = true;
                        heard(Heard::Acknowledged(member(&params, "notifications")))
                    }
                    Notice::Updated(uri) => heard(Heard::Updated(uri)),
                    Notice::Progress(_) => ControlFlow::Continue(()),
                };
                if heard.is_break() {
                    return Ended::because("it was left");
                }
            }
            outcome = ticket.answer() => {
                return match outcome {
                    Ok(_) => Ended::because("the server ended it"),
                    Err(failure) => Ended::of(failure),
                };
            }
            () = tokio::time::sleep_until(patience), if !acknowledged => {
                return Ended::because("it was not acknowledged in time");
            }
        }
    }
}

/// The pauses between streams, growing while none of them lives.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) const fn new() -> Self {
        Self { next: FIRST_PAUSE }
    }

    /// The pause after a stream that was open for `lived`, or was never open.
    pub(crate) fn after(&mut self, lived: Option<Duration>) -> Duration {
        if lived.is_some_and(|lived| lived >= LIVED) {
            self.next = FIRST_PAUSE;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LAST_PAUSE);
        jittered(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_stream_lives() {
        let mut pauses = Pauses::new();
        let seconds = |pause: Duration| pause.as_secs_f64();
        assert!(seconds(pauses.after(None)) < 1.3);
        assert!(seconds(pauses.after(Some(Duration::ZERO))) >= 2.0);
        for _ in 0..20 {
            pauses.after(None);
        }
        assert!(pauses.after(None) >= LAST_PAUSE);
        assert!(seconds(pauses.after(Some(LIVED))) < 1.3);
    }
}
