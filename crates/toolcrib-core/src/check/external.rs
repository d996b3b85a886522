//! What happens to a reference that leads out of a schema: it is never followed, and whatever value
//! reaches it is refused by name. Where refusing would let a value through (under `not` or `if`),
//! the whole condition is refused instead.

use jsonschema::{Keyword, Retrieve, Uri, ValidationError, paths::Location};
use serde_json::{Map, Value};

use super::keywords::{Dialect, Shape, shape};

/// The keyword of ours that stands for such a reference in a repaired schema. A server cannot bring
/// it in: repair keeps known keywords only.
pub(super) const REFUSED: &str = "toolcrib:refused";

struct Refuse {
    message: String,
}

impl<'i> Keyword<'i> for Refuse {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Err(ValidationError::custom(self.message.as_str()))
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        false
    }
}

/// Makes the validator's keyword.
pub(super) fn refuse<'a>(
    _parent: &'a Map<String, Value>,
    reference: &'a Value,
    _at: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let reference = reference.as_str().unwrap_or_default();
    let message = format!("`{reference}` refers to an external document, which is never fetched");
    Ok(Box::new(Refuse { message }))
}

/// The retriever every validator is built with. Repaired schemas hold nothing to retrieve; this is
/// the second lock on the same door.
pub(super) struct NeverFetched;

impl Retrieve for NeverFetched {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`{}` is never fetched", uri.as_str()).into())
    }
}

/// Refuses every `not` and `if` of a repaired document that may depend on an external reference.
pub(super) fn harden(document: &mut Value) {
    let Value::Object(schema) = document else { return };
    // A condition that refers anywhere may lead there; saying so too often costs only schemas that
    // have external references at all.
    for condition in ["not", "if"] {
        if let Some(why) = schema.get(condition).and_then(reason) {
            schema.remove(condition);
            schema.entry(REFUSED).or_insert(Value::String(why));
        }
    }
    for (keyword, value) in schema {
        let named = keyword == "$defs"
            || matches!(
                shape(keyword, Dialect::Draft202012),
                Some(Shape::Properties | Shape::Patterns)
            );
        match (named, shape(keyword, Dialect::Draft202012), value) {
            (true, _, Value::Object(named)) => named.values_mut().for_each(harden),
            (_, Some(Shape::Schemas), Value::Array(list)) => list.iter_mut().for_each(harden),
            (_, Some(Shape::Schema | Shape::Items), value) => harden(value),
            _ => {}
        }
    }
}

/// The external or unfollowed reference inside a condition.
fn reason(value: &Value) -> Option<String> {
    match value {
        Value::Object(schema) => {
            let own = schema.get(REFUSED).or_else(|| schema.get("$ref")).and_then(Value::as_str);
            own.map(str::to_owned).or_else(|| schema.values().find_map(reason))
        }
        Value::Array(list) => list.iter().find_map(reason),
        _ => None,
    }
}
