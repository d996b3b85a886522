//! Waiting for servers, with a word on stderr when it takes long.

use std::{sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use toolcrib_core::surface::ListKind;
use toolcrib_engine::{Engine, Snapshot, Status};

/// How long servers may be silent about before a person is told what is being waited for.
const PATIENCE: Duration = Duration::from_millis(400);

/// Waits until `kinds` are settled on every server. Each server keeps its own start and list
/// timeouts, so this ends.
pub(crate) async fn settled(engine: &Engine, kinds: &[ListKind]) -> Arc<Snapshot> {
    let soon = tokio::time::Instant::now() + PATIENCE;
    let snapshot = engine.settled(kinds, Some(soon)).await;
    if snapshot.is_settled(kinds) {
        return snapshot;
    }
    // Draws nothing when stderr is no terminal.
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut snapshot = snapshot;
    while !snapshot.is_settled(kinds) {
        bar.set_message(message(&snapshot, kinds));
        snapshot = engine.next(snapshot.generation()).await;
    }
    bar.finish_and_clear();
    snapshot
}

fn message(snapshot: &Snapshot, kinds: &[ListKind]) -> String {
    let (mut ready, mut all, mut waiting) = (0, 0, Vec::new());
    for part in snapshot.parts().filter(|part| part.status != Status::Disabled) {
        all += 1;
        if part.is_settled(kinds) {
            ready += 1;
        } else {
            waiting.push(part.name());
        }
    }
    waiting.truncate(5);
    format!("{ready} of {all} servers; waiting for {}", waiting.join(", "))
}
