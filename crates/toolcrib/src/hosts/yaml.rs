//! YAML, read into the common tree. Of several documents only the first is read.
//!
//! Aliases are not followed: what stands for something elsewhere is read as null. Tags do not count.

use std::iter::Peekable;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::config::{
    node::{Member, Node, Value},
    problem::Problem,
    text::Source,
};

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// Reads a YAML file; `None` when there is nothing in it.
///
/// # Errors
/// A syntax error or a file that is not for people, with line and column.
pub(crate) fn read(source: &Source) -> Result<Option<Node>, Problem> {
    let mut reader = Reader {
        source,
        offsets: source.text.char_indices().map(|(at, _)| at).collect(),
        events: Events(Parser::new_from_str(&source.text)).peekable(),
    };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(None),
            (event, span) => return reader.node(event, span, 0).map(Some),
        }
    }
}

struct Events<'a>(Parser<'a, StrInput<'a>>);

impl<'a> Iterator for Events<'a> {
    type Item = Result<(Event<'a>, Span), ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_event()
    }
}

struct Reader<'a> {
    source: &'a Source,
    /// The byte offset of each character: the parser counts characters.
    offsets: Vec<usize>,
    events: Peekable<Events<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let what = toolcrib_core::sanitise::line(error.info(), 200);
                let at = self.offset(error.marker().index());
                Err(self.source.problem(at, format!("not valid YAML: {what}")))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn offset(&self, chars: usize) -> usize {
        self.offsets.get(chars).copied().unwrap_or(self.source.text.len())
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Problem> {
        let at = self.offset(span.start.index());
        if depth == MAX_DEPTH {
            let what = format!("not read: nested deeper than {MAX_DEPTH} levels");
            return Err(self.source.problem(at, what));
        }
        let mut end = self.offset(span.end.index());
        let value = match event {
            Event::Scalar(text, style, ..) => {
                end = self.scalar_end(at, end, style);
                scalar(&text, style)
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                }
                end = items.last().map_or(end, |last| last.end);
                Value::List(items)
            }
            Event::MappingStart(..) => {
                let members = self.members(depth)?;
                end = members.last().map_or(end, |last| last.node.end);
                Value::Map(members)
            }
            _ => Value::Null,
        };
        Ok(Node { at, end, value })
    }

    /// Where a scalar ends: the parser's own end may lie behind the comment that follows.
    fn scalar_end(&self, at: usize, end: usize, style: ScalarStyle) -> usize {
        let text = &self.source.text[at..end];
        let quote = match style {
            ScalarStyle::SingleQuoted => '\'',
            ScalarStyle::DoubleQuoted => '"',
            _ => return at + text.trim_end().len(),
        };
        let mut escaped = false;
        let close = text.char_indices().skip(1).find(|(_, c)| {
            let closes = *c == quote && !escaped;
            escaped = style == ScalarStyle::DoubleQuoted && *c == '\\' && !escaped;
            closes
        });
        // A quote within single quotes is doubled, so the one that was found does not close it;
        // then all up to the parser's own end is taken, a comment included.
        match close {
            Some((close, _)) if !text[close + 1..].starts_with(quote) => at + close + 1,
            _ => at + text.trim_end().len(),
        }
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, Problem> {
        let mut members: Vec<Member> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let at = self.offset(span.start.index());
            let key = match event {
                Event::MappingEnd => return Ok(members),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(self.source.problem(at, "not read: a key that is not a text")),
            };
            if members.iter().any(|member| member.key == key) {
                let what = format!(
                    "not valid YAML: {} stands twice",
                    crate::config::problem::quoted(&key)
                );
                return Err(self.source.problem(at, what));
            }
            let (event, span) = self.next()?;
            members.push(Member { key, at, node: self.node(event, span, depth + 1)? });
        }
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text if text.parse::<u64>().is_ok() => Value::Number(text.parse().ok()),
        text if text.parse::<f64>().is_ok() => Value::Number(None),
        text => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn source(text: &str) -> Source {
        Source::decode(Path::new("c.yaml"), text.as_bytes()).unwrap()
    }

    #[test]
    fn values_and_their_places_are_read() {
        let source = source("# ä\na:\n  b: 'x y' # c\n  c: [1, two, true, -1]\nd: ~\n");
        let root = read(&source).unwrap().unwrap();
        let members = root.value.members().unwrap();
        let inner = members[0].node.value.members().unwrap();
        assert_eq!(&source.text[inner[0].node.at..inner[0].node.end], "'x y'");
        let Value::List(items) = &inner[1].node.value else { panic!("a list") };
        assert!(matches!(items[0].value, Value::Number(Some(1))));
        assert!(matches!(&items[1].value, Value::Text(text) if text == "two"));
        assert!(matches!(items[2].value, Value::Bool(true)));
        assert!(matches!(items[3].value, Value::Number(None)));
        assert!(matches!(members[1].node.value, Value::Null));
        assert!(read(&self::source("# nothing\n")).unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_is_placed() {
        let check = |text: &str, expect: &str| {
            let error = read(&source(text)).err().map(|problem| problem.to_string());
            assert_eq!(error.as_deref(), Some(expect), "{text}");
        };
        check("a: 1\na: 2\n", "c.yaml:2:1: not valid YAML: `a` stands twice");
        check("? [a]\n: 1\n", "c.yaml:1:3: not read: a key that is not a text");
        check(
            "a: [1\n",
            "c.yaml:2:1: not valid YAML: while parsing a flow sequence, expected ',' or ']'",
        );
        check(&"[".repeat(100), "c.yaml:1:65: not read: nested deeper than 64 levels");
    }
}
