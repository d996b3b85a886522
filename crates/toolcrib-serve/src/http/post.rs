//! Reads a POST: its body, bounded, and which era it belongs to.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody as _, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use tokio::time::timeout;
use toolcrib_core::{
    raw::Raw,
    rpc::{Decoded, Message},
    version::Era,
};

use super::{Endpoint, legacy, mirror, modern, reply};
use crate::{
    envelope::{Envelope, is_id},
    fault,
};

/// Answers a POST.
pub(crate) async fn post(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        let error = fault::invalid_request("Content-Type is not application/json");
        return reply::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &error);
    }
    let accepts = reply::Accepts::read(&parts.headers);
    if !accepts.json && !accepts.events {
        let error =
            fault::invalid_request("Accept has neither application/json nor text/event-stream");
        return reply::refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
    }
    let bytes = match read(&endpoint, body).await {
        Ok(bytes) => bytes,
        Err((status, why)) => return reply::refuse(status, None, &fault::invalid_request(why)),
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        let error = fault::not_a_message("");
        return reply::refuse(StatusCode::BAD_REQUEST, None, &error);
    };
    match Decoded::read(text) {
        Decoded::Message(message) => take(&endpoint, &parts.headers, message).await,
        Decoded::Batch(messages, odd) if messages.len() + odd > fault::MOST_BATCHED => {
            reply::refuse(StatusCode::BAD_REQUEST, None, &fault::large_batch())
        }
        Decoded::Batch(messages, odd)
            if endpoint.service.era.serves(Era::Legacy)
                && !mirror::speaks_modern(&parts.headers) =>
        {
            legacy::batch(&endpoint, &parts.headers, messages, odd).await
        }
        Decoded::Batch(..) => {
            let error = fault::invalid_request("batches are not part of this revision");
            reply::refuse(StatusCode::BAD_REQUEST, None, &error)
        }
        Decoded::Noise(_) => {
            reply::refuse(StatusCode::BAD_REQUEST, None, &fault::not_a_message(text))
        }
    }
}

async fn take(endpoint: &Endpoint, headers: &HeaderMap, message: Message) -> Response {
    let hinted = mirror::speaks_modern(headers);
    match message {
        Message::Request { id, .. } if !is_id(&id) => {
            reply::refuse(StatusCode::BAD_REQUEST, None, &fault::not_an_id())
        }
        Message::Request { id, method, params } => {
            request(endpoint, headers, hinted, id, method, params).await
        }
        Message::Notification { method, params } => {
            let envelope = Envelope::read(params.as_ref());
            if endpoint.service.is_modern(&method, &envelope, hinted) {
                // This era has no notification that means something over HTTP.
                return reply::empty(StatusCode::ACCEPTED);
            }
            legacy::notification(endpoint, headers, &method, params.as_ref())
        }
        Message::Response { .. } if hinted || !endpoint.service.era.serves(Era::Legacy) => {
            let error = fault::invalid_request("no answer is expected; nothing was asked");
            reply::refuse(StatusCode::BAD_REQUEST, None, &error)
        }
        Message::Response { id, outcome } => legacy::answer(endpoint, headers, &id, outcome),
    }
}

async fn request(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    hinted: bool,
    id: Raw,
    method: String,
    params: Option<Raw>,
) -> Response {
    let envelope = Envelope::read(params.as_ref());
    if endpoint.service.is_modern(&method, &envelope, hinted) {
        modern::request(endpoint, headers, id, method, params, envelope).await
    } else {
        legacy::request(endpoint, headers, id, method, params, envelope).await
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

async fn read(endpoint: &Endpoint, body: Body) -> Result<Bytes, (StatusCode, &'static str)> {
    let limit = endpoint.service.limits.message_bytes;
    const TOO_LONG: &str = "the body is too long or broken";
    // Said in advance, nothing of it is waited for.
    if body.size_hint().lower() > limit as u64 {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG));
    }
    let time = Duration::from_millis(endpoint.options.body_ms);
    match timeout(time, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // An unreadable body and one over the limit are told alike: both end here.
        Ok(Err(_)) => Err((StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG)),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
    }
}
