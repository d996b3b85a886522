//! `hosts`, and what `import` and `connect` share: which folder is meant, and the way from a change
//! to a written file past a person.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_core::code::Code;

use super::args::Global;
use crate::{
    config::{
        change::{Change, ChangeError},
        file,
        problem::{self, Problem},
        text::Source,
    },
    failure::{Failure, Outcome},
    hosts::{
        mask::masked,
        read,
        reference::Form,
        table::{Folders, Format, HOSTS, Host, Scope},
    },
    show::{Out, Talk, diff, json, listing},
};

/// Lists the hosts, their files and how many servers each holds.
pub(crate) fn run(global: &Global) -> Outcome {
    #[derive(Serialize)]
    struct Shown {
        format: json::Format,
        hosts: Vec<Row>,
    }
    #[derive(Serialize)]
    struct Row {
        host: &'static str,
        name: &'static str,
        file: PathBuf,
        found: bool,
        servers: Option<usize>,
        why: Option<String>,
    }
    let places = Places::find()?;
    let mut rows = Vec::new();
    for host in &HOSTS {
        let project = host.paths(places.scope(true)).into_iter().filter(|path| path.exists());
        let mut paths = host.present(places.scope(false));
        if paths.is_empty() {
            // The one that `connect` would make.
            paths.extend(host.paths(places.scope(false)).into_iter().next());
        }
        for file in paths.into_iter().chain(project) {
            let found = file.exists();
            let read = found.then(|| places.servers(host, &file));
            let (servers, why) = match read {
                Some(Ok(found)) => (Some(found.len()), None),
                Some(Err(problem)) => (None, Some(problem.to_string())),
                None => (None, None),
            };
            rows.push(Row { host: host.id, name: host.name, file, found, servers, why });
        }
    }
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &Shown { format: json::Format("hosts"), hosts: rows })?;
        return Ok(Code::Ok);
    }
    let cells = rows.iter().map(|row| {
        let servers = match (&row.why, row.servers) {
            (Some(_), _) => "unreadable".to_owned(),
            (None, Some(servers)) => servers.to_string(),
            (None, None) => "not there".to_owned(),
        };
        vec![row.host.to_owned(), row.name.to_owned(), servers, problem::path(&row.file)]
    });
    out.line(listing::table(&["host", "name", "servers", "file"], cells.collect()))?;
    for why in rows.iter().filter_map(|row| row.why.as_ref()) {
        Talk::warn(why);
    }
    Ok(Code::Ok)
}

/// Where files of hosts are looked for.
pub(crate) struct Places {
    pub(crate) folders: Folders,
    pub(crate) working_dir: PathBuf,
}

impl Places {
    /// Those of this process.
    pub(crate) fn find() -> Result<Self, Failure> {
        let folders = Folders::find().ok_or_else(|| {
            Failure::config("no home directory is known, so no other program's files are")
        })?;
        let working_dir = std::env::current_dir().map_err(|error| {
            Failure::config(format!("the working directory cannot be read: {error}"))
        })?;
        Ok(Self { folders, working_dir })
    }

    /// The person's own files, or those of the project in the working directory.
    pub(crate) fn scope(&self, project: bool) -> Scope<'_> {
        match project {
            true => Scope::Project(&self.working_dir),
            false => Scope::Person(&self.folders),
        }
    }

    /// The entries in a file of a host.
    pub(crate) fn servers(&self, host: &Host, path: &Path) -> Result<Vec<read::Found>, Problem> {
        let bytes = file::read_regular(path)
            .map_err(|error| Problem::file(path, format!("cannot be read: {error}")))?;
        let source = Source::decode(path, bytes.as_deref().unwrap_or_default())?;
        let project = path.starts_with(&self.working_dir)
            && host.paths(self.scope(true)).iter().any(|own| own == path);
        match project {
            true => read::entries(host, &source, &self.working_dir, Some(&self.working_dir)),
            false => read::entries(host, &source, file::folder(path), None),
        }
    }
}

/// How far a change got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settled {
    /// There was nothing to write.
    Nothing,
    /// It was only shown.
    Shown,
    /// It would have needed a yes.
    Unasked,
    /// It was written, with the old state kept there.
    Written(Option<PathBuf>),
}

impl Settled {
    pub(crate) const fn is_written(&self) -> bool {
        matches!(self, Self::Written(_))
    }
}

/// How to come from a change to a written file.
pub(crate) struct Way<'a> {
    pub(crate) global: &'a Global,
    pub(crate) dry_run: bool,
    pub(crate) backup: bool,
}

/// The diff of a change, without secrets.
pub(crate) fn shown(change: &Change, format: Format, form: Option<Form>) -> String {
    let [before, after] = [&change.old, &change.new].map(|text| masked(format, form, text));
    let before = if change.old.is_empty() { String::new() } else { before };
    let text = diff::unified(&problem::path(&change.file), change.makes_file(), &before, &after);
    if text.is_empty() && !change.is_nothing() {
        return "(only values that may be secrets change)\n".to_owned();
    }
    text
}

/// Shows a change, asks, and writes it.
pub(crate) fn settle(way: &Way<'_>, change: &Change, diff: &str) -> Result<Settled, Failure> {
    if change.is_nothing() {
        return Ok(Settled::Nothing);
    }
    if !way.global.json {
        diff::print(&mut Out::new(), diff)?;
    }
    if way.dry_run {
        return Ok(Settled::Shown);
    }
    if !way.global.yes {
        if way.global.json || !Talk::can_ask() {
            return Ok(Settled::Unasked);
        }
        if !Talk::ask(&format!("Write this to {}?", problem::path(&change.file))) {
            return Err(Failure::config("nothing was written"));
        }
    }
    Ok(Settled::Written(change.write(way.backup)?))
}

/// The failure of what would have needed a yes.
pub(crate) fn unasked() -> Failure {
    Failure::config("nothing was written: nobody is here to agree to it")
        .hint("--yes writes it, --dry-run only shows it")
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let hint = match &error {
            ChangeError::ReadOnly { file } => {
                Some(format!("chmod u+w {} if it is to be changed", problem::path(file)))
            }
            _ => None,
        };
        let failure = Self::config(error.to_string());
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let failure = Self::config(problem.to_string());
        problem.hint.into_iter().fold(failure, Self::hint)
    }
}
