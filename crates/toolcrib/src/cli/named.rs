//! Which servers a name can belong to, so that only those are started.

use toolcrib_core::{surface::ListKind, target::ServerConfig};
use toolcrib_engine::{Engine, Snapshot, Status};

use super::{setup::Setup, wait};
use crate::failure::Failure;

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
    if snapshot.resolve(kind, name).is_ok() {
        return Ok(());
    }
    missing_server(&snapshot).map_or(Ok(()), Err)
}

/// The failure of the only server that was asked, when it is not there.
fn missing_server(snapshot: &Snapshot) -> Option<Failure> {
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
            format!("server {} is {}: {why}", part.name(), part.status.word())
        })
        .collect()
}
