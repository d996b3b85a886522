//! One entry put into JSON, on the concrete syntax tree: comments, blanks and commas stay.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value as Json;

/// The text with the entry; whether it is right is for the caller to see.
pub(super) fn put(text: &str, path: &[&str], value: &Json) -> Result<String, String> {
    let options = ParseOptions::default();
    let root = CstRootNode::parse(text, &options).map_err(|error| error.kind().to_string())?;
    let Some((name, sections)) = path.split_last() else { return Err("no entry is named".into()) };
    let mut object = root.object_value_or_create().ok_or_else(|| "is not a table".to_owned())?;
    for section in sections {
        object = below(&object, section)?;
    }
    match object.get(name) {
        Some(property) => property.set_value(input(value)),
        None => drop(object.append(name, input(value))),
    }
    Ok(root.to_string())
}

/// The object under a key, made where there is none.
fn below(object: &CstObject, key: &str) -> Result<CstObject, String> {
    let null = object
        .get(key)
        .filter(|property| property.value().is_some_and(|value| value.as_null_keyword().is_some()));
    if let Some(property) = null {
        property.set_value(CstInputValue::Object(Vec::new()));
    }
    object
        .object_value_or_create(key)
        .ok_or_else(|| format!("`{key}` is not a table; mend it or remove it first"))
}

fn input(value: &Json) -> CstInputValue {
    match value {
        Json::Null => CstInputValue::Null,
        Json::Bool(value) => CstInputValue::Bool(*value),
        Json::Number(number) => CstInputValue::Number(number.to_string()),
        Json::String(text) => CstInputValue::String(text.clone()),
        Json::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Json::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}
