//! One JSON-RPC message: decoding what a peer wrote, leniently, and encoding what we write.
//!
//! Nothing is re-serialised: params, results and error data stay [`Raw`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::RpcError;
use crate::{
    raw::{Raw, elements, present},
    sanitise,
};

/// What one piece of text from a peer is.
#[derive(Debug, Clone)]
pub enum Decoded {
    /// One message.
    Message(Message),
    /// A JSON-RPC batch (2025-03-26): its messages, and how many members were none.
    Batch(Vec<Message>, usize),
    /// Not JSON-RPC: banners, log lines, bare values. Holds a sanitised excerpt.
    Noise(String),
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message {
    /// The peer asks something; the id is echoed as it came.
    Request {
        /// Id exactly as received.
        id: Raw,
        /// Method name.
        method: String,
        /// Parameters, absent when not sent.
        params: Option<Raw>,
    },
    /// The peer tells something.
    Notification {
        /// Method name.
        method: String,
        /// Parameters, absent when not sent.
        params: Option<Raw>,
    },
    /// The peer answers.
    Response {
        /// Which request of ours it answers.
        id: ReplyId,
        /// The result, or the error.
        outcome: Result<Raw, RpcError>,
    },
}

/// The id of a response, seen from a client that mints positive integers only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyId {
    /// An integer of ours, as sent.
    Ours(u64),
    /// The same number in another dress (`"7"`, `7.0`). Unambiguous, since we only mint integers.
    Dressed(u64),
    /// `null` or absent: the peer could not tell which request it answers.
    Null,
    /// Nothing we can have minted; a sanitised excerpt.
    Foreign(String),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Decoded {
    /// Reads one line, body or event.
    ///
    /// A value without `jsonrpc` is a message only when it has a method, a result or an error, so
    /// that a JSON log line with an `id` is never taken for an answer.
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        match text.as_bytes().first() {
            Some(b'{') => Message::read(text).map_or_else(|| Self::noise(text), Self::Message),
            Some(b'[') => match elements(text, BATCHED) {
                Ok((members, all)) => {
                    let messages: Vec<_> =
                        members.iter().filter_map(|member| Message::read(member.get())).collect();
                    if messages.is_empty() {
                        Self::noise(text)
                    } else {
                        let odd = all - messages.len();
                        Self::Batch(messages, odd)
                    }
                }
                Err(_) => Self::noise(text),
            },
            _ => Self::noise(text),
        }
    }

    /// The messages of a line that is none as a whole: several in a row without a line break, with
    /// control characters or terminal escapes before them. Text before a message makes the line a
    /// log line, which may quote somebody else's messages: nothing is taken from it.
    pub fn salvage(line: &str) -> Vec<Message> {
        let text = without_escapes(line);
        let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        values
            .map_while(Result::ok)
            .filter(|value| value.get().starts_with('{'))
            .filter_map(|value| Message::read(value.get()))
            .take(SALVAGED)
            .collect()
    }

    fn noise(text: &str) -> Self {
        Self::Noise(sanitise::line(text, 120))
    }
}

/// Most members of a batch that are looked at; no host asks for as much at once.
const BATCHED: usize = 10_000;

/// Most messages taken from one line.
const SALVAGED: usize = 1_000;

/// What follows blanks, control characters and terminal escapes (`ESC [ … letter`).
fn without_escapes(text: &str) -> &str {
    let mut text = text;
    loop {
        text = text.trim_start_matches(|c: char| {
            c.is_whitespace() || c.is_control() && c != '\u{1b}' || c == '\u{feff}'
        });
        let Some(escape) = text.strip_prefix('\u{1b}') else { return text };
        text = match escape.strip_prefix('[') {
            Some(rest) => rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || ";?".contains(c))
                .trim_start_matches(|c: char| c.is_ascii_alphabetic()),
            None => escape,
        };
    }
}

impl Message {
    fn read(text: &str) -> Option<Self> {
        let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
        if envelope.jsonrpc.is_some_and(|version| version.get() != "\"2.0\"") {
            return None;
        }
        if let Some(method) = envelope.method {
            let params = envelope.params.map(Raw::from);
            let method = method.into_owned();
            return Some(match envelope.id {
                Some(id) if id.get() != "null" => Self::Request { id: id.into(), method, params },
                _ => Self::Notification { method, params },
            });
        }
        // A JSON log line, too, may have a `result` or an `error`: without `jsonrpc` and an id it
        // is an answer only when the error is one of JSON-RPC.
        let has_id = envelope.id.is_some_and(|id| id.get() != "null");
        if envelope.jsonrpc.is_none() && !has_id && !envelope.error.is_some_and(has_number) {
            return None;
        }
        let id = ReplyId::read(envelope.id.map(RawValue::get));
        let outcome = match (envelope.error, envelope.result) {
            (Some(error), _) => Err(RpcError::from_raw(&error.into())),
            (None, Some(result)) => Ok(result.into()),
            (None, None) => return None,
        };
        Some(Self::Response { id, outcome })
    }
}

/// True for an error with a numeric code.
fn has_number(error: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Coded {
        #[serde(rename = "code")]
        _code: i64,
    }
    serde_json::from_str::<Coded>(error.get()).is_ok()
}

impl ReplyId {
    fn read(id: Option<&str>) -> Self {
        let Some(text) = id.filter(|text| *text != "null") else { return Self::Null };
        if let Ok(number) = text.parse::<u64>() {
            return Self::Ours(number);
        }
        let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
        let number = bare.parse::<u64>().ok().or_else(|| {
            let float = bare.parse::<f64>().ok()?;
            (float.fract() == 0.0 && (0.0..9e15).contains(&float)).then_some(float as u64)
        });
        number.map_or_else(|| Self::Foreign(sanitise::line(text, 60)), Self::Dressed)
    }
}

/// Parameters of a request or notification, member by member, each kept raw.
#[derive(Debug, Clone, Default)]
pub struct Params {
    members: Vec<(Cow<'static, str>, Raw)>,
    meta: Vec<(Cow<'static, str>, Raw)>,
}

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits an object of parameters into its members; `_meta` is taken apart, too.
    ///
    /// # Errors
    /// `raw` is not an object, or its `_meta` is present and not an object.
    pub fn from_raw(raw: &Raw) -> Result<Self, serde_json::Error> {
        let mut params = Self::new();
        for (key, value) in members(raw)? {
            if key == "_meta" {
                params.meta =
                    members(&value)?.into_iter().map(|(k, v)| (Cow::Owned(k), v)).collect();
            } else {
                params.members.push((Cow::Owned(key), value));
            }
        }
        Ok(params)
    }

    /// Sets a member, in its place when it exists.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: Raw) -> Self {
        set(&mut self.members, key.into(), value);
        self
    }

    /// Sets a member of `_meta`.
    #[must_use]
    pub fn with_meta(mut self, key: impl Into<Cow<'static, str>>, value: Raw) -> Self {
        set(&mut self.meta, key.into(), value);
        self
    }

    /// The member of this name.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// True when there is neither a member nor any `_meta`.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.meta.is_empty()
    }

    /// The JSON object.
    pub fn encode(&self) -> String {
        let mut out = String::from("{");
        if !self.meta.is_empty() {
            out.push_str("\"_meta\":{");
            push_members(&mut out, &self.meta);
            out.push('}');
            if !self.members.is_empty() {
                out.push(',');
            }
        }
        push_members(&mut out, &self.members);
        out.push('}');
        out
    }
}

fn set(list: &mut Vec<(Cow<'static, str>, Raw)>, key: Cow<'static, str>, value: Raw) {
    match list.iter_mut().find(|(name, _)| *name == key) {
        Some(slot) => slot.1 = value,
        None => list.push((key, value)),
    }
}

fn push_members(out: &mut String, members: &[(Cow<'static, str>, Raw)]) {
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&serde_json::to_string(key).unwrap_or_default());
        out.push(':');
        out.push_str(value.get());
    }
}

/// The members of a JSON object in their order, each kept raw, duplicates included.
///
/// # Errors
/// `raw` is not an object.
pub fn members(raw: &Raw) -> Result<Vec<(String, Raw)>, serde_json::Error> {
    let mut all = Vec::new();
    each_member(raw, |name, value| all.push((name, value.into())))?;
    Ok(all)
}

/// The first member of this name that is not null; the others are passed over, not held.
pub fn member(raw: &Raw, name: &str) -> Option<Raw> {
    let mut found = None;
    let read = each_member(raw, |own, value| {
        if found.is_none() && own == name && value.get() != "null" {
            found = Some(value.into());
        }
    });
    read.ok().and(found)
}

/// Shows the members of a JSON object one by one, in their order, duplicates included.
///
/// # Errors
/// `raw` is not an object.
pub fn each_member<'a>(
    raw: &'a Raw,
    take: impl FnMut(String, &'a RawValue),
) -> Result<(), serde_json::Error> {
    struct Members<F>(F);
    impl<'de, F: FnMut(String, &'de RawValue)> serde::de::Visitor<'de> for Members<F> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry()? {
                (self.0)(name, value);
            }
            Ok(())
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    serde::Deserializer::deserialize_map(&mut deserializer, Members(take))
}

/// Writes a request.
pub fn request(id: u64, method: &str, params: &Params) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{}}}"#, params.encode())
}

/// Writes a notification; empty parameters are left out.
pub fn notification(method: &str, params: &Params) -> String {
    if params.is_empty() {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
    } else {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{}}}"#, params.encode())
    }
}

/// Writes the answer to a request; the id is echoed as it came.
pub fn response(id: &Raw, outcome: &Result<Raw, RpcError>) -> String {
    let id = id.get();
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.get()),
        Err(error) => {
            let error = Raw::of(error);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.get())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_are_taken_for_messages() {
        for text in [
            "Some Server, release 9.9.9",
            "",
            "42",
            "null",
            "\"text\"",
            "[1,2]",
            r#"{"lvl":"i","text":"ready"}"#,
            r#"{"level":"warn","id":1,"msg":"looks like an answer"}"#,
            r#"{"level":"error","error":"disk full"}"#,
            r#"{"level":"info","id":null,"result":"done"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            "{broken",
        ] {
            assert!(matches!(Decoded::read(text), Decoded::Noise(_)), "{text}");
        }
    }

    #[test]
    fn reply_ids_are_matched_only_when_they_can_be_ours() {
        let check = |id: &str, expect: ReplyId| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#);
            match Decoded::read(&text) {
                Decoded::Message(Message::Response { id, outcome: Ok(result) }) => {
                    assert_eq!(id, expect);
                    assert!(result.is_null());
                }
                other => panic!("{text}: {other:?}"),
            }
        };
        check("7", ReplyId::Ours(7));
        check("\"7\"", ReplyId::Dressed(7));
        check("7.0", ReplyId::Dressed(7));
        check("null", ReplyId::Null);
        check("-1", ReplyId::Foreign("-1".into()));
        check("7.5", ReplyId::Foreign("7.5".into()));
        check("\"abc\"", ReplyId::Foreign("\"abc\"".into()));
    }

    #[test]
    fn an_error_beside_a_result_is_an_error_and_a_null_error_is_none() {
        let read = |text: &str| match Decoded::read(text) {
            Decoded::Message(Message::Response { outcome, .. }) => outcome.is_ok(),
            other => panic!("{other:?}"),
        };
        assert!(!read(r#"{"id":1,"result":{},"error":{"code":1,"message":"x"}}"#));
        assert!(read(r#"{"id":1,"result":{},"error":null}"#));
    }

    #[test]
    fn messages_without_a_line_break_between_them_are_salvaged() {
        let check = |line: &str, expect: usize| {
            assert!(matches!(Decoded::read(line), Decoded::Noise(_)), "{line}");
            assert_eq!(Decoded::salvage(line).len(), expect, "{line}");
        };
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        check(&format!("{message}{message}"), 2);
        check(&format!("{message} {{\"lvl\":1}}{message} rest"), 2);
        check(&format!("\u{1b}[0m\u{1b}[2;1H\0{message}"), 1);
        check(&format!("received: {message}"), 0);
        check(&format!("{{\"sent\": {message}}}"), 0);
        check("banner", 0);
    }

    #[test]
    fn batches_are_taken_apart() {
        let text = r#"[{"jsonrpc":"2.0","method":"a"},7,{"jsonrpc":"2.0","id":"x","method":"b"}]"#;
        match Decoded::read(text) {
            Decoded::Batch(messages, odd) => assert_eq!((messages.len(), odd), (2, 1)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn params_keep_lexemes_and_splice_meta() {
        let raw = Raw::parse(r#"{"name":"a","arguments":{"n":1.0},"_meta":{"x":1}}"#).unwrap();
        let params = Params::from_raw(&raw)
            .unwrap()
            .with("name", Raw::of(&"b"))
            .with_meta("progressToken", Raw::of(&3));
        assert_eq!(
            params.encode(),
            r#"{"_meta":{"x":1,"progressToken":3},"name":"b","arguments":{"n":1.0}}"#
        );
    }
}
