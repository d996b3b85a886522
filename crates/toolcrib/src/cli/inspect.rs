//! `inspect`: one server, everything it offers, and how it was reached.

use std::collections::BTreeMap;

use serde::Serialize;
use toolcrib_core::{
    code::Code,
    finding::{Finding, Tier},
    raw::Raw,
    sanitise,
    secret::Secret,
    surface::{Item, ListKind, ListState, Listing, Surface},
    target::{Command, Endpoint, ServerConfig, Target},
    version::Era,
};
use toolcrib_engine::{Part, Snapshot, Status};

use super::{
    args::{Global, Inspect, Reach},
    setup::{Setup, trace, with_engine},
    wait,
};
use crate::{
    failure::{Failure, Outcome},
    show::{Out, json, listing},
};

pub(crate) async fn run(global: &Global, args: Inspect) -> Outcome {
    let setup = Setup::load(global)?;
    let mut config = target(&setup, &args)?;
    apply(&args.reach, &mut config);
    config.enabled = true;
    let mut options = setup.options();
    options.probe_afresh = true;
    if args.target.as_deref() != Some(config.name.as_str()) {
        // Its standard error belongs to no configured name.
        options.logs = None;
    }
    if args.trace {
        options.trace = Some(trace());
    }
    let name = config.name.clone();
    let engine = setup.start(vec![config], options)?;
    with_engine(engine, async |engine| {
        let snapshot = wait::settled(engine, &ListKind::ALL).await;
        show(global, &args, &snapshot, &name)
    })
    .await
}

fn show(global: &Global, args: &Inspect, snapshot: &Snapshot, name: &str) -> Outcome {
    let found = snapshot.part(name).and_then(|part| Some((part, part.surface.as_ref()?)));
    let found = found.filter(|(part, surface)| !went_away(part, surface));
    let Some((part, surface)) = found else {
        return Err(unreached(args, snapshot, name));
    };
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &inspected(snapshot, part, surface))?;
    } else {
        text(&mut out, part, surface)?;
    }
    let worth_failing = part.findings.iter().any(|finding| finding.tier > Tier::Info);
    Ok(if args.strict && worth_failing { Code::Findings } else { Code::Ok })
}

/// True when the server ended before its lists were read.
fn went_away(part: &Part, surface: &Surface) -> bool {
    let failed = matches!(part.status, Status::Failed { .. });
    failed && surface.states().iter().any(|(_, state)| matches!(state, ListState::Failed(_)))
}

/// Why there is nothing to show.
fn unreached(args: &Inspect, snapshot: &Snapshot, name: &str) -> Failure {
    let Some(part) = snapshot.part(name) else {
        return Failure::new(Code::Internal, "the server is lost");
    };
    let mut failure = Failure::of_server(part);
    let configured = args.target.as_deref() == Some(name);
    if !configured {
        let why = part.status.why().unwrap_or_default();
        failure.message = format!("{} cannot be used: {why}", part.config.target.summary());
        failure.hints = match &part.status {
            Status::NeedsAuth { .. } => {
                vec!["give a token with --header Authorization='Bearer …'".to_owned()]
            }
            _ => vec!["--trace shows every message, -vv says more".to_owned()],
        };
    }
    failure
}

/// The server to inspect: given as a command or a URL, or configured under a name.
fn target(setup: &Setup, args: &Inspect) -> Result<ServerConfig, Failure> {
    match &args.target {
        None => Ok(given(&args.command, None)),
        Some(text) if text.contains("://") => Ok(given(&[], Some(text))),
        Some(name) => setup.server(name).map_err(|failure| {
            failure.hint("a command goes after --, a URL begins with http:// or https://")
        }),
    }
}

/// A server that stands in no configuration.
pub(super) fn given(command: &[String], url: Option<&str>) -> ServerConfig {
    let target = match (url, command.split_first()) {
        (None, Some((program, args))) => Target::Command(Command {
            program: program.clone(),
            args: args.to_vec(),
            ..Command::default()
        }),
        (url, _) => Target::Http(Endpoint::new(url.unwrap_or_default())),
    };
    ServerConfig::new("server", target)
}

/// Adds what the command line says about reaching a server.
pub(super) fn apply(reach: &Reach, config: &mut ServerConfig) {
    match &mut config.target {
        Target::Command(command) => extend(&mut command.env, &reach.env),
        Target::Http(endpoint) => extend(&mut endpoint.headers, &reach.header),
    }
    if let Some(era) = reach.era {
        config.era = era.into();
    }
    let timeouts = &mut config.timeouts;
    timeouts.probe = reach.probe_timeout.unwrap_or(timeouts.probe);
    timeouts.start = reach.start_timeout.unwrap_or(timeouts.start);
    timeouts.list = reach.list_timeout.unwrap_or(timeouts.list);
    config.max_message_bytes = reach.max_message_bytes.or(config.max_message_bytes);
}

fn extend(map: &mut BTreeMap<String, Secret>, pairs: &[(String, String)]) {
    map.extend(pairs.iter().map(|(name, value)| (name.clone(), Secret::new(value.clone()))));
}

/// The shape of `inspect --json`. Items and capabilities are as the server sent them.
#[derive(Serialize)]
struct Inspected<'a> {
    format: json::Format,
    protocol: &'a str,
    era: Era,
    decided: &'a [String],
    transport: Option<&'static str>,
    status: &'a Status,
    server: &'a Option<Raw>,
    instructions: &'a Option<String>,
    capabilities: &'a Option<Raw>,
    tools: Vec<&'a Raw>,
    resources: Vec<&'a Raw>,
    #[serde(rename = "resourceTemplates")]
    templates: Vec<&'a Raw>,
    prompts: Vec<&'a Raw>,
    /// For each list, whether it was read to its last page.
    complete: BTreeMap<&'static str, bool>,
    /// Name for model APIs by the server's own name.
    names: BTreeMap<&'a str, &'a str>,
    /// What is not listed above because it is not to be used, and why.
    refused: Vec<Refused<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct Refused<'a> {
    kind: ListKind,
    item: &'a str,
    why: &'a str,
}

fn inspected<'a>(snapshot: &'a Snapshot, part: &'a Part, surface: &'a Surface) -> Inspected<'a> {
    let negotiated = &surface.negotiated;
    let mut refused = Vec::new();
    let tools = usable(part, &surface.tools, &mut refused);
    let resources = usable(part, &surface.resources, &mut refused);
    let templates = usable(part, &surface.templates, &mut refused);
    let prompts = usable(part, &surface.prompts, &mut refused);
    let complete = [
        (ListKind::Tools, surface.tools.is_complete()),
        (ListKind::Resources, surface.resources.is_complete()),
        (ListKind::ResourceTemplates, surface.templates.is_complete()),
        (ListKind::Prompts, surface.prompts.is_complete()),
    ];
    let names = snapshot.names().iter().filter(|named| named.kind == ListKind::Tools);
    Inspected {
        format: json::Format("inspect"),
        protocol: &negotiated.version,
        era: negotiated.era,
        decided: &negotiated.how,
        transport: part.session.as_ref().map(|session| session.transport()),
        status: &part.status,
        server: &negotiated.server,
        instructions: &negotiated.instructions,
        capabilities: &negotiated.capabilities.raw,
        tools,
        resources,
        templates,
        prompts,
        complete: complete.into_iter().map(|(kind, done)| (kind.member(), done)).collect(),
        names: names.map(|named| (named.item.as_str(), named.portable.as_str())).collect(),
        refused,
        findings: &part.findings,
    }
}

fn usable<'a, T: Item>(
    part: &'a Part,
    listing: &'a Listing<T>,
    refused: &mut Vec<Refused<'a>>,
) -> Vec<&'a Raw> {
    let mut usable = Vec::with_capacity(listing.items.len());
    for item in listing.items.iter() {
        match part.refusal(T::KIND, item.key()) {
            None => usable.push(item.raw()),
            Some(why) => refused.push(Refused { kind: T::KIND, item: item.key(), why }),
        }
    }
    usable
}

fn text(out: &mut Out, part: &Part, surface: &Surface) -> std::io::Result<()> {
    let negotiated = &surface.negotiated;
    let how = negotiated.how.join("; ");
    out.line(format!("protocol      {} ({}), {how}", negotiated.version, negotiated.era))?;
    if let Some(session) = &part.session {
        out.line(format!("transport     {}", session.transport()))?;
    }
    let label = negotiated.server_label();
    let label = label.map_or_else(
        || "(says nothing about itself)".to_owned(),
        |(name, version)| sanitise::line(&format!("{name} {version}"), 200),
    );
    out.line(format!("server        {label}"))?;
    let capabilities = negotiated.capabilities.raw.as_ref().map_or("none", Raw::get);
    out.line(format!("capabilities  {}", sanitise::line(capabilities, 400)))?;
    if let Some(why) = part.status.why() {
        out.line(format!("status        {}: {why}", part.status.word()))?;
    }
    if let Some(instructions) = &negotiated.instructions {
        out.line("")?;
        out.heading("instructions")?;
        out.line(sanitise::block(instructions))?;
    }
    tables(out, part, surface)?;
    if !part.findings.is_empty() {
        out.line("")?;
        out.heading(&format!("findings ({})", part.findings.len()))?;
        for finding in part.findings.iter() {
            out.line(listing::finding(finding))?;
        }
    }
    Ok(())
}

fn tables(out: &mut Out, part: &Part, surface: &Surface) -> std::io::Result<()> {
    let ok = |kind: ListKind, key: &str| part.refusal(kind, key).is_none();
    let tools =
        surface.tools.items.iter().filter(|tool| ok(ListKind::Tools, &tool.name)).map(|tool| {
            vec![
                sanitise::line(&tool.name, 128),
                listing::arguments(tool),
                listing::first_line(tool.description.as_deref().or(tool.title.as_deref())),
            ]
        });
    section(out, "tools", &["name", "arguments", "description"], tools.collect())?;
    let resources =
        surface.resources.items.iter().filter(|item| ok(ListKind::Resources, &item.uri)).map(
            |item| {
                let media = item.mime_type.as_deref().unwrap_or_default();
                vec![
                    sanitise::line(&item.uri, 200),
                    sanitise::line(media, 60),
                    sanitise::line(item.title.as_deref().unwrap_or(&item.name), 80),
                ]
            },
        );
    section(out, "resources", &["uri", "type", "name"], resources.collect())?;
    let templates = surface
        .templates
        .items
        .iter()
        .filter(|item| ok(ListKind::ResourceTemplates, &item.uri_template))
        .map(|item| {
            let media = item.mime_type.as_deref().unwrap_or_default();
            vec![
                sanitise::line(&item.uri_template, 200),
                sanitise::line(media, 60),
                sanitise::line(item.title.as_deref().unwrap_or(&item.name), 80),
            ]
        });
    section(out, "resource templates", &["uri template", "type", "name"], templates.collect())?;
    let prompts =
        surface.prompts.items.iter().filter(|item| ok(ListKind::Prompts, &item.name)).map(
            |prompt| {
                vec![
                    sanitise::line(&prompt.name, 128),
                    listing::prompt_arguments(prompt),
                    listing::first_line(prompt.description.as_deref().or(prompt.title.as_deref())),
                ]
            },
        );
    section(out, "prompts", &["name", "arguments", "description"], prompts.collect())
}

fn section(
    out: &mut Out,
    title: &str,
    header: &[&str],
    rows: Vec<Vec<String>>,
) -> std::io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.heading(&format!("{title} ({})", rows.len()))?;
    out.line(listing::table(header, rows))
}
