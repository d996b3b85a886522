//! The four requests that make a server do something, each a value.
//!
//! This is the one place that names their methods; whoever sends one goes through
//! [`Session::perform`].

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, message::members, method},
};

use crate::session::{Answer, RequestError, Sending, Session};

/// Most rounds of `input_required` one operation may take.
const MAX_ROUNDS: usize = 8;

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
    },
}

/// How an operation is performed.
#[derive(Debug, Clone, Default)]
pub struct Performing {
    /// How long to wait for the answer; the session's own when absent.
    pub timeout: Option<Duration>,
    /// Where progress notifications go (their parameters); asked for only when present.
    pub progress: Option<mpsc::Sender<Raw>>,
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
            Self::Complete { reference, argument } => {
                Params::new().with("ref", reference.clone()).with("argument", argument.clone())
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
        let Performing { timeout, progress, mirrored, mut resumed } = performing;
        for _ in 0..MAX_ROUNDS {
            let mut params = operation.params();
            if let Some(resumed) = resumed.take() {
                if let Some(responses) = resumed.responses {
                    params = params.with("inputResponses", responses);
                }
                if let Some(state) = resumed.state {
                    params = params.with("requestState", state);
                }
            }
            let wait = timeout.unwrap_or(self.timeouts().call);
            let sending = Sending {
                mirror_name: operation.mirror_name(),
                mirror_params: mirrored.clone(),
                progress: progress.clone(),
                wait,
                wait_max: self.timeouts().call_max.max(wait),
            };
            match self.request(operation.method(), &params, sending).await? {
                Answer::InputRequired(result) => match self.resume(&result).await {
                    Some(answers) => resumed = Some(answers),
                    None => return Ok(Answer::InputRequired(result)),
                },
                complete => return Ok(complete),
            }
        }
        Err(RequestError::Unusable {
            method: operation.method(),
            why: format!("it asked for input {MAX_ROUNDS} times"),
        })
    }

    /// The host's answers to all that a server asks for; `None` when it does not offer them all.
    async fn resume(&self, result: &Raw) -> Option<Resumed> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Asked {
            #[serde(default)]
            input_requests: Option<Raw>,
            #[serde(default)]
            request_state: Option<Raw>,
        }
        #[derive(Deserialize)]
        struct Input {
            method: String,
            #[serde(default)]
            params: Option<Raw>,
        }
        let host = self.mux().host()?;
        let asked: Asked = result.read().ok()?;
        let state = asked.request_state;
        let Some(requests) = asked.input_requests else {
            // Nothing to answer: the server wants the request again (load shedding).
            return state.map(|state| Resumed { responses: None, state: Some(state) });
        };
        let mut inputs = Vec::new();
        for (key, input) in members(&requests).ok()? {
            let input: Input = input.read().ok()?;
            if !host.offers(&input.method) {
                return None;
            }
            inputs.push((key, input));
        }
        let mut responses = Params::new();
        for (key, input) in inputs {
            let answer = (host.answer)(input.method, input.params).await.ok()?;
            responses = responses.with(key, answer);
        }
        let responses = Raw::parse(responses.encode()).ok()?;
        Some(Resumed { responses: Some(responses), state })
    }
}
