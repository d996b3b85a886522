//! Headers that repeat what the body says; a modern request is refused when they disagree.

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use toolcrib_core::{
    check::headers,
    limits::Limits,
    raw::Raw,
    rpc::{RpcError, header, method},
    version::{Era, Version},
};

use crate::fault;

/// True when the headers speak for the modern era: by the version they name, else by having a
/// header that only this era knows.
pub(crate) fn speaks_modern(headers: &HeaderMap) -> bool {
    match version(headers).and_then(Version::parse) {
        Some(version) => version.era() == Era::Modern,
        None => headers.contains_key(header::METHOD),
    }
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
        struct Named<'a> {
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            uri: Option<&'a RawValue>,
        }
        let text = |raw: Option<&RawValue>| serde_json::from_str::<String>(raw?.get()).ok();
        let named = || params.and_then(|raw| raw.view::<Named<'_>>().ok());
        let name = match method {
            method::TOOLS_CALL | method::PROMPTS_GET => named().and_then(|named| text(named.name)),
            method::RESOURCES_READ => named().and_then(|named| text(named.uri)),
            _ => None,
        };
        Self { method: method.to_owned(), name }
    }

    /// The tool a request calls.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.method == method::TOOLS_CALL)
    }

    /// Compares it, and the version of the body, with the headers.
    ///
    /// # Errors
    /// A header is missing, occurs twice, cannot be read or disagrees.
    pub(crate) fn check(&self, headers: &HeaderMap, version: &str) -> Result<(), RpcError> {
        agree(headers, header::PROTOCOL_VERSION, version, Form::Plain)?;
        agree(headers, header::METHOD, &self.method, Form::Plain)?;
        match &self.name {
            Some(name) => agree(headers, header::NAME, name, Form::Encoded),
            None => Ok(()),
        }
    }
}

/// Compares the arguments that `schema` wants repeated in headers with those headers.
///
/// # Errors
/// A header is missing, occurs twice, disagrees, or repeats what the body does not hold.
pub(crate) fn check_arguments(
    headers: &HeaderMap,
    schema: &Raw,
    params: Option<&Raw>,
    limits: &Limits,
) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Call {
        arguments: Raw,
    }
    let wanted = headers::mirrored(schema, limits).unwrap_or_default();
    if wanted.is_empty() {
        return Ok(());
    }
    let arguments = params
        .and_then(|raw| raw.read::<Call>().ok())
        .map_or_else(Raw::empty_object, |call| call.arguments);
    let held = headers::values(schema, &arguments, limits);
    let numbers = arguments.tree(limits.judged_values).unwrap_or_default();
    for mirrored in wanted {
        let key = format!("{}{}", header::PARAM_PREFIX, mirrored.header.to_ascii_lowercase());
        match held.iter().find(|(name, _)| *name == mirrored.header) {
            Some((_, value)) => {
                let argument = numbers.pointer(&pointer(&mirrored.path));
                let form = if argument.is_some_and(Value::is_number) {
                    Form::Number
                } else {
                    Form::Encoded
                };
                agree(headers, &key, value, form)?;
            }
            None if headers.contains_key(&key) => {
                let why = format!("header {key} repeats an argument that is not there");
                return Err(fault::header_mismatch(why));
            }
            None => {}
        }
    }
    Ok(())
}

/// How a header repeats a value.
#[derive(Clone, Copy)]
enum Form {
    /// As it is.
    Plain,
    /// As it is, or encoded.
    Encoded,
    /// As any text of the same number.
    Number,
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

fn agree(headers: &HeaderMap, key: &str, body: &str, form: Form) -> Result<(), RpcError> {
    let mut values = headers.get_all(key).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (None, _) => return Err(fault::header_mismatch(format!("header {key} is missing"))),
        _ => return Err(fault::header_mismatch(format!("header {key} occurs twice"))),
    };
    let agrees = value.to_str().is_ok_and(|text| match form {
        Form::Plain => text.trim() == body,
        Form::Encoded => header::decode(text).is_ok_and(|text| text == body),
        Form::Number => header::decode(text).is_ok_and(|text| same_number(&text, body)),
    });
    if agrees {
        Ok(())
    } else {
        Err(fault::header_mismatch(format!("header {key} does not say what the body says")))
    }
}

/// True for one number written in two ways, such as `42.0` and `42`.
fn same_number(one: &str, other: &str) -> bool {
    if let (Ok(one), Ok(other)) = (one.parse::<i128>(), other.parse::<i128>()) {
        return one == other;
    }
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.is_finite() && one.to_bits() == other.to_bits(),
        _ => false,
    }
}
