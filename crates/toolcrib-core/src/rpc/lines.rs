//! Sans-IO codec for newline-delimited messages (specification, transports/stdio).
//!
//! Bytes go in as they arrive, whole lines come out. A byte order mark at the start, carriage
//! returns and a missing last newline are all tolerated; a line over the limit ends the stream.
//! Messages framed as editors' language servers frame them (`Content-Length: N`, a blank line, N
//! bytes) come out as lines, too.

use thiserror::Error;

/// The peer wrote more than `limit` bytes without a newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("line too long: more than {limit} bytes without a newline")]
pub struct LineTooLong {
    /// The limit in bytes.
    pub limit: usize,
}

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub struct LineCodec {
    buffer: Vec<u8>,
    /// Bytes of `buffer` known to hold no newline.
    searched: usize,
    limit: usize,
    at_start: bool,
    frame: Frame,
    /// True once the first header was handed out, so that somebody can note it.
    framed: bool,
}

/// Where in a framed message we are.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Nowhere: lines.
    None,
    /// Among its headers; its length is known.
    Headers(usize),
    /// Before so many bytes of it.
    Body(usize),
}

/// One line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text; undecodable bytes are replaced by U+FFFD.
    pub text: String,
    /// True when bytes had to be replaced.
    pub lossy: bool,
}

impl LineCodec {
    /// A codec that holds at most `limit` bytes of one line.
    pub const fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            searched: 0,
            limit,
            at_start: true,
            frame: Frame::None,
            framed: false,
        }
    }

    /// Adds bytes and appends the lines they complete to `lines`; empty lines are skipped.
    ///
    /// # Errors
    /// A line is over the limit; lines completed before it are in `lines`.
    pub fn push(&mut self, bytes: &[u8], lines: &mut Vec<Line>) -> Result<(), LineTooLong> {
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        while let Some((end, next)) = self.end_of_piece(start) {
            if end - start > self.limit {
                return Err(LineTooLong { limit: self.limit });
            }
            lines.extend(self.piece(start..end));
            start = next;
            self.searched = 0;
        }
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
        if self.buffer.len() > self.limit {
            return Err(LineTooLong { limit: self.limit });
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Where the line or framed message at `start` ends, and where the next one begins.
    fn end_of_piece(&mut self, start: usize) -> Option<(usize, usize)> {
        if let Frame::Body(length) = self.frame {
            let held = self.buffer.get(start..).filter(|held| !held.is_empty())?;
            if is_frame(held, length, &mut self.searched) {
                return (held.len() >= length).then(|| (start + length, start + length));
            }
            // Somebody's log of something else: no frame after all.
            self.frame = Frame::None;
            self.searched = 0;
        }
        let offset = find_newline(&self.buffer[start + self.searched..])?;
        let end = start + self.searched + offset;
        Some((end, end + 1))
    }

    fn piece(&mut self, range: std::ops::Range<usize>) -> Option<Line> {
        let bytes = &self.buffer[range];
        match self.frame {
            Frame::Body(_) => {
                self.frame = Frame::None;
                return cut(bytes, &mut self.at_start);
            }
            Frame::Headers(length) => {
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    self.frame = Frame::Body(length);
                    return None;
                }
                if bytes.contains(&b':') && !bytes.starts_with(b"{") {
                    return None;
                }
                self.frame = Frame::None;
            }
            Frame::None => {
                // One over the limit meets it by itself, as a line.
                if let Some(length) = content_length(bytes).filter(|length| *length <= self.limit) {
                    self.frame = Frame::Headers(length);
                    if std::mem::replace(&mut self.framed, true) {
                        return None;
                    }
                }
            }
        }
        cut(bytes, &mut self.at_start)
    }

    /// The unterminated last line at the end of the stream.
    pub fn finish(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer);
        self.searched = 0;
        cut(&rest, &mut self.at_start)
    }
}

/// True while what follows the headers can be a message of that length. `searched` bytes of it hold
/// no line break.
fn is_frame(held: &[u8], length: usize, searched: &mut usize) -> bool {
    let body = &held[..length.min(held.len())];
    let last = |bytes: &[u8]| bytes.trim_ascii_end().last().copied();
    if !matches!(held[0], b'{' | b'[')
        || body.len() == length && !matches!(last(body), Some(b'}' | b']'))
    {
        return false;
    }
    // Whole JSON before a line break is a line of its own. Only the first one can be.
    let line =
        body.get(*searched..).and_then(find_newline).map(|offset| &body[..*searched + offset]);
    *searched = if line.is_some() { usize::MAX } else { body.len() };
    line.is_none_or(|line| {
        line.len() + 2 >= length || serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
    })
}

/// The length a header line announces.
fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let (name, value) = line.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn find_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

fn cut(bytes: &[u8], at_start: &mut bool) -> Option<Line> {
    let bytes = if std::mem::take(at_start) {
        bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
    } else {
        bytes
    };
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    Some(match std::str::from_utf8(bytes) {
        Ok(text) => Line { text: text.to_owned(), lossy: false },
        Err(_) => Line { text: String::from_utf8_lossy(bytes).into_owned(), lossy: true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(limit: usize, chunks: &[&[u8]]) -> (Vec<String>, Result<(), LineTooLong>) {
        let mut codec = LineCodec::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            if let Err(error) = codec.push(chunk, &mut lines) {
                return (lines.into_iter().map(|line| line.text).collect(), Err(error));
            }
        }
        lines.extend(codec.finish());
        (lines.into_iter().map(|line| line.text).collect(), Ok(()))
    }

    #[test]
    fn lines_come_out_whole_however_the_bytes_arrive() {
        let stream = b"\xef\xbb\xbfone\r\n\r\ntwo\nthree";
        for size in 1..stream.len() {
            let chunks: Vec<_> = stream.chunks(size).collect();
            assert_eq!(all(64, &chunks).0, ["one", "two", "three"], "chunks of {size}");
        }
    }

    #[test]
    fn the_limit_counts_one_line_and_keeps_what_came_before() {
        let (lines, end) = all(4, &[b"ok\n", b"12345"]);
        assert_eq!(lines, ["ok"]);
        assert_eq!(end, Err(LineTooLong { limit: 4 }));
        assert_eq!(all(4, &[b"1234\n1234\n"]).0, ["1234", "1234"]);
    }

    #[test]
    fn framed_messages_come_out_as_lines() {
        let stream = b"banner\nContent-Length: 7\r\nContent-Type: x\r\n\r\n{\"a\":1}\
            content-length:8\r\n\r\n{\"b\":\n2}{\"c\":3}\n";
        let expect = ["banner", "Content-Length: 7", "{\"a\":1}", "{\"b\":\n2}", "{\"c\":3}"];
        for size in 1..stream.len() {
            let chunks: Vec<_> = stream.chunks(size).collect();
            assert_eq!(all(64, &chunks).0, expect, "chunks of {size}");
        }
        let huge = [b"Content-Length: 65\r\n\r\n{".as_slice(), &[b'1'; 64]];
        assert_eq!(all(64, &huge).1, Err(LineTooLong { limit: 64 }));
    }

    #[test]
    fn a_log_that_looks_like_a_header_swallows_no_message() {
        let check = |stream: &[u8], expect: &[&str]| assert_eq!(all(64, &[stream]).0, expect);
        check(b"Content-Length: 500\n{\"a\":1}\n", &["Content-Length: 500", "{\"a\":1}"]);
        check(b"Content-Length: 60\n\n{\"a\":1}\n", &["Content-Length: 60", "{\"a\":1}"]);
        check(b"Content-Length: 5\n\n{\"a\":1}\n", &["Content-Length: 5", "{\"a\":1}"]);
        check(
            b"Content-Length: 5\n\nhello\n{\"a\":1}\n",
            &["Content-Length: 5", "hello", "{\"a\":1}"],
        );
    }

    #[test]
    fn undecodable_bytes_are_replaced_and_said() {
        let mut lines = Vec::new();
        LineCodec::new(64).push(b"a\xb0b\n", &mut lines).unwrap();
        assert_eq!(lines, [Line { text: "a\u{fffd}b".to_owned(), lossy: true }]);
    }
}
