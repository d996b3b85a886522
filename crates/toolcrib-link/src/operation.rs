//! The four requests that make a server do something, each a value.
//!
//! This is the one place that names their methods; whoever sends one goes through
//! [`Session::perform`].

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;
use toolcrib_core::{
    level::LogLevel,
    limits::Limits,
    raw::Raw,
    rpc::{
        Params, Progress, RpcError, error,
        message::{member, members},
        method,
    },
    version::Era,
};

use crate::session::{Answer, RequestError, Sending, Session};

/// Something asked of a server.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Run a tool.
    Call {
        /// The server's own name of the tool.
        name: String,
        /// Its arguments; absent when not given.
        arguments: Option<Raw>,
    },
    /// Read a resource.
    Read {
        /// Its URI.
        uri: String,
    },
    /// Render a prompt.
    Prompt {
        /// The server's own name of the prompt.
        name: String,
        /// Its arguments; absent when not given.
        arguments: Option<Raw>,
    },
    /// Complete an argument.
    Complete {
        /// `ref` as in the specification.
        reference: Raw,
        /// `argument` as in the specification.
        argument: Raw,
        /// `context` as in the specification, since 2025-06-18.
        context: Option<Raw>,
    },
}

/// How an operation is performed.
#[derive(Debug, Clone, Default)]
pub struct Performing {
    /// How long to wait for the answer; the session's own when absent.
    pub timeout: Option<Duration>,
    /// How long one request may take in all, however much progress it reports; the session's own
    /// when absent, and never less than `timeout`.
    pub timeout_max: Option<Duration>,
    /// Where progress goes; asked for only when present.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The least level of log messages that a modern server is to send with this request. Legacy
    /// servers have one level for all ([`Session::set_log_level`]).
    pub log_level: Option<LogLevel>,
    /// `Mcp-Param-{0}: {1}`, for HTTP.
    pub mirrored: Vec<(String, String)>,
    /// Answers to an earlier `input_required`: `inputResponses` and `requestState`.
    pub resumed: Option<Resumed>,
}

/// What a retry after `input_required` carries (specification, basic/patterns/mrtr).
#[derive(Debug, Clone)]
pub struct Resumed {
    /// Answers by the key of their request.
    pub responses: Option<Raw>,
    /// The state as received, to the letter.
    pub state: Option<Raw>,
}

impl Operation {
    /// The method on the wire.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Call { .. } => method::TOOLS_CALL,
            Self::Read { .. } => method::RESOURCES_READ,
            Self::Prompt { .. } => method::PROMPTS_GET,
            Self::Complete { .. } => method::COMPLETE,
        }
    }

    fn params(&self) -> Params {
        match self {
            Self::Call { name, arguments } | Self::Prompt { name, arguments } => {
                let params = Params::new().with("name", Raw::of(name));
                match arguments {
                    Some(arguments) => params.with("arguments", arguments.clone()),
                    None => params,
                }
            }
            Self::Read { uri } => Params::new().with("uri", Raw::of(uri)),
            Self::Complete { reference, argument, context } => {
                let params = Params::new().with("ref", reference.clone());
                let params = params.with("argument", argument.clone());
                match context {
                    Some(context) => params.with("context", context.clone()),
                    None => params,
                }
            }
        }
    }

    fn mirror_name(&self) -> Option<String> {
        match self {
            Self::Call { name, .. } | Self::Prompt { name, .. } => Some(name.clone()),
            Self::Read { uri } => Some(uri.clone()),
            Self::Complete { .. } => None,
        }
    }
}

impl Session {
    /// Performs an operation. Dropping the future gives the request up and tells the server.
    ///
    /// A modern server that asks for input first (`input_required`) is answered by the host, when
    /// there is one that offers all it asks for; else the answer is handed up as it came. Nothing
    /// else is checked here: arguments, policy and receipts are the caller's.
    ///
    /// # Errors
    /// See [`RequestError`]; an `isError` result of a tool is no error here.
    pub async fn perform(
        &self,
        operation: &Operation,
        performing: Performing,
    ) -> Result<Answer, RequestError> {
        let Performing { timeout, timeout_max, progress, log_level, mirrored, mut resumed } =
            performing;
        let _under_way = self.mux().under_way();
        let rounds = self.limits().input_rounds;
        for _ in 0..=rounds {
            let mut params = operation.params();
            if let Some(Resumed { responses, state }) = resumed.take() {
                let with = |params: Params, key, value: Option<Raw>| match value {
                    Some(value) => params.with(key, value),
                    None => params,
                };
                params = with(params, "inputResponses", responses);
                params = with(params, "requestState", state);
            }
            let wait = timeout.unwrap_or(self.timeouts().call);
            let sending = Sending {
                mirror_name: operation.mirror_name(),
                mirror_params: mirrored.clone(),
                progress: progress.clone(),
                wait,
                wait_max: timeout_max.unwrap_or(self.timeouts().call_max).max(wait),
                log_level,
            };
            let answer = match self.request(operation.method(), &params, sending).await {
                Err(RequestError::Rpc(error)) if self.visited(&error).await => continue,
                answer => answer?,
            };
            match answer {
                Answer::InputRequired(result) => {
                    match self.resume(operation.method(), &result).await? {
                        Some(answers) => resumed = Some(answers),
                        None => return Ok(Answer::InputRequired(result)),
                    }
                }
                complete => return Ok(complete),
            }
        }
        Err(RequestError::Unusable {
            method: operation.method(),
            why: format!("it asked for input more than {rounds} times"),
        })
    }

    /// True when a legacy server refused because pages are to be visited first (2025-11-25, client/
    /// elicitation), and the host's person agreed to every one: then the request may be repeated,
    /// since it did not run.
    async fn visited(&self, error: &RpcError) -> bool {
        let wanted = error.code == error::URL_ELICITATION_REQUIRED;
        let legacy = self.negotiated().era == Era::Legacy;
        let host = self.mux().host().filter(|host| host.offers(method::ELICIT));
        let (true, Some(host), Some(data)) = (wanted && legacy, host, &error.data) else {
            return false;
        };
        let pages = member(data, "elicitations");
        let Some(pages) = pages.and_then(|pages| pages.read::<Vec<Raw>>().ok()) else {
            return false;
        };
        let most = self.limits().inputs;
        if pages.is_empty() || pages.len() > most {
            return false;
        }
        for page in pages {
            let answer = host.ask(method::ELICIT.to_owned(), Some(page)).await;
            let action = answer.ok().and_then(|answer| member(&answer, "action"));
            if action.is_none_or(|action| action.get() != "\"accept\"") {
                return false;
            }
        }
        true
    }

    /// The host's answers to all that a server asks for; `None` when it does not offer them all.
    /// Nobody is asked anything unless all of it is within the bounds; how many rounds there are is
    /// the caller's.
    async fn resume(
        &self,
        method: &'static str,
        result: &Raw,
    ) -> Result<Option<Resumed>, RequestError> {
        let Some(host) = self.mux().host() else { return Ok(None) };
        let read = read_inputs(result, self.limits());
        let read = read.map_err(|why| RequestError::Unusable { method, why })?;
        let Some((inputs, state)) = read else { return Ok(None) };
        let Some(inputs) = inputs else {
            // Nothing to answer: the server wants the request again (load shedding).
            return Ok(state.map(|state| Resumed { responses: None, state: Some(state) }));
        };
        let offered = |input: &Input| host.offers_question(&input.method, input.params.as_ref());
        if !inputs.iter().all(|(_, input)| offered(input)) {
            return Ok(None);
        }
        let mut responses = Params::new();
        for (key, Input { method: asked, params }) in inputs {
            let answer = host.ask(asked.clone(), params).await;
            let answer = answer.map_err(|error| RequestError::Unanswered { asked, error })?;
            responses = responses.with(key, answer);
        }
        let responses = Raw::parse(responses.encode())
            .map_err(|error| RequestError::Unusable { method, why: error.to_string() })?;
        Ok(Some(Resumed { responses: Some(responses), state }))
    }
}

/// One input that a server asks for.
#[derive(Debug, Deserialize)]
struct Input {
    method: String,
    #[serde(default)]
    params: Option<Raw>,
}

/// What is asked for, by key, and the state to be sent back to the letter.
type Inputs = (Option<Vec<(String, Input)>>, Option<Raw>);

/// Reads an `input_required` result; `None` when it is none that can be read.
///
/// # Errors
/// It asks for more than the limits allow.
fn read_inputs(result: &Raw, limits: &Limits) -> Result<Option<Inputs>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        #[serde(default)]
        input_requests: Option<Raw>,
        #[serde(default)]
        request_state: Option<Raw>,
    }
    let size = result.get().len();
    if size > limits.input_bytes {
        return Err(format!("it asks for input with {size} bytes; {} is most", limits.input_bytes));
    }
    let Ok(Asked { input_requests, request_state }) = result.read() else { return Ok(None) };
    let Some(requests) = input_requests else { return Ok(Some((None, request_state))) };
    let Ok(requests) = members(&requests) else { return Ok(None) };
    if requests.len() > limits.inputs {
        let (many, most) = (requests.len(), limits.inputs);
        return Err(format!("it asks for {many} inputs at once; {most} is most"));
    }
    let read = requests.into_iter().map(|(key, input)| Some((key, input.read().ok()?)));
    let Some(inputs) = read.collect() else { return Ok(None) };
    Ok(Some((Some(inputs), request_state)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_bounded() {
        let limits = Limits { inputs: 2, input_bytes: 200, ..Limits::default() };
        let check = |text: &str, expect: Result<Option<usize>, &str>| {
            let read = read_inputs(&Raw::parse(text).unwrap(), &limits);
            let read = read.map(|read| read.map(|(inputs, _)| inputs.map_or(0, |all| all.len())));
            match (read, expect) {
                (Ok(read), Ok(expect)) => assert_eq!(read, expect, "{text}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (read, _) => panic!("{read:?} for {text}"),
            }
        };
        let input = r#"{"method":"roots/list"}"#;
        check(&format!(r#"{{"inputRequests":{{"a":{input},"b":{input}}}}}"#), Ok(Some(2)));
        let three = format!(r#"{{"inputRequests":{{"a":{input},"b":{input},"c":{input}}}}}"#);
        check(&three, Err("3 inputs"));
        check(&format!(r#"{{"requestState":"{}"}}"#, "x".repeat(300)), Err("bytes"));
        check(r#"{"requestState":"x"}"#, Ok(Some(0)));
        check(r#"{"inputRequests":{"a":{}}}"#, Ok(None));
        check(r#"{"inputRequests":[]}"#, Ok(None));
    }
}
