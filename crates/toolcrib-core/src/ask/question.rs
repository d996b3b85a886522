//! The requests of a server to its client, and the answers (specification, client/elicitation,
//! client/sampling, client/roots). In the legacy era they are JSON-RPC requests, in the modern one
//! they stand in an `input_required` result; their parameters are the same.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::form::{Form, FormError};
use crate::{limits::Limits, raw::Raw, rpc::method, sanitise};

/// Most characters of a URL that a person is sent to.
const URL_CHARS: usize = 4_096;

/// What a server asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// `elicitation/create` in form mode.
    Form(FormQuestion),
    /// `elicitation/create` in URL mode.
    Url(UrlQuestion),
    /// `sampling/createMessage`.
    Sampling(SamplingQuestion),
    /// `roots/list`.
    Roots,
}

/// Asks a person to fill in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormQuestion {
    /// The server that asks, by the name we chose; empty where that is not known.
    pub server: String,
    /// What it says; untrusted.
    pub message: String,
    /// The form.
    pub form: Form,
}

/// Asks a person to open a URL, outside of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlQuestion {
    /// The server that asks, by the name we chose; empty where that is not known.
    pub server: String,
    /// What it says; untrusted.
    pub message: String,
    /// The URL as sent: never to be opened without a person's consent.
    pub url: String,
    /// Its host, with the port when there is one: where the person would go.
    pub host: String,
}

/// Asks for a model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingQuestion {
    /// The server that asks, by the name we chose; empty where that is not known.
    pub server: String,
    /// The parameters as sent: `messages`, `modelPreferences`, `tools` and the rest.
    pub params: Raw,
    /// `systemPrompt`; untrusted.
    pub system_prompt: Option<String>,
    /// `maxTokens`: the most tokens the answer may have.
    pub max_tokens: Option<u64>,
}

/// Why a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuestionError {
    /// It is none of those that a client answers.
    #[error("{0} is nothing a client answers")]
    Unknown(String),
    /// Its parameters are not what they should be.
    #[error("the parameters of {method} cannot be read: {why}")]
    Params {
        /// The method.
        method: &'static str,
        /// Why.
        why: String,
    },
    /// Its form is none.
    #[error("{0}")]
    Form(#[from] FormError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicit {
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Option<Raw>,
    #[serde(default)]
    url: Option<String>,
}

impl Question {
    /// Reads a request of `server`.
    ///
    /// # Errors
    /// It is none that a client answers, or cannot be read.
    pub fn read(
        server: &str,
        method: &str,
        params: Option<&Raw>,
        limits: &Limits,
    ) -> Result<Self, QuestionError> {
        match method {
            method::ELICIT => elicitation(server, params, limits),
            method::SAMPLING => sampling(server, params),
            method::ROOTS_LIST => Ok(Self::Roots),
            other => Err(QuestionError::Unknown(sanitise::line(other, 80))),
        }
    }
}

fn odd(method: &'static str, why: impl ToString) -> QuestionError {
    QuestionError::Params { method, why: sanitise::line(&why.to_string(), 120) }
}

fn elicitation(
    server: &str,
    params: Option<&Raw>,
    limits: &Limits,
) -> Result<Question, QuestionError> {
    let odd = |why: &str| odd(method::ELICIT, why);
    let params = params.filter(|params| params.is_object()).ok_or_else(|| odd("no object"))?;
    let read: Elicit = params.read().map_err(|error| odd(&error.to_string()))?;
    let (server, message) = (server.to_owned(), read.message);
    match read.mode.as_deref() {
        None | Some("form") => {
            let schema = read.requested_schema.ok_or_else(|| odd("no requestedSchema"))?;
            let form = Form::read(&schema, limits)?;
            Ok(Question::Form(FormQuestion { server, message, form }))
        }
        Some("url") => {
            let url = read.url.ok_or_else(|| odd("no url"))?;
            let host = host(&url).ok_or_else(|| odd("its url is none of http or https"))?;
            Ok(Question::Url(UrlQuestion { server, message, url, host }))
        }
        Some(other) => Err(odd(&format!("mode {other} is not known"))),
    }
}

/// The host of an http or https URL without credentials in it, which serve to mislead; `None` for
/// anything else.
fn host(url: &str) -> Option<String> {
    if url.chars().count() > URL_CHARS || url.contains(sanitise::is_hidden) {
        return None;
    }
    let parsed = iri_string::types::UriStr::new(url).ok()?;
    let scheme = parsed.scheme_str();
    let authority = parsed.authority_components()?;
    let known = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    if !known || authority.userinfo().is_some() || authority.host().is_empty() {
        return None;
    }
    let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", authority.host().to_lowercase()))
}

fn sampling(server: &str, params: Option<&Raw>) -> Result<Question, QuestionError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Sampling {
        #[serde(default)]
        system_prompt: Option<String>,
        #[serde(default)]
        max_tokens: Option<u64>,
    }
    let no_object = || odd(method::SAMPLING, "no object");
    let params = params.filter(|params| params.is_object()).ok_or_else(no_object)?;
    let read: Sampling = params.read().map_err(|error| odd(method::SAMPLING, error))?;
    Ok(Question::Sampling(SamplingQuestion {
        server: server.to_owned(),
        params: params.clone(),
        system_prompt: read.system_prompt,
        max_tokens: read.max_tokens,
    }))
}

/// A person's answer to an elicitation. The three are distinct: who declines was asked and said no,
/// who cancels gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited {
    /// Yes, with the content of a form; empty for a URL, where it means consent and nothing more.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Neither.
    Cancel,
}

impl Elicited {
    /// The result as sent. A form's content goes with it, also when it is empty.
    pub fn to_result(&self, of_form: bool) -> Raw {
        Raw::of(&match self {
            Self::Accept(content) if of_form => json!({"action": "accept", "content": content}),
            Self::Accept(_) => json!({"action": "accept"}),
            Self::Decline => json!({"action": "decline"}),
            Self::Cancel => json!({"action": "cancel"}),
        })
    }
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// The model that answered.
    pub model: String,
    /// `content` as it goes to the server: one block, or a list of blocks.
    pub content: Raw,
    /// `stopReason`: `endTurn`, `maxTokens` and so on; absent when not known.
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// An answer of plain text that ended by itself.
    pub fn text(model: impl Into<String>, text: &str) -> Self {
        let content = Raw::of(&json!({"type": "text", "text": text}));
        Self { model: model.into(), content, stop_reason: Some("endTurn".to_owned()) }
    }

    /// The result as sent.
    pub fn to_result(&self) -> Raw {
        let mut result = json!({"role": "assistant", "model": self.model, "content": self.content});
        if let Some(reason) = &self.stop_reason {
            result["stopReason"] = reason.as_str().into();
        }
        Raw::of(&result)
    }
}

/// A folder that a server may work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Its `file://` URI.
    pub uri: String,
    /// A name for it.
    pub name: Option<String>,
}

impl Root {
    /// The result of `roots/list` as sent.
    pub fn to_result(roots: &[Self]) -> Raw {
        let root = |root: &Self| match &root.name {
            Some(name) => json!({"uri": root.uri, "name": name}),
            None => json!({"uri": root.uri}),
        };
        Raw::of(&json!({"roots": roots.iter().map(root).collect::<Vec<_>>()}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, params: &str) -> Result<Question, QuestionError> {
        let params = Raw::parse(params).unwrap();
        Question::read("s", method, Some(&params), &Limits::default())
    }

    #[test]
    fn a_url_is_shown_with_the_host_it_leads_to() {
        let check = |url: &str, expect: Option<&str>| {
            let params = json!({"mode": "url", "message": "m", "url": url}).to_string();
            let host = match read("elicitation/create", &params) {
                Ok(Question::Url(question)) => Some(question.host),
                _ => None,
            };
            assert_eq!(host.as_deref(), expect, "{url}");
        };
        check("https://Auth.Example/start?x=1", Some("auth.example"));
        check("http://127.0.0.1:8080/a", Some("127.0.0.1:8080"));
        check("https://bank.example@evil.example/", None);
        check("javascript:alert(1)", None);
        check("file:///etc/passwd", None);
        check("https:///nowhere", None);
        check("https://a.example/\u{1b}[2J", None);
        check("https://аpple.example/", None);
    }

    #[test]
    fn what_cannot_be_answered_is_an_error() {
        let check = |method: &str, params: &str, part: &str| {
            let error = read(method, params).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check("elicitation/create", r#"{"message":"m"}"#, "requestedSchema");
        check("elicitation/create", r#"{"mode":"x"}"#, "mode x");
        check("elicitation/create", "[]", "no object");
        check("tools/list", "{}", "tools/list");
        check("sampling/createMessage", r#"{"maxTokens":"many"}"#, "sampling");
    }

    #[test]
    fn answers_are_what_the_specification_says() {
        let content = Map::from_iter([("a".to_owned(), json!(1))]);
        let check = |answer: Raw, expect: &str| assert_eq!(answer.get(), expect);
        let accept = Elicited::Accept(content);
        check(accept.to_result(true), r#"{"action":"accept","content":{"a":1}}"#);
        check(accept.to_result(false), r#"{"action":"accept"}"#);
        check(Elicited::Decline.to_result(true), r#"{"action":"decline"}"#);
        check(Elicited::Cancel.to_result(true), r#"{"action":"cancel"}"#);
        let root = Root { uri: "file:///a".to_owned(), name: None };
        check(Root::to_result(&[root]), r#"{"roots":[{"uri":"file:///a"}]}"#);
        let sampled = Sampled { stop_reason: None, ..Sampled::text("m", "hi") };
        check(
            sampled.to_result(),
            r#"{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}"#,
        );
    }
}
