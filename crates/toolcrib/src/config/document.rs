//! One configuration file, from its bytes to its entries, whatever its format.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use toml::de::DeTable;
use toolcrib_core::target::ServerConfig;

use super::{
    entry::{self, Surroundings},
    fields::MAX_PROBLEMS,
    file, json_file,
    node::{Member, Value},
    problem::{Problem, closest, quoted},
    settings::Settings,
    text::Source,
    toml_file,
};

/// Most servers one file may have.
const MAX_SERVERS: usize = 10_000;

/// The keys a JSON file may hold its servers under.
const JSON_SECTIONS: [&str; 3] = ["mcpServers", "servers", "context_servers"];
/// Other keys of a JSON file that need no warning.
const JSON_OTHERS: [&str; 3] = ["inputs", "$schema", "mcp"];

/// What one file holds.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Its entries, in its order.
    pub(crate) entries: Vec<Found>,
    /// What is odd in it.
    pub(crate) warnings: Vec<Problem>,
    /// What is wrong in it.
    pub(crate) errors: Vec<Problem>,
}

/// One entry of a file.
#[derive(Debug)]
pub(crate) struct Found {
    /// The name as written.
    pub(crate) name: String,
    /// The line it stands on.
    pub(crate) line: usize,
    /// The server, unless the entry is broken.
    pub(crate) server: Option<ServerConfig>,
}

/// Reads a file.
pub(crate) fn read(path: &Path, bytes: &[u8]) -> Document {
    let mut document = Document::default();
    match Source::decode(path, bytes) {
        Ok(source) => document.fill(&source),
        Err(problem) => document.errors.push(problem),
    }
    cap(&mut document.warnings, path, "warnings");
    cap(&mut document.errors, path, "errors");
    document
}

impl Document {
    fn fill(&mut self, source: &Source) {
        let root = match is_json(source) {
            true => json_file::read(source),
            false => toml_file::read(source).map(|toml| {
                self.errors.extend(toml.errors);
                Some(toml.root)
            }),
        };
        let root = match root {
            Ok(Some(root)) => root,
            Ok(None) => return,
            Err(mut problem) => {
                if has_extension(source, &["yaml", "yml"]) {
                    problem = problem.hint("configurations are read as TOML or JSON, not YAML");
                }
                self.errors.push(problem);
                return;
            }
        };
        let Some(members) = root.value.members() else {
            let what = format!("holds {}, not a table of servers", root.value.kind());
            self.errors.push(source.problem(root.at, what));
            return;
        };
        let sections = match is_json(source) {
            true => self.json_sections(source, members),
            false => self.toml_sections(source, members),
        };
        let mut defaults = Settings::default();
        for member in members.iter().filter(|member| member.key == "defaults") {
            let (settings, fields) = Settings::of_file(source, member);
            defaults = settings;
            self.warnings.extend(fields.warnings);
            self.errors.extend(fields.errors);
        }
        let folder = base_folder(&source.file);
        let around = Surroundings { source, folder: &folder, defaults: &defaults };
        self.entries(&around, &sections);
    }

    fn entries(&mut self, around: &Surroundings<'_>, sections: &[&[Member]]) {
        let source = around.source;
        let mut seen: HashMap<&str, (usize, usize)> = HashMap::new();
        for member in sections.iter().copied().flatten() {
            let line = source.place(member.at).line;
            if let Some((first_line, index)) = seen.get(&*member.key) {
                let what = format!("defined twice, on line {first_line} and on line {line}");
                let problem = source.problem(member.at, what).of(&member.key);
                self.errors.push(problem.hint("rename or remove one of them; neither is used"));
                self.entries[*index].server = None;
                continue;
            }
            if self.entries.len() == MAX_SERVERS {
                let what = format!(
                    "more than {MAX_SERVERS} servers; this one and later ones are left out"
                );
                self.errors.push(source.problem(member.at, what).of(&member.key));
                break;
            }
            seen.insert(&member.key, (line, self.entries.len()));
            let entry = entry::read(around, member);
            self.warnings.extend(entry.warnings);
            self.errors.extend(entry.errors);
            self.entries.push(Found { name: member.key.clone(), line, server: entry.server });
        }
    }

    fn toml_sections<'a>(&mut self, source: &Source, members: &'a [Member]) -> Vec<&'a [Member]> {
        for member in
            members.iter().filter(|member| !["servers", "defaults"].contains(&&*member.key))
        {
            if self.warnings.len() > MAX_PROBLEMS {
                break;
            }
            let what = format!("unknown key {} is ignored", quoted(&member.key));
            let mut problem = source.problem(member.at, what);
            if ["mcpServers", "mcp_servers", "server"].contains(&&*member.key) {
                problem = problem.hint("servers stand under `[servers.NAME]`");
            } else if let Some(known) = closest(&member.key, ["servers", "defaults"]) {
                problem = problem.hint(format!("did you mean `{known}`?"));
            }
            self.warnings.push(problem);
        }
        self.tables(source, members.iter().filter(|member| member.key == "servers"))
    }

    fn json_sections<'a>(&mut self, source: &Source, members: &'a [Member]) -> Vec<&'a [Member]> {
        let is_section = |member: &&Member| JSON_SECTIONS.contains(&&*member.key);
        // Older editors keep their servers in the general settings, one level down.
        let nested = members
            .iter()
            .filter(|member| member.key == "mcp")
            .filter_map(|member| member.node.value.members())
            .flatten();
        let sections = self.tables(source, members.iter().chain(nested).filter(is_section));
        if sections.is_empty() && !self.errors.is_empty() {
            return sections;
        }
        if sections.is_empty() && is_flat(members) {
            return vec![members];
        }
        if sections.is_empty() {
            let what = "holds no servers: there is no `mcpServers` or `servers` in it";
            let mut problem = Problem::file(&source.file, what);
            let near = members.iter().find_map(|member| {
                closest(&member.key, JSON_SECTIONS).map(|known| (member, known))
            });
            if let Some((member, known)) = near {
                problem = problem
                    .at(source.place(member.at))
                    .hint(format!("did you mean `{known}`, not {}?", quoted(&member.key)));
            }
            self.warnings.push(problem);
            return sections;
        }
        self.other_keys(source, members);
        sections
    }

    /// A file of settings holds many keys that are not for us: one warning names them all.
    fn other_keys(&mut self, source: &Source, members: &[Member]) {
        let known = |key: &str| {
            JSON_SECTIONS.contains(&key) || JSON_OTHERS.contains(&key) || key == "defaults"
        };
        let mut others = Vec::new();
        for member in members.iter().filter(|member| !known(&member.key)) {
            match closest(&member.key, JSON_SECTIONS) {
                Some(known) if self.warnings.len() <= MAX_PROBLEMS => self.warnings.push(
                    source
                        .problem(
                            member.at,
                            format!("unknown key {} is ignored", quoted(&member.key)),
                        )
                        .hint(format!("did you mean `{known}`?")),
                ),
                _ => others.push(member),
            }
        }
        let Some(first) = others.first() else { return };
        let what = match others.len() - 1 {
            0 => format!("unknown key {} is ignored", quoted(&first.key)),
            more => format!("unknown key {} is ignored, and {more} more", quoted(&first.key)),
        };
        self.warnings.push(source.problem(first.at, what));
    }

    fn tables<'a>(
        &mut self,
        source: &Source,
        sections: impl Iterator<Item = &'a Member>,
    ) -> Vec<&'a [Member]> {
        let mut tables = Vec::new();
        for section in sections {
            match &section.node.value {
                Value::Map(members) => tables.push(members.as_slice()),
                Value::Null => {}
                other => {
                    let what =
                        format!("`{}` is {}, not a table of servers", section.key, other.kind());
                    self.errors.push(source.problem(section.node.at, what));
                }
            }
        }
        tables
    }
}

/// True for a JSON file that is a table of servers itself.
fn is_flat(members: &[Member]) -> bool {
    let reaches = |member: &Member| {
        let keys = ["command", "url", "httpUrl", "serverUrl"];
        member
            .node
            .value
            .members()
            .is_some_and(|entry| entry.iter().any(|field| keys.contains(&&*field.key)))
    };
    !members.is_empty() && members.iter().all(reaches)
}

/// Tells the format by the first character, and by the name of the file only where that is open.
pub(super) fn is_json(source: &Source) -> bool {
    let named_json = has_extension(source, &["json", "jsonc", "json5"]);
    match source.text.trim_start().chars().next() {
        Some('{' | '/') => true,
        // A `[` starts a JSON list or a TOML table, a `"` a JSON string or a TOML key.
        Some(_) if named_json => DeTable::parse(&source.text).is_err(),
        _ => false,
    }
}

fn has_extension(source: &Source, extensions: &[&str]) -> bool {
    let extension = source.file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.contains(&extension))
}

/// The folder that relative paths of a file start at. An editor's folder stands for the project
/// around it.
fn base_folder(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = file::folder(&path);
    match folder.parent() {
        Some(project) if folder.ends_with(".vscode") => project.to_owned(),
        _ => folder.to_owned(),
    }
}

fn cap(problems: &mut Vec<Problem>, path: &Path, kind: &str) {
    if problems.len() > MAX_PROBLEMS {
        problems.truncate(MAX_PROBLEMS);
        problems.push(Problem::file(path, format!("more {kind} than these {MAX_PROBLEMS}")));
    }
}
