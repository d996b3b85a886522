//! What `connect` comes to: the entries of ours that go into a host's file, and the change of that
//! file. Nothing is written here.
//!
//! An entry is a name and a server. One that leads to a gateway of ours would be one more of them.

use std::path::Path;

use serde::Serialize;
use toolcrib_core::target::ServerConfig;

use super::{
    put,
    read::{self, alike},
    secrecy::{Variables, conceal},
    table::Host,
    tree, write,
};
use crate::config::{change::Change, file, node::Member, problem::Problem, text::Source};

/// What becomes of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// It goes into the file.
    Added,
    /// It goes into the file in place of another entry of its name.
    Replaced,
    /// It is there already.
    Present,
    /// Another entry of its name is there.
    Differs,
    /// The host cannot have it.
    Refused {
        /// Why, each with what to do.
        why: Vec<String>,
    },
}

/// One server and what becomes of it.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// The server.
    pub(crate) server: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// What does not come along.
    pub(crate) notes: Vec<String>,
}

/// What connecting comes to.
pub(crate) struct Plan {
    /// The file to be.
    pub(crate) change: Change,
    /// Each server, in our order.
    pub(crate) lines: Vec<Line>,
}

/// How to connect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner<'a> {
    /// The home folder, where it may be written into the file.
    pub(crate) home: Option<&'a str>,
    /// Other entries of the same names are replaced.
    pub(crate) replace: bool,
}

/// Works out what connecting these servers to a host comes to.
///
/// # Errors
/// The file cannot be read, or the entries cannot be put into it.
pub(crate) fn plan(
    host: &Host,
    path: &Path,
    servers: &[ServerConfig],
    manner: Manner<'_>,
) -> Result<Plan, Problem> {
    let bytes = file::read_regular(path)
        .map_err(|error| Problem::file(path, format!("cannot be read: {error}")))?;
    let mut source = Source::decode(path, bytes.as_deref().unwrap_or_default())?;
    let old = source.text.clone();
    let section = section(host, &source)?;
    let mut lines = Vec::new();
    for server in servers {
        let name = server.name.clone();
        let there = standing(host, &source, section, &name)?;
        if let Some(notes) =
            there.as_ref().and_then(Option::as_ref).and_then(|there| ours(there, server))
        {
            lines.push(Line { server: name, outcome: Outcome::Present, notes });
            continue;
        }
        let entry = match write::entry(host, server, manner.home) {
            Ok(entry) => entry,
            Err(why) => {
                let outcome = Outcome::Refused { why };
                lines.push(Line { server: name, outcome, notes: Vec::new() });
                continue;
            }
        };
        let value = fitted(host, section, entry.value);
        let outcome = match there {
            None => Outcome::Added,
            Some(there) if same(host, there.as_ref(), &name, &value) => Outcome::Present,
            Some(_) if manner.replace => Outcome::Replaced,
            Some(_) => Outcome::Differs,
        };
        if matches!(outcome, Outcome::Added | Outcome::Replaced) {
            let place: Vec<&str> = section.iter().copied().chain([name.as_str()]).collect();
            let text = put::put(host.format, &source, &place, &value)?;
            source = Source::decode(path, text.as_bytes())?;
        }
        lines.push(Line { server: name, outcome, notes: entry.notes });
    }
    let mut new = source.text;
    if bytes.is_none() && !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    Ok(Plan { change: Change::new(path, bytes, old, new), lines })
}

/// The section new entries go into: the host's first, unless the file shows an older habit.
fn section(host: &Host, source: &Source) -> Result<&'static [&'static str], Problem> {
    let first = host.sections[0];
    let Some(root) = read::parse(host.format, source)? else { return Ok(first) };
    let used = |section: &&&[&str]| {
        tree::at(&root, section).iter().any(|(_, members)| {
            members.iter().any(|member| {
                let entry = member.node.value.members().unwrap_or_default();
                entry.iter().any(|field| ["type", "command", "url"].contains(&&*field.key))
            })
        })
    };
    let plain = |section: &&&[&str]| !section.contains(&"*");
    Ok(host.sections.iter().filter(plain).find(used).copied().unwrap_or(first))
}

/// An entry as the section has it: version 1 of OpenCode asks for `enabled`.
fn fitted(host: &Host, section: &[&str], mut value: serde_json::Value) -> serde_json::Value {
    if host.shape.words
        && section == ["mcp"]
        && let Some(members) = value.as_object_mut()
    {
        members.insert("enabled".to_owned(), true.into());
    }
    value
}

/// What stands under this name: nothing, an entry that cannot be taken over, or a server.
fn standing(
    host: &Host,
    source: &Source,
    section: &[&str],
    name: &str,
) -> Result<Option<Option<ServerConfig>>, Problem> {
    let Some(root) = read::parse(host.format, source)? else { return Ok(None) };
    let named = |members: &&[Member]| members.iter().any(|member| member.key == name);
    if !tree::at(&root, section).iter().map(|(_, members)| *members).any(|members| named(&members))
    {
        return Ok(None);
    }
    let folder = file::folder(&source.file);
    let found = read::entries(host, source, folder, None)?;
    let mut servers =
        found.into_iter().filter(|found| found.name == name && found.project.is_none());
    Ok(Some(servers.next().and_then(|found| found.server.ok()).map(|taken| taken.server)))
}

/// The notes on an entry that is the server we would write, as `import` takes it over: with a secret
/// of its own where ours has a reference. `None` when it is another one.
fn ours(there: &ServerConfig, server: &ServerConfig) -> Option<Vec<String>> {
    let mut there = there.clone();
    let concealed = conceal(&mut there, &mut Variables::default());
    let same = there.enabled == server.enabled && alike(&there.target, &server.target);
    let note = (!concealed.is_empty()).then(|| "with a secret of its own, which stays".to_owned());
    same.then(|| note.into_iter().collect())
}

fn same(host: &Host, there: Option<&ServerConfig>, name: &str, value: &serde_json::Value) -> bool {
    let wanted = read::written(host, name, value);
    match (there, wanted) {
        (Some(there), Some(wanted)) => {
            alike(&there.target, &wanted.target) && there.enabled == wanted.enabled
        }
        _ => false,
    }
}
