//! `connect`: the servers of ours, written into the file of another program.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_core::{code::Code, sanitise, target::ServerConfig};

use super::{
    args::{Connect, Global},
    hosts::{Places, Settled, Way, settle, shown, unasked},
    setup::Setup,
};
use crate::{
    config::{locate::Trust, problem},
    failure::{Failure, Outcome},
    hosts::{
        connect::{self, Line, Manner, Plan},
        table::Host,
    },
    show::{Out, Talk, json},
};

/// The shape of `connect --json`.
#[derive(Serialize)]
struct Report<'a> {
    format: json::Format,
    host: &'a str,
    file: &'a Path,
    written: bool,
    backup: Option<PathBuf>,
    entries: &'a [Line],
    diff: &'a str,
}

pub(crate) fn run(global: &Global, args: &Connect) -> Outcome {
    let host = Host::find(&args.host)
        .ok_or_else(|| Failure::usage(format!("no host is called {:?}", args.host)))?;
    let places = Places::find()?;
    let path = path(&places, host, args.project)?;
    let servers = servers(global, args)?;
    let home = places.folders.home.to_str().filter(|_| !args.project);
    let manner = Manner { home, replace: args.replace };
    let Plan { change, lines } = connect::plan(host, &path, &servers, manner)?;
    let diff = shown(&change, host.format, host.shape.reference);
    if !global.json {
        lines.iter().for_each(|line| say(host, line));
    }
    let way = Way { global, dry_run: args.dry_run, backup: true };
    let settled = settle(&way, &change, &diff)?;
    if global.json {
        let backup = match &settled {
            Settled::Written(backup) => backup.clone(),
            _ => None,
        };
        let report = Report {
            format: json::Format("connect"),
            host: host.id,
            file: &path,
            written: settled.is_written(),
            backup,
            entries: &lines,
            diff: &diff,
        };
        json::print(&mut Out::new(), &report)?;
    }
    match settled {
        Settled::Written(backup) if !global.json => {
            Talk::say(format!("wrote {}", problem::path(&path)));
            if let Some(backup) = backup {
                Talk::say(format!("kept what it was as {}", problem::path(&backup)));
            }
            Talk::hint(format!("start {} again so that it reads them", host.name));
        }
        Settled::Unasked if global.json => return Ok(Code::Config),
        Settled::Unasked => return Err(unasked()),
        Settled::Nothing if !global.json => Talk::say("nothing to write"),
        _ => {}
    }
    Ok(code(args, &lines))
}

/// Refused when a server that was named is not there in the end, or none of all of them is.
fn code(args: &Connect, lines: &[Line]) -> Code {
    let out = |line: &Line| {
        matches!(line.outcome, connect::Outcome::Refused { .. } | connect::Outcome::Differs)
    };
    let failed = match args.servers.is_empty() {
        true => lines.iter().all(out),
        false => lines.iter().any(out),
    };
    if failed { Code::Refused } else { Code::Ok }
}

/// The file to change: the first that is there, or else the first to make.
fn path(places: &Places, host: &Host, project: bool) -> Result<PathBuf, Failure> {
    let paths = host.paths(places.scope(project));
    let none = || {
        Failure::usage(format!("{} has no file for projects", host.name))
            .hint("leave --project out to change your own")
    };
    let there = paths.iter().find(|path| path.exists());
    there.or(paths.first()).cloned().ok_or_else(none)
}

/// The servers to connect: those named, or all that are switched on and our own.
fn servers(global: &Global, args: &Connect) -> Result<Vec<ServerConfig>, Failure> {
    let setup = Setup::load(global)?;
    let mut servers = Vec::new();
    for name in &args.servers {
        let server = setup.server(name)?;
        if !server.enabled {
            return Err(Failure::config(format!("server {name} is switched off"))
                .hint(format!("toolcrib enable {name}")));
        }
        servers.push(server);
    }
    if !args.servers.is_empty() {
        return Ok(servers);
    }
    // A folder one steps into may be anybody's; its servers stay in it unless they are named.
    let found: Vec<_> = setup
        .loaded
        .files
        .iter()
        .filter(|file| file.trust == Trust::Found && !args.project)
        .map(|file| &file.path)
        .collect();
    for (server, origin) in setup.loaded.servers.iter().filter(|(server, _)| server.enabled) {
        if found.contains(&&origin.file) {
            let file = problem::path(&origin.file);
            Talk::say(format!(
                "{}: left out: it stands in {file}, name it to connect it",
                server.name
            ));
            continue;
        }
        servers.push(server.clone());
    }
    if servers.is_empty() {
        return Err(Failure::config("there is no server to connect")
            .hint("toolcrib add NAME URL, or toolcrib add NAME -- COMMAND ARGS…")
            .hint("toolcrib import takes over what other programs have"));
    }
    Ok(servers)
}

/// Says what becomes of a server.
fn say(host: &Host, line: &Line) {
    let name = &line.server;
    match &line.outcome {
        connect::Outcome::Added => Talk::say(format!("{name}: new")),
        connect::Outcome::Replaced => Talk::say(format!("{name}: replaced")),
        connect::Outcome::Present => {
            let words = [&["already there".to_owned()], line.notes.as_slice()].concat();
            return Talk::say(format!("{name}: {}", words.join(", ")));
        }
        connect::Outcome::Differs => {
            Talk::warn(format!(
                "{name}: left as it is: {} has another entry of this name",
                host.name
            ));
            Talk::hint("--replace puts ours in its place");
        }
        connect::Outcome::Refused { why } => {
            for why in why {
                Talk::warn(format!("{name}: left out: {}", sanitise::line(why, 400)));
            }
        }
    }
    for note in &line.notes {
        Talk::warn(format!("{name}: {}", sanitise::line(note, 400)));
    }
}
