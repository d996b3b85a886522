//! What declared functions may give back.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_core::raw::Raw;

use super::{
    content::{Content, Contents, Message},
    failure::Failure,
    schema,
};

/// The result of a tool (`CallToolResult` of the schema).
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What a model reads.
    pub content: Vec<Content>,
    /// What a program reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw>,
    /// The tool ran and failed; `content` says why.
    #[serde(skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// `_meta`
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl ToolResult {
    /// A result that reports a failure.
    pub fn error(words: impl Into<String>) -> Self {
        Self { content: vec![Content::text(words)], is_error: true, ..Self::default() }
    }
}

/// A structured value: `T` gives the tool its `outputSchema`, the value its `structuredContent`,
/// and its JSON stands in the content for models and older clients.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T);

/// What a tool may give back: text, content, [`Json`], a [`ToolResult`], nothing, or a `Result` of
/// these.
#[diagnostic::on_unimplemented(
    message = "a tool cannot give back `{Self}`",
    note = "wrap a value in `Json(…)` to send it as structured content (its type derives Serialize and JsonSchema)",
    note = "or give back a String, Content, Vec<Content>, ToolResult, (), or a Result of these whose error can be displayed"
)]
pub trait IntoToolResult {
    /// The result.
    ///
    /// # Errors
    /// The function failed.
    fn into_tool_result(self) -> Result<ToolResult, Failure>;

    /// The schema of the structured content, where there is one.
    fn output_schema() -> Option<Map<String, Value>> {
        None
    }
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Ok(self)
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Ok(ToolResult::default())
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Ok(ToolResult { content: self, ..ToolResult::default() })
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Content::text(self).into_tool_result()
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Content::text(self).into_tool_result()
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        let text = serde_json::to_string(&self.0)?;
        let structured = Raw::parse(text.clone())?;
        let content = vec![Content::text(text)];
        Ok(ToolResult { content, structured_content: Some(structured), ..ToolResult::default() })
    }

    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema::of::<T>().schema)
    }
}

impl<R: IntoToolResult, E: fmt::Display + 'static> IntoToolResult for Result<R, E> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        self.map_err(Failure::of)?.into_tool_result()
    }

    fn output_schema() -> Option<Map<String, Value>> {
        R::output_schema()
    }
}

/// What a resource may hold: text, bytes, [`Contents`], several of them, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "a resource cannot give back `{Self}`",
    note = "give back a String, Vec<u8>, Json(…), Contents, Vec<Contents>, or a Result of these whose error can be displayed"
)]
pub trait IntoContents {
    /// The contents of the resource at `uri`.
    ///
    /// # Errors
    /// The function failed.
    fn into_contents(self, uri: &str) -> Result<Vec<Contents>, Failure>;
}

impl IntoContents for String {
    fn into_contents(self, uri: &str) -> Result<Vec<Contents>, Failure> {
        Ok(vec![Contents::text(uri, self)])
    }
}

impl IntoContents for &'static str {
    fn into_contents(self, uri: &str) -> Result<Vec<Contents>, Failure> {
        Ok(vec![Contents::text(uri, self)])
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str) -> Result<Vec<Contents>, Failure> {
        Ok(vec![Contents::blob(uri, self)])
    }
}

impl IntoContents for Contents {
    fn into_contents(self, _: &str) -> Result<Vec<Contents>, Failure> {
        Ok(vec![self])
    }
}

impl IntoContents for Vec<Contents> {
    fn into_contents(self, _: &str) -> Result<Vec<Contents>, Failure> {
        Ok(self)
    }
}

impl<T: Serialize> IntoContents for Json<T> {
    fn into_contents(self, uri: &str) -> Result<Vec<Contents>, Failure> {
        let text = serde_json::to_string(&self.0)?;
        Ok(vec![Contents::text(uri, text).mime_type("application/json")])
    }
}

impl<R: IntoContents, E: fmt::Display + 'static> IntoContents for Result<R, E> {
    fn into_contents(self, uri: &str) -> Result<Vec<Contents>, Failure> {
        self.map_err(Failure::of)?.into_contents(uri)
    }
}

/// What a prompt may give back: what the person says, one [`Message`], several, or a `Result` of
/// these.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot give back `{Self}`",
    note = "give back a String, Message, Vec<Message>, or a Result of these whose error can be displayed"
)]
pub trait IntoMessages {
    /// The messages.
    ///
    /// # Errors
    /// The function failed.
    fn into_messages(self) -> Result<Vec<Message>, Failure>;
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<Vec<Message>, Failure> {
        Ok(vec![Message::user(self)])
    }
}

impl IntoMessages for &'static str {
    fn into_messages(self) -> Result<Vec<Message>, Failure> {
        Ok(vec![Message::user(self)])
    }
}

impl IntoMessages for Message {
    fn into_messages(self) -> Result<Vec<Message>, Failure> {
        Ok(vec![self])
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Result<Vec<Message>, Failure> {
        Ok(self)
    }
}

impl<R: IntoMessages, E: fmt::Display + 'static> IntoMessages for Result<R, E> {
    fn into_messages(self) -> Result<Vec<Message>, Failure> {
        self.map_err(Failure::of)?.into_messages()
    }
}
