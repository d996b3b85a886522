//! Reads the events of one response, with what a reader needs to resume it elsewhere.
//!
//! Memory is bounded by one event: comments are dropped as they come.

use std::{collections::VecDeque, time::Duration};

use reqwest::Response;
use tokio::time::{Instant, sleep_until};
use toolcrib_core::rpc::sse::{Event, SseDecoder};

use super::idle::Idle;

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The server closed it, or the connection broke.
    Closed,
    /// An event was over the limit.
    TooLong,
}

/// Where a stream can be taken up again.
#[derive(Debug, Clone, Default)]
pub(super) struct Resume {
    /// The last event id, when the server gave one.
    pub(super) last_id: Option<String>,
    /// The delay the server asked for.
    pub(super) retry: Option<Duration>,
}

impl Resume {
    fn note(&mut self, event: &Event) {
        if let Some(id) = &event.id {
            self.last_id = Some(id.clone()).filter(|id| !id.is_empty() && id.len() <= ID_BYTES);
        }
        if let Some(retry_ms) = event.retry_ms {
            self.retry = Some(Duration::from_millis(retry_ms));
        }
    }
}

/// Longest event id that is sent back.
const ID_BYTES: usize = 4_096;

/// The events of one response.
pub(super) struct EventReader {
    response: Response,
    decoder: SseDecoder,
    ready: VecDeque<Event>,
    end: Option<StreamEnd>,
    idle: Option<Idle>,
}

impl EventReader {
    /// Reads `response`, which is an event stream, holding at most `limit` bytes of one event.
    pub(super) fn new(response: Response, limit: usize) -> Self {
        Self {
            response,
            decoder: SseDecoder::new(limit),
            ready: VecDeque::new(),
            end: None,
            idle: None,
        }
    }

    /// Takes the stream for broken when its keep-alives stop for `floor` or longer.
    pub(super) fn expecting_keep_alives(mut self, floor: Duration) -> Self {
        self.idle = Some(Idle::new(floor, Instant::now()));
        self
    }

    /// The next event; ids and delays are noted in `resume`.
    pub(super) async fn next(&mut self, resume: &mut Resume) -> Result<Event, StreamEnd> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                resume.note(&event);
                return Ok(event);
            }
            if let Some(end) = self.end {
                return Err(end);
            }
            let mut events = Vec::new();
            let broken = self.idle.as_ref().and_then(Idle::ends);
            let chunk = tokio::select! {
                biased;
                chunk = self.response.chunk() => chunk,
                () = silence(broken) => {
                    tracing::debug!("the keep-alives of a stream have stopped; it is left");
                    Ok(None)
                }
            };
            match chunk {
                Ok(Some(chunk)) => {
                    if self.decoder.push(&chunk, &mut events).is_err() {
                        self.end = Some(StreamEnd::TooLong);
                    }
                }
                Ok(None) | Err(_) => {
                    events.extend(self.decoder.finish());
                    self.end = Some(StreamEnd::Closed);
                }
            }
            if let Some(idle) = &mut self.idle {
                // A chunk of an event that goes on is no keep-alive.
                let empty = events.is_empty() && !self.decoder.is_inside_event();
                idle.heard(empty, Instant::now());
            }
            self.ready.extend(events);
        }
    }
}

async fn silence(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
