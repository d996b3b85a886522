//! What a tool's result says about itself.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    raw::{Raw, present},
    rpc::message::{each_member, members},
    sanitise,
};

/// The two members that matter, as they stand in the result.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Members<'a> {
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
}

/// True when the tool ran and reports an error (`isError`).
pub fn is_error(result: &Raw) -> bool {
    match result.view::<Members<'_>>() {
        Ok(own) => own.is_error.is_some_and(|flag| flag.get() == "true"),
        Err(_) => all(result, "isError").any(|flag| flag.get() == "true"),
    }
}

/// `structuredContent`, when present; any JSON value, `null` included.
pub fn structured(result: &Raw) -> Option<Raw> {
    match result.view::<Members<'_>>() {
        Ok(own) => own.structured_content.map(Raw::from),
        Err(_) => all(result, "structuredContent").last(),
    }
}

/// Every member of this name, for results that repeat one.
fn all(result: &Raw, name: &'static str) -> impl Iterator<Item = Raw> {
    let mut found = Vec::new();
    let read = each_member(result, |own, value| {
        if own == name {
            found.push(Raw::from(value));
        }
    });
    // What came before a fault in the text does not count.
    read.map_or_else(|_| Vec::new(), |()| found).into_iter()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_members_are_read_from_any_result() {
        let check = |text: &str, error: bool, content: Option<&str>| {
            let result = Raw::parse(text).unwrap();
            assert_eq!(is_error(&result), error, "{text}");
            let structured = structured(&result);
            assert_eq!(structured.as_ref().map(Raw::get), content, "{text}");
        };
        check(r#"{"content":[]}"#, false, None);
        check(r#"{"isError":true,"structuredContent":{"a":1.0}}"#, true, Some(r#"{"a":1.0}"#));
        check(r#"{"isError":"yes","structuredContent":null}"#, false, Some("null"));
        check(r#"{"isError":false,"isError":true,"structuredContent":[]}"#, true, Some("[]"));
        check(r#"{"structuredContent":1,"structuredContent":2}"#, false, Some("2"));
        check("[]", false, None);
        check("null", false, None);
    }
}
