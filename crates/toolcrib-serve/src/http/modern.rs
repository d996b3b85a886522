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
    reply::{self, Accepts, Placed, Source},
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
            let exchange = || Box::new(Exchange::new(Arc::clone(service), id.clone(), *job));
            match Placed::new(endpoint, exchange) {
                Some(placed) => {
                    let source = Source::Exchange(placed);
                    reply::exchange(endpoint, accepts, source, reply::status).await
                }
                None => reply::busy(&id),
            }
        }
        Route::Listen(_) if !accepts.events => reply::refuse(
            StatusCode::NOT_ACCEPTABLE,
            Some(&id),
            &fault::invalid_request("a change stream needs Accept: text/event-stream"),
        ),
        Route::Listen(granted) => {
            let listening = || Box::new(Listening::new(service, id.clone(), granted));
            match Placed::new(endpoint, listening) {
                Some(placed) => reply::events(endpoint, None, Source::Listening(placed)),
                None => reply::busy(&id),
            }
        }
    }
}
