//! JSON with comments and trailing commas, read into the common tree.

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged as _, parse_to_ast};

use super::{
    node::{Member, Node, Value},
    problem::Problem,
    text::Source,
};

/// Reads a JSON file; `None` when there is nothing in it.
///
/// # Errors
/// A syntax error, with its line and column.
pub(crate) fn read(source: &Source) -> Result<Option<Node>, Problem> {
    // Beyond comments and trailing commas, what the parser could forgive is more likely a slip
    // that hides an entry.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(&source.text, &CollectOptions::default(), &options) {
        Ok(parsed) => Ok(parsed.value.map(node)),
        Err(error) => {
            let text = error.kind().to_string();
            let mut chars = text.chars();
            let first = chars.next().map(|c| c.to_ascii_lowercase());
            let what: String = first.into_iter().chain(chars).collect();
            Err(source.problem(error.range().start, format!("not valid JSON: {what}")))
        }
    }
}

fn node(value: ast::Value<'_>) -> Node {
    let range = value.range();
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.parse().ok()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.into_owned()),
        ast::Value::Array(array) => Value::List(array.elements.into_iter().map(node).collect()),
        ast::Value::Object(object) => {
            Value::Map(object.properties.into_iter().map(member).collect())
        }
    };
    Node { at: range.start, end: range.end, value }
}

fn member(property: ast::ObjectProp<'_>) -> Member {
    Member {
        at: property.name.range().start,
        key: property.name.into_string(),
        node: node(property.value),
    }
}
