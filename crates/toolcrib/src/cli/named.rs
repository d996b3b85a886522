//! Which servers a name can belong to, so that only those are started.

use toolcrib_core::{code::Code, sanitise, surface::ListKind, target::ServerConfig};
use toolcrib_engine::{Engine, Part, Snapshot, Status};

use super::{setup::Setup, wait};
use crate::{failure::Failure, show::Talk};

/// The servers that can own `name`: those whose own name it begins with, `server.` or `server__`.
/// A name that begins with none of them is a short one, and any server can own it.
pub(crate) fn owners(setup: &Setup, name: &str) -> Result<Vec<ServerConfig>, Failure> {
    let all = setup.servers(|_| true)?;
    let begins = |config: &ServerConfig| {
        name.strip_prefix(config.name.as_str())
            .is_some_and(|rest| rest.starts_with('.') || rest.starts_with("__"))
    };
    if all.iter().any(begins) {
        return Ok(all.into_iter().filter(begins).collect());
    }
    Ok(all)
}

/// Waits for the list that holds `name`, and fails early with the state of its server when that is
/// the reason why the name is not known.
pub(crate) async fn await_name(engine: &Engine, kind: ListKind, name: &str) -> Result<(), Failure> {
    let snapshot = wait::settled(engine, &[kind]).await;
    warn_of_absent(&snapshot);
    if snapshot.resolve(kind, name).is_ok() {
        return Ok(());
    }
    missing_server(&snapshot).or_else(|| left_out(&snapshot, name)).map_or(Ok(()), Err)
}

/// Warns of servers that could own a name and are not there. When there is only one, its state is
/// the failure.
pub(crate) fn warn_of_absent(snapshot: &Snapshot) {
    if snapshot.parts().nth(1).is_some() {
        absent(snapshot).iter().for_each(Talk::warn);
    }
}

/// The failure of a tool that its server has and its configuration leaves out.
fn left_out(snapshot: &Snapshot, name: &str) -> Option<Failure> {
    let has = |part: &Part| {
        let surface = part.surface.as_ref()?;
        let mut left_out =
            surface.tools.items.iter().filter(|tool| !part.config.tools.allows(&tool.name));
        let tool = left_out
            .find(|tool| name == tool.name || name == format!("{}.{}", part.name(), tool.name))?;
        Some((part.name().to_owned(), sanitise::line(&tool.name, 128)))
    };
    let (server, tool) = snapshot.parts().find_map(|part| has(part))?;
    let message = format!("{server} has {tool}, but its configuration leaves it out");
    let hint = format!("include_tools and exclude_tools of server {server} decide");
    Some(Failure::new(Code::UnknownName, message).hint(hint))
}

/// The failure of the only server that was asked, when it is not there.
pub(crate) fn missing_server(snapshot: &Snapshot) -> Option<Failure> {
    let mut parts = snapshot.parts();
    let (first, second) = (parts.next()?, parts.next());
    let absent =
        matches!(first.status, Status::Failed { .. } | Status::NeedsAuth { .. } | Status::Disabled);
    (second.is_none() && absent).then(|| Failure::of_server(first))
}

/// A word for each server that is not there, after a command that went on without it.
pub(crate) fn absent(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .parts()
        .filter(|part| !matches!(part.status, Status::Ready | Status::Disabled | Status::Starting))
        .map(|part| {
            let why = part.status.why().unwrap_or_default();
            format!("server {} {}: {why}", part.name(), part.status.phrase())
        })
        .collect()
}
