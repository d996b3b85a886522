//! Adds members to a JSON object that is kept as text, so that nothing a handler wrote is changed.
//!
//! A member that is already there is never replaced.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use toolcrib_core::raw::Raw;

/// A member to add: key and JSON text.
pub(crate) type Addition<'a> = (&'a str, &'a str);

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
    let whole = match found.iter().find(|(key, _)| key == "_meta") {
        Some((_, value)) => {
            let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
            let end = start + value.get().len();
            let inner = add(value.get(), meta).unwrap_or_else(|| value.get().to_owned());
            add(&format!("{}{inner}{}", &text[..start], &text[end..]), members)?
        }
        None if meta.is_empty() => add(text, members)?,
        None => {
            let inner = add("{}", meta)?;
            let mut members = members.to_vec();
            members.push(("_meta", &inner));
            add(text, &members)?
        }
    };
    Raw::parse(whole).ok()
}

/// The string value of a member, if it has one.
pub(crate) fn string_member(object: &Raw, key: &str) -> Option<String> {
    let found = scan(object.get())?;
    let (_, value) = found.into_iter().find(|(name, _)| name == key)?;
    serde_json::from_str(value.get()).ok()
}

fn add(object: &str, additions: &[Addition<'_>]) -> Option<String> {
    let found = scan(object)?;
    let mut out = object.strip_suffix('}')?.trim_end().to_owned();
    let mut empty = found.is_empty();
    for (key, value) in additions {
        if found.iter().any(|(name, _)| name == key) {
            continue;
        }
        if !std::mem::take(&mut empty) {
            out.push(',');
        }
        out.push_str(&serde_json::to_string(key).ok()?);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Some(out)
}

fn scan(object: &str) -> Option<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some(entry) = map.next_entry()? {
                out.push(entry);
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
                &[("resultType", "\"complete\""), ("ttlMs", "5")],
                &[("who", "{}")],
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
