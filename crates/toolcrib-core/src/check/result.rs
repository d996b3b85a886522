//! What a tool's result says about itself.

use serde::Deserialize;

use crate::{
    raw::{Raw, present},
    rpc::message::members,
    sanitise,
};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Members {
    is_error: Option<Raw>,
    #[serde(deserialize_with = "present")]
    structured_content: Option<Raw>,
}

fn read(result: &Raw) -> Members {
    if result.is_object() { result.read().unwrap_or_default() } else { Members::default() }
}

/// True when the tool ran and reports an error (`isError`).
pub fn is_error(result: &Raw) -> bool {
    read(result).is_error.is_some_and(|flag| flag.get() == "true")
}

/// `structuredContent`, when present; any JSON value, `null` included.
pub fn structured(result: &Raw) -> Option<Raw> {
    read(result).structured_content
}

/// The methods an `input_required` result asks for, sanitised.
pub fn input_requests(result: &Raw) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        input_requests: Raw,
    }
    #[derive(Deserialize)]
    struct Input {
        method: String,
    }
    let Ok(asked) = result.read::<Asked>() else { return Vec::new() };
    let inputs = members(&asked.input_requests).unwrap_or_default();
    let mut methods: Vec<_> = inputs
        .into_iter()
        .filter_map(|(_, input)| input.read::<Input>().ok())
        .map(|input| sanitise::line(&input.method, 80))
        .collect();
    methods.dedup();
    methods
}
