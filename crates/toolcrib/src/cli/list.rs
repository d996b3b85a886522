//! `list`: what all configured servers offer, under one set of names.

use serde::Serialize;
use toolcrib_core::{code::Code, raw::Raw, sanitise, surface::ListKind};
use toolcrib_engine::{Snapshot, Status};

use super::{
    args::{Global, List},
    named::absent,
    setup::{Setup, with_engine},
    wait,
};
use crate::{
    failure::{Failure, Outcome},
    show::{Out, Talk, json, listing},
};

pub(crate) async fn run(global: &Global, args: List) -> Outcome {
    let setup = Setup::load(global)?;
    for name in &args.server {
        setup.server(name)?;
    }
    let servers = setup.servers(|name| {
        args.server.is_empty() || args.server.iter().any(|wanted| wanted == name)
    })?;
    let kinds = args.kind.map_or_else(|| ListKind::ALL.to_vec(), |kind| vec![kind.into()]);
    let engine = setup.start(servers, setup.options())?;
    with_engine(engine, async |engine| {
        let snapshot = wait::settled(engine, &kinds).await;
        show(global, &snapshot, &kinds)
    })
    .await
}

fn show(global: &Global, snapshot: &Snapshot, kinds: &[ListKind]) -> Outcome {
    for word in absent(snapshot) {
        Talk::warn(word);
    }
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &Listed::of(snapshot, kinds))?;
    } else {
        text(&mut out, snapshot, kinds)?;
    }
    // Some servers missing is worth a warning; all of them missing is a failure.
    let mut asked = snapshot.parts().filter(|part| part.status != Status::Disabled).peekable();
    let none = asked.peek().is_some() && asked.all(|part| part.surface.is_none());
    let failed = snapshot.parts().find(|part| part.surface.is_none());
    match failed.filter(|_| none) {
        Some(part) => Err(Failure::of_server(part)),
        None => Ok(Code::Ok),
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    format: json::Format,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Entry<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Entry<'a>>>,
    #[serde(rename = "resourceTemplates", skip_serializing_if = "Option::is_none")]
    templates: Option<Vec<Entry<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Vec<Entry<'a>>>,
    servers: Vec<Server<'a>>,
}

/// One item: its names here, and the item as its server sent it.
#[derive(Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    portable: Option<&'a str>,
    server: &'a str,
    item: &'a Raw,
}

#[derive(Serialize)]
struct Server<'a> {
    name: &'a str,
    #[serde(flatten)]
    status: &'a Status,
}

impl<'a> Listed<'a> {
    fn of(snapshot: &'a Snapshot, kinds: &[ListKind]) -> Self {
        let wanted = |kind| kinds.contains(&kind);
        Self {
            format: json::Format("list"),
            tools: wanted(ListKind::Tools).then(|| named(snapshot, ListKind::Tools)),
            resources: wanted(ListKind::Resources).then(|| resources(snapshot)),
            templates: wanted(ListKind::ResourceTemplates).then(|| templates(snapshot)),
            prompts: wanted(ListKind::Prompts).then(|| named(snapshot, ListKind::Prompts)),
            servers: snapshot
                .parts()
                .map(|part| Server { name: part.name(), status: &part.status })
                .collect(),
        }
    }
}

fn named(snapshot: &Snapshot, kind: ListKind) -> Vec<Entry<'_>> {
    let names = snapshot.names().iter().filter(|named| named.kind == kind);
    names
        .filter_map(|named| {
            let part = snapshot.part(&named.server)?;
            let item = match kind {
                ListKind::Prompts => &part.prompt(&named.item)?.raw,
                _ => &part.tool(&named.item)?.raw,
            };
            let (name, portable) = (Some(named.canonical.as_str()), Some(named.portable.as_str()));
            Some(Entry { name, portable, server: part.name(), item })
        })
        .collect()
}

fn resources(snapshot: &Snapshot) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for part in snapshot.parts() {
        for resource in part.resources() {
            let item = &resource.raw;
            entries.push(Entry { name: None, portable: None, server: part.name(), item });
        }
    }
    entries
}

fn templates(snapshot: &Snapshot) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for part in snapshot.parts() {
        for template in part.templates() {
            let item = &template.raw;
            entries.push(Entry { name: None, portable: None, server: part.name(), item });
        }
    }
    entries
}

fn text(out: &mut Out, snapshot: &Snapshot, kinds: &[ListKind]) -> std::io::Result<()> {
    let single = kinds.len() == 1;
    let mut shown = false;
    for kind in kinds {
        let (title, header, rows) = rows(snapshot, *kind);
        if rows.is_empty() {
            continue;
        }
        if shown {
            out.line("")?;
        }
        if !single {
            out.heading(&format!("{title} ({})", rows.len()))?;
        }
        out.line(listing::table(header, rows))?;
        shown = true;
    }
    if !shown {
        Talk::say("nothing is offered");
    }
    Ok(())
}

type Rows = (&'static str, &'static [&'static str], Vec<Vec<String>>);

fn rows(snapshot: &Snapshot, kind: ListKind) -> Rows {
    let names = || snapshot.names().iter().filter(move |named| named.kind == kind);
    let line = |text: &str| sanitise::line(text, 200);
    match kind {
        ListKind::Tools => {
            let rows = names().filter_map(|named| {
                let tool = snapshot.part(&named.server)?.tool(&named.item)?;
                let about = tool.description.as_deref().or(tool.title.as_deref());
                Some(vec![
                    line(&named.canonical),
                    listing::arguments(tool),
                    listing::first_line(about),
                ])
            });
            ("tools", &["name", "arguments", "description"], rows.collect())
        }
        ListKind::Prompts => {
            let rows = names().filter_map(|named| {
                let prompt = snapshot.part(&named.server)?.prompt(&named.item)?;
                let about = prompt.description.as_deref().or(prompt.title.as_deref());
                Some(vec![
                    line(&named.canonical),
                    listing::prompt_arguments(prompt),
                    listing::first_line(about),
                ])
            });
            ("prompts", &["name", "arguments", "description"], rows.collect())
        }
        ListKind::Resources => {
            let rows = snapshot.parts().flat_map(|part| {
                part.resources().map(|item| {
                    let title = item.title.as_deref().unwrap_or(&item.name);
                    vec![line(&item.uri), part.name().to_owned(), line(title)]
                })
            });
            ("resources", &["uri", "server", "name"], rows.collect())
        }
        ListKind::ResourceTemplates => {
            let rows = snapshot.parts().flat_map(|part| {
                part.templates().map(|item| {
                    let title = item.title.as_deref().unwrap_or(&item.name);
                    vec![line(&item.uri_template), part.name().to_owned(), line(title)]
                })
            });
            ("resource templates", &["uri template", "server", "name"], rows.collect())
        }
    }
}
