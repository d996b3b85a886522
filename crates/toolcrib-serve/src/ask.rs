//! Asks the client for something while its request runs: the person (elicitation), its model
//! (sampling), its roots.
//!
//! A legacy client is sent a request and the handler waits for the answer. A modern one gets an
//! `input_required` result and sends its request again with the answers (specification,
//! basic/patterns/mrtr): the handler is dropped where it waits and begins anew next time, with what
//! is known by then. Nothing is asked that the client did not declare.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::timeout,
};
use toolcrib_core::{
    raw::{Raw, TreeError},
    rpc::{Params, ReplyId, RpcError, error, message, method},
};

use crate::{fault, lock::lock, seal::StateKey};

/// Most values of a request whose state is sealed: as a tree, a byte of text may cost a hundred.
const MOST_VALUES: usize = 1_000_000;

/// Why the client gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AskError {
    /// It did not declare that it can; this is the `ClientCapabilities` object it would need.
    #[error("the client does not declare what this needs: {0}")]
    Undeclared(Value),
    /// It answered with an error.
    #[error("the client refused: {}", .0.message)]
    Refused(RpcError),
    /// What it sent back with its answers cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// It left before it answered.
    #[error("the client left before it answered")]
    Gone,
    /// It took longer than the server waits.
    #[error("the client took too long to answer")]
    Late,
    /// Nothing can be asked in the course of this request.
    #[error("nothing can be asked in the course of this request")]
    Impossible,
}

impl From<AskError> for RpcError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Undeclared(required) => Self::new(
                error::MISSING_CAPABILITY,
                AskError::Undeclared(required.clone()).to_string(),
            )
            .with_data(&json!({ "requiredCapabilities": required })),
            AskError::Refused(refusal) => Self::new(refusal.code, refusal.message),
            AskError::Unusable(why) => fault::invalid_params(why),
            other => fault::internal(other.to_string()),
        }
    }
}

/// How a request reaches its client with questions.
#[derive(Debug, Clone)]
pub(crate) enum Asking {
    /// Not at all.
    Impossible,
    /// By rounds.
    Rounds(Arc<Rounds>),
    /// By requests, each waited for at most so long.
    Requests(Arc<Requests>, Duration),
}

impl Asking {
    /// Asks, once `capabilities` are known to cover it. `key` names the question within its request
    /// and must be the same in every round.
    pub(crate) async fn ask(
        &self,
        capabilities: &Raw,
        out: &mpsc::Sender<String>,
        key: &str,
        question: Question<'_>,
    ) -> Result<Raw, AskError> {
        if let Some(required) = question.lacks(capabilities) {
            return Err(AskError::Undeclared(required));
        }
        match self {
            Self::Impossible => Err(AskError::Impossible),
            Self::Rounds(rounds) => rounds.ask(key, question).await,
            Self::Requests(requests, patience) => {
                timeout(*patience, requests.ask(out, question)).await.unwrap_or(Err(AskError::Late))
            }
        }
    }
}

/// One question: a method of the client and its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Raw,
}

impl Question<'_> {
    /// The capabilities the question needs and the client lacks.
    fn lacks(self, capabilities: &Raw) -> Option<Value> {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Asked {
            mode: Option<String>,
            tools: Option<Value>,
            include_context: Option<String>,
        }
        let declared: Value = capabilities.read().unwrap_or_default();
        let has = |path: &str| declared.pointer(path).is_some_and(|value| !value.is_null());
        let asked: Asked = self.params.read().unwrap_or_default();
        match self.method {
            method::ELICIT if asked.mode.as_deref() == Some("url") => {
                (!has("/elicitation/url")).then(|| json!({ "elicitation": { "url": {} } }))
            }
            // `{}` stands for forms, as it did before there was anything else.
            method::ELICIT => (!has("/elicitation")
                || has("/elicitation/url") && !has("/elicitation/form"))
            .then(|| json!({ "elicitation": { "form": {} } })),
            method::SAMPLING if asked.tools.is_some() => {
                (!has("/sampling/tools")).then(|| json!({ "sampling": { "tools": {} } }))
            }
            method::SAMPLING if asked.include_context.is_some_and(|what| what != "none") => {
                (!has("/sampling/context")).then(|| json!({ "sampling": { "context": {} } }))
            }
            method::SAMPLING => (!has("/sampling")).then(|| json!({ "sampling": {} })),
            method::ROOTS_LIST => (!has("/roots")).then(|| json!({ "roots": {} })),
            _ => Some(json!({})),
        }
    }
}

/// The questions of one modern request.
#[derive(Debug)]
pub(crate) struct Rounds {
    method: String,
    params: Option<Raw>,
    key: Option<StateKey>,
    known: OnceLock<Result<Known, AskError>>,
    asked: Mutex<BTreeMap<String, Raw>>,
    noted: Mutex<BTreeMap<String, Raw>>,
    asks: Notify,
}

/// What earlier rounds brought.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Known {
    answers: BTreeMap<String, Raw>,
    notes: BTreeMap<String, Raw>,
}

impl Rounds {
    pub(crate) fn new(method: &str, params: Option<Raw>, key: Option<StateKey>) -> Self {
        Self {
            method: method.to_owned(),
            params,
            key,
            known: OnceLock::new(),
            asked: Mutex::default(),
            noted: Mutex::default(),
            asks: Notify::new(),
        }
    }

    async fn ask(&self, key: &str, question: Question<'_>) -> Result<Raw, AskError> {
        if let Some(answer) = self.known()?.answers.get(key).filter(|answer| answer.is_object()) {
            return Ok(answer.clone());
        }
        let request = json!({ "method": question.method, "params": question.params });
        lock(&self.asked).insert(key.to_owned(), Raw::of(&request));
        self.asks.notify_one();
        // The request ends here; whoever polls it drops it.
        std::future::pending().await
    }

    /// What an earlier round noted under `key`.
    pub(crate) fn note(&self, key: &str) -> Result<Option<Raw>, AskError> {
        Ok(self.known()?.notes.get(key).cloned())
    }

    /// Notes something for the rounds to come.
    pub(crate) fn set_note(&self, key: &str, value: Raw) {
        lock(&self.noted).insert(key.to_owned(), value);
    }

    /// Resolves once something was asked that is not known.
    pub(crate) async fn asked(&self) {
        self.asks.notified().await;
    }

    /// The result that asks the client.
    pub(crate) fn input_required(&self) -> Result<Raw, RpcError> {
        let key = self.state_key()?;
        let mut known = self.known()?.clone();
        known.notes.append(&mut lock(&self.noted));
        let requests = std::mem::take(&mut *lock(&self.asked));
        let state = key.seal(&self.purpose().map_err(fault::invalid_params)?, &known);
        Ok(Raw::of(&json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": state,
        })))
    }

    /// Read on first use only: a handler that asks nothing may hand its parameters on as they are.
    fn known(&self) -> Result<&Known, AskError> {
        let known = self.known.get_or_init(|| self.read());
        known.as_ref().map_err(Clone::clone)
    }

    fn read(&self) -> Result<Known, AskError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Retry {
            input_responses: Option<BTreeMap<String, Raw>>,
            request_state: Option<String>,
        }
        let unusable = |why: String| AskError::Unusable(why);
        let Some(params) = &self.params else { return Ok(Known::default()) };
        let retry: Retry = params.read().map_err(|error| unusable(error.to_string()))?;
        let mut known = match retry.request_state {
            None => Known::default(),
            Some(state) => {
                let purpose = self.purpose().map_err(|error| unusable(error.to_string()))?;
                self.state_key()
                    .map_err(|error| unusable(error.message))?
                    .open::<Known>(&purpose, &state)
                    .map_err(|why| unusable(format!("requestState cannot be used: {why}")))?
            }
        };
        known.answers.extend(retry.input_responses.unwrap_or_default());
        Ok(known)
    }

    fn state_key(&self) -> Result<StateKey, RpcError> {
        self.key.clone().map_or_else(StateKey::of_process, Ok).map_err(|error| {
            tracing::error!(%error, "no random bytes for a key");
            fault::internal("the server cannot ask for anything now")
        })
    }

    /// Method, name and arguments: a state is for one request only.
    ///
    /// # Errors
    /// They cannot be told apart from others: they nest too deep, hold too much, or a number out of
    /// range.
    fn purpose(&self) -> Result<String, TreeError> {
        let params = self.params.as_ref().map(Raw::read).transpose()?;
        let params: BTreeMap<String, Raw> = params.unwrap_or_default();
        let mut purpose = self.method.clone();
        for (key, value) in params {
            if ["_meta", "inputResponses", "requestState"].contains(&key.as_str()) {
                continue;
            }
            // Whoever sends it again may order its members differently.
            let mut value = value.tree(MOST_VALUES)?;
            value.sort_all_objects();
            purpose += &format!(" {key:?}: {value}");
        }
        Ok(purpose)
    }
}

/// The questions a legacy session waits for.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    next: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    closed: bool,
    answers: HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>,
}

impl Requests {
    async fn ask(
        self: &Arc<Self>,
        out: &mpsc::Sender<String>,
        question: Question<'_>,
    ) -> Result<Raw, AskError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return Err(AskError::Gone);
            }
            waiting.answers.insert(id, sender);
        }
        let mut asked = Asked { requests: Arc::clone(self), id, out: out.clone(), over: false };
        let params = Params::from_raw(question.params).unwrap_or_default();
        out.send(message::request(id, question.method, &params))
            .await
            .map_err(|_| AskError::Gone)?;
        let outcome = answer.await;
        asked.over = true;
        outcome.map_err(|_| AskError::Gone)?.map_err(AskError::Refused)
    }

    /// Takes an answer of the client; one that nobody waits for is dropped.
    pub(crate) fn settle(&self, id: &ReplyId, outcome: Result<Raw, RpcError>) {
        let (ReplyId::Ours(id) | ReplyId::Dressed(id)) = id else { return };
        if let Some(sender) = lock(&self.waiting).answers.remove(id) {
            // Whoever asked may be gone.
            let _ = sender.send(outcome);
        }
    }

    /// No answer can come any more.
    pub(crate) fn close(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        waiting.answers.clear();
    }
}

/// One question under way; given up while its request goes on, the client is told. Whoever gives up
/// the request knows by itself that its questions are over.
struct Asked {
    requests: Arc<Requests>,
    id: u64,
    out: mpsc::Sender<String>,
    over: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let waited = lock(&self.requests.waiting).answers.remove(&self.id).is_some();
        if waited && !self.over {
            let params = Params::new().with("requestId", Raw::of(&self.id));
            // A full or closed stream only means that the client learns it later, or needs not.
            let _ = self.out.try_send(message::notification(method::CANCELLED, &params));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_may_be_asked() {
        let check = |method: &str, params: Value, declared: Value, expect: Option<Value>| {
            let question = Question { method, params: &Raw::of(&params) };
            assert_eq!(question.lacks(&Raw::of(&declared)), expect, "{method} {params} {declared}");
        };
        let form = Some(json!({"elicitation": {"form": {}}}));
        let url = Some(json!({"elicitation": {"url": {}}}));
        check(method::ELICIT, json!({}), json!({}), form.clone());
        check(method::ELICIT, json!({}), json!({"elicitation": {}}), None);
        check(method::ELICIT, json!({}), json!({"elicitation": {"form": {}}}), None);
        check(method::ELICIT, json!({}), json!({"elicitation": {"url": {}}}), form);
        check(method::ELICIT, json!({}), json!({"elicitation": {"form": {}, "url": {}}}), None);
        check(method::ELICIT, json!({"mode": "url"}), json!({"elicitation": {}}), url);
        check(method::ELICIT, json!({"mode": "url"}), json!({"elicitation": {"url": {}}}), None);
        check(method::SAMPLING, json!({}), json!({}), Some(json!({"sampling": {}})));
        check(method::SAMPLING, json!({}), json!({"sampling": {}}), None);
        let tools = Some(json!({"sampling": {"tools": {}}}));
        check(method::SAMPLING, json!({"tools": []}), json!({"sampling": {}}), tools);
        check(method::ROOTS_LIST, json!({}), json!({"roots": null}), Some(json!({"roots": {}})));
        check("tools/call", json!({}), json!({"roots": {}}), Some(json!({})));
    }

    #[test]
    fn a_state_is_for_one_request_whatever_the_order_of_its_members() {
        let rounds =
            |params: &str| Rounds::new(method::TOOLS_CALL, Some(Raw::parse(params).unwrap()), None);
        let first = rounds(r#"{"name":"a","arguments":{"x":1,"y":{"b":1,"a":2}},"_meta":{"k":1}}"#);
        let same =
            rounds(r#"{"arguments":{"y":{"a":2,"b":1},"x":1},"name":"a","requestState":"s"}"#);
        let other = rounds(r#"{"name":"a","arguments":{"x":2,"y":{"b":1,"a":2}}}"#);
        assert_eq!(first.purpose().unwrap(), same.purpose().unwrap());
        assert_ne!(first.purpose().unwrap(), other.purpose().unwrap());
        let deep = format!(r#"{{"name":"a","arguments":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for odd in [&*deep, r#"{"name":"a","arguments":{"x":1e400}}"#] {
            assert!(rounds(odd).purpose().is_err(), "no state is given for what cannot be read");
        }
    }
}
