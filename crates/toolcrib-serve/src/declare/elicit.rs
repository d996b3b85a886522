//! Questions to the client in types: forms, addresses, its model, its roots.

use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use toolcrib_core::{check::schema, limits::Limits, raw::Raw, version::Era};

use super::{content::Message, schema as types};
use crate::ask::AskError;

/// What a person did with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Answered it.
    Accepted(T),
    /// Said no.
    Declined,
    /// Did not decide.
    Cancelled,
}

/// What a client answers to `elicitation/create`.
#[derive(Deserialize)]
struct ElicitResult {
    action: Action,
    content: Option<Raw>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// The parameters that show a form of `T`.
pub(crate) fn form<T: JsonSchema>(message: &str) -> Result<Raw, AskError> {
    let schema = types::form::<T>().map_err(AskError::NoForm)?;
    Ok(form_of(message, &schema))
}

/// The parameters that show a form.
pub(crate) fn form_of(message: &str, schema: &Value) -> Raw {
    Raw::of(&json!({ "mode": "form", "message": message, "requestedSchema": schema }))
}

/// The parameters that lead a person to an address.
pub(crate) fn address(message: &str, url: &str, era: Era) -> Raw {
    let mut params = json!({ "mode": "url", "message": message, "url": url });
    if era == Era::Legacy {
        // 2025-11-25 tells questions apart by it; later revisions need nothing of the kind.
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        params["elicitationId"] = format!("elicitation-{number}").into();
    }
    Raw::of(&params)
}

/// Reads the answer to a form, which must fit the form.
pub(crate) fn read_form<T: DeserializeOwned>(
    params: &Raw,
    answer: &Raw,
) -> Result<Elicited<T>, AskError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Form {
        requested_schema: Raw,
    }
    let misfit = |why: String| AskError::Unusable(format!("the answer does not fit: {why}"));
    let ElicitResult { action, content } =
        answer.read().map_err(|error| misfit(error.to_string()))?;
    match action {
        Action::Decline => Ok(Elicited::Declined),
        Action::Cancel => Ok(Elicited::Cancelled),
        Action::Accept => {
            let content = content.unwrap_or_else(Raw::empty_object);
            let form: Form = params.read().map_err(|error| misfit(error.to_string()))?;
            schema::fits(&form.requested_schema, &content, &Limits::default())
                .map_err(|errors| misfit(errors.to_string()))?;
            content.read().map(Elicited::Accepted).map_err(|error| misfit(error.to_string()))
        }
    }
}

/// Reads the answer to an address.
pub(crate) fn read_address(answer: &Raw) -> Result<Elicited<()>, AskError> {
    let ElicitResult { action, .. } = answer
        .read()
        .map_err(|error| AskError::Unusable(format!("the answer does not fit: {error}")))?;
    Ok(match action {
        Action::Accept => Elicited::Accepted(()),
        Action::Decline => Elicited::Declined,
        Action::Cancel => Elicited::Cancelled,
    })
}

/// A request to the client's model (`CreateMessageRequestParams` of the schema).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Most tokens to answer with.
    pub max_tokens: u32,
    /// What the model is to be told first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// How much chance is in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

impl Sampling {
    /// One question of the person, answered in at most `max_tokens`.
    pub fn new(question: impl Into<String>, max_tokens: u32) -> Self {
        Self {
            messages: vec![Message::user(question.into())],
            max_tokens,
            system_prompt: None,
            temperature: None,
        }
    }
}

/// What the client's model said (`CreateMessageResult` of the schema).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampled {
    /// Which model it was.
    #[serde(default)]
    pub model: String,
    /// Its answer: one content block, or several.
    pub content: Value,
    /// Why it stopped.
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// The text of the answer, block by block.
    pub fn text(&self) -> String {
        let blocks = match &self.content {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }
}
