//! TOML, read into the common tree.
//!
//! A server that is defined twice costs only itself; any other syntax error costs the file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{
    node::{Member, Node, Value},
    problem::Problem,
    text::Source,
};

/// With more syntax errors than these the file is given up: each is looked into, which takes time.
const MAX_ERRORS: usize = 200;
/// Most servers that may be defined twice, for the same reason.
const MAX_TWICE: usize = 20;
/// Longest text that is looked into.
const MAX_BYTES: usize = 1 << 20;

/// What a TOML file holds.
pub(crate) struct Toml {
    /// The tree, without the entries that are defined twice.
    pub(crate) root: Node,
    /// One error per entry that is defined twice.
    pub(crate) errors: Vec<Problem>,
}

/// Reads a TOML file.
///
/// # Errors
/// A syntax error, with its line and column.
pub(crate) fn read(source: &Source) -> Result<Toml, Problem> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let mut root = node(table.span(), DeValue::Table(table.into_inner()));
    let mut twice = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let few = errors.len() <= MAX_ERRORS && source.text.len() <= MAX_BYTES;
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        let lookable = few && names.len() < MAX_TWICE && error.message() == "duplicate key";
        let server = lookable.then(|| server_around(source, at)).flatten();
        let Some(Header { name, start, whole }) = server else {
            return Err(syntax_error(source, at, error.message()));
        };
        if names.contains(&name) {
            // The keys of the second definition meet those of the first.
            continue;
        }
        let first = first_definition(source, start, &name).filter(|_| whole && at >= start);
        let Some(first) = first else {
            return Err(syntax_error(source, at, error.message()));
        };
        let first = source.place(first).line;
        let line = source.place(start).line;
        twice.push(
            source
                .problem(start, format!("defined twice, on line {first} and on line {line}"))
                .of(&name)
                .hint("rename or remove one of them; neither is used"),
        );
        drop_server(&mut root, &name);
        names.push(name);
    }
    Ok(Toml { root, errors: twice })
}

fn syntax_error(source: &Source, at: usize, message: &str) -> Problem {
    let what = match message {
        "duplicate key" => match first_in_table(source, at) {
            Some(first) => {
                format!("not valid TOML: duplicate key, first on line {}", source.place(first).line)
            }
            None => "not valid TOML: duplicate key".to_owned(),
        },
        message => format!("not valid TOML: {}", toolcrib_core::sanitise::line(message, 200)),
    };
    source.problem(at, what)
}

/// The header of a server.
struct Header {
    /// The server.
    name: String,
    /// Where its line starts.
    start: usize,
    /// True for `[servers.NAME]` itself, false for a table below.
    whole: bool,
}

/// The header of the server that the line at `at` belongs to, if it is one.
fn server_around(source: &Source, at: usize) -> Option<Header> {
    let end = line_end(source, at);
    let mut start = end;
    for line in source.text.get(..end)?.split_inclusive('\n').rev() {
        start -= line.len();
        if line.trim_start().starts_with('[') {
            break;
        }
    }
    let header =
        DeTable::parse(source.text.get(start..line_end(source, start))?).ok()?.into_inner();
    let (section, servers) = header.iter().next()?;
    let (name, entry) = servers.get_ref().as_table()?.iter().next()?;
    if section.get_ref() != "servers" {
        return None;
    }
    let whole = entry.get_ref().as_table()?.is_empty();
    Some(Header { name: name.get_ref().to_string(), start, whole })
}

/// Where a server is defined in the text before `end`.
fn first_definition(source: &Source, end: usize, name: &str) -> Option<usize> {
    // What comes before may hold servers that are defined twice as well.
    let (before, _) = DeTable::parse_recoverable(source.text.get(..end)?);
    let servers = before.get_ref().get("servers")?.get_ref().as_table()?;
    let (first, _) = servers.iter().find(|(key, _)| key.get_ref() == name)?;
    Some(first.span().start)
}

/// Where the key at `at` stands for the first time among the lines of its table.
fn first_in_table(source: &Source, at: usize) -> Option<usize> {
    let start = line_start(source, at);
    let line = source.text.get(start..)?.lines().next()?.trim_start();
    let word = |line: &str| line.split(['=', ']']).next().unwrap_or_default().trim().to_owned();
    let header = line.starts_with('[');
    let mut first = None;
    let mut offset = 0;
    for other in source.text.get(..start)?.split_inclusive('\n') {
        let text = other.trim_start();
        if text.starts_with('[') && !header {
            first = None;
        }
        if first.is_none() && word(text) == word(line) {
            first = Some(offset + (other.len() - text.len()));
        }
        offset += other.len();
    }
    first
}

fn line_start(source: &Source, at: usize) -> usize {
    source.text.get(..at).and_then(|text| text.rfind('\n')).map_or(0, |end| end + 1)
}

fn line_end(source: &Source, at: usize) -> usize {
    let rest = source.text.get(at..).unwrap_or_default();
    rest.find('\n').map_or(source.text.len(), |end| at + end + 1)
}

fn drop_server(root: &mut Node, name: &str) {
    if let Value::Map(members) = &mut root.value {
        for section in members.iter_mut().filter(|member| member.key == "servers") {
            if let Value::Map(servers) = &mut section.node.value {
                servers.retain(|server| server.key != name);
            }
        }
    }
}

fn node(span: Range<usize>, value: DeValue<'_>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            Value::Number(u64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Float(_) => Value::Number(None),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(
            items.into_iter().map(|item| node(item.span(), item.into_inner())).collect(),
        ),
        DeValue::Table(table) => {
            let mut members: Vec<_> = table
                .into_iter()
                .map(|(key, value)| Member {
                    at: key.span().start,
                    key: key.into_inner().into_owned(),
                    node: node(value.span(), value.into_inner()),
                })
                .collect();
            // The parser sorts by name; people expect the order of the file.
            members.sort_by_key(|member| member.at);
            Value::Map(members)
        }
    };
    Node { at: span.start, end: span.end, value }
}
