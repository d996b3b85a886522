//! The members of one table, read by key and type, with every mistake noted on the way.

use std::{collections::BTreeMap, ops::RangeInclusive};

use toolcrib_core::secret::Secret;

use super::{
    node::{Member, Node, Value},
    problem::{Problem, closest, quoted},
    text::Source,
};

/// Most problems told of one file, of each kind.
pub(crate) const MAX_PROBLEMS: usize = 200;

/// A member that was found.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    /// Its key as written.
    pub(crate) key: &'a str,
    /// Where the key stands.
    pub(crate) at: usize,
    /// Its value.
    pub(crate) node: &'a Node,
}

/// The members of one table.
pub(crate) struct Fields<'a> {
    source: &'a Source,
    entry: Option<&'a str>,
    /// Where the table stands.
    pub(crate) at: usize,
    found: BTreeMap<&'static str, Field<'a>>,
    /// Unknown keys.
    pub(crate) warnings: Vec<Problem>,
    /// Wrong types, double keys and what the caller adds.
    pub(crate) errors: Vec<Problem>,
}

impl<'a> Fields<'a> {
    /// No members yet, of a table that belongs to `entry` and stands at `at`.
    pub(crate) fn new(source: &'a Source, entry: Option<&'a str>, at: usize) -> Self {
        let (found, warnings, errors) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { source, entry, at, found, warnings, errors }
    }

    /// Sorts members by the keys that are known, each with its other spellings.
    pub(crate) fn take(
        &mut self,
        members: &'a [Member],
        known: &[(&'static str, &'static [&'static str])],
    ) {
        for member in members {
            let known_as = known
                .iter()
                .find(|(key, others)| *key == member.key || others.contains(&&*member.key));
            let Some((key, _)) = known_as else {
                self.unknown(member, known.iter().map(|(key, _)| *key));
                continue;
            };
            if matches!(member.node.value, Value::Null) {
                continue;
            }
            let field = Field { key: &member.key, at: member.at, node: &member.node };
            if let Some(first) = self.found.insert(key, field) {
                let line = self.source.place(first.at).line;
                let what = format!("`{}` repeats `{}` of line {line}", field.key, first.key);
                self.error(member.at, what);
            }
        }
    }

    fn unknown(&mut self, member: &Member, known: impl Iterator<Item = &'static str>) {
        if self.warnings.len() > MAX_PROBLEMS {
            return;
        }
        let mut problem = self
            .source
            .problem(member.at, format!("unknown key {} is ignored", quoted(&member.key)));
        if let Some(known) = closest(&member.key, known) {
            problem = problem.hint(format!("did you mean `{known}`?"));
        }
        self.warnings.push(self.named(problem));
    }

    fn named(&self, problem: Problem) -> Problem {
        match self.entry {
            Some(entry) => problem.of(entry),
            None => problem,
        }
    }

    /// Notes an error at an offset.
    pub(crate) fn error(&mut self, at: usize, what: impl Into<String>) {
        let problem = self.named(self.source.problem(at, what));
        self.errors.push(problem);
    }

    /// Notes an error at an offset, with advice.
    pub(crate) fn error_with_hint(
        &mut self,
        at: usize,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let problem = self.named(self.source.problem(at, what)).hint(hint);
        self.errors.push(problem);
    }

    /// Warns about keys that mean nothing for this kind of server.
    pub(crate) fn pointless(&mut self, keys: &[&str], of: &str) {
        for key in keys {
            let Some(field) = self.get(key).filter(|field| !is_empty(&field.node.value)) else {
                continue;
            };
            let what = format!("`{key}` means nothing for {of} and is ignored");
            let problem = self.named(self.source.problem(field.at, what));
            self.warnings.push(problem);
        }
    }

    /// The member of this key.
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.found.get(key).copied()
    }

    fn wrong_type(&mut self, name: &str, node: &Node, expected: &str) {
        let kind = node.value.kind();
        match node.value {
            Value::Number(_) | Value::Bool(_) if expected == "a string" => {
                let hint = "put it in quotes";
                self.error_with_hint(node.at, format!("`{name}` is {kind}, not {expected}"), hint);
            }
            _ => self.error(node.at, format!("`{name}` is {kind}, not {expected}")),
        }
    }

    /// A string.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let field = self.get(key)?;
        if let Value::Text(text) = &field.node.value {
            return Some(standard_variables(text));
        }
        self.wrong_type(field.key, field.node, "a string");
        None
    }

    /// A boolean.
    pub(crate) fn boolean(&mut self, key: &str) -> Option<bool> {
        let field = self.get(key)?;
        if let Value::Bool(value) = field.node.value {
            return Some(value);
        }
        self.wrong_type(field.key, field.node, "true or false");
        None
    }

    /// A whole number within a range.
    pub(crate) fn number(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let field = self.get(key)?;
        match field.node.value {
            Value::Number(Some(number)) if range.contains(&number) => return Some(number),
            Value::Number(_) => {
                let (least, most) = (range.start(), range.end());
                let what = format!("`{key}` is not a whole number from {least} to {most}");
                self.error(field.node.at, what);
            }
            _ => self.wrong_type(field.key, field.node, "a number"),
        }
        None
    }

    /// A list of strings; empty when the key is absent.
    pub(crate) fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(field) = self.get(key) else { return Vec::new() };
        let Value::List(items) = &field.node.value else {
            self.wrong_type(field.key, field.node, "a list of strings");
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match &item.value {
                Value::Text(text) => texts.push(standard_variables(text)),
                _ => self.wrong_type(&format!("{key}[{index}]"), item, "a string"),
            }
        }
        texts
    }

    /// A table of strings that are not to be shown; empty when the key is absent.
    pub(crate) fn secrets(&mut self, key: &str) -> BTreeMap<String, Secret> {
        let Some(field) = self.get(key) else { return BTreeMap::new() };
        let Value::Map(members) = &field.node.value else {
            self.wrong_type(field.key, field.node, "a table of strings");
            return BTreeMap::new();
        };
        let mut secrets = BTreeMap::new();
        for member in members {
            let name = toolcrib_core::sanitise::line(&format!("{key}.{}", member.key), 80);
            match &member.node.value {
                Value::Text(text) => {
                    let value = Secret::new(standard_variables(text));
                    if secrets.insert(member.key.clone(), value).is_some() {
                        self.error(member.at, format!("`{name}` is given twice"));
                    }
                }
                Value::Null => {}
                _ => self.wrong_type(&name, &member.node, "a string"),
            }
        }
        secrets
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::List(items) => items.is_empty(),
        Value::Map(members) => members.is_empty(),
        _ => false,
    }
}

/// `${env:NAME}`, as editors write it, becomes `${NAME}`.
fn standard_variables(text: &str) -> String {
    text.replace("${env:", "${")
}
