//! From the bytes of a configuration file to its text, and from offsets in it to lines.
//!
//! A byte-order mark is dropped; UTF-16 is decoded when a mark announces it.

use std::path::{Path, PathBuf};

use super::problem::{Place, Problem};

/// The text of one file, with its name for messages.
pub(crate) struct Source {
    /// The file, as it is named in messages.
    pub(crate) file: PathBuf,
    /// Its text, without a byte-order mark.
    pub(crate) text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Decodes a file.
    ///
    /// # Errors
    /// The bytes are neither UTF-8 nor UTF-16 with a byte-order mark.
    pub(crate) fn decode(file: &Path, bytes: &[u8]) -> Result<Self, Problem> {
        let text = match bytes {
            [0xff, 0xfe, rest @ ..] => utf16(file, rest, u16::from_le_bytes)?,
            [0xfe, 0xff, rest @ ..] => utf16(file, rest, u16::from_be_bytes)?,
            [0xef, 0xbb, 0xbf, rest @ ..] => utf8(file, rest)?,
            rest => utf8(file, rest)?,
        };
        let line_starts =
            [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Ok(Self { file: file.to_owned(), text, line_starts })
    }

    /// The line and column of a byte offset.
    pub(crate) fn place(&self, offset: usize) -> Place {
        // Parsers may point one past the end, or into a character they could not read.
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line - 1).copied().unwrap_or_default();
        Place { line, column: self.text[start..offset].chars().count() + 1 }
    }

    /// A problem at a byte offset.
    pub(crate) fn problem(&self, offset: usize, what: impl Into<String>) -> Problem {
        Problem::file(&self.file, what).at(self.place(offset))
    }
}

fn utf8(file: &Path, bytes: &[u8]) -> Result<String, Problem> {
    if bytes.iter().take(64).any(|byte| *byte == 0) {
        return Err(Problem::file(
            file,
            "holds zero bytes; it looks like UTF-16 without a byte-order mark",
        )
        .hint("save it as UTF-8"));
    }
    String::from_utf8(bytes.to_vec()).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&bytes[..good]);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Problem::file(file, "not valid UTF-8")
            .at(Place { line: before.matches('\n').count() + 1, column })
            .hint("save it as UTF-8")
    })
}

fn utf16(file: &Path, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Problem> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: Result<String, _> =
        char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    text.ok().filter(|_| rest.is_empty()).ok_or_else(|| {
        Problem::file(file, "starts as UTF-16 but is not valid UTF-16").hint("save it as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Result<String, String> {
        Source::decode(Path::new("f.json"), bytes)
            .map(|source| source.text)
            .map_err(|problem| problem.to_string())
    }

    #[test]
    fn c58_byte_order_marks_are_dropped_and_utf16_is_decoded() {
        let check = |bytes: &[u8], expect: &str| assert_eq!(decode(bytes).as_deref(), Ok(expect));
        check(b"\xef\xbb\xbf{}", "{}");
        check(b"\xff\xfe{\0\xe4\0}\0", "{ä}");
        check(b"\xfe\xff\0{\0}", "{}");
        check(b"", "");
        check(b"\xff\xfe", "");
    }

    #[test]
    fn other_encodings_are_refused_with_the_place() {
        let check = |bytes: &[u8], expect: &str| {
            assert_eq!(decode(bytes).as_ref().map_err(String::as_str), Err(expect));
        };
        check(b"a\nb\xe4", "f.json:2:2: not valid UTF-8");
        check(
            b"{\0}\0",
            "f.json: holds zero bytes; it looks like UTF-16 without a byte-order mark",
        );
        check(b"\xff\xfe{", "f.json: starts as UTF-16 but is not valid UTF-16");
        check(b"\xff\xfe\x00\xd8", "f.json: starts as UTF-16 but is not valid UTF-16");
    }

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let source = Source::decode(Path::new("f"), "a\nüx\r\n".as_bytes()).expect("valid");
        let check = |offset, line, column| {
            assert_eq!(source.place(offset), Place { line, column }, "{offset}");
        };
        check(0, 1, 1);
        check(1, 1, 2);
        check(2, 2, 1);
        check(3, 2, 1);
        check(4, 2, 2);
        check(7, 3, 1);
        check(99, 3, 1);
    }
}
