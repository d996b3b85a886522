//! What `import` comes to: which servers of hosts we would add, under which names, and what is
//! left out and why. Nothing is read or written here.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_core::{
    catalog::is_server_name,
    target::{ServerConfig, Target},
};

use super::{
    read::{Found, Taken, alike},
    reference::{self, Part},
    secrecy::{Concealed, Variables, conceal, has_secret_name},
    table::Host,
};
use crate::config::names;

/// What becomes of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// It is added under this name.
    Added {
        /// Our name for it.
        name: String,
    },
    /// It is here already, under this name.
    Present {
        /// Our name for it.
        name: String,
    },
    /// It cannot be taken over.
    Refused {
        /// Why.
        why: String,
    },
}

/// One entry of a host and what becomes of it.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// The host.
    pub(crate) host: &'static str,
    /// The file.
    pub(crate) file: PathBuf,
    /// The line it stands on.
    pub(crate) line: usize,
    /// The project it is for, in a person's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// Its name there.
    pub(crate) server: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// True when it is switched off there, and so here.
    pub(crate) disabled: bool,
    /// The places where a reference stands in place of a secret.
    pub(crate) concealed: Vec<Concealed>,
    /// Variables it refers to.
    pub(crate) variables: Vec<String>,
    /// What did not come along.
    pub(crate) notes: Vec<&'static str>,
}

/// What importing comes to.
#[derive(Default)]
pub(crate) struct Plan {
    /// Each entry, host by host.
    pub(crate) lines: Vec<Line>,
    /// The servers to add.
    pub(crate) servers: Vec<ServerConfig>,
    variables: Variables,
}

impl Plan {
    /// Adds the entries of one file of a host. `ours` are the servers we have, `taken` further
    /// names that cannot be given.
    pub(crate) fn take(
        &mut self,
        host: &'static Host,
        file: &Path,
        found: Vec<Found>,
        (ours, taken): (&[ServerConfig], &[String]),
    ) {
        for Found { name, line, project, server } in found {
            let mut entry = Line {
                host: host.id,
                file: file.to_owned(),
                line,
                project,
                server: name,
                outcome: Outcome::Refused { why: String::new() },
                disabled: false,
                concealed: Vec::new(),
                variables: Vec::new(),
                notes: Vec::new(),
            };
            match server {
                Err(why) => entry.outcome = Outcome::Refused { why },
                Ok(server) => self.add(host, server, &mut entry, (ours, taken)),
            }
            self.lines.push(entry);
        }
    }

    fn add(
        &mut self,
        host: &Host,
        Taken { mut server, notes }: Taken,
        line: &mut Line,
        (ours, taken): (&[ServerConfig], &[String]),
    ) {
        line.notes = notes;
        line.disabled = !server.enabled;
        if has_secret_name(&server) {
            let why = "the name of a variable or header in it looks like a secret".to_owned();
            line.outcome = Outcome::Refused { why };
            return;
        }
        server.name = match is_server_name(&server.name) {
            true => server.name,
            false => names::suggestion(&server.name),
        };
        line.concealed = conceal(&mut server, &mut self.variables);
        line.variables = variables(&server);
        let known = || ours.iter().chain(&self.servers);
        if let Some(known) = known().find(|known| alike(&known.target, &server.target)) {
            line.outcome = Outcome::Present { name: known.name.clone() };
            return;
        }
        let free =
            |name: &String| !taken.contains(name) && known().all(|known| known.name != *name);
        let own = server.name.clone();
        let short: String = own.chars().take(48).collect();
        let with_host = format!("{short}-{}", host.id);
        let numbered = (2..).map(|number| format!("{short}-{}-{number}", host.id));
        let name = [own, with_host].into_iter().chain(numbered).find(free);
        server.name = name.unwrap_or_default();
        line.outcome = Outcome::Added { name: server.name.clone() };
        self.servers.push(server);
    }
}

/// The variables a server refers to, without those that have a default.
fn variables(server: &ServerConfig) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    match &server.target {
        Target::Command(command) => {
            texts.push(command.program.clone());
            texts.extend(command.args.iter().cloned());
            texts.extend(command.env.values().map(|value| value.expose().to_owned()));
            texts.extend(command.cwd.iter().map(|cwd| cwd.to_string_lossy().into_owned()));
        }
        Target::Http(endpoint) => {
            texts.push(endpoint.url.clone());
            texts.extend(endpoint.headers.values().map(|value| value.expose().to_owned()));
        }
    }
    let mut found: Vec<String> = Vec::new();
    for text in &texts {
        for (_, part) in reference::parts(text) {
            if let Part::Variable { name, default: None } = part
                && !found.iter().any(|found| found == name)
            {
                found.push(name.to_owned());
            }
        }
    }
    found
}
