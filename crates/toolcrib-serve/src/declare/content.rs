//! Blocks of content, resource contents and prompt messages, as the wire wants them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_core::raw::Raw;

/// One block of content (`ContentBlock` of the schema).
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Content(Value);

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(json!({ "type": "text", "text": text.into() }))
    }

    /// An image; `data` as it is, not encoded.
    pub fn image(data: impl AsRef<[u8]>, mime_type: &str) -> Self {
        let data = STANDARD.encode(data);
        Self(json!({ "type": "image", "data": data, "mimeType": mime_type }))
    }

    /// Sound; `data` as it is, not encoded.
    pub fn audio(data: impl AsRef<[u8]>, mime_type: &str) -> Self {
        let data = STANDARD.encode(data);
        Self(json!({ "type": "audio", "data": data, "mimeType": mime_type }))
    }

    /// A resource, embedded.
    pub fn resource(contents: Contents) -> Self {
        Self(json!({ "type": "resource", "resource": contents }))
    }

    /// A link to a resource that can be read here.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self(json!({ "type": "resource_link", "uri": uri.into(), "name": name.into() }))
    }

    /// The same block with another member, such as `annotations` or `_meta`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0[member] = value.into();
        self
    }
}

impl<T: Into<String>> From<T> for Content {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

/// What a resource holds (`TextResourceContents` or `BlobResourceContents`).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    pub(crate) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<String>,
    #[serde(flatten)]
    body: Body,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Blob(String),
}

impl Contents {
    /// Text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), mime_type: None, body: Body::Text(text.into()) }
    }

    /// Bytes, as they are.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self { uri: uri.into(), mime_type: None, body: Body::Blob(STANDARD.encode(bytes)) }
    }

    /// The same contents with a media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One message of a prompt or of a request to the client's model.
#[derive(Debug, Clone, Serialize)]
pub struct Message {
    role: Role,
    content: Content,
}

impl Message {
    /// What the person says.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// What the model said.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

impl From<&Content> for Raw {
    fn from(content: &Content) -> Self {
        Self::of(&content.0)
    }
}
