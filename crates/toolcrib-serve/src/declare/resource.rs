//! Resources and resource templates.

use std::{collections::BTreeMap, fmt, pin::Pin, sync::Arc};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    check::schema::ToolCheck,
    limits::Limits,
    raw::Raw,
    rpc::{RpcError, method},
    template::UriTemplate,
    version::Era,
};

use super::{
    complete::{Completers, Completing},
    content::Contents,
    context::Context,
    error::DeclareError,
    failure::Failure,
    function::{Bare, Function, WithContext},
    output::IntoContents,
    schema,
    shelf::Shelved,
};
use crate::fault;

type Read = Pin<Box<dyn Future<Output = Result<Vec<Contents>, Failure>> + Send>>;
type Reader = Arc<dyn Fn(String, Raw, Context) -> Read + Send + Sync>;

fn reader<F, S>(function: F) -> (schema::Derived, Reader)
where
    F: Function<S>,
    F::Output: IntoContents,
{
    let erasing = function.erase();
    let call = erasing.call;
    let reader: Reader = Arc::new(move |uri, variables, context| {
        let called = call(variables, context);
        // A variable that does not fit means that there is no such resource.
        Box::pin(async move { called.await.map_err(|_| Failure::not_found())?.into_contents(&uri) })
    });
    (erasing.derived, reader)
}

/// Shapes of functions that take no argument.
#[diagnostic::on_unimplemented(
    message = "the function of a resource takes nothing, or a Context",
    note = "for resources with variables in their URI there is `Template`"
)]
pub trait WithoutArgument {}
impl WithoutArgument for Bare {}
impl WithoutArgument for WithContext {}

/// Something that can be read under a fixed URI.
#[derive(Clone)]
pub struct Resource {
    uri: String,
    members: Map<String, Value>,
    reader: Reader,
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Resource {
    /// A resource that `function` reads; it takes nothing, or a [`Context`].
    pub fn new<F, S>(uri: impl Into<String>, name: impl Into<String>, function: F) -> Self
    where
        S: WithoutArgument,
        F: Function<S>,
        F::Output: IntoContents,
    {
        let (_, reader) = reader(function);
        let members = Map::from_iter([("name".to_owned(), Value::String(name.into()))]);
        Self { uri: uri.into(), members, reader }
    }

    /// Its display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", title.into())
    }

    /// What it holds.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", text.into())
    }

    /// The media type of its contents, where they name none.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mimeType", mime_type.into())
    }

    /// Sets another member of the definition, such as `size`, `annotations` or `_meta`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// Writes its definition down.
    pub(crate) fn declare(self) -> Result<DeclaredResource, DeclareError> {
        if !self.uri.contains(':') {
            let why = "a URI begins with a scheme, such as `docs:`".to_owned();
            return Err(DeclareError::unusable("resource", &self.uri, why));
        }
        let mut out = Map::from_iter([("uri".to_owned(), json!(self.uri))]);
        out.extend(self.members);
        Ok(DeclaredResource {
            mime_type: text(&out, "mimeType"),
            definition: Raw::of(&out),
            uri: self.uri,
            reader: self.reader,
        })
    }
}

fn text(members: &Map<String, Value>, key: &str) -> Option<String> {
    members.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A resource as it is served.
pub(crate) struct DeclaredResource {
    uri: String,
    mime_type: Option<String>,
    definition: Raw,
    reader: Reader,
}

impl Shelved for DeclaredResource {
    const KIND: &'static str = "resource";
    const LIST: (&'static str, &'static str) = (method::RESOURCES_LIST, "resources");

    fn key(&self) -> &str {
        &self.uri
    }

    fn definition(&self, _: Era) -> &Raw {
        &self.definition
    }
}

impl DeclaredResource {
    pub(crate) async fn read(&self, context: Context) -> Result<Raw, RpcError> {
        let era = context.era();
        let read = (self.reader)(self.uri.clone(), Raw::empty_object(), context).await;
        contents(read, &self.uri, self.mime_type.as_deref(), era)
    }
}

/// The result of a reading.
fn contents(
    read: Result<Vec<Contents>, Failure>,
    uri: &str,
    mime_type: Option<&str>,
    era: Era,
) -> Result<Raw, RpcError> {
    let mut contents =
        read.map_err(|failure| failure.into_error(|| fault::unknown_resource(era, uri)))?;
    for one in &mut contents {
        if one.mime_type.is_none() {
            one.mime_type = mime_type.map(str::to_owned);
        }
    }
    Ok(Raw::of(&json!({ "contents": contents })))
}

/// Resources whose URIs follow a template (RFC 6570).
#[derive(Clone)]
pub struct Template {
    text: String,
    members: Map<String, Value>,
    variables: Value,
    completers: Completers,
    reader: Reader,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Template {
    /// Resources that `function` reads. Its argument has a field for each variable of the template;
    /// a variable that does not fit its type means that there is no such resource.
    pub fn new<F, S>(text: impl Into<String>, name: impl Into<String>, function: F) -> Self
    where
        F: Function<S>,
        F::Output: IntoContents,
    {
        let (derived, reader) = reader(function);
        let mut members = Map::from_iter([("name".to_owned(), Value::String(name.into()))]);
        if let Some(text) = derived.description {
            members.insert("description".to_owned(), text.into());
        }
        let variables = Value::Object(derived.schema);
        Self { text: text.into(), members, variables, completers: Completers::default(), reader }
    }

    /// Its display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", title.into())
    }

    /// What such resources hold; instead of the doc text.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", text.into())
    }

    /// The media type of their contents, where they name none.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mimeType", mime_type.into())
    }

    /// Sets another member of the definition, such as `annotations` or `_meta`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// Lets `function` complete a variable.
    #[must_use]
    pub fn complete<Fut>(
        mut self,
        variable: &str,
        function: impl Fn(Completing) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.set(variable, function);
        self
    }

    /// Checks that template and function have the same variables, and writes the definition down.
    pub(crate) fn declare(self) -> Result<DeclaredTemplate, DeclareError> {
        let unusable = |why: String| DeclareError::unusable("template", &self.text, why);
        let template =
            UriTemplate::parse(&self.text).map_err(|error| unusable(error.to_string()))?;
        let has = |name: &str| template.variables().iter().any(|variable| variable == name);
        for variable in template.variables() {
            if self.variables["properties"].get(variable).is_none() {
                return Err(unusable(format!("its function has no field {variable:?}")));
            }
        }
        if let Some(name) = required(&self.variables).find(|name| !has(name)) {
            return Err(unusable(format!("its function needs {name:?}, no variable of it")));
        }
        if let Some(name) = self.completers.arguments().find(|name| !has(name)) {
            return Err(unusable(format!("it completes {name:?}, no variable of it")));
        }
        let mut out = Map::from_iter([("uriTemplate".to_owned(), json!(self.text))]);
        out.extend(self.members);
        let limits = Limits::default();
        let check = ToolCheck::of_schemas(&self.text, Raw::of(&self.variables), None, &limits);
        Ok(DeclaredTemplate {
            mime_type: text(&out, "mimeType"),
            definition: Raw::of(&out),
            template,
            variables: self.variables,
            check,
            completers: self.completers,
            reader: self.reader,
        })
    }
}

/// The names a schema requires.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A template as it is served.
pub(crate) struct DeclaredTemplate {
    template: UriTemplate,
    mime_type: Option<String>,
    definition: Raw,
    variables: Value,
    check: ToolCheck,
    pub(crate) completers: Completers,
    reader: Reader,
}

impl Shelved for DeclaredTemplate {
    const KIND: &'static str = "template";
    const LIST: (&'static str, &'static str) = (method::TEMPLATES_LIST, "resourceTemplates");

    fn key(&self) -> &str {
        self.template.as_str()
    }

    fn definition(&self, _: Era) -> &Raw {
        &self.definition
    }
}

impl DeclaredTemplate {
    /// The variables of a URI of this template, typed as its function wants them.
    pub(crate) fn variables(&self, uri: &str) -> Option<Raw> {
        let texts = self.template.match_uri(uri)?;
        let variables = typed(&self.variables, texts);
        self.check.arguments(Some(&variables)).is_ok().then_some(variables)
    }

    pub(crate) async fn read(
        &self,
        uri: &str,
        variables: Raw,
        context: Context,
    ) -> Result<Raw, RpcError> {
        let era = context.era();
        let read = (self.reader)(uri.to_owned(), variables, context).await;
        contents(read, uri, self.mime_type.as_deref(), era)
    }
}

/// Longest text that is read as a number.
const NUMBER_BYTES: usize = 64;

/// Texts as the values a schema expects: a text that is a number or a flag, where one is wanted.
pub(crate) fn typed(schema: &Value, texts: BTreeMap<String, String>) -> Raw {
    let wants = |name: &str, kind: &str| {
        let wanted = &schema["properties"][name]["type"];
        wanted == kind || wanted.as_array().is_some_and(|all| all.iter().any(|one| one == kind))
    };
    let values = texts.into_iter().map(|(name, text)| {
        let value = if wants(&name, "string") {
            None
        } else if wants(&name, "boolean") && matches!(text.as_str(), "true" | "false") {
            Some(Value::Bool(text == "true"))
        } else if text.len() <= NUMBER_BYTES && (wants(&name, "integer") || wants(&name, "number"))
        {
            serde_json::from_str(&text).ok().map(Value::Number)
        } else {
            None
        };
        (name, value.unwrap_or(Value::String(text)))
    });
    Raw::of(&values.collect::<Map<_, _>>())
}
