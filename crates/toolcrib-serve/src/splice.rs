//! Adds members to a JSON object that is kept as text, so that nothing a handler wrote is changed.
//!
//! A member that is already there is never replaced.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use toolcrib_core::raw::Raw;

/// A member to add: its key, in which nothing needs an escape, and JSON text.
pub(crate) type Addition<'a> = (&'a str, String);

/// `object` with each of `members` and, inside `_meta`, each of `meta` that it lacks.
///
/// `None` when it is no object. A `_meta` that is no object is left as it is.
pub(crate) fn complete(
    object: &Raw,
    members: &[Addition<'_>],
    meta: &[Addition<'_>],
) -> Option<Raw> {
    let text = object.get();
    let found = scan(text)?;
    let added = members.iter().chain(meta).map(|(key, value)| key.len() + value.len() + 4);
    let mut out = String::with_capacity(text.len() + added.sum::<usize>() + 10);
    let open = open(text)?;
    let own = found.iter().find(|(key, _)| key == "_meta").map(|(_, value)| value.get());
    match own {
        Some(value) => {
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            out.push_str(&text[..start]);
            match scan(value) {
                Some(inner) => {
                    out.push_str(self::open(value)?);
                    add(&mut out, &inner, meta);
                    out.push('}');
                }
                None => out.push_str(value),
            }
            out.push_str(&open[start + value.len()..]);
        }
        None => out.push_str(open),
    }
    add(&mut out, &found, members);
    if own.is_none() && !meta.is_empty() {
        let empty = found.is_empty() && members.is_empty();
        out.push_str(if empty { "\"_meta\":{" } else { ",\"_meta\":{" });
        add(&mut out, &[], meta);
        out.push('}');
    }
    out.push('}');
    Raw::parse(out).ok()
}

/// The string value of a member, if it has one.
pub(crate) fn string_member(object: &Raw, key: &str) -> Option<String> {
    let found = scan(object.get())?;
    let (_, value) = found.into_iter().find(|(name, _)| name == key)?;
    serde_json::from_str(value.get()).ok()
}

/// An object without its end, so that members can follow.
fn open(object: &str) -> Option<&str> {
    Some(object.strip_suffix('}')?.trim_end())
}

/// Adds to an open object what it lacks.
fn add(out: &mut String, found: &[(Cow<'_, str>, &RawValue)], additions: &[Addition<'_>]) {
    let mut empty = found.is_empty();
    for (key, value) in additions {
        if found.iter().any(|(name, _)| name == key) {
            continue;
        }
        if !std::mem::take(&mut empty) {
            out.push(',');
        }
        out.push('"');
        out.push_str(key);
        out.push_str("\":");
        out.push_str(value);
    }
}

fn scan(object: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    #[derive(Deserialize)]
    struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some((Key(key), value)) = map.next_entry()? {
                out.push((key, value));
            }
            Ok(out)
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(Members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_added_where_they_lack_and_nothing_else_moves() {
        let check = |text: &str, expect: &str| {
            let done = complete(
                &Raw::parse(text).unwrap(),
                &[("resultType", "\"complete\"".to_owned()), ("ttlMs", "5".to_owned())],
                &[("who", "{}".to_owned())],
            );
            assert_eq!(done.unwrap().get(), expect);
        };
        check("{}", r#"{"resultType":"complete","ttlMs":5,"_meta":{"who":{}}}"#);
        check("{ }", r#"{"resultType":"complete","ttlMs":5,"_meta":{"who":{}}}"#);
        check(
            r#"{"n":1.0, "s":"\u0041}" }"#,
            r#"{"n":1.0, "s":"\u0041}","resultType":"complete","ttlMs":5,"_meta":{"who":{}}}"#,
        );
        check(
            r#"{"resultType":"input_required","_meta":{"who":1},"ttlMs":9007199254740993}"#,
            r#"{"resultType":"input_required","_meta":{"who":1},"ttlMs":9007199254740993}"#,
        );
        check(
            r#"{"_meta": {"a":1e2},"z":[ ]}"#,
            r#"{"_meta": {"a":1e2,"who":{}},"z":[ ],"resultType":"complete","ttlMs":5}"#,
        );
        check(r#"{"_meta":7}"#, r#"{"_meta":7,"resultType":"complete","ttlMs":5}"#);
    }

    #[test]
    fn what_is_no_object_stays_out() {
        assert!(complete(&Raw::of(&[1]), &[], &[]).is_none());
        assert_eq!(string_member(&Raw::of(&serde_json::json!({"a": "b"})), "a").unwrap(), "b");
        assert!(string_member(&Raw::of(&serde_json::json!({"a": 1})), "a").is_none());
    }
}
