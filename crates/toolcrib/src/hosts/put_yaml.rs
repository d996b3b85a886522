//! One entry put into a block mapping of a YAML file, as lines of its own.
//!
//! No editor of YAML that keeps comments is taken in for this: the place is found with the spans of
//! the parser, and all that is ever written is whole lines. Mappings in braces are left alone.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::config::{
    node::{Member, Node, Value},
    text::Source,
};

/// The text with the entry; whether it is right is for the caller to see.
pub(super) fn put(
    source: &Source,
    root: Option<&Node>,
    path: &[&str],
    value: &Json,
) -> Result<String, String> {
    let [section, name] = path else { return Err("no entry is named".into()) };
    let text = &source.text;
    let end_of_line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let written = |indent: usize| {
        let mut lines = String::new();
        member(&mut lines, indent, name, value);
        lines.replace('\n', end_of_line)
    };
    let members = root.and_then(|root| root.value.members()).unwrap_or_default();
    let Some(found) = members.iter().find(|member| member.key == *section) else {
        let mut out = with_line_end(text, end_of_line);
        let _ = write!(out, "{section}:{end_of_line}{}", written(2));
        return Ok(out);
    };
    let in_braces =
        || format!("`{section}` is written in braces; put its entries on lines of their own first");
    match &found.node.value {
        Value::Null => insert(text, line_end(text, found.at), &written(2), end_of_line),
        Value::Map(entries) if entries.is_empty() => {
            let close = text[found.node.at..].find('}').ok_or_else(in_braces)?;
            let (before, after) = (&text[..found.node.at], &text[found.node.at + close + 1..]);
            let plain = format!("{}{after}", before.trim_end_matches(' '));
            let at = line_end(&plain, found.at);
            insert(&plain, at, &written(2), end_of_line)
        }
        Value::Map(_) if text[found.node.at..].starts_with('{') => Err(in_braces()),
        Value::Map(entries) => {
            let indent = column(text, entries[0].at);
            match entries.iter().position(|entry| entry.key == *name) {
                Some(index) => {
                    let entry = &entries[index];
                    let start = entry.at - column(text, entry.at);
                    let end = last_line_end(text, entry);
                    Ok(format!("{}{}{}", &text[..start], written(indent), &text[end..]))
                }
                None => {
                    let last = entries.last().map_or(text.len(), |last| last_line_end(text, last));
                    insert(text, last, &written(indent), end_of_line)
                }
            }
        }
        _ => Err(format!("`{section}` is not a table; mend it or remove it first")),
    }
}

fn insert(text: &str, at: usize, lines: &str, end_of_line: &str) -> Result<String, String> {
    let before = with_line_end(&text[..at], end_of_line);
    Ok(format!("{before}{lines}{}", &text[at..]))
}

fn with_line_end(text: &str, end_of_line: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}{end_of_line}"),
    }
}

/// The offset behind the line that holds `at`.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// The offset behind the last line of a member.
fn last_line_end(text: &str, member: &Member) -> usize {
    let end = member.node.end.max(member.at).min(text.len());
    match end > 0 && text.as_bytes()[end - 1] == b'\n' {
        // A block of text ends with its line.
        true => end,
        false => line_end(text, end),
    }
}

fn column(text: &str, at: usize) -> usize {
    at - text[..at].rfind('\n').map_or(0, |end| end + 1)
}

fn member(out: &mut String, indent: usize, key: &str, value: &Json) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{:indent$}{}:", "", scalar(key));
    match value {
        Json::Object(members) if !members.is_empty() => {
            out.push('\n');
            for (key, value) in members {
                member(out, indent + 2, key, value);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                let _ =
                    writeln!(out, "{:indent$}- {}", "", scalar(item.as_str().unwrap_or_default()));
            }
        }
        Json::String(text) => {
            let _ = writeln!(out, " {}", scalar(text));
        }
        other => {
            let _ = writeln!(out, " {other}");
        }
    }
}

/// A text, in quotes where it could be taken for something else. What JSON quotes YAML reads alike.
fn scalar(text: &str) -> String {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./@".contains(c));
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "inf", "nan"];
    match first && plain && !words.contains(&text.to_ascii_lowercase().as_str()) {
        true => text.to_owned(),
        false => Json::String(text.to_owned()).to_string(),
    }
}
