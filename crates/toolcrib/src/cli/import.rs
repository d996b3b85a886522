//! `import`: the servers of other programs, taken over into our configuration.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_core::{code::Code, sanitise};

use super::{
    args::{Global, Import},
    edit::destination,
    hosts::{Places, Settled, Way, settle, shown, unasked},
};
use crate::{
    config::{
        self, edit,
        locate::{Candidate, Trust},
        problem::{self, Problem},
    },
    failure::{Failure, Outcome},
    hosts::{
        import::{self, Line, Plan},
        table::{Format, HOSTS, Host},
    },
    show::{Out, Talk, json},
};

/// The shape of `import --json`.
#[derive(Serialize)]
struct Report<'a> {
    format: json::Format,
    file: &'a Path,
    written: bool,
    entries: &'a [Line],
    problems: Vec<String>,
    diff: &'a str,
}

pub(crate) fn run(global: &Global, args: &Import) -> Outcome {
    let places = Places::find()?;
    let file = destination(global)?;
    let (plan, problems) = plan(&places, args, &file)?;
    let change = edit::adding(&file, &plan.servers)?;
    let diff = shown(&change, Format::Toml, None);
    if !global.json {
        problems.iter().for_each(say_problem);
        plan.lines.iter().for_each(say);
        say_variables(&plan.lines);
    }
    let way = Way { global, dry_run: args.dry_run, backup: false };
    let settled = settle(&way, &change, &diff)?;
    if global.json {
        let problems = problems.iter().map(ToString::to_string).collect();
        let report = Report {
            format: json::Format("import"),
            file: &file,
            written: settled.is_written(),
            entries: &plan.lines,
            problems,
            diff: &diff,
        };
        json::print(&mut Out::new(), &report)?;
    }
    let added = plan.servers.len();
    let servers = if added == 1 { "1 server".to_owned() } else { format!("{added} servers") };
    let name = problem::path(&file);
    match settled {
        Settled::Written(_) if !global.json => Talk::say(format!("added {servers} to {name}")),
        Settled::Unasked if global.json => return Ok(Code::Config),
        Settled::Unasked => return Err(unasked()),
        Settled::Nothing if !global.json => Talk::say(format!("nothing to add to {name}")),
        _ => {}
    }
    let nothing_read = plan.lines.is_empty() && !problems.is_empty();
    let named_broken = !args.hosts.is_empty() && !problems.is_empty();
    Ok(if nothing_read || named_broken { Code::Config } else { Code::Ok })
}

fn plan(places: &Places, args: &Import, file: &Path) -> Result<(Plan, Vec<Problem>), Failure> {
    let candidate = Candidate { path: file.to_owned(), trust: Trust::User };
    let loaded = config::load(&[candidate]);
    let taken: Vec<String> =
        loaded.errors.iter().filter_map(|problem| problem.entry.clone()).collect();
    let ours: Vec<_> = loaded.servers.into_iter().map(|(server, _)| server).collect();
    let all = args.hosts.is_empty();
    let hosts: Vec<&'static Host> = match all {
        true => HOSTS.iter().collect(),
        false => args.hosts.iter().filter_map(|id| Host::find(id)).collect(),
    };
    let (mut plan, mut problems, mut any) = (Plan::default(), Vec::new(), false);
    for host in hosts {
        let scope = places.scope(args.project);
        let paths = host.present(scope);
        if paths.is_empty() && !all {
            return Err(missing(host, &host.paths(scope)));
        }
        for path in paths {
            any = true;
            match places.servers(host, &path) {
                Ok(found) => plan.take(host, &path, found, (&ours, &taken)),
                Err(problem) => problems.push(problem),
            }
        }
    }
    if !any {
        return Err(Failure::config("no file of a program that uses MCP servers was found")
            .hint("toolcrib hosts lists where they are looked for"));
    }
    Ok((plan, problems))
}

fn missing(host: &Host, paths: &[PathBuf]) -> Failure {
    if paths.is_empty() {
        return Failure::usage(format!("{} has no files of projects", host.name))
            .hint("leave --project out to read your own");
    }
    let paths: Vec<_> = paths.iter().map(|path| problem::path(path)).collect();
    Failure::config(format!("{} has no file here: there is no {}", host.name, paths.join(", no ")))
        .hint("toolcrib hosts lists what was found")
}

fn say_problem(problem: &Problem) {
    Talk::error(problem.to_string());
    problem.hint.iter().for_each(Talk::hint);
}

/// Says what becomes of an entry.
fn say(line: &Line) {
    let mut who = format!("{} {}", line.host, sanitise::line(&line.server, 80));
    if let Some(project) = &line.project {
        who = format!("{who} (for {})", sanitise::line(project, 200));
    }
    let off = if line.disabled { ", disabled as it is there" } else { "" };
    match &line.outcome {
        import::Outcome::Added { name } if *name == line.server => {
            Talk::say(format!("{who}: new{off}"));
        }
        import::Outcome::Added { name } => {
            let why = match toolcrib_core::catalog::is_server_name(&line.server) {
                true => "another server has its name",
                false => "its own name does not fit into names of tools",
            };
            Talk::say(format!("{who}: new, as {name}: {why}{off}"));
        }
        import::Outcome::Present { name } => Talk::say(format!("{who}: already here, as {name}")),
        import::Outcome::Refused { why } => {
            Talk::warn(format!("{who}: left out: {}", sanitise::line(why, 400)));
        }
    }
    if matches!(line.outcome, import::Outcome::Added { .. }) {
        for one in &line.concealed {
            let place = sanitise::line(&one.place, 120);
            Talk::say(format!(
                "  {place} may be a secret and is not copied: ${{{}}}",
                one.variable
            ));
        }
        for note in &line.notes {
            Talk::warn(format!("{who}: {note}"));
        }
    }
}

/// Says which variables have to be set before the new servers can be used.
fn say_variables(lines: &[Line]) {
    let added = lines.iter().filter(|line| matches!(line.outcome, import::Outcome::Added { .. }));
    let mut unset: Vec<&str> = added
        .flat_map(|line| line.variables.iter().map(String::as_str))
        .filter(|name| std::env::var_os(name).is_none())
        .collect();
    unset.sort_unstable();
    unset.dedup();
    if !unset.is_empty() {
        let names = sanitise::line(&unset.join(", "), 1_000);
        Talk::hint(format!("set in the environment before they are used: {names}"));
    }
}
