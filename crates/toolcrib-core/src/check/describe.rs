//! Schemas and values in a few words, for messages that let a caller mend a value. Everything is
//! bounded; nothing is quoted at length.

use serde_json::{Map, Value};

use crate::sanitise;

/// Most characters of a quoted value.
const QUOTED: usize = 60;
/// Most alternatives, values or names in one list.
const LISTED: usize = 10;
/// How far nested schemas are put into words.
const DEPTH: usize = 4;

/// What a schema expects.
pub(super) fn schema(schema: &Value, document: &Value) -> String {
    worded(schema, document, DEPTH)
}

fn worded(schema: &Value, document: &Value, depth: usize) -> String {
    let Value::Object(map) = schema else {
        return if *schema == Value::Bool(false) { "nothing" } else { "any value" }.to_owned();
    };
    if depth == 0 {
        return kinds(map).unwrap_or_else(|| "a value".to_owned());
    }
    if let Some(target) = followed(map, document) {
        return worded(target, document, depth - 1);
    }
    if let Some(value) = map.get("const") {
        return quoted(value);
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        return one_of(values);
    }
    if let Some(kinds) = kinds(map) {
        return format!("{kinds}{}", constraints(map, document, depth));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = map.get(keyword) {
            return alternatives(branches, document, depth);
        }
    }
    if let Some(Value::Array(parts)) = map.get("allOf")
        && let Some(first) = parts.first()
    {
        return worded(first, document, depth - 1);
    }
    let constraints = constraints(map, document, depth);
    if constraints.is_empty() { "any value".to_owned() } else { format!("a value{constraints}") }
}

/// The schema a `$ref` of a repaired document leads to.
fn followed<'a>(map: &Map<String, Value>, document: &'a Value) -> Option<&'a Value> {
    document.pointer(map.get("$ref")?.as_str()?.strip_prefix('#')?)
}

fn alternatives(branches: &[Value], document: &Value, depth: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for branch in branches.iter().take(LISTED) {
        let word = worded(branch, document, depth - 1);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if branches.len() > LISTED {
        words.push(format!("{} other shapes", branches.len() - LISTED));
    }
    words.join(" or ")
}

/// The types a schema names, in words.
pub(super) fn kinds(map: &Map<String, Value>) -> Option<String> {
    match map.get("type")? {
        Value::String(name) => Some(name.clone()),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            Some(names.join(" or "))
        }
        _ => None,
    }
}

fn constraints(map: &Map<String, Value>, document: &Value, depth: usize) -> String {
    let mut words = String::new();
    if let Some(items) = map.get("items").filter(|items| items.is_object()) {
        words.push_str(" of ");
        words.push_str(&worded(items, document, depth - 1));
    }
    words.push_str(&range(map));
    for (least, most, what) in [
        ("minLength", "maxLength", "character"),
        ("minItems", "maxItems", "item"),
        ("minProperties", "maxProperties", "member"),
    ] {
        words.push_str(&counted(map.get(least), map.get(most), what));
    }
    if let Some(step) = map.get("multipleOf") {
        words.push_str(&format!(" that is a multiple of {step}"));
    }
    if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
        words.push_str(&format!(" matching `{}`", sanitise::line(pattern, QUOTED)));
    }
    if let Some(Value::Array(required)) = map.get("required")
        && !required.is_empty()
    {
        words.push_str(&format!(" with {}", names(required.iter().filter_map(Value::as_str))));
    }
    words
}

fn range(map: &Map<String, Value>) -> String {
    let least = map.get("minimum").map(|limit| format!("at least {limit}"));
    let above = map.get("exclusiveMinimum").map(|limit| format!("above {limit}"));
    let most = map.get("maximum").map(|limit| format!("at most {limit}"));
    let below = map.get("exclusiveMaximum").map(|limit| format!("below {limit}"));
    if let (Some(Value::Number(least)), None, Some(Value::Number(most)), None) =
        (map.get("minimum"), &above, map.get("maximum"), &below)
    {
        return format!(" from {least} to {most}");
    }
    let limits: Vec<String> = [least, above, most, below].into_iter().flatten().collect();
    if limits.is_empty() { String::new() } else { format!(" {}", limits.join(" and ")) }
}

fn counted(least: Option<&Value>, most: Option<&Value>, what: &str) -> String {
    let plural = |count: &Value| if count.as_u64() == Some(1) { "" } else { "s" };
    match (least, most) {
        (None, None) => String::new(),
        (Some(least), None) => format!(" of at least {least} {what}{}", plural(least)),
        (None, Some(most)) => format!(" of at most {most} {what}{}", plural(most)),
        (Some(least), Some(most)) => format!(" of {least} to {most} {what}s"),
    }
}

/// A list of allowed values.
pub(super) fn one_of(values: &[Value]) -> String {
    let shown: Vec<String> = values.iter().take(LISTED).map(quoted).collect();
    let more = values.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match (values, more.is_empty()) {
        ([_], true) => shown.concat(),
        _ => format!("one of {}{more}", shown.join(", ")),
    }
}

/// A list of names.
pub(super) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut shown = Vec::new();
    let mut more = 0;
    for name in names {
        if shown.len() < LISTED {
            shown.push(format!("`{}`", sanitise::line(name, QUOTED)));
        } else {
            more += 1;
        }
    }
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// A value, quoted when it is short and named by its kind when it is not.
pub(super) fn quoted(value: &Value) -> String {
    match value {
        Value::Array(list) if list.is_empty() => "[]".to_owned(),
        Value::Array(list) => format!("an array of {}", list.len()),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => format!("an object with {}", names(map.keys().map(String::as_str))),
        Value::String(text) => {
            // Quoting only what is shown keeps a long text from being copied whole.
            let cut: String = text.chars().take(QUOTED + 1).collect();
            sanitise::line(&Value::String(cut).to_string(), QUOTED)
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_put_into_words() {
        let check = |given: Value, expect: &str| assert_eq!(schema(&given, &given), expect);
        check(json!({}), "any value");
        check(json!(false), "nothing");
        check(json!({ "type": "string" }), "string");
        check(json!({ "type": ["string", "null"] }), "string or null");
        check(json!({ "type": "integer", "minimum": 1, "maximum": 5 }), "integer from 1 to 5");
        check(json!({ "type": "number", "exclusiveMinimum": 0 }), "number above 0");
        check(json!({ "type": "string", "minLength": 1 }), "string of at least 1 character");
        check(json!({ "type": "string", "pattern": "^a$" }), "string matching `^a$`");
        check(json!({ "enum": ["a", 1, null] }), "one of \"a\", 1, null");
        check(json!({ "const": "fixed" }), "\"fixed\"");
        check(json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), "string or null");
        check(json!({ "type": "array", "items": { "type": "integer" } }), "array of integer");
        check(json!({ "type": "object", "required": ["a", "b"] }), "object with `a`, `b`");
        check(json!({ "items": { "$ref": "#" } }), "a value of a value of a value");
    }
}
