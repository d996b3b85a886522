//! Tells the many schemas that are plainly in order from those that need a closer look, in one pass
//! over their text and without building anything.
//!
//! A plain schema has nothing to mend, no reference, no pattern and a small bounded cost. Saying no
//! is always safe: the closer look decides.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::raw::Raw;

/// Deepest nesting of subschemas that is still plain.
const DEPTH: usize = 12;
/// Most names one `required` of a plain schema may hold; they are compared with each other.
const REQUIRED: usize = 64;
/// Longest text of a plain schema, in bytes.
const BYTES: usize = 64 << 10;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// Dialects in which all keywords known here mean the same.
const DIALECTS: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
];

/// True when the schema is plainly in order. `is_input` asks for `"type": "object"` at its root.
pub(super) fn is_plain(schema: &Raw, is_input: bool) -> bool {
    if schema.get().len() > BYTES {
        return false;
    }
    let mut deserializer = serde_json::Deserializer::from_str(schema.get());
    let root = Schema { depth: 0, is_root: true, is_input };
    root.deserialize(&mut deserializer).is_ok()
}

/// Reads one schema; an error means that it is not plain.
#[derive(Clone, Copy)]
struct Schema {
    depth: usize,
    is_root: bool,
    is_input: bool,
}

impl Schema {
    const fn below(self) -> Self {
        Self { depth: self.depth + 1, is_root: false, is_input: false }
    }
}

fn no<E: Error>() -> E {
    E::custom("not plain")
}

impl<'de> DeserializeSeed<'de> for Schema {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Schema {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.depth > DEPTH {
            return Err(no());
        }
        let mut is_object = false;
        // Keywords are few; one bit each tells a repeated one.
        let mut seen = 0_u64;
        while let Some(Text(keyword)) = map.next_key()? {
            let bit = 1_u64 << self.keyword(&keyword, &mut map, &mut is_object)?;
            if seen & bit != 0 {
                return Err(no());
            }
            seen |= bit;
        }
        if self.is_input && !is_object { Err(no()) } else { Ok(()) }
    }
}

impl Schema {
    /// Reads the value of one keyword; gives the keyword's number.
    fn keyword<'de, A: MapAccess<'de>>(
        self,
        keyword: &str,
        map: &mut A,
        is_object: &mut bool,
    ) -> Result<u32, A::Error> {
        let below = self.below();
        Ok(match keyword {
            "type" => {
                let Text(kind) = map.next_value()?;
                if !TYPES.contains(&kind.as_ref()) {
                    return Err(no());
                }
                *is_object = kind == "object";
                0
            }
            "properties" => map.next_value_seed(Named(below)).map(|()| 1)?,
            "required" => map.next_value_seed(Names).map(|()| 2)?,
            "items" => map.next_value_seed(below).map(|()| 3)?,
            "additionalProperties" => map.next_value_seed(SchemaOrFlag(below)).map(|()| 4)?,
            "enum" => map.next_value_seed(Options).map(|()| 5)?,
            "default" => map.next_value::<IgnoredAny>().map(|_| 6)?,
            "const" => map.next_value::<IgnoredAny>().map(|_| 7)?,
            "description" => map.next_value::<Text<'de>>().map(|_| 8)?,
            "title" => map.next_value::<Text<'de>>().map(|_| 9)?,
            "$comment" => map.next_value::<Text<'de>>().map(|_| 10)?,
            "format" => map.next_value::<Text<'de>>().map(|_| 11)?,
            "examples" => map.next_value::<Vec<IgnoredAny>>().map(|_| 12)?,
            "minimum" => map.next_value::<f64>().map(|_| 13)?,
            "maximum" => map.next_value::<f64>().map(|_| 14)?,
            "minLength" => map.next_value::<u64>().map(|_| 15)?,
            "maxLength" => map.next_value::<u64>().map(|_| 16)?,
            "minItems" => map.next_value::<u64>().map(|_| 17)?,
            "maxItems" => map.next_value::<u64>().map(|_| 18)?,
            "uniqueItems" => map.next_value::<bool>().map(|_| 19)?,
            "$schema" if self.is_root => {
                let Text(dialect) = map.next_value()?;
                if !DIALECTS.contains(&dialect.as_ref()) {
                    return Err(no());
                }
                20
            }
            _ => return Err(no()),
        })
    }
}

/// A string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// `properties`.
struct Named(Schema);

impl<'de> DeserializeSeed<'de> for Named {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Named {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("named schemas")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(self.0)?;
        }
        Ok(())
    }
}

/// `additionalProperties`.
struct SchemaOrFlag(Schema);

impl<'de> DeserializeSeed<'de> for SchemaOrFlag {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SchemaOrFlag {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema or a flag")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.visit_map(map)
    }
}

/// `required`: distinct names.
struct Names;

impl<'de> DeserializeSeed<'de> for Names {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Names {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("distinct names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let mut names: Vec<Cow<'de, str>> = Vec::new();
        while let Some(Text(name)) = sequence.next_element()? {
            if names.len() == REQUIRED || names.contains(&name) {
                return Err(no());
            }
            names.push(name);
        }
        Ok(())
    }
}

/// `enum`: at least one value.
struct Options;

impl<'de> DeserializeSeed<'de> for Options {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Options {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("at least one value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let mut count = 0;
        while sequence.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if count == 0 { Err(no()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            bounds::measure,
            pattern::Patterns,
            repair::{Role, repair},
        },
        *,
    };
    use crate::limits::Limits;

    #[test]
    fn only_what_is_plainly_in_order_is_plain() {
        let check = |schema: &str, expect: bool| {
            assert_eq!(is_plain(&Raw::parse(schema).unwrap(), true), expect, "{schema}");
        };
        check(r#"{"type":"object"}"#, true);
        check(
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
                "properties":{"a":{"type":"string","enum":["x"],"default":null},
                "b":{"type":"array","items":{"type":"integer","minimum":1}}},
                "required":["a"],"additionalProperties":false}"#,
            true,
        );
        check("{}", false);
        check(r#"{"type":"object","required":null}"#, false);
        check(r#"{"type":"object","required":["a","a"]}"#, false);
        check(r#"{"type":"object","type":"object"}"#, false);
        check(r#"{"type":"object","properties":[]}"#, false);
        check(r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##, false);
        check(r#"{"type":"object","properties":{"a":{"type":"strnig"}}}"#, false);
        check(r#"{"type":"object","properties":{"a":{"pattern":"x"}}}"#, false);
        check(r#"{"type":"object","properties":{"a":{"minLength":-1}}}"#, false);
        check(r#"{"type":"object","properties":{"a":{"enum":[]}}}"#, false);
        check(r#"{"type":"object","nullable":true}"#, false);
        check("true", false);
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(40), "}".repeat(40));
        check(&format!(r#"{{"type":"object","properties":{{"a":{deep}}}}}"#), false);
    }

    #[test]
    fn the_closer_look_finds_nothing_in_what_is_plain() {
        for schema in [
            r#"{"type":"object"}"#,
            r#"{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","title":"T",
                "properties":{"a":{"type":"number","maximum":1.5,"const":1,"examples":[1]},
                "b":{"format":"uint64","items":{"type":"null"},"uniqueItems":true}},
                "required":["a","c"],"additionalProperties":{"type":"boolean"}}"#,
            r#"{"type":"object","properties":{"$ref":{"type":"string"},"pattern":{}}}"#,
        ] {
            let raw = Raw::parse(schema).unwrap();
            assert!(is_plain(&raw, true), "{schema}");
            let root = raw.read().unwrap();
            let mut patterns = Patterns::for_listing();
            let repaired = repair(&root, Role::Input, "tool x", schema.len(), &mut patterns);
            assert_eq!(repaired.findings, [], "{schema}");
            assert!(measure(&repaired.document.unwrap(), &Limits::default()).is_ok());
        }
    }
}
