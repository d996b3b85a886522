//! Headers that repeat what the body says; a modern request is refused when they disagree.

use axum::http::HeaderMap;
use serde::Deserialize;
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, header, method},
    version::{Era, Version},
};

use crate::fault;

/// True when a header speaks for the modern era: its version, or one that only it has.
pub(crate) fn speaks_modern(headers: &HeaderMap) -> bool {
    headers.contains_key(header::METHOD)
        || version(headers)
            .and_then(Version::parse)
            .is_some_and(|version| version.era() == Era::Modern)
}

/// `MCP-Protocol-Version`, if it is there and readable.
pub(crate) fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::PROTOCOL_VERSION)?.to_str().ok().map(str::trim)
}

/// What the body says that headers must repeat.
pub(crate) struct Mirrored {
    method: String,
    name: Option<String>,
}

impl Mirrored {
    /// Reads it off a request.
    pub(crate) fn of(method: &str, params: Option<&Raw>) -> Self {
        #[derive(Deserialize)]
        struct Named {
            name: Option<Raw>,
            uri: Option<Raw>,
        }
        let text = |raw: Option<Raw>| raw.and_then(|raw| raw.read::<String>().ok());
        let named = || params.and_then(|raw| raw.read::<Named>().ok());
        let name = match method {
            method::TOOLS_CALL | method::PROMPTS_GET => named().and_then(|named| text(named.name)),
            method::RESOURCES_READ => named().and_then(|named| text(named.uri)),
            _ => None,
        };
        Self { method: method.to_owned(), name }
    }

    /// Compares it, and the version of the body, with the headers.
    ///
    /// # Errors
    /// A header is missing, occurs twice, cannot be read or disagrees.
    pub(crate) fn check(&self, headers: &HeaderMap, version: &str) -> Result<(), RpcError> {
        agree(headers, header::PROTOCOL_VERSION, version, false)?;
        agree(headers, header::METHOD, &self.method, false)?;
        match &self.name {
            Some(name) => agree(headers, header::NAME, name, true),
            None => Ok(()),
        }
    }
}

fn agree(headers: &HeaderMap, key: &str, body: &str, encoded: bool) -> Result<(), RpcError> {
    let mut values = headers.get_all(key).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (None, _) => return Err(fault::header_mismatch(format!("header {key} is missing"))),
        _ => return Err(fault::header_mismatch(format!("header {key} occurs twice"))),
    };
    let agrees = value.to_str().is_ok_and(|text| {
        if encoded {
            header::decode(text).is_ok_and(|text| text == body)
        } else {
            text.trim() == body
        }
    });
    if agrees {
        Ok(())
    } else {
        Err(fault::header_mismatch(format!("header {key} does not say what the body says")))
    }
}
