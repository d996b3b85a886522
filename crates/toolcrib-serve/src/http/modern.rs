//! Modern requests over HTTP: each POST stands alone, and ends with its connection.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, StatusCode},
    response::Response,
};
use toolcrib_core::{raw::Raw, rpc::error};

use super::{
    Endpoint,
    mirror::{self, Mirrored},
    reply::{self, Accepts, Source},
};
use crate::{
    envelope::Envelope,
    exchange::{Exchange, Frame},
    fault,
    listening::Listening,
    service::Route,
};

/// Answers one modern request.
pub(crate) async fn request(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    id: Raw,
    method: String,
    params: Option<Raw>,
    envelope: Envelope,
) -> Response {
    let accepts = Accepts::read(headers);
    let (service, given) = (&endpoint.service, params.clone());
    let mirrored = Mirrored::of(&method, params.as_ref());
    let route = service.modern(method, params, envelope, |version| {
        mirrored.check(headers, version)?;
        match mirrored.tool().and_then(|tool| service.handler.input_schema(tool)) {
            Some(schema) => {
                mirror::check_arguments(headers, &schema, given.as_ref(), &service.limits)
            }
            None => Ok(()),
        }
    });
    match route {
        Route::Refuse(refusal) => {
            let status = match refusal.code {
                error::INVALID_PARAMS => StatusCode::BAD_REQUEST,
                code => reply::status(code),
            };
            reply::refuse(status, Some(&id), &refusal)
        }
        Route::Answer(result) | Route::Start(_, result) => {
            reply::json(StatusCode::OK, Frame::answer(&id, &Ok(result)).into_text())
        }
        Route::Handle(job) => {
            let exchange = Exchange::new(Arc::clone(&endpoint.service), id, *job);
            let source = Source::Exchange(Box::new(exchange));
            reply::exchange(endpoint, accepts, source, reply::status).await
        }
        Route::Listen(_) if !accepts.events => reply::refuse(
            StatusCode::NOT_ACCEPTABLE,
            Some(&id),
            &fault::invalid_request("a change stream needs Accept: text/event-stream"),
        ),
        Route::Listen(granted) => {
            let listening = Listening::new(&endpoint.service, id, granted);
            reply::events(endpoint, None, Source::Listening(Box::new(listening)))
        }
    }
}
