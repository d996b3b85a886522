//! Sans-IO codec for newline-delimited messages (specification, transports/stdio).
//!
//! Bytes go in as they arrive, whole lines come out. A byte order mark at the start, carriage
//! returns and a missing last newline are all tolerated; a line over the limit ends the stream.

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
        Self { buffer: Vec::new(), searched: 0, limit, at_start: true }
    }

    /// Adds bytes and appends the lines they complete to `lines`; empty lines are skipped.
    ///
    /// # Errors
    /// A line is over the limit; lines completed before it are in `lines`.
    pub fn push(&mut self, bytes: &[u8], lines: &mut Vec<Line>) -> Result<(), LineTooLong> {
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(offset) = find_newline(&self.buffer[start + self.searched..]) {
            let end = start + self.searched + offset;
            if end - start > self.limit {
                return Err(LineTooLong { limit: self.limit });
            }
            let line = &self.buffer[start..end];
            lines.extend(cut(line, &mut self.at_start));
            start = end + 1;
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

    /// The unterminated last line at the end of the stream.
    pub fn finish(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer);
        self.searched = 0;
        cut(&rest, &mut self.at_start)
    }
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
    fn undecodable_bytes_are_replaced_and_said() {
        let mut lines = Vec::new();
        LineCodec::new(64).push(b"a\xb0b\n", &mut lines).unwrap();
        assert_eq!(lines, [Line { text: "a\u{fffd}b".to_owned(), lossy: true }]);
    }
}
