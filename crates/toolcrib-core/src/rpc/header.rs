//! HTTP header names of MCP and the encoding of the values that mirror a message's body
//! (specification, transports/streamable-http#value-encoding).
//!
//! Nothing here decides which header a message needs.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use thiserror::Error;

/// Protocol version of one request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Method of one modern request.
pub const METHOD: &str = "mcp-method";
/// `params.name` or `params.uri` of one modern request, encoded.
pub const NAME: &str = "mcp-name";
/// Prefix of the headers that mirror single arguments, encoded.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// Legacy session.
pub const SESSION_ID: &str = "mcp-session-id";
/// Where a legacy event stream is resumed.
pub const LAST_EVENT_ID: &str = "last-event-id";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A value between the Base64 markers that is no Base64 of UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not Base64 of UTF-8 text between =?base64? and ?=")]
pub struct BadValue;

/// Writes a value: as it is when it is printable ASCII, else between Base64 markers.
///
/// Markers are also used for leading or trailing spaces, which HTTP would cut off, for control
/// characters including tab, and for text that would read as marked.
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && marked(value).is_none();
    if plain {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(value)))
    }
}

/// Reads a value as [`encode`] writes it; white space around it is no part of it.
///
/// # Errors
/// The value is marked as Base64 and is none.
pub fn decode(value: &str) -> Result<Cow<'_, str>, BadValue> {
    let value = value.trim_matches([' ', '\t']);
    let Some(body) = marked(value) else { return Ok(Cow::Borrowed(value)) };
    let bytes = STANDARD.decode(body).map_err(|_| BadValue)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| BadValue)
}

fn marked(value: &str) -> Option<&str> {
    value.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn only_what_a_header_cannot_carry_is_encoded() {
        let check = |value: &str, expect: &str| {
            assert_eq!(encode(value), expect, "{value:?}");
            assert_eq!(decode(expect).as_deref(), Ok(value), "{expect:?}");
        };
        check("", "");
        check("get weather", "get weather");
        check("42", "42");
        check("file:///a?b=c#d", "file:///a?b=c#d");
        check("=?base64?", "=?base64?");
        check("=?BASE64?YQ==?=", "=?BASE64?YQ==?=");
        check("Zürich", "=?base64?WsO8cmljaA==?=");
        check(" a", "=?base64?IGE=?=");
        check("a ", "=?base64?YSA=?=");
        check("a\tb", "=?base64?YQli?=");
        check("a\r\nb: c", "=?base64?YQ0KYjogYw==?=");
        check("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
        check("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?=");
    }

    #[test]
    fn white_space_around_a_value_is_not_part_of_it() {
        assert_eq!(decode(" a b\t").as_deref(), Ok("a b"));
        assert_eq!(decode("\t=?base64?IGE=?= ").as_deref(), Ok(" a"));
    }

    #[test]
    fn marked_text_that_is_no_base64_is_an_error() {
        for value in ["=?base64?*?=", "=?base64?YQ?=", "=?base64?/w==?="] {
            assert_eq!(decode(value), Err(BadValue), "{value}");
        }
    }

    proptest! {
        #[test]
        fn every_value_survives_as_a_header(value in any::<String>()) {
            let encoded = encode(&value);
            prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(encoded.trim(), &encoded);
            let decoded = decode(&encoded).unwrap();
            prop_assert_eq!(&*decoded, &value);
        }
    }
}
