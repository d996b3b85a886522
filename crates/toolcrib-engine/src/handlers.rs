//! What this client does for servers that ask it for something while they work on a request. Giving
//! a handler switches on that capability and no other; what has no handler is refused.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    ask::{Elicited, FormQuestion, Question, Root, Sampled, SamplingQuestion, UrlQuestion},
    limits::Limits,
    raw::Raw,
    rpc::{RpcError, error},
};
use toolcrib_link::Host;

use crate::judge::judge;

type Answer<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, A> + Send + Sync>;

/// Why a model gives no answer, in words for the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declined(pub String);

/// Handlers for what servers ask of their client (specification, client/elicitation,
/// client/sampling, client/roots). They serve both eras alike: requests of a legacy server, and
/// `input_required` results of a modern one. A handler may take its time: it is not counted against
/// the call that it holds up.
///
/// ```
/// use toolcrib_engine::{Elicited, Handlers, Options};
///
/// let handlers = Handlers::new().on_form(|question| async move {
///     println!("{} asks: {}", question.server, question.message);
///     Elicited::Decline
/// });
/// let options = Options { handlers, ..Options::default() };
/// ```
#[derive(Clone, Default)]
pub struct Handlers {
    form: Option<Answer<FormQuestion, Elicited>>,
    url: Option<Answer<UrlQuestion, Elicited>>,
    sampling: Option<Answer<SamplingQuestion, Result<Sampled, Declined>>>,
    roots: Option<Answer<String, Vec<Root>>>,
}

impl Handlers {
    /// None: nothing is declared, and everything is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks a person to fill in a form (`elicitation.form`). Accepted content that does not fit the
    /// form is not sent: the server hears of an error of ours instead.
    #[must_use]
    pub fn on_form<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(FormQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Elicited> + Send + 'static,
    {
        self.form = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// Asks a person to go to a URL (`elicitation.url`). Nothing is ever opened by this library.
    #[must_use]
    pub fn on_url<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(UrlQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Elicited> + Send + 'static,
    {
        self.url = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// Asks a model (`sampling`). The specification wants a person in between.
    #[must_use]
    pub fn on_sampling<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(SamplingQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Sampled, Declined>> + Send + 'static,
    {
        self.sampling = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// Says in which folders the server of this name may work (`roots`).
    #[must_use]
    pub fn on_roots<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(String) -> A + Send + Sync + 'static,
        A: Future<Output = Vec<Root>> + Send + 'static,
    {
        self.roots = Some(Arc::new(move |server| Box::pin(ask(server))));
        self
    }

    /// `ClientCapabilities` as declared; `None` when there is no handler.
    pub fn capabilities(&self) -> Option<Value> {
        let mut all = Map::new();
        let mut elicitation = Map::new();
        if self.form.is_some() {
            elicitation.insert("form".to_owned(), json!({}));
        }
        if self.url.is_some() {
            elicitation.insert("url".to_owned(), json!({}));
        }
        if !elicitation.is_empty() {
            all.insert("elicitation".to_owned(), elicitation.into());
        }
        if self.sampling.is_some() {
            all.insert("sampling".to_owned(), json!({}));
        }
        if self.roots.is_some() {
            all.insert("roots".to_owned(), json!({}));
        }
        (!all.is_empty()).then(|| all.into())
    }

    /// What is offered to one server.
    pub(crate) fn host(&self, server: &str, limits: &Limits) -> Option<Host> {
        let capabilities = Raw::of(&self.capabilities()?);
        let (handlers, server, limits) = (self.clone(), server.to_owned(), limits.clone());
        Some(Host {
            capabilities,
            answer: Arc::new(move |method, params| {
                let (handlers, limits, server) = (handlers.clone(), limits.clone(), server.clone());
                Box::pin(async move {
                    let (asker, bounds) = (server.clone(), limits.clone());
                    let reading = move || Question::read(&asker, &method, params.as_ref(), &bounds);
                    let question = judge(reading)
                        .await
                        .map_err(|why| RpcError::new(error::INVALID_PARAMS, why.to_string()))?;
                    handlers.answer(question, server, limits).await
                })
            }),
        })
    }

    async fn answer(
        &self,
        question: Question,
        server: String,
        limits: Limits,
    ) -> Result<Raw, RpcError> {
        match question {
            Question::Form(question) => {
                let ask = self.form.as_ref().ok_or_else(|| not_offered("elicitation by a form"))?;
                let form = question.form.clone();
                let answer = ask(question).await;
                if let Elicited::Accept(content) = &answer {
                    let content = content.clone();
                    let checked = judge(move || form.check(&content, &limits)).await;
                    checked.map_err(|misfit| {
                        tracing::warn!(server, %misfit, "an answer that does not fit is not sent");
                        RpcError::new(error::INTERNAL, "the client has no answer that fits")
                    })?;
                }
                Ok(answer.to_result(true))
            }
            Question::Url(question) => {
                let ask = self.url.as_ref().ok_or_else(|| not_offered("elicitation by a URL"))?;
                Ok(ask(question).await.to_result(false))
            }
            Question::Sampling(question) => {
                let ask = self.sampling.as_ref().ok_or_else(|| not_offered("sampling"))?;
                let sampled = ask(question).await;
                let refused = |Declined(why)| RpcError::new(USER_REJECTED, why);
                sampled.map(|sampled| sampled.to_result()).map_err(refused)
            }
            Question::Roots => {
                let ask = self.roots.as_ref().ok_or_else(|| not_offered("roots"))?;
                Ok(Root::to_result(&ask(server).await))
            }
        }
    }
}

/// The code that the specification uses for a sampling request that a person rejected.
const USER_REJECTED: i64 = -1;

fn not_offered(what: &str) -> RpcError {
    // As the specification wants it for a mode that was not declared.
    RpcError::new(error::INVALID_PARAMS, format!("{what} is not offered by this client"))
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").field("capabilities", &self.capabilities()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_switches_on_its_own_capability_only() {
        let check = |handlers: Handlers, expect: Option<Value>| {
            assert_eq!(handlers.capabilities(), expect);
        };
        check(Handlers::new(), None);
        let form = Handlers::new().on_form(|_| async { Elicited::Cancel });
        check(form.clone(), Some(json!({"elicitation": {"form": {}}})));
        let url = form.on_url(|_| async { Elicited::Cancel });
        check(url, Some(json!({"elicitation": {"form": {}, "url": {}}})));
        let roots = Handlers::new().on_roots(|_| async { Vec::new() });
        check(roots, Some(json!({"roots": {}})));
        let sampling = Handlers::new().on_sampling(|_| async { Err(Declined("no".into())) });
        check(sampling, Some(json!({"sampling": {}})));
    }

    #[tokio::test]
    async fn what_has_no_handler_or_does_not_fit_is_refused() {
        let handlers = Handlers::new().on_form(|_| async { Elicited::Accept(Map::new()) });
        let host = handlers.host("s", &Limits::default()).unwrap();
        let ask = async |params: Value| {
            let params = Some(Raw::of(&params));
            (host.answer)("elicitation/create".to_owned(), params).await
        };
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let asked = ask(json!({"message": "m", "requestedSchema": schema})).await.unwrap();
        assert_eq!(asked.get(), r#"{"action":"accept","content":{}}"#);
        let mut strict = schema;
        strict["required"] = json!(["a"]);
        let misfit = ask(json!({"message": "m", "requestedSchema": strict})).await.unwrap_err();
        assert_eq!(misfit.code, error::INTERNAL);
        let url = json!({"mode": "url", "message": "m", "url": "https://a.example"});
        assert_eq!(ask(url).await.unwrap_err().code, error::INVALID_PARAMS);
    }
}
