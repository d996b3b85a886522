//! The engine: one keeper per configured server, one board, one way to look.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use toolcrib_core::{surface::ListKind, target::ServerConfig};

use crate::{
    board::{Board, Parts},
    keeper::{Keeper, Order},
    memory::Memory,
    options::Options,
    part::Part,
    reach::STARTS,
    snapshot::Snapshot,
    status::Status,
    subscribe::Subscriptions,
};

/// Connects to servers and keeps one catalog of what they show.
///
/// Dropping an engine kills the processes it started; [`Engine::shutdown`] ends them properly.
pub struct Engine {
    options: Arc<Options>,
    board: Arc<Board>,
    subscriptions: Arc<Subscriptions>,
    keepers: BTreeMap<String, Kept>,
    publisher: JoinHandle<()>,
}

struct Kept {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

/// How many orders may wait for a keeper.
const ORDERS: usize = 64;

impl Engine {
    /// Starts keeping `servers`; disabled ones are shown and left alone. Returns at once.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(servers: Vec<ServerConfig>, options: Options) -> Self {
        let options = Arc::new(options);
        let memory = Arc::new(Memory::at(options.memory.clone()));
        let parts = servers
            .iter()
            .map(|config| {
                let status = if config.enabled { Status::Starting } else { Status::Disabled };
                Part::new(Arc::new(config.clone()), status)
            })
            .collect();
        let board = Arc::new(Board::new(parts));
        let publisher = tokio::spawn(Arc::clone(&board).run());
        let starts = Arc::new(Semaphore::new(STARTS));
        let mut keepers = BTreeMap::new();
        for config in servers.into_iter().filter(|config| config.enabled) {
            let (sender, orders) = mpsc::channel(ORDERS);
            let name = config.name.clone();
            let keeper = Keeper {
                config: Arc::new(config),
                options: Arc::clone(&options),
                board: Arc::clone(&board),
                memory: Arc::clone(&memory),
                orders,
                asked: Vec::new(),
                starts: Arc::clone(&starts),
            };
            let task = tokio::spawn(keeper.run());
            keepers.insert(name, Kept { orders: sender, task });
        }
        let most = options.limits.subscriptions;
        let subscriptions = Subscriptions::new(Arc::clone(&board), options.mode, most);
        Self { options, board, subscriptions, keepers, publisher }
    }

    /// How this engine works.
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) const fn board(&self) -> &Arc<Board> {
        &self.board
    }

    pub(crate) const fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// What is known now. Cheap; never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.board.snapshot()
    }

    /// Waits for the snapshot after `generation`.
    pub async fn next(&self, generation: u64) -> Arc<Snapshot> {
        let mut published = self.board.published();
        // The sender lives as long as the board.
        let _ = published.wait_for(|now| now.generation() > generation).await;
        self.snapshot()
    }

    /// Waits until `kinds` are settled on every server (listed, not offered, or failed), at most
    /// until `deadline`, and gives the snapshot then.
    pub async fn settled(&self, kinds: &[ListKind], deadline: Option<Instant>) -> Arc<Snapshot> {
        let settled = |parts: &Parts| parts.values().all(|part| part.is_settled(kinds));
        self.until(deadline, settled).await
    }

    /// Waits until `kinds` are settled on one server.
    pub async fn server_settled(
        &self,
        server: &str,
        kinds: &[ListKind],
        deadline: Option<Instant>,
    ) -> Arc<Snapshot> {
        let settled = |parts: &Parts| parts.get(server).is_none_or(|part| part.is_settled(kinds));
        self.until(deadline, settled).await
    }

    /// Waits until the parts are as wanted; the snapshot that shows it is published at once.
    async fn until(
        &self,
        deadline: Option<Instant>,
        done: impl Fn(&Parts) -> bool,
    ) -> Arc<Snapshot> {
        let mut posts = self.board.posts();
        loop {
            posts.borrow_and_update();
            if self.board.is(&done) {
                return self.board.publish();
            }
            let posted = posts.changed();
            let over = match deadline {
                Some(deadline) => timeout_at(deadline, posted).await.is_err(),
                None => posted.await.is_err(),
            };
            if over {
                return self.board.publish();
            }
        }
    }

    /// Lists `kinds` of one server again, connecting it first when it is not connected, and waits
    /// until that is done or `deadline` has passed. The snapshot shows it then.
    pub async fn refresh(&self, server: &str, kinds: &[ListKind], deadline: Instant) {
        let Some(keeper) = self.keepers.get(server) else { return };
        let (done, finished) = oneshot::channel();
        let order = Order::Refresh { kinds: kinds.to_vec(), done };
        if timeout_at(deadline, keeper.orders.send(order)).await.is_ok() {
            // An answer that never comes means there is nothing (more) to wait for.
            let _ = timeout_at(deadline, finished).await;
            self.board.publish();
        }
    }

    /// Says that someone looks at a server's lists: what its TTL calls stale is read again in the
    /// background.
    pub(crate) fn touch(&self, server: &str) {
        if let Some(keeper) = self.keepers.get(server) {
            // A full queue means that it is busy refreshing already.
            let _ = keeper.orders.try_send(Order::Touch);
        }
    }

    /// Closes every session and waits until all processes are gone: at most six seconds, since
    /// servers are closed side by side.
    pub async fn shutdown(mut self) {
        let deadline = Instant::now() + SHUTDOWN;
        for keeper in self.keepers.values() {
            // A full queue is read to its end once the sender is gone, and that means stop, too.
            let _ = keeper.orders.try_send(Order::Stop);
        }
        for (name, mut keeper) in std::mem::take(&mut self.keepers) {
            drop(keeper.orders);
            if timeout_at(deadline, &mut keeper.task).await.is_err() {
                tracing::warn!(server = name, "not closed in time");
                keeper.task.abort();
            }
        }
        // Those who listen hear how it ended.
        self.board.publish();
    }
}

impl Drop for Engine {
    /// Kills what is still running; nothing is waited for.
    fn drop(&mut self) {
        self.publisher.abort();
        self.subscriptions.end();
        for keeper in self.keepers.values() {
            keeper.task.abort();
        }
        // Whoever still holds a snapshot holds its sessions, too.
        self.board.each(|part| {
            if let Some(session) = &part.session {
                session.kill();
            }
        });
    }
}

/// How long closing everything may take.
const SHUTDOWN: Duration = Duration::from_secs(7);

#[cfg(test)]
mod tests;
