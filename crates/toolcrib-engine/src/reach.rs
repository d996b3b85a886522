//! Reaching one server: in turn with the others, in the era that is remembered, and remembering what
//! was found. Nothing is tried twice here.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::{Semaphore, oneshot};
use toolcrib_core::target::ServerConfig;
use toolcrib_link::{ConnectError, Connecting, Session, connect};

use crate::{memory::Memory, options::Options};

/// Does `start` when there is a turn. A turn ends with it or after [`TURN`], so that servers that
/// hang hold up nobody for long.
pub(crate) async fn in_turn<T>(starts: &Arc<Semaphore>, start: impl Future<Output = T>) -> T {
    // It is never closed; without a permit there is simply no bound.
    let permit = Arc::clone(starts).acquire_owned().await.ok();
    let (done, ended) = oneshot::channel::<()>();
    tokio::spawn(async move {
        // Either way the turn is over.
        let _ = tokio::time::timeout(TURN, ended).await;
        drop(permit);
    });
    let started = start.await;
    drop(done);
    started
}

/// Connects once, in the era that is remembered, and remembers what is found.
pub(crate) async fn reach(
    config: &Arc<ServerConfig>,
    options: &Options,
    memory: &Arc<Memory>,
) -> Result<Arc<Session>, ConnectError> {
    let now = SystemTime::now();
    let known_era = if options.probe_afresh { None } else { memory.recall(config, now) };
    let name = &config.name;
    let connecting = Connecting {
        limits: options.limits.clone(),
        log_file: options.logs.as_ref().map(|logs| logs.join(format!("{name}.log"))),
        trace: options.trace.as_ref().map(|trace| trace(name)),
        known_era,
        host: options.handlers.host(name, &options.limits),
    };
    let lookup = |name: &str| std::env::var(name).ok();
    let outcome = connect(config, &lookup, connecting).await;
    match &outcome {
        Ok(session) => {
            let (negotiated, now) = (session.negotiated(), SystemTime::now());
            let learn = move |memory: &Memory, config: &ServerConfig| {
                memory.learn(config, &negotiated, now);
            };
            remember(memory, config, learn).await;
        }
        Err(ConnectError::Handshake { .. }) => remember(memory, config, Memory::forget).await,
        Err(_) => {}
    }
    outcome.map(Arc::new)
}

/// Changes the memory, off the tasks of others, since its file may be on a slow disk. A disk that
/// hangs is not waited for.
pub(crate) async fn remember(
    memory: &Arc<Memory>,
    config: &Arc<ServerConfig>,
    change: impl FnOnce(&Memory, &ServerConfig) + Send + 'static,
) {
    let (memory, config) = (Arc::clone(memory), Arc::clone(config));
    let changing = tokio::task::spawn_blocking(move || change(&memory, &config));
    if tokio::time::timeout(REMEMBERED_WITHIN, changing).await.is_err() {
        tracing::debug!("the era is still being written down");
    }
}

/// How long a server waits for its era to be written down.
const REMEMBERED_WITHIN: Duration = Duration::from_secs(1);
/// Most servers that are started at the same time.
pub(crate) const STARTS: usize = 64;
/// How long one of them may hold its turn.
const TURN: Duration = Duration::from_secs(2);
