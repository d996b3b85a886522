//! JSON kept exactly as it was received: members, order, number lexemes and string escapes.
//!
//! Typed views are read from a [`Raw`] and never written back; relaying means writing the same
//! characters again.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use thiserror::Error;

/// Why a value was not made a tree.
#[derive(Debug, Error)]
pub enum TreeError {
    /// It holds more values than we are willing to take apart.
    #[error("it holds more than {0} values")]
    TooLarge(usize),
    /// It nests too deep, or repeats a member.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// One JSON value as text, shared cheaply.
#[derive(Clone)]
pub struct Raw(Arc<RawValue>);

impl Raw {
    /// The value `{}`.
    pub fn empty_object() -> Self {
        Self::of(&Map::new())
    }

    /// Parses `text` as one JSON value.
    ///
    /// # Errors
    /// The text is not exactly one JSON value.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self::from)
    }

    /// Serialises a value of ours.
    pub fn of(value: &impl Serialize) -> Self {
        to_raw_value(value).map_or_else(|_| Self::null(), Self::from)
    }

    fn null() -> Self {
        Self::from(RawValue::NULL)
    }

    /// The text as received.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as `T`.
    ///
    /// # Errors
    /// The value does not have the shape of `T`, or nests deeper than serde_json allows (128).
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Reads the value as `T` that borrows from this text.
    ///
    /// # Errors
    /// As [`Raw::read`].
    pub fn view<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Takes the value apart, unless it holds more than `most` values: a tree takes up to a hundred
    /// times the memory of its text.
    ///
    /// # Errors
    /// As [`Raw::read`], and when there are too many values.
    pub fn tree(&self, most: usize) -> Result<Value, TreeError> {
        if self.holds_more(most) {
            return Err(TreeError::TooLarge(most));
        }
        Ok(self.read()?)
    }

    /// True when there are more than `most` values in it, itself included.
    pub fn holds_more(&self, most: usize) -> bool {
        holds_more(self.get(), most)
    }

    /// How many members its objects have in all, repeated ones counted each time. A tree keeps the
    /// last of each name, so one with fewer members was made of a text that repeats some.
    pub fn members_written(&self) -> usize {
        outside_strings(self.get()).filter(|byte| *byte == b':').count()
    }

    /// True when the value is a JSON object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// True when the value is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// How deep the value nests: 0 for a scalar. Counts without recursion, so no depth can hurt.
    pub fn depth(&self) -> usize {
        depth(self.get())
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(value: Box<RawValue>) -> Self {
        Self(Arc::from(value))
    }
}

impl From<&RawValue> for Raw {
    fn from(value: &RawValue) -> Self {
        Self(Arc::from(value.to_owned()))
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Raw {}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// True when JSON text holds more than `most` values. Each comma and each opening bracket stands
/// for one; counting them builds nothing.
fn holds_more(text: &str, most: usize) -> bool {
    // No value is shorter than a byte and what parts it from the next.
    if text.len() / 2 < most {
        return false;
    }
    let starts = outside_strings(text).filter(|byte| matches!(byte, b',' | b'{' | b'['));
    starts.take(most).count() == most
}

/// The bytes of JSON text that stand in no string.
fn outside_strings(text: &str) -> impl Iterator<Item = u8> {
    let (mut in_string, mut escaped) = (false, false);
    text.bytes().filter(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => return !in_string,
        }
        false
    })
}

/// The first `most` elements of a JSON array, and how many there are in all.
///
/// # Errors
/// The text is no JSON array.
pub fn elements(text: &str, most: usize) -> Result<(Vec<&RawValue>, usize), serde_json::Error> {
    struct First(usize);
    impl<'de> serde::de::Visitor<'de> for First {
        type Value = (Vec<&'de RawValue>, usize);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut seq: A,
        ) -> Result<Self::Value, A::Error> {
            let mut first = Vec::new();
            while first.len() < self.0 {
                let Some(element) = seq.next_element()? else {
                    let all = first.len();
                    return Ok((first, all));
                };
                first.push(element);
            }
            let mut all = first.len();
            while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {
                all += 1;
            }
            Ok((first, all))
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Deserializer::deserialize_seq(&mut deserializer, First(most))?;
    deserializer.end()?;
    Ok(read)
}

/// How deep JSON text nests; text that is not JSON gives some number, never a panic.
pub fn depth(text: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    for byte in outside_strings(text) {
        match byte {
            b'{' | b'[' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Deserialises a present member, `null` included, as `Some`; use with `#[serde(default)]` to tell
/// an absent member from a null one.
///
/// # Errors
/// As the member's own type.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_to_the_letter() {
        let text = r#"{"b":1.0,"a":1e2,"s":"\u0041","big":9007199254740993}"#;
        let raw = Raw::parse(text).unwrap();
        assert_eq!(raw.get(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn a_tree_of_too_many_values_is_not_built() {
        let check = |text: &str, most: usize, built: bool| {
            let tree = Raw::parse(text).unwrap().tree(most);
            assert_eq!(tree.is_ok(), built, "{text} of {most}");
        };
        check("[1,2,3]", 4, true);
        check("[1,2,3]", 3, false);
        check(r#"{"a":[],"b":{"c":",,,,[[["}}"#, 5, true);
        check(r#"{"a":[],"b":{"c":",,,,[[["}}"#, 3, false);
        check(r#"["\",,,,,,,"]"#, 2, true);
    }

    #[test]
    fn every_member_is_counted() {
        let check = |text: &str, expect: usize| {
            assert_eq!(Raw::parse(text).unwrap().members_written(), expect, "{text}");
        };
        check("7", 0);
        check(r#"{"a":{"b":":"},"a":[{"\":\"c":1}]}"#, 4);
    }

    #[test]
    fn the_first_elements_come_with_the_count_of_all() {
        let check = |text: &str, most: usize, expect: Option<(usize, usize)>| {
            let read = elements(text, most).ok().map(|(first, all)| (first.len(), all));
            assert_eq!(read, expect, "{text}");
        };
        check("[]", 2, Some((0, 0)));
        check("[1,[2],{}]", 2, Some((2, 3)));
        check("[1,2]", 2, Some((2, 2)));
        check("[1,2", 1, None);
        check("[1] 2", 1, None);
        check("{}", 1, None);
    }

    #[test]
    fn depth_ignores_brackets_in_strings() {
        let check = |text: &str, expect: usize| assert_eq!(depth(text), expect, "{text}");
        check("1", 0);
        check("{}", 1);
        check(r#"{"a":[1,{"b":"[[[\"{{"}]}"#, 3);
        check(&"[".repeat(100_000), 100_000);
    }
}
