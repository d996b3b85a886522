//! The JSON-RPC errors a server answers with, each built in one place.

use serde_json::json;
use serde_json::value::RawValue;
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, error},
    version::Era,
};

use crate::era::modern_versions;

/// Longest id or progress token: both are held as long as their request, and repeated.
pub(crate) const MOST_ID_BYTES: usize = 1_024;

/// Most members of a batch; each may cost an answer.
pub(crate) const MOST_BATCHED: usize = 1_000;

/// No such method, or its capability is not offered.
pub fn method_not_found(method: &str) -> RpcError {
    RpcError::new(error::METHOD_NOT_FOUND, format!("method not found: {method}"))
}

/// Bad parameters.
pub fn invalid_params(why: impl std::fmt::Display) -> RpcError {
    RpcError::new(error::INVALID_PARAMS, format!("invalid params: {why}"))
}

/// No such resource; its code depends on the era.
pub fn unknown_resource(era: Era, uri: &str) -> RpcError {
    let code = match era {
        Era::Modern => error::INVALID_PARAMS,
        Era::Legacy => error::LEGACY_RESOURCE_NOT_FOUND,
    };
    RpcError::new(code, format!("resource not found: {uri}")).with_data(&json!({ "uri": uri }))
}

pub(crate) fn missing_meta(key: &str, kind: &str) -> RpcError {
    RpcError::new(
        error::INVALID_PARAMS,
        format!("params._meta needs {key:?} ({kind}) on every request"),
    )
}

pub(crate) fn unsupported_version(requested: &str) -> RpcError {
    let supported = modern_versions();
    RpcError::new(
        error::UNSUPPORTED_VERSION,
        format!("unsupported protocol version {requested:?}; supported: {}", supported.join(", ")),
    )
    .with_data(&json!({ "supported": supported, "requested": requested }))
}

/// Something that is no id, or a longer one than is kept.
pub(crate) fn not_an_id() -> RpcError {
    invalid_request(format!("an id is a string or an integer, of at most {MOST_ID_BYTES} bytes"))
}

/// More messages in one than are taken apart.
pub(crate) fn large_batch() -> RpcError {
    invalid_request(format!("a batch has at most {MOST_BATCHED} members"))
}

pub(crate) fn header_mismatch(why: impl Into<String>) -> RpcError {
    RpcError::new(error::HEADER_MISMATCH, why)
}

pub(crate) fn invalid_request(why: impl Into<String>) -> RpcError {
    RpcError::new(error::INVALID_REQUEST, why)
}

pub(crate) fn internal(why: impl Into<String>) -> RpcError {
    RpcError::new(error::INTERNAL, why)
}

/// Why text is no message: it is no JSON, or no JSON-RPC.
pub(crate) fn not_a_message(text: &str) -> RpcError {
    if serde_json::from_str::<&RawValue>(text).is_ok() {
        invalid_request("not a JSON-RPC 2.0 message")
    } else {
        RpcError::new(error::PARSE, "not JSON")
    }
}

/// An answer to something whose id cannot be told: it carries none.
pub(crate) fn without_id(error: &RpcError) -> String {
    format!(r#"{{"jsonrpc":"2.0","error":{}}}"#, Raw::of(error).get())
}
