//! Prompts.

use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    check::schema::ToolCheck,
    limits::Limits,
    raw::Raw,
    rpc::{RpcError, method},
    version::Era,
};

use super::{
    complete::{Completers, Completing},
    content::Message,
    context::Context,
    error::DeclareError,
    failure::Failure,
    function::Function,
    output::IntoMessages,
    resource::typed,
    shelf::Shelved,
};
use crate::fault;

type Made = Pin<Box<dyn Future<Output = Result<Vec<Message>, Failure>> + Send>>;
type Make = Arc<dyn Fn(Raw, Context) -> Made + Send + Sync>;

/// Messages that a person can start from.
#[derive(Clone)]
pub struct Prompt {
    name: String,
    members: Map<String, Value>,
    arguments: Value,
    completers: Completers,
    make: Make,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Prompt {
    /// Makes a prompt of a function. The fields of its argument are the arguments of the prompt,
    /// their doc texts the descriptions. On the wire they are texts; a field that is a number or a
    /// flag is read from one.
    pub fn new<F, S>(name: impl Into<String>, function: F) -> Self
    where
        F: Function<S>,
        F::Output: IntoMessages,
    {
        let erasing = function.erase();
        let call = erasing.call;
        let make: Make = Arc::new(move |arguments, context| {
            let called = call(arguments, context);
            Box::pin(async {
                let made = called.await.map_err(|why| {
                    Failure::from(fault::invalid_params(format!("bad arguments: {why}")))
                });
                made?.into_messages()
            })
        });
        let mut members = Map::new();
        if let Some(text) = erasing.derived.description {
            members.insert("description".to_owned(), text.into());
        }
        Self {
            name: name.into(),
            members,
            arguments: Value::Object(erasing.derived.schema),
            completers: Completers::default(),
            make,
        }
    }

    /// Its display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", title.into())
    }

    /// What it is for; instead of the doc text.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", text.into())
    }

    /// Sets another member of the definition, such as `icons` or `_meta`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// Lets `function` complete an argument.
    #[must_use]
    pub fn complete<Fut>(
        mut self,
        argument: &str,
        function: impl Fn(Completing) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.set(argument, function);
        self
    }

    /// Writes its definition down.
    pub(crate) fn declare(self) -> Result<DeclaredPrompt, DeclareError> {
        let unusable = |why: String| DeclareError::unusable("prompt", &self.name, why);
        if self.name.is_empty() {
            return Err(unusable("it has no name".to_owned()));
        }
        if self.arguments["type"] != "object" {
            return Err(unusable("its argument must be a struct".to_owned()));
        }
        let required = self.arguments["required"].as_array().cloned().unwrap_or_default();
        let empty = Map::new();
        let fields = self.arguments["properties"].as_object().unwrap_or(&empty);
        let is_text = |field: &Value| {
            let plain = ["string", "integer", "number", "boolean"];
            let kinds = field.get("type").into_iter().flat_map(|kind| match kind {
                Value::Array(kinds) => kinds.as_slice(),
                one => std::slice::from_ref(one),
            });
            kinds.filter_map(Value::as_str).any(|kind| plain.contains(&kind))
                || ["enum", "oneOf", "anyOf", "const"].iter().any(|key| field.get(key).is_some())
        };
        if let Some((name, _)) = fields.iter().find(|(_, field)| !is_text(field)) {
            return Err(unusable(format!(
                "the argument {name:?} is neither text, number, flag nor choice, and on the wire it is a text"
            )));
        }
        if let Some(name) = self.completers.arguments().find(|name| !fields.contains_key(*name)) {
            return Err(unusable(format!("it completes {name:?}, no argument of it")));
        }
        let arguments: Vec<_> =
            fields.iter().map(|(name, field)| argument(name, field, &required)).collect();
        let mut out = Map::from_iter([("name".to_owned(), json!(self.name))]);
        out.extend(self.members);
        if !arguments.is_empty() {
            out.insert("arguments".to_owned(), Value::Array(arguments));
        }
        let limits = Limits::default();
        Ok(DeclaredPrompt {
            description: out.get("description").cloned(),
            definition: Raw::of(&out),
            check: ToolCheck::of_schemas(&self.name, Raw::of(&self.arguments), None, &limits),
            name: self.name,
            arguments: self.arguments,
            completers: self.completers,
            make: self.make,
        })
    }
}

fn argument(name: &str, field: &Value, required: &[Value]) -> Value {
    let mut out = json!({ "name": name });
    for key in ["title", "description"] {
        if let Some(text) = field.get(key) {
            out[key] = text.clone();
        }
    }
    out["required"] = required.iter().any(|one| one == name).into();
    out
}

/// A prompt as it is served.
pub(crate) struct DeclaredPrompt {
    name: String,
    description: Option<Value>,
    definition: Raw,
    arguments: Value,
    check: ToolCheck,
    pub(crate) completers: Completers,
    make: Make,
}

impl Shelved for DeclaredPrompt {
    const KIND: &'static str = "prompt";
    const LIST: (&'static str, &'static str) = (method::PROMPTS_LIST, "prompts");

    fn key(&self) -> &str {
        &self.name
    }

    fn definition(&self, _: Era) -> &Raw {
        &self.definition
    }
}

impl DeclaredPrompt {
    /// Checks the arguments and makes the messages.
    pub(crate) async fn get(
        &self,
        texts: BTreeMap<String, String>,
        context: Context,
    ) -> Result<Raw, RpcError> {
        let arguments = typed(&self.arguments, texts);
        self.check
            .arguments(Some(&arguments))
            .map_err(|misfit| fault::invalid_params(format!("{}: {misfit}", self.name)))?;
        let made = (self.make)(arguments, context).await;
        let missing = || fault::invalid_params(format!("{}: not found", self.name));
        let messages = made.map_err(|failure| failure.into_error(missing))?;
        let mut out = json!({ "messages": messages });
        if let Some(text) = &self.description {
            out["description"] = text.clone();
        }
        Ok(Raw::of(&out))
    }
}
