//! Changes to a `toolcrib.toml` that keep its comments and its order.
//!
//! A file is changed as a whole or not at all, and never into one that would not be read again.
//! JSON files belong to other programs and are not edited.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};
use toolcrib_core::{
    catalog::is_server_name,
    target::{Command, Endpoint, HttpFlavor, ServerConfig, Target, Timeouts},
    version::EraPolicy,
};

use super::{
    change::Change,
    document, file, names,
    problem::{self, Problem, closest, quoted},
    text::Source,
};

/// A change that was not made. The file is as it was.
#[derive(Debug, Error)]
pub(crate) enum EditError {
    /// There is a server of this name.
    #[error(
        "{} already has a server {}; replace it with --force",
        problem::path(file),
        quoted(name)
    )]
    Exists {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// There is no server of this name.
    #[error("{} has no server {}{}", problem::path(file), quoted(name), did_you_mean(near.as_deref()))]
    Unknown {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// The name that may have been meant.
        near: Option<String>,
    },
    /// The name does not fit into tool names.
    #[error(
        "{} is no name for a server: use 1 to 64 letters, digits, `_` and `-`, such as `{}`",
        quoted(name),
        names::suggestion(name)
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The file is not TOML that we can change, or the result would not be read again.
    #[error("{0}")]
    Refused(Problem),
    /// The file cannot be read or written.
    #[error("cannot change {}: {source}", problem::path(file))]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {}?", quoted(near))).unwrap_or_default()
}

/// Adds a server, with what differs from the built-in settings. Relative paths in it start at the
/// working directory and are made absolute. With `force` it replaces one of the same name.
///
/// # Errors
/// The name is taken or unfit, or the file cannot be changed.
pub(crate) fn add(file: &Path, server: &ServerConfig, force: bool) -> Result<(), EditError> {
    change(file, |document| insert(file, document, server, force))
}

/// The change that adds these servers, without writing it.
///
/// # Errors
/// A name is taken or unfit, or the file cannot be changed.
pub(crate) fn adding(file: &Path, servers: &[ServerConfig]) -> Result<Change, EditError> {
    worked_out(file, |document| {
        servers.iter().try_for_each(|server| insert(file, document, server, false))
    })
}

fn insert(
    file: &Path,
    document: &mut DocumentMut,
    server: &ServerConfig,
    force: bool,
) -> Result<(), EditError> {
    let name = &server.name;
    if !is_server_name(name) {
        return Err(EditError::Name { name: name.clone() });
    }
    let servers = document
        .entry("servers")
        .or_insert_with(|| {
            // `[servers]` itself is not written, only `[servers.NAME]`.
            let mut servers = Table::new();
            servers.set_implicit(true);
            Item::Table(servers)
        })
        .as_table_like_mut()
        .ok_or_else(|| no_table(file, "servers"))?;
    let mut table = entry(server);
    if let Some(old) = servers.get(name) {
        if !force {
            return Err(EditError::Exists { file: file.to_owned(), name: name.clone() });
        }
        if let Item::Table(old) = old {
            *table.decor_mut() = old.decor().clone();
            table.set_position(old.position());
        }
    }
    servers.insert(name, Item::Table(table));
    Ok(())
}

/// Removes a server.
///
/// # Errors
/// There is none of this name, or the file cannot be changed.
pub(crate) fn remove(file: &Path, name: &str) -> Result<(), EditError> {
    change(file, |document| {
        let servers = servers(file, document, name)?;
        let removed = servers.remove(name);
        if let Some(Item::Table(table)) = removed {
            keep_heading(document, &table);
        }
        Ok(())
    })
}

/// Enables or disables a server.
///
/// # Errors
/// There is none of this name, or the file cannot be changed.
pub(crate) fn set_enabled(file: &Path, name: &str, enabled: bool) -> Result<(), EditError> {
    change(file, |document| {
        let server = servers(file, document, name)?
            .get_mut(name)
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| no_table(file, name))?;
        server.remove("disabled");
        match server.get_mut("enabled").and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = Value::from(enabled);
                *old.decor_mut() = decor;
            }
            None if !enabled => {
                server.insert("enabled", value(false));
            }
            // Enabled is what a server is when nothing is said.
            None => {}
        }
        Ok(())
    })
}

fn change(
    file: &Path,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let io = |source| EditError::Io { file: file.to_owned(), source };
    let _lock = file::lock_folder(file).map_err(io)?;
    let change = worked_out(file, edit)?;
    if change.is_nothing() {
        return Ok(());
    }
    file::replace(file, change.new.as_bytes()).map_err(io)
}

/// The change an edit comes to, unless it would leave a file that is not read again.
fn worked_out(
    file: &Path,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<Change, EditError> {
    let read =
        file::read(file).map_err(|source| EditError::Io { file: file.to_owned(), source })?;
    let bytes = read.as_deref().unwrap_or_default();
    let source = Source::decode(file, bytes).map_err(EditError::Refused)?;
    let mut document: DocumentMut =
        source.text.parse().map_err(|error| refused(&source, &error))?;
    edit(&mut document)?;
    let text = document.to_string();
    let before = document::read(file, bytes).errors.len();
    let after = document::read(file, text.as_bytes()).errors;
    // An entry that was broken before does not keep others from being changed.
    if text != source.text
        && after.len() > before
        && let Some(mut problem) = after.into_iter().next_back()
    {
        // The place would be one in a text that was never written.
        problem.place = None;
        return Err(EditError::Refused(problem));
    }
    Ok(Change::new(file, read, source.text, text))
}

fn refused(source: &Source, error: &toml_edit::TomlError) -> EditError {
    if document::is_json(source) {
        let what = "is JSON; only TOML files are edited, change this one by hand";
        return EditError::Refused(Problem::file(&source.file, what));
    }
    let at = error.span().map_or(0, |span| span.start);
    let what = toolcrib_core::sanitise::line(error.message(), 200);
    EditError::Refused(source.problem(at, format!("not valid TOML: {what}")))
}

fn no_table(file: &Path, key: &str) -> EditError {
    EditError::Refused(Problem::file(file, format!("{} is not a table", quoted(key))))
}

/// The table of servers, which has one of this name.
fn servers<'a>(
    file: &Path,
    document: &'a mut DocumentMut,
    name: &str,
) -> Result<&'a mut dyn TableLike, EditError> {
    let unknown = |near| EditError::Unknown { file: file.to_owned(), name: name.to_owned(), near };
    let servers = document
        .get_mut("servers")
        .ok_or_else(|| unknown(None))?
        .as_table_like_mut()
        .ok_or_else(|| no_table(file, "servers"))?;
    if servers.contains_key(name) {
        return Ok(servers);
    }
    let near = closest(name, servers.iter().map(|(key, _)| key)).map(str::to_owned);
    Err(unknown(near))
}

/// Comments that stand apart above a removed table, such as the heading of the file, move to what
/// follows it.
fn keep_heading(document: &mut DocumentMut, removed: &Table) {
    let prefix = removed.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
    let Some((heading, _)) = prefix.rsplit_once("\n\n") else { return };
    if heading.trim().is_empty() {
        return;
    }
    let heading = format!("{heading}\n\n");
    let after = removed.position().unwrap_or(isize::MAX);
    match next_table(document.as_table_mut(), after) {
        Some(next) => {
            let own = next.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            let prefix = format!("{heading}{}", own.trim_start_matches('\n'));
            next.decor_mut().set_prefix(prefix);
        }
        None => {
            let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{heading}{trailing}"));
        }
    }
}

/// The first table that stands behind a position.
fn next_table(table: &mut Table, after: isize) -> Option<&mut Table> {
    let mut best: Option<&mut Table> = None;
    for (_, item) in table.iter_mut() {
        let Item::Table(child) = item else { continue };
        let own = !child.is_implicit() && child.position().is_some_and(|at| at > after);
        let candidate = if own { Some(child) } else { next_table(child, after) };
        if let Some(candidate) = candidate
            && best.as_ref().is_none_or(|best| candidate.position() < best.position())
        {
            best = Some(candidate);
        }
    }
    best
}

/// The table of a server.
fn entry(server: &ServerConfig) -> Table {
    let mut table = Table::new();
    match &server.target {
        Target::Command(command) => command_keys(&mut table, command),
        Target::Http(endpoint) => endpoint_keys(&mut table, endpoint),
    }
    if !server.enabled {
        table["enabled"] = value(false);
    }
    match server.era {
        EraPolicy::Auto => {}
        EraPolicy::Modern => table["era"] = value("modern"),
        EraPolicy::Legacy => table["era"] = value("legacy"),
    }
    for (key, texts) in
        [("include_tools", &server.tools.include), ("exclude_tools", &server.tools.exclude)]
    {
        if !texts.is_empty() {
            table[key] = value(texts.iter().collect::<Array>());
        }
    }
    let (given, built_in) = (&server.timeouts, Timeouts::default());
    for (key, given, built_in) in [
        ("start_timeout_ms", given.start, built_in.start),
        ("probe_timeout_ms", given.probe, built_in.probe),
        ("list_timeout_ms", given.list, built_in.list),
        ("call_timeout_ms", given.call, built_in.call),
        ("call_max_timeout_ms", given.call_max, built_in.call_max),
    ] {
        if given != built_in {
            table[key] = value(i64::try_from(given.as_millis()).unwrap_or(i64::MAX));
        }
    }
    if let Some(bytes) = server.max_message_bytes {
        table["max_message_bytes"] = value(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
    table
}

fn command_keys(table: &mut Table, command: &Command) {
    let program = match command.program.contains('/') {
        true => from_here(Path::new(&command.program)),
        false => command.program.clone(),
    };
    table["command"] = value(program);
    if !command.args.is_empty() {
        table["args"] = value(command.args.iter().collect::<Array>());
    }
    if !command.env.is_empty() {
        let env = command.env.iter().map(|(key, text)| (key, text.expose()));
        table["env"] = value(env.collect::<InlineTable>());
    }
    if let Some(cwd) = &command.cwd {
        table["cwd"] = value(from_here(cwd));
    }
}

fn endpoint_keys(table: &mut Table, endpoint: &Endpoint) {
    table["url"] = value(&endpoint.url);
    match endpoint.flavor {
        HttpFlavor::Auto => {}
        HttpFlavor::Streamable => table["transport"] = value("streamable-http"),
        HttpFlavor::OldSse => table["transport"] = value("sse"),
    }
    if !endpoint.headers.is_empty() {
        let headers = endpoint.headers.iter().map(|(key, text)| (key, text.expose()));
        table["headers"] = value(headers.collect::<InlineTable>());
    }
    for (key, path) in
        [("ca_file", &endpoint.ca_file), ("client_cert_file", &endpoint.client_cert_file)]
    {
        if let Some(path) = path {
            table[key] = value(from_here(path));
        }
    }
}

/// A path that means the same from everywhere.
fn from_here(path: &Path) -> String {
    let keep = ["~/", "${"].iter().any(|start| path.to_string_lossy().starts_with(start));
    let absolute = (!keep).then(|| std::path::absolute(path).ok()).flatten();
    absolute.unwrap_or_else(|| path.to_owned()).to_string_lossy().into_owned()
}
