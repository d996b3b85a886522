//! Where what servers write is judged: beside the tasks that wait for it, never on them. What is
//! judged, and by what, is the caller's.

/// Judges a value by a server's schema. A hostile one takes seconds to compile and to judge by, so
/// that is kept off the tasks of others.
pub(crate) async fn judge<T: Send + 'static>(judging: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(judging).await {
        Ok(judged) => judged,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going, and with it whoever waits for this.
            Err(_) => std::future::pending().await,
        },
    }
}
