//! Schemas of Rust types, as they are published: without what only Rust can read.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Formats that JSON Schema defines; others would be noise to a client, and some refuse them.
const FORMATS: [&str; 17] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "uuid",
    "uri-template",
    "json-pointer",
    "regex",
];

/// The schema of a type, and what its doc text says.
#[derive(Debug, Clone)]
pub(crate) struct Derived {
    pub(crate) schema: Map<String, Value>,
    pub(crate) description: Option<String>,
}

/// Derives the schema of `T`. References stay only where a type contains itself, since many clients
/// read none.
pub(crate) fn of<T: JsonSchema>() -> Derived {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut value);
    let mut schema = match value {
        Value::Object(members) => members,
        // `true` and `false` are schemas, too.
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    };
    schema.shift_remove("title");
    let description = match schema.shift_remove("description") {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    Derived { schema, description }
}

/// The schema of what takes no arguments.
pub(crate) fn of_nothing() -> Derived {
    let schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({})),
        ("additionalProperties".to_owned(), json!(false)),
    ]);
    Derived { schema, description: None }
}

/// Replaces formats of Rust's numbers by the bounds they stand for.
fn tidy(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(members) => {
            if let Some(format) = members.get("format").and_then(Value::as_str)
                && !FORMATS.contains(&format)
            {
                let bounds = bounds(format);
                members.shift_remove("format");
                if let Some((least, most)) = bounds {
                    members.entry("minimum").or_insert_with(|| json!(least));
                    members.entry("maximum").or_insert_with(|| json!(most));
                }
            }
            for (key, inner) in members.iter_mut() {
                // A value is no schema, whatever it holds.
                if !matches!(key.as_str(), "default" | "const" | "enum" | "examples") {
                    tidy(inner);
                }
            }
        }
        _ => {}
    }
}

/// What fits into the smaller integers. The larger ones hold whatever a client can write exactly.
fn bounds(format: &str) -> Option<(i64, i64)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        _ => return None,
    })
}

/// The schema of an elicitation form: a flat object of plain values (specification,
/// client/elicitation). An optional field is one that may be left out, not one that may be `null`.
///
/// # Errors
/// A field is neither text, number, flag nor choice.
pub(crate) fn form<T: JsonSchema>() -> Result<Value, String> {
    let mut derived = of::<T>();
    if let Some(Value::Object(fields)) = derived.schema.get_mut("properties") {
        for (name, field) in fields {
            plain(field).ok_or_else(|| format!("the field {name:?} is no plain value"))?;
        }
    }
    let mut form = Map::from_iter([("type".to_owned(), json!("object"))]);
    for key in ["properties", "required"] {
        if let Some(value) = derived.schema.shift_remove(key) {
            form.insert(key.to_owned(), value);
        }
    }
    form.entry("properties").or_insert_with(|| json!({}));
    Ok(Value::Object(form))
}

/// Makes one field plain, or says that it is not.
fn plain(field: &mut Value) -> Option<()> {
    let members = field.as_object_mut()?;
    if let Some(Value::Array(types)) = members.get("type") {
        let kept: Vec<_> = types.iter().filter(|kind| *kind != "null").cloned().collect();
        let [kind] = kept.as_slice() else { return None };
        members.insert("type".to_owned(), kind.clone());
    }
    if members.get("default") == Some(&Value::Null) {
        members.shift_remove("default");
    }
    if let Some(Value::Array(choices)) = members.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    // An optional choice is written as "this, or null".
    if let Some(Value::Array(ways)) = members.shift_remove("anyOf") {
        let kept: Vec<_> = ways.into_iter().filter(|way| way["type"] != "null").collect();
        let [Value::Object(way)] = kept.as_slice() else { return None };
        for (key, value) in way {
            members.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    if let Some(Value::Array(ways)) = members.get_mut("oneOf") {
        for way in ways {
            titled(way)?;
        }
        members.entry("type").or_insert_with(|| json!("string"));
    }
    match members.get("type").and_then(Value::as_str)? {
        "string" | "number" | "integer" | "boolean" => Some(()),
        "array" => members.get("items").and_then(|items| items.get("enum")).map(|_| ()),
        _ => None,
    }
}

/// One documented choice: its doc text becomes its title.
fn titled(way: &mut Value) -> Option<()> {
    let constant = way.get("const").filter(|value| value.is_string())?.clone();
    let title = way.get("description").cloned().unwrap_or_else(|| constant.clone());
    *way = json!({ "const": constant, "title": title });
    Some(())
}

#[cfg(test)]
mod tests {
    #![expect(dead_code, reason = "the fields are there for their schemas")]

    use super::*;

    /// Find something.
    #[derive(JsonSchema)]
    #[schemars(deny_unknown_fields)]
    struct Search {
        /// Words to look for
        text: String,
        #[schemars(range(min = 1, max = 10))]
        limit: u8,
        port: u16,
        at: Option<i64>,
        within: Inner,
    }

    #[derive(JsonSchema)]
    struct Inner {
        children: Vec<Inner>,
    }

    #[test]
    fn a_schema_says_what_json_schema_can_say() {
        let derived = of::<Search>();
        assert_eq!(derived.description.as_deref(), Some("Find something."));
        let schema = Value::Object(derived.schema);
        assert_eq!(schema["properties"]["text"]["description"], "Words to look for");
        assert_eq!(
            schema["properties"]["limit"],
            json!({"type":"integer","minimum":1,"maximum":10})
        );
        let port = json!({"type":"integer","minimum":0,"maximum":65_535});
        assert_eq!(schema["properties"]["port"], port);
        assert_eq!(schema["properties"]["at"], json!({"type":["integer","null"]}));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["text", "limit", "port", "within"]));
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    }

    #[derive(JsonSchema)]
    enum Size {
        /// Fits a pocket
        Small,
        /// Needs a cart
        Large,
    }

    #[derive(JsonSchema)]
    enum Colour {
        Red,
        Blue,
    }

    #[derive(JsonSchema)]
    struct Order {
        name: String,
        size: Size,
        colour: Option<Colour>,
        count: Option<u8>,
        extras: Vec<Colour>,
    }

    #[test]
    fn a_form_is_flat_and_plain() {
        let form = form::<Order>().unwrap();
        assert_eq!(form["required"], json!(["name", "size", "extras"]));
        let fields = &form["properties"];
        let sizes = json!({"type":"string","oneOf":[
            {"const":"Small","title":"Fits a pocket"},{"const":"Large","title":"Needs a cart"}]});
        assert_eq!(fields["size"], sizes);
        assert_eq!(fields["colour"]["enum"], json!(["Red", "Blue"]));
        assert_eq!(fields["colour"]["type"], "string");
        assert_eq!(fields["count"], json!({"type":"integer","minimum":0,"maximum":255}));
        assert_eq!(fields["extras"]["items"]["enum"], json!(["Red", "Blue"]));
        assert!(super::form::<Search>().unwrap_err().contains("within"));
    }
}
