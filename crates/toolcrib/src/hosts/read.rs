//! From a file of a host to the servers in it, in our form.
//!
//! Each entry is translated and read for itself: one that cannot be taken over costs no other. What
//! may be secret is not judged here.

use std::path::Path;

use serde_json::Value as Json;
use toolcrib_core::{
    sanitise,
    target::{HttpFlavor, ServerConfig, Target},
};

use super::{
    reference,
    shape::{COMMON, Meaning, Shape},
    table::{Format, Host},
    tree, yaml,
};
use crate::config::{
    entry::{self, Surroundings},
    json_file,
    node::{Member, Node, Value},
    problem::Problem,
    settings::Settings,
    text::Source,
    toml_file,
};

/// Most entries taken from one file.
const MAX_ENTRIES: usize = 2_000;

/// An entry of a host's file.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its name as written.
    pub(crate) name: String,
    /// The line it stands on.
    pub(crate) line: usize,
    /// The folder of the project it is for, where a person's file has some for several.
    pub(crate) project: Option<String>,
    /// The server, or why it cannot be taken over.
    pub(crate) server: Result<Taken, String>,
}

/// A server that was taken over.
#[derive(Debug)]
pub(crate) struct Taken {
    /// It, under the name as written.
    pub(crate) server: ServerConfig,
    /// What did not come along.
    pub(crate) notes: Vec<&'static str>,
}

/// The tree of a file; `None` when there is nothing in it.
///
/// # Errors
/// It is not of its format; with line and column.
pub(crate) fn parse(format: Format, source: &Source) -> Result<Option<Node>, Problem> {
    match format {
        Format::Json => json_file::read(source),
        Format::Toml => match toml_file::read(source)? {
            toml if toml.errors.is_empty() => Ok(Some(toml.root)),
            mut toml => Err(toml.errors.remove(0)),
        },
        Format::Yaml => yaml::read(source),
    }
}

/// The entries of a file. Relative paths in it start at `folder`; `project` is the folder of the
/// project when it is the file of one.
///
/// # Errors
/// The file as a whole cannot be read.
pub(crate) fn entries(
    host: &Host,
    source: &Source,
    folder: &Path,
    project: Option<&Path>,
) -> Result<Vec<Found>, Problem> {
    let Some(root) = parse(host.format, source)? else { return Ok(Vec::new()) };
    if root.value.members().is_none() {
        let what = format!("holds {}, not a table", root.value.kind());
        return Err(source.problem(root.at, what));
    }
    let off: Vec<&str> = host.disabled.map(|path| listed(&root, path)).unwrap_or_default();
    let mut found = Vec::new();
    for section in host.sections {
        let inner = host.sections.iter().find_map(|other| {
            let rest = other.strip_prefix(*section)?;
            rest.first().copied()
        });
        for (star, members) in tree::at(&root, section) {
            // A section inside this one is no entry of it, nor is a part of the host itself.
            for member in members
                .iter()
                .filter(|member| Some(&*member.key) != inner && !is_built_in(host.shape, member))
            {
                if found.len() == MAX_ENTRIES {
                    let what = format!("more than {MAX_ENTRIES} servers; later ones are left out");
                    return Err(source.problem(member.at, what));
                }
                let around = Around { host, source, folder, project };
                let mut server = around.entry(member);
                if let Ok(taken) = &mut server
                    && off.contains(&&*member.key)
                {
                    taken.server.enabled = false;
                }
                found.push(Found {
                    name: member.key.clone(),
                    line: source.place(member.at).line,
                    project: star.map(str::to_owned),
                    server,
                });
            }
        }
    }
    Ok(found)
}

/// The server that an entry as we would write it is read as.
pub(crate) fn written(host: &Host, name: &str, value: &Json) -> Option<ServerConfig> {
    let source = Source::decode(Path::new(""), b"").ok()?;
    let member = Member { key: name.to_owned(), at: 0, node: tree::of(value) };
    let around = Around { host, source: &source, folder: Path::new("/"), project: None };
    around.entry(&member).ok().map(|taken| taken.server)
}

/// True when two targets are reached alike. A host that does not name its transport does not differ
/// from one that does.
pub(crate) fn alike(one: &Target, other: &Target) -> bool {
    match (one, other) {
        (Target::Http(one), Target::Http(other)) => {
            let open = one.flavor == HttpFlavor::Auto || other.flavor == HttpFlavor::Auto;
            let mut same = other.clone();
            if open {
                same.flavor = one.flavor;
            }
            *one == same
        }
        (one, other) => one == other,
    }
}

fn listed<'a>(root: &'a Node, path: &[&str]) -> Vec<&'a str> {
    let Some((last, folders)) = path.split_last() else { return Vec::new() };
    let sections = tree::at(root, folders);
    let members = sections.iter().flat_map(|(_, members)| members.iter());
    members
        .filter(|member| member.key == *last)
        .flat_map(|member| tree::texts(&member.node))
        .collect()
}

/// What an entry is read with.
struct Around<'a> {
    host: &'a Host,
    source: &'a Source,
    folder: &'a Path,
    project: Option<&'a Path>,
}

impl Around<'_> {
    fn entry(&self, member: &Member) -> Result<Taken, String> {
        let Some(members) = member.node.value.members() else {
            return Err(format!("is {}, not a table", member.node.value.kind()));
        };
        let mut ours = Ours::default();
        for member in members.iter().filter(|member| !matches!(member.node.value, Value::Null)) {
            self.translate(member, &mut ours)?;
        }
        let reaches =
            |member: &Member| ["command", "url", "httpUrl", "serverUrl"].contains(&&*member.key);
        if ours.notes.len() == 1 && !ours.members.iter().any(reaches) {
            return Err(ours.notes[0].to_owned());
        }
        let node =
            Node { at: member.node.at, end: member.node.end, value: Value::Map(ours.members) };
        let member = Member { key: member.key.clone(), at: member.at, node };
        let defaults = Settings::default();
        let around = Surroundings { source: self.source, folder: self.folder, defaults: &defaults };
        let read = entry::read(&around, &member);
        match read.server {
            Some(server) => Ok(Taken { server, notes: ours.notes }),
            None => {
                let whys: Vec<_> = read.errors.into_iter().map(|problem| problem.what).collect();
                Err(whys.join("; "))
            }
        }
    }

    fn translate(&self, member: &Member, ours: &mut Ours) -> Result<(), String> {
        let meant = self.host.shape.keys.iter().chain(COMMON).find(|(key, _)| *key == member.key);
        // What the host keeps there for itself.
        let Some((_, meaning)) = meant else { return Ok(()) };
        let project = self.project.map(|path| path.to_string_lossy());
        let key = sanitise::line(&member.key, 40);
        let node = tree::mapped(&member.node, &mut |text| {
            reference::ours(text, self.host.shape.reference, project.as_deref())
        })
        .map_err(|why| format!("`{key}` {why}"))?;
        let at = member.at;
        match (meaning, node.value) {
            (Meaning::As("command"), Value::Map(inner)) => {
                // An older Zed nests them.
                for member in &inner {
                    match member.key.as_str() {
                        "path" => ours.push("command", at, texted(&member.node)),
                        _ => self.translate(member, ours)?,
                    }
                }
            }
            (Meaning::As(key), value) => ours.push(key, at, value),
            (Meaning::Words, Value::List(mut words)) if !words.is_empty() => {
                let program = words.remove(0);
                ours.push("command", at, program.value);
                ours.push("args", at, Value::List(words));
            }
            (Meaning::Words, Value::Text(program)) => {
                ours.push("command", at, Value::Text(program));
            }
            (Meaning::Words, _) => return Err(format!("`{key}` is not a list of words")),
            (Meaning::Passed, Value::List(names)) => {
                let pass = |node: &Node| match &node.value {
                    Value::Text(name) => Some((name.clone(), format!("${{{name}}}"))),
                    _ => None,
                };
                ours.push("env", at, map(names.iter().filter_map(pass)));
            }
            (Meaning::Bearer, Value::Text(name)) => {
                let header = ("Authorization".to_owned(), format!("Bearer ${{{name}}}"));
                ours.push("headers", at, map(std::iter::once(header)));
            }
            (Meaning::HeaderVariables, Value::Map(headers)) => {
                let header = |member: &Member| match &member.node.value {
                    Value::Text(name) => Some((member.key.clone(), format!("${{{name}}}"))),
                    _ => None,
                };
                ours.push("headers", at, map(headers.iter().filter_map(header)));
            }
            (Meaning::Seconds(key), Value::Number(Some(seconds))) => {
                ours.push(key, at, Value::Number(seconds.checked_mul(1_000)));
            }
            (Meaning::Lost(note), value) => {
                // Most hosts write it as empty when there is nothing to say.
                if !matches!(value, Value::Bool(false)) {
                    ours.notes.push(note);
                }
            }
            // A broken time or list of names is the host's own matter.
            (Meaning::Seconds(_), _) => {}
            (Meaning::Passed | Meaning::Bearer | Meaning::HeaderVariables, _) => {
                return Err(format!("`{key}` is not of the type it should be"));
            }
        }
        Ok(())
    }
}

fn is_built_in(shape: &Shape, member: &Member) -> bool {
    let members = member.node.value.members().unwrap_or_default();
    let kind = members.iter().find(|member| member.key == "type").map(|kind| &kind.node.value);
    matches!(kind, Some(Value::Text(kind)) if shape.built_in.contains(&kind.as_str()))
}

fn texted(node: &Node) -> Value {
    match &node.value {
        Value::Text(text) => Value::Text(text.clone()),
        _ => Value::Null,
    }
}

fn map(texts: impl Iterator<Item = (String, String)>) -> Value {
    let member =
        |(key, text)| Member { key, at: 0, node: Node { at: 0, end: 0, value: Value::Text(text) } };
    Value::Map(texts.map(member).collect())
}

/// An entry in our keys.
#[derive(Default)]
struct Ours {
    members: Vec<Member>,
    notes: Vec<&'static str>,
}

impl Ours {
    /// Adds a member; tables of one key become one.
    fn push(&mut self, key: &str, at: usize, value: Value) {
        let old = self.members.iter_mut().find(|member| member.key == key);
        match (old.map(|member| &mut member.node.value), value) {
            (Some(Value::Map(old)), Value::Map(new)) => {
                for member in new {
                    if !old.iter().any(|old| old.key == member.key) {
                        old.push(member);
                    }
                }
            }
            (_, value) => {
                let node = Node { at, end: at, value };
                self.members.push(Member { key: key.to_owned(), at, node });
            }
        }
    }
}
