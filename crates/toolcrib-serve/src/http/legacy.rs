//! Legacy requests over HTTP: they belong to a session that `initialize` starts.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::Response,
};
use tokio::sync::mpsc;
use toolcrib_core::{
    raw::Raw,
    rpc::{Message, ReplyId, RpcError, header, method},
    version::{Era, Version},
};

use super::{
    Endpoint, mirror,
    reply::{self, Accepts, Source},
    sessions::HttpSession,
};
use crate::{
    ask::{Asking, Way},
    envelope::{Envelope, is_id},
    exchange::{Exchange, Frame},
    fault,
    service::{Job, Route},
    session::Session,
    stdio::cancelled_id,
};

/// Opens the standing stream of a session.
pub(crate) async fn get(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> Response {
    if !Accepts::read(&headers).events {
        let error = fault::invalid_request("this stream needs Accept: text/event-stream");
        return reply::refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
    }
    match find(&endpoint, &headers) {
        Ok(session) => {
            let standing = session.open(Arc::clone(&endpoint.service));
            reply::events(&endpoint, None, Source::Standing(Box::new(standing)))
        }
        Err((status, error)) => reply::refuse(status, None, &error),
    }
}

/// Ends a session.
pub(crate) async fn delete(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> Response {
    if let Err((status, error)) = find(&endpoint, &headers) {
        return reply::refuse(status, None, &error);
    }
    if let Some(id) = session_id(&headers) {
        endpoint.sessions.remove(id);
    }
    reply::empty(StatusCode::NO_CONTENT)
}

/// Answers one legacy request.
pub(crate) async fn request(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    id: Raw,
    method: String,
    params: Option<Raw>,
    envelope: Envelope,
) -> Response {
    let found = match method.as_str() {
        method::INITIALIZE => Ok(None),
        method::DISCOVER | method::LISTEN => {
            Err((StatusCode::BAD_REQUEST, fault::method_not_found(&method)))
        }
        _ => find(endpoint, headers).map(Some),
    };
    let session = match found {
        Ok(session) => session,
        Err((status, error)) => return reply::refuse(status, Some(&id), &error),
    };
    let settled = session.as_ref().map(|session| &session.session);
    let route = endpoint.service.legacy(settled, method, params, &envelope);
    match (route, session) {
        (Route::Start(session, result), _) => start(endpoint, &id, *session, result),
        (Route::Handle(job), Some(session)) => {
            let accepts = Accepts::read(headers);
            match run(endpoint, &session, accepts, &id, *job) {
                Ok(frames) => {
                    let source = Source::Pumped(frames);
                    reply::exchange(endpoint, accepts, source, |_| StatusCode::OK).await
                }
                Err(error) => reply::refuse(StatusCode::OK, Some(&id), &error),
            }
        }
        (Route::Refuse(error), _) => reply::refuse(StatusCode::OK, Some(&id), &error),
        (Route::Answer(result), _) => {
            reply::json(StatusCode::OK, Frame::answer(&id, &Ok(result)).into_text())
        }
        (Route::Handle(_) | Route::Listen(_), _) => reply::refuse(
            StatusCode::BAD_REQUEST,
            Some(&id),
            &fault::invalid_request("this request needs a session"),
        ),
    }
}

fn run(
    endpoint: &Endpoint,
    session: &HttpSession,
    accepts: Accepts,
    id: &Raw,
    mut job: Job,
) -> Result<mpsc::Receiver<Frame>, RpcError> {
    if session.is_running(id) {
        return Err(fault::invalid_request("a request with this id is running"));
    }
    if session.load() >= endpoint.service.limits.in_flight {
        return Err(fault::internal("too many requests are running; try again later"));
    }
    if !accepts.events {
        // A question would have no way to the client.
        job.asking = Asking::new(Way::Impossible);
    }
    Ok(session.run(id, Exchange::new(Arc::clone(&endpoint.service), id.clone(), job)))
}

/// Takes a batch, which the first revision with this transport has; `odd` of its members were no
/// messages.
pub(crate) async fn batch(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    messages: Vec<Message>,
    odd: usize,
) -> Response {
    let session = match find(endpoint, headers) {
        Ok(session) => session,
        Err((status, error)) => return reply::refuse(status, None, &error),
    };
    if session.session.version > Version::V2025_03_26 {
        let error = fault::invalid_request("batches are not part of this revision");
        return reply::refuse(StatusCode::BAD_REQUEST, None, &error);
    }
    let (accepts, mut parts) = (Accepts::read(headers), Vec::new());
    for message in messages {
        match message {
            Message::Request { id, method, params } => {
                parts.push(part(endpoint, &session, accepts, id, method, params));
            }
            Message::Notification { method, params } => note(&session, &method, params.as_ref()),
            Message::Response { id, outcome } => session.session.requests.settle(&id, outcome),
        }
    }
    for _ in 0..odd {
        let error = fault::without_id(&fault::invalid_request("not a message"));
        parts.push(ready(Frame::Answer(error, None)));
    }
    if parts.is_empty() {
        return reply::empty(StatusCode::ACCEPTED);
    }
    reply::batch(endpoint, accepts, Source::batch(parts)).await
}

/// One request of a batch; its answer comes with those of its neighbours.
fn part(
    endpoint: &Endpoint,
    session: &HttpSession,
    accepts: Accepts,
    id: Raw,
    method: String,
    params: Option<Raw>,
) -> mpsc::Receiver<Frame> {
    if !is_id(&id) {
        return ready(Frame::Answer(fault::without_id(&fault::not_an_id()), None));
    }
    let envelope = Envelope::read(params.as_ref());
    let outcome = match endpoint.service.legacy(Some(&session.session), method, params, &envelope) {
        Route::Handle(job) => match run(endpoint, session, accepts, &id, *job) {
            Ok(frames) => return frames,
            Err(error) => Err(error),
        },
        Route::Refuse(error) => Err(error),
        Route::Answer(result) => Ok(result),
        Route::Start(..) | Route::Listen(_) => {
            Err(fault::invalid_request("this request stands alone"))
        }
    };
    ready(Frame::answer(&id, &outcome))
}

fn ready(frame: Frame) -> mpsc::Receiver<Frame> {
    let (out, frames) = mpsc::channel(1);
    // There is room, and the other end is here.
    let _ = out.try_send(frame);
    frames
}

/// Takes one legacy notification.
pub(crate) fn notification(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    method: &str,
    params: Option<&Raw>,
) -> Response {
    let session = match find(endpoint, headers) {
        Ok(session) => session,
        Err((status, error)) => return reply::refuse(status, None, &error),
    };
    note(&session, method, params);
    reply::empty(StatusCode::ACCEPTED)
}

/// Takes an answer to something this session was asked.
pub(crate) fn answer(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    id: &ReplyId,
    outcome: Result<Raw, RpcError>,
) -> Response {
    let session = match find(endpoint, headers) {
        Ok(session) => session,
        Err((status, error)) => return reply::refuse(status, None, &error),
    };
    session.session.requests.settle(id, outcome);
    reply::empty(StatusCode::ACCEPTED)
}

fn note(session: &HttpSession, method: &str, params: Option<&Raw>) {
    match method {
        method::INITIALIZED => session.session.set_ready(),
        method::CANCELLED => {
            if let Some(id) = params.and_then(cancelled_id) {
                session.cancel(&id);
            }
        }
        _ => {}
    }
}

fn start(endpoint: &Endpoint, id: &Raw, session: Session, result: Raw) -> Response {
    let changes = endpoint.service.handler.changes().watch();
    let answer = |result| Frame::answer(id, &result).into_text();
    match endpoint.sessions.add(session, changes) {
        Ok(key) => {
            let mut response = reply::json(StatusCode::OK, answer(Ok(result)));
            if let Ok(key) = HeaderValue::from_str(&key) {
                response.headers_mut().insert(header::SESSION_ID, key);
            }
            response
        }
        Err(error) => {
            tracing::error!(%error, "no random bytes for a session id");
            let error = fault::internal("no session can be started");
            reply::json(StatusCode::INTERNAL_SERVER_ERROR, answer(Err(error)))
        }
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::SESSION_ID)?.to_str().ok()
}

/// The session a request belongs to, once its headers make sense.
fn find(
    endpoint: &Endpoint,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, (StatusCode, RpcError)> {
    if headers.contains_key(header::PROTOCOL_VERSION) {
        let known = mirror::version(headers)
            .and_then(Version::parse)
            .is_some_and(|version| version.era() == Era::Legacy);
        if !known {
            let error = fault::invalid_request("MCP-Protocol-Version names no version served here");
            return Err((StatusCode::BAD_REQUEST, error));
        }
    }
    let Some(id) = session_id(headers) else {
        let error = fault::invalid_request("Mcp-Session-Id is missing; send initialize first");
        return Err((StatusCode::BAD_REQUEST, error));
    };
    endpoint.sessions.find(id).ok_or_else(|| {
        let error = fault::invalid_request("no such session; send initialize again");
        (StatusCode::NOT_FOUND, error)
    })
}
