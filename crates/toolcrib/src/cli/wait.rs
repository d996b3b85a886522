//! Waiting for servers, with a word on stderr when it takes long.

use std::{
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;
use toolcrib_core::{sanitise, surface::ListKind};
use toolcrib_engine::{Engine, Progress, Snapshot, Status};

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
    let bar = spinner();
    let mut snapshot = snapshot;
    while !snapshot.is_settled(kinds) {
        bar.set_message(message(&snapshot, kinds));
        snapshot = engine.next(snapshot.generation()).await;
    }
    bar.finish_and_clear();
    snapshot
}

/// Shows the progress of one call on stderr, where a person watches; `None` where nobody does, so
/// that no progress is asked for.
pub(crate) fn progress() -> Option<mpsc::Sender<Progress>> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let (sender, mut arriving) = mpsc::channel::<Progress>(8);
    tokio::spawn(async move {
        while let Some(progress) = arriving.recv().await {
            let mut bar = bar();
            if !bar.hidden {
                bar.shown.get_or_insert_with(spinner).set_message(progress_line(&progress));
            }
        }
        bar().clear();
    });
    Some(sender)
}

/// The bar of the call that runs, and whether a question stands in its place.
struct Bar {
    shown: Option<ProgressBar>,
    hidden: bool,
}

impl Bar {
    fn clear(&mut self) {
        if let Some(bar) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> MutexGuard<'static, Bar> {
    static BAR: Mutex<Bar> = Mutex::new(Bar { shown: None, hidden: false });
    BAR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows no progress while a person is asked something.
pub(crate) fn hide() {
    let mut bar = bar();
    bar.hidden = true;
    bar.clear();
}

/// Shows progress again.
pub(crate) fn show() {
    bar().hidden = false;
}

fn spinner() -> ProgressBar {
    // Draws nothing when stderr is no terminal.
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn progress_line(progress: &Progress) -> String {
    let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let words = progress.message.as_deref().map(|text| sanitise::line(text, 120));
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    format!("{}{of}{words}", progress.progress)
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
