//! The keywords of JSON Schema that judge a value: which shape each one's value has and which
//! dialects know it. Keywords that only annotate are named, so that unknown ones can be told.

use serde_json::{Map, Value};

/// The dialects a schema may declare, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

impl Dialect {
    /// The dialect a `$schema` names, whether written with http or https, with or without `#`.
    pub(super) fn named(uri: &str) -> Option<Self> {
        let uri = uri.trim_end_matches('#');
        let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        match rest.strip_prefix("json-schema.org/")?.trim_end_matches('/') {
            "draft-04/schema" => Some(Self::Draft4),
            "draft-06/schema" => Some(Self::Draft6),
            "draft-07/schema" => Some(Self::Draft7),
            "draft/2019-09/schema" => Some(Self::Draft201909),
            "draft/2020-12/schema" | "schema" => Some(Self::Draft202012),
            _ => None,
        }
    }

    /// The keyword that gives a schema its URI.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Draft4 => "id",
            _ => "$id",
        }
    }

    /// True where keywords beside a `$ref` do not count.
    pub(super) const fn ref_stands_alone(self) -> bool {
        matches!(self, Self::Draft4 | Self::Draft6 | Self::Draft7)
    }
}

/// The shape of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One type name or several.
    Types,
    /// The allowed values.
    Values,
    /// Any value, null included.
    Constant,
    /// A number.
    Number,
    /// A number above zero.
    Divisor,
    /// A number, or a boolean that sharpens its neighbour (draft-04).
    Exclusive,
    /// A whole number, zero or more.
    Count,
    /// True or false.
    Flag,
    /// A regular expression.
    Pattern,
    /// Property names.
    Names,
    /// One schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// Schemas by property name.
    Properties,
    /// Schemas by regular expression.
    Patterns,
    /// One schema, or a list of them by position.
    Items,
    /// The schema of what a list of `items` does not reach.
    Rest,
    /// Property names or a schema, by property name.
    Dependencies,
    /// Property names by property name.
    DependentNames,
    /// A reference to a schema.
    Reference,
}

/// The shape of a keyword that judges values in `dialect`.
pub(super) fn shape(keyword: &str, dialect: Dialect) -> Option<Shape> {
    use Dialect::{Draft4, Draft6, Draft7, Draft201909, Draft202012};
    let (shape, since, until) = match keyword {
        "type" => (Shape::Types, Draft4, Draft202012),
        "enum" => (Shape::Values, Draft4, Draft202012),
        "const" => (Shape::Constant, Draft6, Draft202012),
        "minimum" | "maximum" => (Shape::Number, Draft4, Draft202012),
        "multipleOf" => (Shape::Divisor, Draft4, Draft202012),
        "exclusiveMinimum" | "exclusiveMaximum" => (Shape::Exclusive, Draft4, Draft202012),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            (Shape::Count, Draft4, Draft202012)
        }
        "minContains" | "maxContains" => (Shape::Count, Draft201909, Draft202012),
        "uniqueItems" => (Shape::Flag, Draft4, Draft202012),
        "pattern" => (Shape::Pattern, Draft4, Draft202012),
        "required" => (Shape::Names, Draft4, Draft202012),
        "properties" => (Shape::Properties, Draft4, Draft202012),
        "patternProperties" => (Shape::Patterns, Draft4, Draft202012),
        "additionalProperties" | "not" => (Shape::Schema, Draft4, Draft202012),
        "contains" | "propertyNames" => (Shape::Schema, Draft6, Draft202012),
        "if" | "then" | "else" => (Shape::Schema, Draft7, Draft202012),
        "unevaluatedItems" | "unevaluatedProperties" => (Shape::Schema, Draft201909, Draft202012),
        "items" => (Shape::Items, Draft4, Draft202012),
        "additionalItems" => (Shape::Rest, Draft4, Draft202012),
        "prefixItems" => (Shape::Schemas, Draft202012, Draft202012),
        "allOf" | "anyOf" | "oneOf" => (Shape::Schemas, Draft4, Draft202012),
        "dependencies" => (Shape::Dependencies, Draft4, Draft202012),
        "dependentRequired" => (Shape::DependentNames, Draft201909, Draft202012),
        "dependentSchemas" => (Shape::Properties, Draft201909, Draft202012),
        "$ref" => (Shape::Reference, Draft4, Draft202012),
        "$recursiveRef" => (Shape::Reference, Draft201909, Draft201909),
        "$dynamicRef" => (Shape::Reference, Draft202012, Draft202012),
        _ => return None,
    };
    (since <= dialect && dialect <= until).then_some(shape)
}

/// True for keywords that judge nothing but are known: annotations, identification, and everything
/// that says `x-`.
pub(super) fn is_annotation(keyword: &str) -> bool {
    keyword.starts_with("x-")
        || matches!(
            keyword,
            "$schema"
                | "$id"
                | "id"
                | "$anchor"
                | "$dynamicAnchor"
                | "$recursiveAnchor"
                | "$vocabulary"
                | "$comment"
                | "$defs"
                | "definitions"
                | "title"
                | "description"
                | "default"
                | "example"
                | "examples"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
                | "format"
                | "contentEncoding"
                | "contentMediaType"
                | "contentSchema"
        )
}

/// Calls `visit` for every schema directly inside `schema`, with the keyword that holds it and its
/// key or position there.
pub(super) fn each_subschema<'a>(
    schema: &'a Map<String, Value>,
    mut visit: impl FnMut(&'a str, Option<String>, &'a Value),
) {
    for (keyword, value) in schema {
        let shape = match keyword.as_str() {
            "$defs" | "definitions" => Some(Shape::Properties),
            keyword => shape(keyword, Dialect::Draft202012),
        };
        match (shape, value) {
            (Some(Shape::Schema | Shape::Items | Shape::Rest), Value::Object(_)) => {
                visit(keyword, None, value);
            }
            (Some(Shape::Schemas | Shape::Items), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    visit(keyword, Some(index.to_string()), value);
                }
            }
            (
                Some(Shape::Properties | Shape::Patterns | Shape::Dependencies),
                Value::Object(named),
            ) => {
                for (name, value) in named {
                    visit(keyword, Some(name.clone()), value);
                }
            }
            _ => {}
        }
    }
}

/// Appends one token to a JSON Pointer.
pub(super) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_named_in_every_spelling() {
        let check = |uri: &str, expect: Option<Dialect>| {
            assert_eq!(Dialect::named(uri), expect, "{uri}");
        };
        check("http://json-schema.org/draft-04/schema#", Some(Dialect::Draft4));
        check("http://json-schema.org/draft-07/schema#", Some(Dialect::Draft7));
        check("https://json-schema.org/draft-07/schema", Some(Dialect::Draft7));
        check("https://json-schema.org/draft/2019-09/schema", Some(Dialect::Draft201909));
        check("https://json-schema.org/draft/2020-12/schema#", Some(Dialect::Draft202012));
        check("https://example.invalid/my-dialect", None);
        check("", None);
    }
}
