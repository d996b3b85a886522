//! The word to stop, said once and heard by every stream of a server.

use tokio::sync::watch;

/// Says stop. Dropping it says so, too.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Hears it.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stopper {
    /// A stopper and what hears it.
    pub fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Stop(receiver))
    }

    /// Says stop to every clone of its [`Stop`].
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Waits for the word.
    pub async fn wait(&mut self) {
        // An error means the stopper is gone: that is the word as well.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
