//! The legacy stream for what belongs to no request: one GET, kept open and taken up again.
//!
//! A server that offers no such stream is asked once and left alone; one whose stream keeps ending
//! is asked ever more slowly and given up in the end. Posts are never affected.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{
    deliver::{Delivery, Gone},
    events::{Resume, StreamEnd},
    peer::Peer,
};
use crate::{
    channel::{Closed, ExchangeError, Inbound},
    jitter::jittered,
};

/// The delay before a stream is taken up again when the server asks for none.
const DELAY: Duration = Duration::from_secs(1);
/// The shortest and the longest delay, whatever the server asks for.
const DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// A stream that lived this long, or carried a message, was of use.
const USEFUL: Duration = Duration::from_secs(10);
/// How often in a row a server that was followed may be out of reach before it counts as gone.
const UNREACHABLE: u32 = 2;
/// How many useless attempts in a row are made.
const FAILURES: u32 = 6;

/// How long to wait before attempt number `failures` after the last useful one.
pub(super) fn delay(resume: &Resume, failures: u32) -> Duration {
    let base = resume.retry.unwrap_or(DELAY).clamp(DELAYS.0, DELAYS.1);
    base.saturating_mul(1 << failures.min(10)).min(DELAYS.1)
}

/// Keeps the stream until there is none to keep. Runs as a task of its own.
pub(super) async fn keep(peer: &Peer, version: Option<&str>) {
    let mut resume = Resume::default();
    let (mut failures, mut was_open, mut unreachable) = (0, false, 0_u32);
    loop {
        let opened = Instant::now();
        let followed = follow(peer, version, &mut resume).await;
        was_open |= matches!(followed, Followed::Ended { .. });
        let lost = match &followed {
            Followed::Unreachable(why) => {
                unreachable += 1;
                (unreachable >= UNREACHABLE).then(|| why.clone())
            }
            Followed::Forgotten => Some("the server has forgotten the session".to_owned()),
            _ => {
                unreachable = 0;
                None
            }
        };
        if let Some(why) = lost.filter(|_| was_open) {
            // What was followed once is there no more. Nobody listening is the end as well.
            let _ = peer.inbox.send(Inbound::Closed(Closed::Lost(why))).await;
            return;
        }
        match followed {
            Followed::Done | Followed::Forgotten => return,
            Followed::Ended { useful } if useful || opened.elapsed() >= USEFUL => failures = 0,
            Followed::Ended { .. } | Followed::Failed | Followed::Unreachable(_) => failures += 1,
        }
        if failures >= FAILURES {
            tracing::debug!("the stream for notifications keeps ending; given up");
            return;
        }
        sleep(jittered(delay(&resume, failures))).await;
    }
}

enum Followed {
    /// There is no stream, or nobody listens.
    Done,
    /// The stream was open and ended.
    Ended { useful: bool },
    /// It could not be opened this time.
    Failed,
    /// There is no connection.
    Unreachable(String),
    /// The session is not known any more.
    Forgotten,
}

async fn follow(peer: &Peer, version: Option<&str>, resume: &mut Resume) -> Followed {
    let opened = match peer.session_headers(version, resume.last_id.as_deref()) {
        Ok(headers) => peer.get_events(headers).await,
        Err(error) => Err(error),
    };
    let mut reader = match opened {
        Ok(reader) => reader.expecting_keep_alives(peer.stream_idle),
        Err(ExchangeError::Io(error)) => {
            tracing::debug!(error, "the stream for notifications could not be opened");
            return Followed::Unreachable(error);
        }
        // 501 is a refusal like 405, the other 5xx are outages.
        Err(ExchangeError::Status(status)) if matches!(status.status, 429 | 500 | 502..) => {
            tracing::debug!(status = status.status, "no stream for notifications at this time");
            return Followed::Failed;
        }
        Err(ExchangeError::Status(status)) if status.status == 404 && status.had_session => {
            tracing::debug!("no stream for notifications: the session is not known any more");
            return Followed::Forgotten;
        }
        Err(error) => {
            tracing::debug!(%error, "the server offers no stream for notifications");
            return Followed::Done;
        }
    };
    let mut delivery = Delivery::new(peer, None);
    // A server that names a delay means to be polled: its streams end as a matter of course.
    let mut useful = false;
    loop {
        match reader.next(resume).await {
            Ok(event) => {
                useful |= !event.data.is_empty() || event.retry_ms.is_some();
                if let Err(Gone) = delivery.event(event).await {
                    return Followed::Done;
                }
            }
            Err(StreamEnd::Closed) => return Followed::Ended { useful },
            Err(StreamEnd::TooLong) => {
                let limit = peer.message_bytes;
                let words = format!("the event stream was left: an event over {limit} bytes");
                // Nobody listening is the end as well.
                let _ = peer.inbox.send(Inbound::Noise(words)).await;
                return Followed::Done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_server_within_bounds_and_grow() {
        let check = |retry_ms: Option<u64>, failures: u32, expect_ms: u64| {
            let resume = Resume { last_id: None, retry: retry_ms.map(Duration::from_millis) };
            assert_eq!(delay(&resume, failures), Duration::from_millis(expect_ms));
        };
        check(None, 0, 1_000);
        check(None, 3, 8_000);
        check(Some(500), 0, 500);
        check(Some(0), 0, 100);
        check(Some(u64::MAX), 0, 30_000);
        check(Some(500), 40, 30_000);
        assert!(jittered(DELAY) >= DELAY && jittered(DELAY) < DELAY.mul_f64(1.26));
    }
}
