//! What a declared function may use beside its arguments: its client, and its own server.

use std::{any::Any, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use toolcrib_core::{
    ask::Root,
    level::LogLevel,
    raw::Raw,
    rpc::method,
    version::{Era, Version},
};

use super::{
    elicit::{self, Elicited, Sampled, Sampling},
    failure::Failure,
};
use crate::{
    ask::{AskError, declares},
    handler::Request,
    peer::Peer,
};

/// What a declared function may use beside its arguments. Take it as the last parameter.
///
/// Questions are asked under a key, which names the question within its request. A modern client
/// sends its request again with each answer, and the function begins anew: what must happen once
/// belongs after the last question or into [`Context::once`].
#[derive(Clone)]
pub struct Context {
    peer: Peer,
    version: Version,
    /// The server, of a type that stands above this one.
    pub(super) server: Arc<dyn Any + Send + Sync>,
}

impl Context {
    pub(super) fn new(request: &Request, peer: Peer, server: Arc<dyn Any + Send + Sync>) -> Self {
        Self { peer, version: request.version, server }
    }

    /// The client as the wire sees it.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The revision this request is served in.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Tells how far the request is; `progress` must grow. Does nothing when the client did not ask.
    pub async fn progress(&self, progress: f64, total: Option<f64>, words: Option<&str>) {
        self.peer.progress(progress, total, words).await;
    }

    /// Sends a log message, if the client wants this level and the server declares `logging`.
    pub async fn log(&self, level: LogLevel, data: &(impl Serialize + Sync)) {
        self.peer.log(level, None, data).await;
    }

    /// True when the client declared this capability: a JSON Pointer into its `ClientCapabilities`,
    /// such as `/sampling` or `/elicitation/url`.
    pub fn client_has(&self, pointer: &str) -> bool {
        declares(self.peer.client_capabilities(), pointer)
    }

    /// Asks the person to fill in a form of `T`: a flat struct of text, numbers, flags and choices.
    /// The answer fits the form.
    ///
    /// # Errors
    /// As [`Peer::ask`]; `T` is no form; or the answer does not fit it.
    pub async fn elicit<T: JsonSchema + DeserializeOwned>(
        &self,
        key: &str,
        message: &str,
    ) -> Result<Elicited<T>, AskError> {
        let params = elicit::form::<T>(message)?;
        let answer = self.peer.ask(key, method::ELICIT, &params).await?;
        elicit::read_form(&params, &answer)
    }

    /// Asks the person to fill in a form that is given by its schema.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn elicit_form(
        &self,
        key: &str,
        message: &str,
        schema: &Value,
    ) -> Result<Elicited<Value>, AskError> {
        let params = elicit::form_of(message, schema);
        let answer = self.peer.ask(key, method::ELICIT, &params).await?;
        elicit::read_form(&params, &answer)
    }

    /// Asks the person to open an address, for what must not pass through the client. That it was
    /// accepted says that the person agreed, not that anything was done there.
    ///
    /// # Errors
    /// As [`Peer::ask`].
    pub async fn elicit_url(
        &self,
        key: &str,
        message: &str,
        url: &str,
    ) -> Result<Elicited<()>, AskError> {
        let params = elicit::address(message, url, self.era());
        elicit::read_address(&self.peer.ask(key, method::ELICIT, &params).await?)
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// As [`Peer::ask`], or the answer is none.
    pub async fn sample(&self, key: &str, sampling: &Sampling) -> Result<Sampled, AskError> {
        let answer = self.peer.ask(key, method::SAMPLING, &Raw::of(sampling)).await?;
        read(&answer)
    }

    /// Asks for the client's roots.
    ///
    /// # Errors
    /// As [`Peer::ask`], or the answer is none.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        let answer = self.peer.ask(key, method::ROOTS_LIST, &Raw::of(&json!({}))).await?;
        read::<Roots>(&answer).map(|answer| answer.roots)
    }

    /// Does `work` once for the whole request, however many rounds its questions take: a later round
    /// gets what the first one gave. A question that is polled beside it waits until it is done; in
    /// it nothing can be asked. The client carries the value and can read it.
    ///
    /// # Errors
    /// The work failed, or what the client sent back cannot be used.
    pub async fn once<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if let Some(noted) = self.peer.note(key)? {
            return Ok(noted.read()?);
        }
        let value = self.peer.asking.undisturbed(work).await?;
        self.peer.set_note(key, Raw::of(&value));
        Ok(value)
    }

    /// How the client talks.
    pub(crate) const fn era(&self) -> Era {
        self.version.era()
    }
}

fn read<T: DeserializeOwned>(answer: &Raw) -> Result<T, AskError> {
    answer.read().map_err(|error| AskError::Unusable(format!("the answer cannot be read: {error}")))
}
