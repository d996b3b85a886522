//! Sans-IO decoder for server-sent events (WHATWG HTML, "interpreting an event stream").
//!
//! Bytes go in as they arrive, whole events come out. Comments are dropped as they pass and never
//! held; an event over the limit ends the stream. Nothing here reads the data as JSON.

use thiserror::Error;

/// The peer wrote an event of more than `limit` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("event too long: more than {limit} bytes")]
pub struct EventTooLong {
    /// The limit in bytes.
    pub limit: usize,
}

/// One event.
///
/// An event without data is surfaced, too: servers open a stream with one to hand out an id or a
/// delay. Its `data` is empty and there is nothing to parse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty means `message`.
    pub event: String,
    /// Its data lines joined by newlines.
    pub data: String,
    /// The id it sets, which may be empty; absent when it sets none.
    pub id: Option<String>,
    /// The reconnection delay it sets, in milliseconds.
    pub retry_ms: Option<u64>,
    /// True when undecodable bytes of the data were replaced by U+FFFD.
    pub lossy: bool,
}

impl Event {
    /// True when the event is of the default type.
    pub fn is_message(&self) -> bool {
        self.event.is_empty() || self.event == "message"
    }
}

/// Turns a byte stream into events.
#[derive(Debug)]
pub struct SseDecoder {
    /// The line being received, without its end.
    line: Vec<u8>,
    /// Where in a line we are.
    place: Place,
    /// The last byte was a carriage return: a newline right after it belongs to it.
    after_cr: bool,
    at_start: bool,
    pending: Pending,
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Field,
    Comment,
}

/// The event being built.
#[derive(Debug, Default)]
struct Pending {
    event: Vec<u8>,
    /// Every data line followed by a newline; the last newline is cut off on dispatch.
    data: Vec<u8>,
    id: Option<String>,
    retry_ms: Option<u64>,
    any: bool,
}

impl SseDecoder {
    /// A decoder that holds at most `limit` bytes of one event.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            place: Place::Start,
            after_cr: false,
            at_start: true,
            pending: Pending::default(),
            limit,
        }
    }

    /// Adds bytes and appends the events they complete to `events`.
    ///
    /// # Errors
    /// An event is over the limit; events completed before it are in `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let text = &rest[..end.unwrap_or(rest.len())];
            self.take_text(text)?;
            let Some(end) = end else { break };
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(events);
        }
        Ok(())
    }

    /// True when a part of an event has come whose end is still to come.
    pub const fn is_inside_event(&self) -> bool {
        self.pending.any || matches!(self.place, Place::Field)
    }

    /// What an unfinished last event held when the stream ended, if it had data.
    ///
    /// The standard drops it; servers exist that end without the blank line, and what was cut in
    /// the middle is no JSON anyway. Its id is not taken over, since it may be cut.
    pub fn finish(&mut self) -> Option<Event> {
        let mut events = Vec::new();
        self.end_line(&mut events);
        self.pending.id = None;
        self.dispatch(&mut events);
        events.pop().filter(|event| !event.data.is_empty())
    }

    fn take_text(&mut self, text: &[u8]) -> Result<(), EventTooLong> {
        if self.place == Place::Start && !text.is_empty() && !self.in_bom(text) {
            self.place = if text[0] == b':' { Place::Comment } else { Place::Field };
        }
        if self.place == Place::Comment {
            return Ok(());
        }
        if self.line.len() + text.len() + self.pending.size() > self.limit {
            return Err(EventTooLong { limit: self.limit });
        }
        self.line.extend_from_slice(text);
        if self.place == Place::Start && !self.line.is_empty() {
            self.strip_bom();
        }
        Ok(())
    }

    /// True while the first bytes of the stream are, or may become, a byte order mark.
    fn in_bom(&self, text: &[u8]) -> bool {
        self.at_start && (!self.line.is_empty() || text[0] == BOM[0])
    }

    fn strip_bom(&mut self) {
        let known = self.line.len().min(BOM.len());
        if self.line[..known] != BOM[..known] {
            self.at_start = false;
        } else if known == BOM.len() {
            self.at_start = false;
            self.line.drain(..BOM.len());
        } else {
            return;
        }
        match self.line.first() {
            Some(b':') => {
                self.place = Place::Comment;
                self.line.clear();
            }
            Some(_) => self.place = Place::Field,
            None => {}
        }
    }

    fn end_line(&mut self, events: &mut Vec<Event>) {
        self.at_start = false;
        let comment = self.place == Place::Comment;
        self.place = Place::Start;
        if comment {
            return;
        }
        if self.line.is_empty() {
            self.dispatch(events);
        } else {
            self.pending.field(&self.line);
            self.line.clear();
            if self.line.capacity() > 1 << 20 {
                self.line = Vec::new();
            }
        }
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let pending = std::mem::take(&mut self.pending);
        if pending.any {
            events.push(pending.into_event());
        }
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Pending {
    fn size(&self) -> usize {
        self.event.len() + self.data.len() + self.id.as_ref().map_or(0, String::len)
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &line[line.len()..]),
        };
        match name {
            b"event" => self.event = value.to_vec(),
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let text = String::from_utf8_lossy(value);
                self.retry_ms = Some(text.parse().unwrap_or(u64::MAX));
            }
            _ => return,
        }
        self.any = true;
    }

    fn into_event(mut self) -> Event {
        if self.data.last() == Some(&b'\n') {
            self.data.pop();
        }
        let (data, lossy) = match String::from_utf8(self.data) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        Event {
            event: String::from_utf8_lossy(&self.event).into_owned(),
            data,
            id: self.id,
            retry_ms: self.retry_ms,
            lossy,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn all(limit: usize, chunks: &[&[u8]]) -> (Vec<Event>, Result<(), EventTooLong>) {
        let mut decoder = SseDecoder::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            if let Err(error) = decoder.push(chunk, &mut events) {
                return (events, Err(error));
            }
        }
        events.extend(decoder.finish());
        (events, Ok(()))
    }

    fn data(text: &str) -> Event {
        Event { data: text.to_owned(), ..Event::default() }
    }

    #[test]
    fn a_part_of_an_event_is_told_from_a_comment() {
        let check = |text: &str, expect: bool| {
            let mut decoder = SseDecoder::new(100);
            decoder.push(text.as_bytes(), &mut Vec::new()).unwrap();
            assert_eq!(decoder.is_inside_event(), expect, "{text:?}");
        };
        check("", false);
        check(": keep-alive\n\n", false);
        check(": keep-a", false);
        check("data: {\"a", true);
        check("data: 1\n", true);
        check("data: 1\n\n", false);
    }

    #[test]
    fn streams_are_read_as_the_standard_says() {
        let check = |stream: &str, expect: &[Event]| {
            assert_eq!(all(1_000, &[stream.as_bytes()]).0, expect, "{stream:?}");
        };
        check("data: a\n\n", &[data("a")]);
        check("data:a\r\rdata:  b\r\r", &[data("a"), data(" b")]);
        check("data: a\r\ndata: b\r\n\r\n", &[data("a\nb")]);
        check("\u{feff}data: a\n\n", &[data("a")]);
        check("\u{feff}: note\n\u{feff}data: no field\n\n", &[]);
        check(": hello\n\n\n:\n\n", &[]);
        check("data\n\ndata\ndata\n\n", &[data(""), data("\n")]);
        check("other: x\nDATA: y\n\n", &[]);
        check("retry: 1x\nretry:\n\n", &[]);
        check("id: a\u{0}b\n\n", &[]);
        check("event: end", &[]);
        check("data: a\nid: 7", &[data("a")]);
        check(
            "event: endpoint\nid: 3\nretry: 50\ndata: /m\n\n",
            &[Event {
                event: "endpoint".into(),
                data: "/m".into(),
                id: Some("3".into()),
                retry_ms: Some(50),
                lossy: false,
            }],
        );
    }

    #[test]
    fn an_event_without_data_still_gives_its_id_and_delay() {
        let (events, _) = all(100, &[b": hello\r\n\r\nid: st:0\r\nretry: 50\r\ndata:\r\n\r\n"]);
        let expect = Event { id: Some("st:0".into()), retry_ms: Some(50), ..Event::default() };
        assert_eq!(events, [expect]);
    }

    #[test]
    fn the_limit_counts_one_event_and_no_comment() {
        let comment = [b":".as_slice(), &[b'x'; 10_000], b"\n"].concat();
        assert_eq!(all(16, &[&comment, b"data: a\n\n"]), (vec![data("a")], Ok(())));
        let (events, end) = all(16, &[b"data: a\n\n", b"data: 12345678\n", b"data: 12345678\n"]);
        assert_eq!((events, end), (vec![data("a")], Err(EventTooLong { limit: 16 })));
        assert!(all(16, &[&[b'x'; 17]]).1.is_err());
    }

    #[test]
    fn undecodable_bytes_are_replaced_and_said() {
        let (events, _) = all(100, &[b"data: a\xb0b\n\n"]);
        assert_eq!(events, [Event { data: "a\u{fffd}b".into(), lossy: true, ..Event::default() }]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            parts in vec(prop_oneof![
                Just(b"data".to_vec()), Just(b"id: 1".to_vec()), Just(b"retry: 2".to_vec()),
                Just(b": c".to_vec()), Just(b"event: e".to_vec()), Just(b":".to_vec()),
                Just(b"\r".to_vec()), Just(b"\n".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"\n\n".to_vec()), Just(b"\xef\xbb\xbf".to_vec()), Just(b"\xef".to_vec()),
                Just("ä€".as_bytes().to_vec()), Just(b"\xff\0x".to_vec()),
            ], 0..40),
            cuts in vec(0_usize..200, 0..20),
        ) {
            let stream = parts.concat();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            prop_assert_eq!(all(10_000, &chunks), all(10_000, &[&stream]));
        }
    }
}
