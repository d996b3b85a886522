//! Waiting for the answer to one request: how long, what progress changes about it, and the time
//! that our own side takes. It knows no wire, and what is waited for is any future.

use std::time::Duration;

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use toolcrib_core::rpc::Progress;

use crate::pending::Notice;

/// How long answering what the server asks meanwhile may hold up the end of one request.
const ASKED_AT_MOST: Duration = Duration::from_secs(3_600);

/// How many progress notifications wait for a slow listener.
pub(crate) const PROGRESS: usize = 32;

/// How long one request is waited for. While our own side is at work its clock stands still.
pub(crate) struct Patience {
    /// Until the answer, or the next progress.
    wait: Duration,
    /// The end, unless something moves it.
    pub(crate) deadline: Instant,
    /// The end, however much progress there is.
    hard: Instant,
    /// The end, however long our own side takes.
    latest: Instant,
    /// Since when the clock stands still.
    held: Option<Instant>,
}

impl Patience {
    /// Begins now: `wait` for an answer or progress, `most` in all.
    pub(crate) fn begin(wait: Duration, most: Duration) -> Self {
        let now = Instant::now();
        let hard = now + most.max(wait);
        Self { wait, deadline: now + wait, hard, latest: hard + ASKED_AT_MOST, held: None }
    }

    /// Progress came.
    fn moved(&mut self) {
        self.deadline = (self.held.unwrap_or_else(Instant::now) + self.wait).min(self.hard);
    }

    /// Our own side is at work, or done: then the server has as much time as it had before.
    fn hold(&mut self, at_work: bool) {
        match (self.held, at_work) {
            (None, true) => self.held = Some(Instant::now()),
            (Some(since), false) => {
                let stood = since.elapsed();
                self.hard = (self.hard + stood).min(self.latest);
                self.deadline = (self.deadline + stood).min(self.hard);
                self.held = None;
            }
            _ => {}
        }
    }

    fn end(&self) -> Instant {
        if self.held.is_some() { self.latest } else { self.deadline }
    }

    /// Waits for `answer`; `None` when it does not come in time. Progress that `arriving` brings is
    /// passed on to `progress`. `answering` counts what the host is answering for this server.
    ///
    /// Progress comes last, so that a flood of it starves neither the answer nor the clock; what
    /// had arrived by then is passed on first.
    pub(crate) async fn wait_for<T>(
        mut self,
        answer: impl Future<Output = T>,
        mut arriving: Option<mpsc::Receiver<Notice>>,
        progress: Option<&mpsc::Sender<Progress>>,
        mut answering: watch::Receiver<usize>,
    ) -> Option<T> {
        let mut answer = std::pin::pin!(answer);
        self.hold(*answering.borrow_and_update() > 0);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    pass_on(&mut arriving, progress);
                    return Some(answer);
                }
                // What came before the end counts, even where both are heard at one time.
                Ok(()) = answering.changed() => self.hold(*answering.borrow_and_update() > 0),
                () = sleep_until(self.end()) => {}
                Some(notice) = receive(&mut arriving) => {
                    if deliver(notice, progress) {
                        self.moved();
                    }
                }
            }
            let now = Instant::now();
            if now >= self.end() {
                if self.held.is_some() || !pass_on(&mut arriving, progress) || now >= self.hard {
                    return None;
                }
                self.moved();
            }
        }
    }
}

/// Passes a notice on; true when it was progress.
fn deliver(notice: Notice, progress: Option<&mpsc::Sender<Progress>>) -> bool {
    let (Notice::Progress(read), Some(progress)) = (notice, progress) else { return false };
    // A listener that does not keep up loses progress, never the answer.
    let _ = progress.try_send(read);
    true
}

/// Passes on what has arrived, at most as much as can wait at one time; true when there was any.
fn pass_on(
    arriving: &mut Option<mpsc::Receiver<Notice>>,
    progress: Option<&mpsc::Sender<Progress>>,
) -> bool {
    let Some(arriving) = arriving else { return false };
    let mut any = false;
    for _ in 0..PROGRESS {
        let Ok(notice) = arriving.try_recv() else { break };
        any |= deliver(notice, progress);
    }
    any
}

async fn receive(arriving: &mut Option<mpsc::Receiver<Notice>>) -> Option<Notice> {
    match arriving {
        Some(receiver) => receiver.recv().await,
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use toolcrib_core::raw::Raw;

    use super::*;

    fn notice() -> Notice {
        let params = Raw::of(&serde_json::json!({"progressToken": 1, "progress": 1}));
        Notice::Progress(Progress::read(&params).unwrap().1)
    }

    const SOON: Duration = Duration::from_millis(100);
    const MOST: Duration = Duration::from_millis(400);

    /// Threads that send progress as fast as it is taken, until nobody takes it.
    fn flood() -> mpsc::Receiver<Notice> {
        let (sender, arriving) = mpsc::channel(PROGRESS);
        for _ in 0..2 {
            let sender = sender.clone();
            std::thread::spawn(move || while sender.blocking_send(notice()).is_ok() {});
        }
        arriving
    }

    /// An answer that is there is taken, and the end comes when it has to, whatever floods in.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_flood_starves_neither_the_clock_nor_the_answer() {
        let (progress, _listener) = mpsc::channel(1);
        let answering = watch::Sender::new(0);
        let begun = Instant::now();
        let patience = Patience::begin(SOON, MOST);
        let waiting = patience.wait_for(
            pending::<()>(),
            Some(flood()),
            Some(&progress),
            answering.subscribe(),
        );
        let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        assert_eq!(waited.expect("it ends"), None);
        assert!(begun.elapsed() >= MOST, "progress begins the wait anew");
        let patience = Patience::begin(SOON, MOST);
        let answer =
            patience.wait_for(ready(7), Some(flood()), Some(&progress), answering.subscribe());
        assert_eq!(answer.await, Some(7));
    }

    /// Progress that came before the answer is passed on before it.
    #[tokio::test]
    async fn progress_before_the_answer_is_not_lost() {
        let (sender, arriving) = mpsc::channel(PROGRESS);
        let (progress, mut listener) = mpsc::channel(8);
        let answering = watch::Sender::new(0);
        for _ in 0..3 {
            sender.send(notice()).await.unwrap();
        }
        let patience = Patience::begin(SOON, MOST);
        let waiting =
            patience.wait_for(ready(()), Some(arriving), Some(&progress), answering.subscribe());
        assert_eq!(waiting.await, Some(()));
        let mut count = 0;
        while listener.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, 3);
    }

    /// While our own side answers, the clock stands still; after that the server has its time.
    #[tokio::test]
    async fn our_own_time_is_not_the_servers() {
        let answering = watch::Sender::new(1);
        let begun = Instant::now();
        let patience = Patience::begin(SOON, SOON);
        let waiting = patience.wait_for(pending::<()>(), None, None, answering.subscribe());
        let done = async {
            tokio::time::sleep(MOST).await;
            answering.send_replace(0);
        };
        let (waited, ()) = tokio::join!(waiting, done);
        assert_eq!(waited, None);
        assert!(begun.elapsed() >= MOST + SOON, "{:?}", begun.elapsed());
    }

    /// A person who is done just before the end has not used up the server's time.
    #[tokio::test]
    async fn what_was_left_before_our_own_side_began_is_left_after_it() {
        const WAIT: Duration = Duration::from_secs(1);
        let answering = watch::Sender::new(0);
        let patience = Patience::begin(WAIT, WAIT);
        let (answer, answered) = tokio::sync::oneshot::channel();
        let waiting = patience.wait_for(answered, None, None, answering.subscribe());
        let person = async {
            answering.send_replace(1);
            tokio::time::sleep(WAIT - SOON).await;
            answering.send_replace(0);
            tokio::time::sleep(WAIT / 2).await;
            answer.send(())
        };
        let (waited, _) = tokio::join!(waiting, person);
        assert_eq!(waited, Some(Ok(())));
    }
}
