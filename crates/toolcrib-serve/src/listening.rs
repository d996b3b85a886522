//! One modern change stream: the acknowledgement, what was granted, and a result at a graceful end.

use toolcrib_core::{
    raw::Raw,
    rpc::{Params, message, meta, method},
};

use crate::{
    change::{Filter, Watch},
    service::Service,
    stop::Stop,
};

/// One modern change stream.
pub(crate) struct Listening {
    id: Raw,
    granted: Filter,
    watch: Watch,
    stop: Stop,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Opening,
    Open,
    Over,
}

impl Listening {
    /// Hears every change from now on, the acknowledgement being told first.
    pub(crate) fn new(service: &Service, id: Raw, granted: Filter) -> Self {
        let watch = service.handler.changes().watch();
        Self { id, granted, watch, stop: service.stop.clone(), state: State::Opening }
    }

    /// The next message; `None` after the end. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<String> {
        match self.state {
            State::Opening => {
                self.state = State::Open;
                let params = Params::new()
                    .with("notifications", self.granted.granted())
                    .with_meta(meta::SUBSCRIPTION_ID, self.id.clone());
                Some(message::notification(method::ACKNOWLEDGED, &params))
            }
            State::Open => {
                let granted = &self.granted;
                let change = tokio::select! {
                    biased;
                    () = self.stop.wait() => None,
                    change = self.watch.next(|| granted) => change,
                };
                if let Some(change) = change {
                    return Some(change.notification(Some(&self.id)));
                }
                self.state = State::Over;
                let meta = Params::new().with_meta(meta::SUBSCRIPTION_ID, self.id.clone());
                let result = meta.with("resultType", Raw::of(&"complete")).encode();
                Some(message::response(
                    &self.id,
                    &Ok(Raw::parse(result).unwrap_or_else(|_| Raw::empty_object())),
                ))
            }
            State::Over => None,
        }
    }
}
