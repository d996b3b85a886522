//! The `--json` shapes: one object per run on one line, its first member naming the shape and its
//! version. What servers sent is written again as it came, member for member; characters that could
//! steer a terminal are written as escapes, which to JSON are the same.

use std::{fmt::Write as _, io};

use serde::Serialize;
use toolcrib_core::sanitise;

use super::out::Out;
use crate::failure::Failure;

/// Names a shape, with the version that grows when a member changes its meaning or goes away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format(pub(crate) &'static str);

impl Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("toolcrib/{}/1", self.0))
    }
}

/// Writes one object.
pub(crate) fn print(out: &mut Out, value: &impl Serialize) -> io::Result<()> {
    out.line(visible(serde_json::to_string(value)?))
}

/// The same JSON on one line and without hidden characters. Line breaks and tabs are layout, since
/// no string holds them as they are; hidden characters stand in strings only.
fn visible(json: String) -> String {
    let odd = |c: char| c.is_control() || sanitise::is_hidden(c);
    if !json.contains(odd) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if odd(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// Writes a failure.
pub(crate) fn print_failure(out: &mut Out, failure: &Failure) -> io::Result<()> {
    #[derive(Serialize)]
    struct Failed<'a> {
        format: Format,
        error: Error<'a>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        code: toolcrib_core::code::Code,
        message: &'a str,
        hints: &'a [String],
    }
    let error = Error { code: failure.code, message: &failure.message, hints: &failure.hints };
    print(out, &Failed { format: Format("error"), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_escapes_of_the_same_text() {
        let check = |text: &str, expect: &str| {
            let shown = visible(text.to_owned());
            assert_eq!(shown, expect);
            let read = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&shown), read(text));
        };
        check(r#"{"a":"plain \u001b ä"}"#, r#"{"a":"plain \u001b ä"}"#);
        check("{\n\t\"a\":\r\n1}", "{  \"a\":  1}");
        check("\"\u{9b}31m \u{7f}\u{202e}\"", r#""\u009b31m \u007f\u202e""#);
        check("\"tag\u{e0041}\"", r#""tag\udb40\udc41""#);
        check("\"👩\u{200d}🚀\"", "\"👩\u{200d}🚀\"");
    }
}
