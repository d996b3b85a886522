//! JSON-RPC error objects and the codes MCP gives meaning to (specification, basic/index).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    raw::{Raw, elements},
    sanitise,
};

/// The text is not JSON.
pub const PARSE: i64 = -32700;
/// The JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method, or its capability is not offered.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Bad parameters: unknown tool or prompt, bad cursor, missing `_meta` keys.
pub const INVALID_PARAMS: i64 = -32602;
/// The peer failed.
pub const INTERNAL: i64 = -32603;
/// Pages are to be visited first; 2025-11-25 only. Accepted, never sent.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// Resource not found, in revisions up to 2025-11-25. Accepted, never sent.
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// A mirrored HTTP header disagrees with the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that was not declared.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The protocol version is not served; `data.supported` lists those that are.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// How many of the versions a server names are looked at.
const VERSIONS: usize = 100;

/// An error object as a server sent it, read leniently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    /// The code; 0 when the server sent none that is a number.
    #[serde(default, deserialize_with = "lenient_code")]
    pub code: i64,
    /// The server's own words, not sanitised.
    #[serde(default, deserialize_with = "lenient_text")]
    pub message: String,
    /// Whatever else it added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl RpcError {
    /// An error of ours.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = Some(Raw::of(data));
        self
    }

    /// Reads an `error` member of any shape: a string or an odd object still gives an error.
    pub fn from_raw(raw: &Raw) -> Self {
        let object = if raw.is_object() { raw.read().ok() } else { None };
        object.unwrap_or_else(|| Self {
            code: 0,
            message: raw.read::<String>().unwrap_or_else(|_| raw.get().to_owned()),
            data: None,
        })
    }

    /// True for the three codes that only a modern server sends: they settle the era.
    pub const fn is_modern(&self) -> bool {
        matches!(self.code, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
    }

    /// `data.supported` of an unsupported-version error.
    pub fn supported_versions(&self) -> Option<Vec<String>> {
        #[derive(Deserialize)]
        struct Data {
            supported: Raw,
        }
        let data = self.data.as_ref()?.read::<Data>().ok()?;
        let (listed, _) = elements(data.supported.get(), VERSIONS).ok()?;
        listed.into_iter().map(|version| serde_json::from_str(version.get()).ok()).collect()
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = sanitise::line(&self.message, 500);
        if words.is_empty() {
            write!(f, "error {}", self.code)
        } else {
            write!(f, "{words} (error {})", self.code)
        }
    }
}

impl std::error::Error for RpcError {}

fn lenient_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    let text = raw.get().trim_matches('"');
    Ok(text.parse::<i64>().or_else(|_| text.parse::<f64>().map(|n| n as i64)).unwrap_or(0))
}

fn lenient_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    Ok(raw
        .read::<String>()
        .unwrap_or_else(|_| if raw.is_null() { String::new() } else { raw.get().to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_error_objects_are_still_errors() {
        let check = |text: &str, code: i64, message: &str| {
            let error = RpcError::from_raw(&Raw::parse(text).unwrap());
            assert_eq!((error.code, error.message.as_str()), (code, message), "{text}");
        };
        check(r#"{"code":-32601,"message":"no"}"#, -32601, "no");
        check(r#"{"code":"-32601","message":null}"#, -32601, "");
        check(r#"{"code":-32601.0}"#, -32601, "");
        check(r#"{"code":{},"message":{"a":1}}"#, 0, r#"{"a":1}"#);
        check(r#""plain""#, 0, "plain");
        check("[1]", 0, "[1]");
    }

    #[test]
    fn supported_versions_come_from_data() {
        let error = RpcError::new(UNSUPPORTED_VERSION, "no")
            .with_data(&serde_json::json!({"supported": ["2025-11-25"], "requested": "x"}));
        assert_eq!(error.supported_versions(), Some(vec!["2025-11-25".to_owned()]));
        assert_eq!(RpcError::new(1, "x").supported_versions(), None);
    }
}
