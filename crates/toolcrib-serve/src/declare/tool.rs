//! Tools: what is published of a function, and what happens when it is called.

use std::{fmt, pin::Pin, sync::Arc};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    check::{headers, lint, schema::ToolCheck},
    finding::Tier,
    limits::Limits,
    raw::Raw,
    rpc::{RpcError, method},
    version::Era,
};

use super::{
    context::Context,
    error::DeclareError,
    failure::Failure,
    function::Function,
    output::{IntoToolResult, ToolResult},
    shelf::Shelved,
};
use crate::{about::ServerAbout, handler::Reply, service::complete};

type Ran = Pin<Box<dyn Future<Output = Result<ToolResult, Failure>> + Send>>;
type Run = Arc<dyn Fn(Raw, Context) -> Ran + Send + Sync>;

/// A function that clients can call.
#[derive(Clone)]
pub struct Tool {
    name: String,
    members: Map<String, Value>,
    annotations: Map<String, Value>,
    input: Value,
    output: Option<Value>,
    run: Run,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tool {
    /// Makes a tool of a function. The type of its argument gives the `inputSchema`, its doc text
    /// the description; [`Json`](super::Json) in its return type gives the `outputSchema`.
    pub fn new<F, S>(name: impl Into<String>, function: F) -> Self
    where
        F: Function<S>,
        F::Output: IntoToolResult,
    {
        let erasing = function.erase();
        let call = erasing.call;
        let run: Run = Arc::new(move |arguments, context| {
            let called = call(arguments, context);
            Box::pin(async {
                called
                    .await
                    .map_err(|why| Failure::new(format!("bad arguments: {why}")))?
                    .into_tool_result()
            })
        });
        let mut members = Map::new();
        if let Some(text) = erasing.derived.description {
            members.insert("description".to_owned(), text.into());
        }
        Self {
            name: name.into(),
            members,
            annotations: Map::new(),
            input: Value::Object(erasing.derived.schema),
            output: F::Output::output_schema().map(Value::Object),
            run,
        }
    }

    /// Its display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", title.into())
    }

    /// What it does, for a model to choose by; instead of the doc text.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", text.into())
    }

    /// It changes nothing (`readOnlyHint`).
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotation("readOnlyHint", true)
    }

    /// It adds and destroys nothing (`destructiveHint: false`).
    #[must_use]
    pub fn additive(self) -> Self {
        self.annotation("destructiveHint", false)
    }

    /// Twice is as once (`idempotentHint`).
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotation("idempotentHint", true)
    }

    /// It reaches nothing beyond this server (`openWorldHint: false`).
    #[must_use]
    pub fn closed_world(self) -> Self {
        self.annotation("openWorldHint", false)
    }

    /// Publishes this `inputSchema` instead of the derived one; arguments are held against it.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input = schema;
        self
    }

    /// Publishes this `outputSchema` instead of the derived one; results are held against it.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Sets another member of the definition, such as `icons` or `_meta`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    fn annotation(mut self, hint: &str, value: bool) -> Self {
        self.annotations.insert(hint.to_owned(), value.into());
        self
    }

    /// Checks it as a client would, and writes its definition down.
    pub(crate) fn declare(self) -> Result<Declared, DeclareError> {
        let unusable = |why: String| DeclareError::unusable("tool", &self.name, why);
        if !lint::is_tool_name(&self.name) {
            let why = "a name has 1 to 128 characters out of A-Z, a-z, 0-9, `_`, `-` and `.`";
            return Err(unusable(why.to_owned()));
        }
        if self.input["type"] != "object" {
            let why = "the root of its inputSchema must say \"type\": \"object\": the argument is a \
                       struct or a map";
            return Err(unusable(why.to_owned()));
        }
        let limits = Limits::default();
        let input = Raw::of(&self.input);
        headers::mirrored(&input, &limits).map_err(&unusable)?;
        let output = self.output.as_ref().map(Raw::of);
        let check = ToolCheck::of_schemas(&self.name, input.clone(), output, &limits);
        if let Some(hard) = check.findings().iter().find(|finding| finding.tier == Tier::Hard) {
            return Err(unusable(hard.message.clone()));
        }
        let annotated = !self.annotations.is_empty();
        let define = |era: Era| {
            let mut out = Map::from_iter([("name".to_owned(), json!(self.name))]);
            out.extend(self.members.clone());
            out.insert("inputSchema".to_owned(), self.input.clone());
            // Older revisions know structured objects only.
            if let Some(output) = self.output.as_ref().filter(|output| fits(output, era)) {
                out.insert("outputSchema".to_owned(), output.clone());
            }
            if annotated {
                out.insert("annotations".to_owned(), Value::Object(self.annotations.clone()));
            }
            Raw::of(&out)
        };
        Ok(Declared {
            modern: define(Era::Modern),
            legacy: define(Era::Legacy),
            structured: self.output.as_ref().is_some_and(|output| fits(output, Era::Legacy)),
            name: self.name,
            input,
            check,
            run: self.run,
        })
    }
}

/// True when `era` can have this `outputSchema`.
fn fits(output: &Value, era: Era) -> bool {
    era == Era::Modern || output["type"] == "object"
}

/// A tool as it is served.
pub(crate) struct Declared {
    name: String,
    modern: Raw,
    legacy: Raw,
    /// Whether legacy clients get structured content.
    structured: bool,
    pub(crate) input: Raw,
    check: ToolCheck,
    run: Run,
}

impl Shelved for Declared {
    const KIND: &'static str = "tool";
    const LIST: (&'static str, &'static str) = (method::TOOLS_LIST, "tools");

    fn key(&self) -> &str {
        &self.name
    }

    fn definition(&self, era: Era) -> &Raw {
        match era {
            Era::Modern => &self.modern,
            Era::Legacy => &self.legacy,
        }
    }
}

impl Declared {
    /// Checks the arguments, runs the function and writes its result.
    pub(crate) async fn call(
        &self,
        arguments: Option<Raw>,
        context: Context,
        about: &ServerAbout,
    ) -> Result<Reply, RpcError> {
        let era = context.era();
        let outcome = match self.check.arguments(arguments.as_ref()) {
            Err(misfit) => Err(Failure::new(format!("{}: {misfit}", self.name))),
            Ok(()) => (self.run)(arguments.unwrap_or_else(Raw::empty_object), context).await,
        };
        // What a model can repair is told in a result, not as an error of the protocol.
        let mut result = match outcome {
            Ok(result) => result,
            Err(failure) => ToolResult::error(failure.into_words()?),
        };
        if era == Era::Legacy && !self.structured {
            result.structured_content = None;
        }
        if !result.is_error && (era == Era::Modern || self.structured) {
            self.check.content(result.structured_content.as_ref()).map_err(|misfit| {
                tracing::error!(tool = self.name, %misfit, "a result breaks its outputSchema");
                crate::fault::internal(format!("the tool {:?} broke its outputSchema", self.name))
            })?;
        }
        complete(&Raw::of(&result), method::TOOLS_CALL, era, about).map(Reply::Complete)
    }
}
