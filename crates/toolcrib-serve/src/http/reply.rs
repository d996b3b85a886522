//! HTTP answers: one JSON message, or an event stream that ends with it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::sleep,
};
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, error},
};

use super::{Endpoint, sessions::Standing};
use crate::{
    exchange::{Exchange, Frame},
    fault,
    listening::Listening,
};

/// A comment: it keeps a silent stream alive and means nothing.
const KEEP_ALIVE: &str = ":\r\n\r\n";

/// Where the messages of one answer come from.
pub(crate) enum Source {
    /// A modern request: it ends when the client goes.
    Exchange(Placed<Box<Exchange>>),
    /// A legacy request: it runs elsewhere, and outlives the connection.
    Pumped(mpsc::Receiver<Frame>),
    /// Several legacy requests that came in one batch.
    Batch(BoxStream<'static, Frame>),
    /// A modern change stream.
    Listening(Placed<Box<Listening>>),
    /// The standing stream of a legacy session.
    Standing(Box<Standing>),
}

/// Something that holds its place among what runs.
pub(crate) struct Placed<T> {
    what: T,
    _place: OwnedSemaphorePermit,
}

impl<T> Placed<T> {
    /// `None` when there is no place left.
    pub(crate) fn new(endpoint: &Endpoint, what: impl FnOnce() -> T) -> Option<Self> {
        let place = Arc::clone(&endpoint.room).try_acquire_owned().ok()?;
        Some(Self { what: what(), _place: place })
    }
}

impl Source {
    /// The answers of a batch as they come.
    pub(crate) fn batch(parts: Vec<mpsc::Receiver<Frame>>) -> Self {
        let part =
            |mut frames: mpsc::Receiver<Frame>| stream::poll_fn(move |cx| frames.poll_recv(cx));
        Self::Batch(stream::select_all(parts.into_iter().map(part)).boxed())
    }

    async fn next(&mut self) -> Option<Frame> {
        match self {
            Self::Exchange(exchange) => exchange.what.next().await,
            Self::Pumped(frames) => frames.recv().await,
            Self::Batch(frames) => frames.next().await,
            Self::Listening(listening) => listening.what.next().await.map(Frame::Note),
            Self::Standing(standing) => standing.next().await.map(Frame::Note),
        }
    }
}

/// What a client is willing to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

impl Accepts {
    /// Reads `Accept`; without one, everything is accepted.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut accepts = Self { json: false, events: false };
        let mut said = false;
        for value in headers.get_all(header::ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                said = true;
                let media = range.split(';').next().unwrap_or_default().trim();
                let is =
                    |names: [&str; 3]| names.iter().any(|name| media.eq_ignore_ascii_case(name));
                accepts.json |= is(["*/*", "application/*", "application/json"]);
                accepts.events |= is(["*/*", "text/*", "text/event-stream"]);
            }
        }
        if said { accepts } else { Self { json: true, events: true } }
    }
}

/// One JSON message.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// No content.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A refusal; without an id when it cannot be told which request is refused.
pub(crate) fn refuse(status: StatusCode, id: Option<&Raw>, error: &RpcError) -> Response {
    let text = match id {
        Some(id) => Frame::answer(id, &Err(error.clone())).into_text(),
        None => fault::without_id(error),
    };
    json(status, text)
}

/// A refusal because too much is running.
pub(crate) fn busy(id: &Raw) -> Response {
    let error = fault::internal("too many requests are running; try again later");
    let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The status that a modern error answer goes under.
pub(crate) const fn status(code: i64) -> StatusCode {
    match code {
        error::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        error::PARSE
        | error::INVALID_REQUEST
        | error::HEADER_MISMATCH
        | error::MISSING_CAPABILITY
        | error::UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The answer of one request: JSON when the answer is the first thing to say, else events.
pub(crate) async fn exchange(
    endpoint: &Endpoint,
    accepts: Accepts,
    mut source: Source,
    status: impl Fn(i64) -> StatusCode,
) -> Response {
    loop {
        match source.next().await {
            Some(Frame::Answer(text, code)) if accepts.json => {
                return json(code.map_or(StatusCode::OK, status), text);
            }
            // Nobody would read it.
            Some(Frame::Note(_)) if !accepts.events => {}
            first => return events(endpoint, first, source),
        }
    }
}

/// The answers of a batch: events, or one JSON array for a client that reads none.
pub(crate) async fn batch(endpoint: &Endpoint, accepts: Accepts, mut source: Source) -> Response {
    if accepts.events {
        return events(endpoint, None, source);
    }
    let mut answers = Vec::new();
    while let Some(frame) = source.next().await {
        if let Frame::Answer(text, _) = frame {
            answers.push(text);
        }
    }
    json(StatusCode::OK, format!("[{}]", answers.join(",")))
}

/// An event stream.
pub(crate) fn events(endpoint: &Endpoint, first: Option<Frame>, source: Source) -> Response {
    let keep_alive = Duration::from_millis(endpoint.options.keep_alive_ms.max(1));
    let start = (first, source, keep_alive);
    let body = stream::unfold(start, |(first, mut source, keep_alive)| async move {
        let frame = match first {
            Some(frame) => Some(frame),
            None => tokio::select! {
                biased;
                frame = source.next() => frame,
                () = sleep(keep_alive) => {
                    let item = Ok::<_, Infallible>(Bytes::from_static(KEEP_ALIVE.as_bytes()));
                    return Some((item, (None, source, keep_alive)));
                }
            },
        };
        frame.map(|frame| (Ok(event(&frame.into_text())), (None, source, keep_alive)))
    });
    let mut response = Response::new(Body::from_stream(body));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// One event. JSON written by others may hold line breaks between its tokens; a data line may not.
fn event(text: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {}\n\n", text.replace(['\n', '\r'], " ")))
}
