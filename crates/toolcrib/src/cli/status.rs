//! `status`: every configured server, started and listed once.

use serde::Serialize;
use toolcrib_core::{code::Code, sanitise, surface::ListKind, version::Era};
use toolcrib_engine::{Part, Snapshot, Status};

use super::{
    args::Global,
    setup::{Setup, with_engine},
    wait,
};
use crate::{
    failure::Outcome,
    show::{Out, json, listing},
};

pub(crate) async fn run(global: &Global) -> Outcome {
    let setup = Setup::load(global)?;
    let engine = setup.start(setup.servers(|_| true)?, setup.options())?;
    with_engine(engine, async |engine| {
        let snapshot = wait::settled(engine, &ListKind::ALL).await;
        show(global, &snapshot)
    })
    .await
}

/// The shape of one server in `status --json`.
#[derive(Serialize)]
struct Stands<'a> {
    name: &'a str,
    #[serde(flatten)]
    status: &'a Status,
    target: String,
    protocol: Option<&'a str>,
    era: Option<Era>,
    tools: usize,
    resources: usize,
    #[serde(rename = "resourceTemplates")]
    templates: usize,
    prompts: usize,
    findings: usize,
}

impl<'a> Stands<'a> {
    fn of(part: &'a Part) -> Self {
        let surface = part.surface.as_deref();
        Self {
            name: part.name(),
            status: &part.status,
            target: part.config.target.summary(),
            protocol: surface.map(|surface| surface.negotiated.version.as_str()),
            era: surface.map(|surface| surface.negotiated.era),
            tools: part.tools().count(),
            resources: part.resources().count(),
            templates: part.templates().count(),
            prompts: surface.map_or(0, |surface| surface.prompts.items.len()),
            findings: part.findings.len(),
        }
    }
}

fn show(global: &Global, snapshot: &Snapshot) -> Outcome {
    #[derive(Serialize)]
    struct Shown<'a> {
        format: json::Format,
        servers: Vec<Stands<'a>>,
    }
    let servers: Vec<_> = snapshot.parts().map(|part| Stands::of(part)).collect();
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &Shown { format: json::Format("status"), servers })?;
        return Ok(Code::Ok);
    }
    let rows = servers.iter().map(|server| {
        vec![
            server.name.to_owned(),
            server.status.word().to_owned(),
            server.protocol.unwrap_or_default().to_owned(),
            server.tools.to_string(),
            (server.resources + server.templates).to_string(),
            server.prompts.to_string(),
            server.findings.to_string(),
            server.status.why().map_or_else(
                || server.target.clone(),
                |why| sanitise::line(why.lines().next().unwrap_or_default(), 160),
            ),
        ]
    });
    let header =
        ["name", "state", "protocol", "tools", "resources", "prompts", "findings", "about"];
    out.line(listing::table(&header, rows.collect()))?;
    Ok(Code::Ok)
}
