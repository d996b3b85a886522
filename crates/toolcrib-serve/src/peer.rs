//! The client as one request sees it: what it can do, and what it may be told and asked meanwhile.
//!
//! What is sent here goes out before the request's answer and on the same stream; after the answer
//! it goes nowhere.

use serde::Serialize;
use tokio::sync::mpsc;
use toolcrib_core::{
    level::LogLevel,
    raw::Raw,
    rpc::{Params, message, meta, method},
};

use crate::ask::{AskError, Asking, Question, Way};

/// The client of one request.
#[derive(Debug, Clone)]
pub struct Peer {
    pub(crate) out: mpsc::Sender<String>,
    pub(crate) token: Option<Raw>,
    pub(crate) level: Option<LogLevel>,
    pub(crate) capabilities: Raw,
    pub(crate) client_info: Option<Raw>,
    pub(crate) asking: Asking,
}

impl Peer {
    /// The `ClientCapabilities` that hold for this request.
    pub const fn client_capabilities(&self) -> &Raw {
        &self.capabilities
    }

    /// Who the client says it is.
    pub const fn client_info(&self) -> Option<&Raw> {
        self.client_info.as_ref()
    }

    /// The token the client asked progress with.
    pub const fn progress_token(&self) -> Option<&Raw> {
        self.token.as_ref()
    }

    /// Tells how far the request is; `progress` must grow. Does nothing when the client did not
    /// ask for progress.
    pub async fn progress(&self, progress: f64, total: Option<f64>, words: Option<&str>) {
        let Some(token) = &self.token else { return };
        let mut params = Params::new()
            .with(meta::PROGRESS_TOKEN, token.clone())
            .with("progress", Raw::of(&progress));
        if let Some(total) = total {
            params = params.with("total", Raw::of(&total));
        }
        if let Some(words) = words {
            params = params.with("message", Raw::of(&words));
        }
        self.send(message::notification(method::PROGRESS, &params)).await;
    }

    /// Sends a log message. Does nothing when the client did not ask for this level, or the server
    /// does not declare `logging`.
    pub async fn log(&self, level: LogLevel, logger: Option<&str>, data: &(impl Serialize + Sync)) {
        if self.level.is_none_or(|least| level < least) {
            return;
        }
        let mut params = Params::new().with("level", Raw::of(&level)).with("data", Raw::of(data));
        if let Some(logger) = logger {
            params = params.with("logger", Raw::of(&logger));
        }
        self.send(message::notification(method::LOG, &params)).await;
    }

    /// Asks the client: `method` is one of `elicitation/create`, `sampling/createMessage` and
    /// `roots/list`, and the answer its result. `key` names the question within this request.
    ///
    /// A legacy client is waited for. A modern one sends the whole request again with its answer,
    /// so this future is dropped where it waits and the handler begins anew: ask under the same
    /// keys each time, a key for each question, and do what must happen once only after the last question, or keep what it
    /// gave by [`Peer::set_note`]. Questions polled together are asked together.
    ///
    /// # Errors
    /// The client does not declare what the question needs, refuses, leaves or is too slow; or the
    /// request is none that may ask.
    pub async fn ask(&self, key: &str, method: &str, params: &Raw) -> Result<Raw, AskError> {
        self.asking.ask(&self.capabilities, &self.out, key, Question { method, params }).await
    }

    /// What an earlier round of this request noted under `key`; `None` in the first, and for a
    /// legacy client, whose request has one round.
    ///
    /// # Errors
    /// What the client sent back cannot be used.
    pub fn note(&self, key: &str) -> Result<Option<Raw>, AskError> {
        match &self.asking.way {
            Way::Rounds(rounds) => rounds.note(key),
            Way::Impossible | Way::Requests(..) => Ok(None),
        }
    }

    /// Notes something for the rounds to come. The client carries it; it can read it and cannot
    /// change it.
    pub fn set_note(&self, key: &str, value: Raw) {
        if let Way::Rounds(rounds) = &self.asking.way {
            rounds.set_note(key, value);
        }
    }

    async fn send(&self, text: String) {
        // An error says that the request is over; then there is nobody to tell.
        let _ = self.out.send(text).await;
    }
}
