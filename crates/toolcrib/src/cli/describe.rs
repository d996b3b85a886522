//! `describe`: one item in full.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{
    catalog::Named,
    code::Code,
    finding::Finding,
    limits::Limits,
    raw::Raw,
    sanitise,
    surface::{ListKind, Tool},
};
use toolcrib_engine::{CallError, Part, Snapshot};

use super::{
    args::{Describe, Global},
    named::{owners, warn_of_absent},
    setup::{Setup, with_engine},
    wait,
};
use crate::{
    failure::{Failure, Outcome},
    show::{Out, json, listing},
};

pub(crate) async fn run(global: &Global, args: Describe) -> Outcome {
    let setup = Setup::load(global)?;
    let servers = match &args.server {
        Some(server) => vec![setup.server(server)?],
        None => owners(&setup, &args.name)?,
    };
    let engine = setup.start(servers, setup.options())?;
    with_engine(engine, async |engine| {
        let snapshot = wait::settled(engine, &ListKind::ALL).await;
        warn_of_absent(&snapshot);
        describe(global, &snapshot, &args.name)
    })
    .await
}

/// What was found.
struct Described<'a> {
    part: &'a Part,
    kind: ListKind,
    named: Option<&'a Named>,
    key: &'a str,
    item: &'a Raw,
}

fn describe(global: &Global, snapshot: &Snapshot, name: &str) -> Outcome {
    let found = find(snapshot, name)?;
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &shown(&found))?;
    } else {
        text(&mut out, &found)?;
    }
    Ok(Code::Ok)
}

fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Result<Described<'a>, Failure> {
    let by_name = match snapshot.resolve(ListKind::Tools, name) {
        Ok(named) => Ok(named),
        Err(error) => snapshot.resolve(ListKind::Prompts, name).map_err(|_| error),
    };
    match by_name {
        Ok(named) => {
            let described = snapshot.part(&named.server).and_then(|part| {
                let (key, item) = match named.kind {
                    ListKind::Prompts => {
                        let prompt = part.prompt(&named.item)?;
                        (prompt.name.as_str(), &prompt.raw)
                    }
                    _ => {
                        let tool = part.tool(&named.item)?;
                        (tool.name.as_str(), &tool.raw)
                    }
                };
                Some(Described { part, kind: named.kind, named: Some(named), key, item })
            });
            described.ok_or_else(|| Failure::new(Code::Internal, "the item is lost"))
        }
        Err(error) => by_uri(snapshot, name)?.ok_or_else(|| {
            let failure = CallError::from(error);
            let mut parts = snapshot.parts();
            match (parts.next(), parts.next()) {
                (Some(part), None) if part.surface.is_none() => Failure::of_server(part),
                _ => failure.into(),
            }
        }),
    }
}

/// The one resource of this URI, or template that is it or fits it, as `read` would choose.
fn by_uri<'a>(snapshot: &'a Snapshot, uri: &str) -> Result<Option<Described<'a>>, CallError> {
    let resource = |part: &'a Arc<Part>| {
        let resource = part.resources().find(|resource| resource.uri == uri)?;
        let (kind, key, item) = (ListKind::Resources, resource.uri.as_str(), &resource.raw);
        Some(Described { part, kind, named: None, key, item })
    };
    let template = |part: &'a Arc<Part>| {
        let fits = part.template_for(uri).map(|(template, _)| template);
        let wanted = fits.as_deref().unwrap_or(uri);
        let template = part.templates().find(|template| template.uri_template == wanted)?;
        let key = template.uri_template.as_str();
        let (kind, item) = (ListKind::ResourceTemplates, &template.raw);
        Some(Described { part, kind, named: None, key, item })
    };
    let mut found: Vec<_> = snapshot.parts().filter_map(resource).collect();
    if found.is_empty() {
        found = snapshot.parts().filter_map(template).collect();
    }
    if found.len() > 1 {
        let servers = found.iter().map(|found| found.part.name().to_owned()).collect();
        return Err(CallError::AmbiguousUri { uri: sanitise::line(uri, 200), servers });
    }
    Ok(found.pop())
}

fn findings<'a>(found: &Described<'a>) -> Vec<&'a Finding> {
    let subject = format!("{} {}", found.kind.noun(), sanitise::line(found.key, 128));
    found.part.findings.iter().filter(|finding| finding.subject == subject).collect()
}

fn shown<'a>(found: &Described<'a>) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Shown<'a> {
        format: json::Format,
        kind: ListKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        portable: Option<&'a str>,
        server: &'a str,
        item: &'a Raw,
        findings: Vec<&'a Finding>,
    }
    Shown {
        format: json::Format("describe"),
        kind: found.kind,
        name: found.named.map(|named| named.canonical.as_str()),
        portable: found.named.map(|named| named.portable.as_str()),
        server: found.part.name(),
        item: found.item,
        findings: findings(found),
    }
}

fn text(out: &mut Out, found: &Described<'_>) -> std::io::Result<()> {
    let name = found.named.map_or(found.key, |named| named.canonical.as_str());
    out.heading(&sanitise::line(name, 300))?;
    out.line(format!("{} of {}", found.kind.noun(), found.part.name()))?;
    if let Some(named) = found.named {
        out.line(format!("for model APIs: {}", named.portable))?;
    }
    if let Some(tool) = found.named.and_then(|named| found.part.tool(&named.item)) {
        hints(out, tool)?;
    }
    let item = found.item.tree(Limits::default().judged_values).unwrap_or(Value::Null);
    if let Some(title) = item["title"].as_str() {
        out.line(format!("title: {}", sanitise::line(title, 200)))?;
    }
    if let Some(description) = item["description"].as_str() {
        out.line("")?;
        out.line(sanitise::block(description))?;
    }
    for member in ["inputSchema", "outputSchema", "arguments", "mimeType", "annotations"] {
        if let Some(value) = item.get(member).filter(|value| !value.is_null()) {
            out.line("")?;
            out.heading(member)?;
            let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
            out.line(sanitise::block(&pretty))?;
        }
    }
    let findings = findings(found);
    if !findings.is_empty() {
        out.line("")?;
        out.heading("findings")?;
        for finding in findings {
            out.line(listing::finding(finding))?;
        }
    }
    Ok(())
}

fn hints(out: &mut Out, tool: &Tool) -> std::io::Result<()> {
    let says = [
        (tool.hints.read_only, "reads only", "may write"),
        (tool.hints.destructive, "may destroy", "does not destroy"),
        (tool.hints.idempotent, "may be repeated", "repeating adds up"),
        (tool.hints.open_world, "reaches beyond the server", "stays within the server"),
    ];
    let words: Vec<_> = says
        .into_iter()
        .filter_map(|(hint, yes, no)| hint.map(|hint| if hint { yes } else { no }))
        .collect();
    if words.is_empty() {
        return Ok(());
    }
    out.line(format!("the server says: {}", words.join(", ")))
}
