//! The configuration: which servers there are, read from files people already have.
//!
//! # Which files
//! 1. The files of `--config FILE`, which may be repeated. If there are any, nothing else is read.
//! 2. Else the files of `TOOLCRIB_CONFIG`, a list separated as in `PATH`, and nothing else.
//! 3. Else, in the working directory, `toolcrib.toml`, `.mcp.json` and `.vscode/mcp.json`, and
//!    then the user's `toolcrib.toml` (`$TOOLCRIB_HOME/toolcrib.toml`, or the system's folder for
//!    configuration: on Linux `~/.config/toolcrib/toolcrib.toml`).
//!
//! All that exist are read. In this order the first file that has a server name wins, also when
//! its entry is disabled or broken, and a warning says so. A file that is found in the working
//! directory starts nothing before the user has agreed to it ([`consent`]).
//!
//! # What they hold
//! TOML with `[servers.NAME]` and `[defaults]`, or JSON with `mcpServers`, `servers`,
//! `context_servers` or `mcp.servers`; comments, trailing commas, byte-order marks and UTF-16 are
//! fine. The format is told by the content. `defaults` count for their own file.
//!
//! A relative `cwd`, `ca_file` or `client_cert_file` starts at the folder of the file (for
//! `.vscode/mcp.json`, at the folder around it). A `command` with a slash starts at `cwd`, or at
//! that folder when there is none; a bare one is looked up in PATH. `~/` is the home directory.
//! Without `cwd` a program runs in our own working directory. `${VAR}` is not expanded here.
//!
//! # What goes wrong
//! Reading never fails as a whole: a broken file costs itself, a broken entry costs itself, and an
//! unknown key is a warning. No value of a file is repeated in a message.

pub(crate) mod problem;
pub(crate) mod text;
pub(crate) mod node;
pub(crate) mod json_file;
pub(crate) mod toml_file;
mod fields;
pub(crate) mod settings;
pub(crate) mod entry;
pub(crate) mod file;
pub(crate) mod change;
mod document;
pub(crate) mod state;
pub(crate) mod locate;
pub(crate) mod names;
mod starts;
pub(crate) mod consent;
pub(crate) mod edit;
#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use toolcrib_core::target::ServerConfig;

use self::{
    consent::ConfigFile,
    document::{Document, Found},
    locate::{Candidate, Trust},
    problem::{Problem, quoted},
};

/// All that the configuration files came to.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// The servers, nearest file first and in the order of each file. Their names are valid and
    /// all different.
    pub(crate) servers: Vec<(ServerConfig, Origin)>,
    /// The files that were read.
    pub(crate) files: Vec<ConfigFile>,
    /// What a person should know.
    pub(crate) warnings: Vec<Problem>,
    /// What was not understood, and so left out.
    pub(crate) errors: Vec<Problem>,
}

/// Where a server was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The file.
    pub(crate) file: PathBuf,
    /// The line its entry starts on.
    pub(crate) line: usize,
    /// Its name as written there.
    pub(crate) written: String,
}

impl Loaded {
    /// The server of this name, or with this name in its file.
    pub(crate) fn find(&self, name: &str) -> Option<&(ServerConfig, Origin)> {
        let named = |(server, _): &&(ServerConfig, Origin)| server.name == name;
        let written = |(_, origin): &&(ServerConfig, Origin)| origin.written == name;
        self.servers.iter().find(named).or_else(|| self.servers.iter().find(written))
    }
}

/// Reads the files, nearest first.
pub(crate) fn load(candidates: &[Candidate]) -> Loaded {
    let mut loaded = Loaded::default();
    let mut owners: HashMap<String, (PathBuf, usize)> = HashMap::new();
    for candidate in candidates {
        let bytes = match read(candidate) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(problem) => {
                loaded.errors.push(problem);
                continue;
            }
        };
        let Document { entries, warnings, errors } = document::read(&candidate.path, &bytes);
        loaded.warnings.extend(warnings);
        loaded.errors.extend(errors);
        let starts = entries
            .iter()
            .filter_map(|found| starts::describe(&found.name, found.server.as_ref()?))
            .collect();
        loaded.files.push(ConfigFile {
            path: candidate.path.clone(),
            trust: candidate.trust,
            digest: consent::digest(&candidate.path, &bytes),
            starts,
        });
        for found in entries {
            loaded.add(&candidate.path, found, &mut owners);
        }
    }
    loaded.fit_names();
    loaded
}

impl Loaded {
    fn add(&mut self, file: &Path, found: Found, owners: &mut HashMap<String, (PathBuf, usize)>) {
        let Found { name, line, server } = found;
        if let Some((owner, owner_line)) = owners.get(&name) {
            let owner = problem::path(owner);
            let what = format!("not used: {owner}:{owner_line} has a server of this name");
            let place = problem::Place { line, column: 1 };
            self.warnings.push(Problem::file(file, what).at(place).of(&name));
            return;
        }
        owners.insert(name.clone(), (file.to_owned(), line));
        if let Some(server) = server {
            self.servers.push((server, Origin { file: file.to_owned(), line, written: name }));
        }
    }

    fn fit_names(&mut self) {
        let written: Vec<_> =
            self.servers.iter().map(|(_, origin)| origin.written.as_str()).collect();
        let fitted = names::fit(&written);
        for ((server, origin), name) in self.servers.iter_mut().zip(fitted) {
            if name == origin.written {
                continue;
            }
            let place = problem::Place { line: origin.line, column: 1 };
            self.warnings.push(
                Problem::file(&origin.file, format!("is called {} here", quoted(&name)))
                    .at(place)
                    .of(&origin.written)
                    .hint("names of servers are 1 to 64 letters, digits, `_` and `-`"),
            );
            server.name = name;
        }
    }
}

/// The bytes of a candidate; `None` when it is only looked for and not there.
fn read(candidate: &Candidate) -> Result<Option<Vec<u8>>, Problem> {
    let path = &candidate.path;
    let cannot = |error: std::io::Error| Problem::file(path, format!("cannot be read: {error}"));
    if let Ok(metadata) = fs::metadata(path) {
        if metadata.is_dir() {
            return Err(Problem::file(path, "is a folder, not a file"));
        }
        // A pipe may be given to us, but one that lies about would block us for ever.
        if candidate.trust == Trust::Found && !metadata.is_file() {
            return Err(Problem::file(path, "is not a regular file"));
        }
    }
    match file::read(path).map_err(cannot)? {
        None if candidate.trust == Trust::Given => {
            Err(Problem::file(path, "there is no such file"))
        }
        bytes => Ok(bytes),
    }
}
