//! Arguments that HTTP mirrors into headers: the `x-mcp-header` annotation (specification,
//! server/tools and transports/streamable-http#custom-headers).
//!
//! An annotation anywhere but on a plainly typed property that is reached by `properties` alone
//! makes the definition invalid; over HTTP such a tool is not listed.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{limits::Limits, raw::Raw, sanitise};

const ANNOTATION: &str = "x-mcp-header";
/// Keywords whose value is data, not a schema.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", "required"];
/// Largest integer a header may carry: 2^53 - 1.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// One argument that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// The header is `Mcp-Param-` and this.
    pub header: String,
    /// The way to the argument: property names from the root.
    pub path: Vec<String>,
}

/// The mirrored arguments of a schema.
///
/// # Errors
/// An annotation is invalid; says which and why.
pub fn mirrored(schema: &Raw, limits: &Limits) -> Result<Vec<Mirrored>, String> {
    if !schema.get().contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    if schema.depth() > limits.json_depth {
        return Err(format!("the schema nests deeper than {} levels", limits.json_depth));
    }
    let schema = schema.tree(limits.schema_values).map_err(|error| error.to_string())?;
    let mut found = Found::default();
    found.walk(&schema, Some(&mut Vec::new()))?;
    Ok(found.mirrored)
}

/// The header values for a call: `(name, value)`, not yet encoded. An argument that is absent or
/// null gives none.
pub fn values(schema: &Raw, arguments: &Raw, limits: &Limits) -> Vec<(String, String)> {
    let Ok(mirrored) = mirrored(schema, limits) else { return Vec::new() };
    if mirrored.is_empty() || arguments.depth() > limits.json_depth {
        return Vec::new();
    }
    let Ok(arguments) = arguments.tree(limits.judged_values) else { return Vec::new() };
    mirrored
        .into_iter()
        .filter_map(|mirrored| {
            let value = mirrored.path.iter().try_fold(&arguments, |value, key| value.get(key))?;
            Some((mirrored.header, written(value)?))
        })
        .collect()
}

fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => {
            if let Some(whole) = number.as_i64() {
                return (whole.unsigned_abs() < 1 << 53).then(|| whole.to_string());
            }
            // 42.0 is the integer 42.
            let number = number.as_f64()?;
            (number.fract() == 0.0 && number.abs() <= MAX_INTEGER).then(|| format!("{number:.0}"))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[derive(Default)]
struct Found {
    mirrored: Vec<Mirrored>,
    names: HashSet<String>,
}

impl Found {
    /// Walks a schema. `path` is the way from the root while it leads through `properties` only.
    fn walk(&mut self, schema: &Value, mut path: Option<&mut Vec<String>>) -> Result<(), String> {
        let Value::Object(members) = schema else {
            if let Value::Array(list) = schema {
                for schema in list {
                    self.walk(schema, None)?;
                }
            }
            return Ok(());
        };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotated(annotation, members, path.as_deref())?;
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                (ANNOTATION, _) => {}
                (data, _) if DATA.contains(&data) => {}
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        match path.as_deref_mut() {
                            Some(path) => {
                                path.push(name.clone());
                                self.walk(schema, Some(path))?;
                                path.pop();
                            }
                            None => self.walk(schema, None)?,
                        }
                    }
                }
                (
                    "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                    Value::Object(named),
                ) => {
                    for schema in named.values() {
                        self.walk(schema, None)?;
                    }
                }
                (_, schema) => self.walk(schema, None)?,
            }
        }
        Ok(())
    }

    fn annotated(
        &mut self,
        annotation: &Value,
        property: &Map<String, Value>,
        path: Option<&Vec<String>>,
    ) -> Result<(), String> {
        let place = path.map(|path| sanitise::line(&path.join("/"), 80)).unwrap_or_default();
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Err(format!(
                "{ANNOTATION} stands where no property is reached by `properties` alone"
            ));
        };
        let Some(header) = annotation.as_str().filter(|name| is_token(name)) else {
            let shown = sanitise::line(&annotation.to_string(), 60);
            return Err(format!("{ANNOTATION} at {place} is no header name: {shown}"));
        };
        if !matches!(
            property.get("type").and_then(Value::as_str),
            Some("string" | "integer" | "boolean")
        ) {
            return Err(format!("{ANNOTATION} at {place} needs type string, integer or boolean"));
        }
        if !self.names.insert(header.to_ascii_lowercase()) {
            return Err(format!("{ANNOTATION} names {header} twice"));
        }
        self.mirrored.push(Mirrored { header: header.to_owned(), path: path.clone() });
        Ok(())
    }
}

/// RFC 9110 `token`.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(schema: &str) -> Result<Vec<String>, String> {
        let schema = Raw::parse(schema).unwrap();
        let found = mirrored(&schema, &Limits::default())?;
        Ok(found.into_iter().map(|one| format!("{}={}", one.header, one.path.join("/"))).collect())
    }

    #[test]
    fn properties_reached_by_properties_alone_are_mirrored() {
        let check = |schema: &str, expect: &[&str]| assert_eq!(found(schema).unwrap(), expect);
        check(r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}"#, &["Region=r"]);
        check(
            r#"{"properties":{"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#,
            &["N=o/n"],
        );
        check(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#, &[]);
        check(r#"{"properties":{"a":{"type":"string","default":{"x-mcp-header":"A"}}}}"#, &[]);
    }

    #[test]
    fn anything_else_is_invalid() {
        for schema in [
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"Bad Header\r\nX: 1"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"H"},"b":{"type":"string","x-mcp-header":"h"}}}"#,
            r#"{"x-mcp-header":"A","type":"string"}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
            r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#,
        ] {
            assert!(found(schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn values_are_written_as_the_wire_wants_them() {
        let schema = r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"}}}"#;
        let schema = Raw::parse(schema).unwrap();
        let check = |arguments: &str, expect: &[(&str, &str)]| {
            let got = values(&schema, &Raw::parse(arguments).unwrap(), &Limits::default());
            let got: Vec<_> =
                got.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(got, expect, "{arguments}");
        };
        check(r#"{"s":"eu-1","i":42.0,"b":false}"#, &[("S", "eu-1"), ("I", "42"), ("B", "false")]);
        check(r#"{"s":null,"i":9007199254740993}"#, &[]);
        check(r#"{"s":""}"#, &[("S", "")]);
        check(r#"{"i":-7}"#, &[("I", "-7")]);
    }
}
