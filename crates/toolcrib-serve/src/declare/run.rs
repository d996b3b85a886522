//! Runs a declared server until it is told to stop.

use std::{io, sync::Arc};

use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use super::server::Server;
use crate::{
    http::{HttpOptions, serve_http},
    stdin::stdin,
    stdio::{StdioOptions, serve_stdio},
};

impl Server {
    /// Serves standard input and output until the client closes its side, or SIGINT or SIGTERM.
    ///
    /// # Errors
    /// Reading or writing failed.
    pub async fn stdio(self) -> io::Result<()> {
        let stop = told_to_stop()?;
        serve_stdio(Arc::new(self), stdin(), tokio::io::stdout(), StdioOptions::default(), stop)
            .await
    }

    /// Serves HTTP at `/mcp` until SIGINT or SIGTERM.
    ///
    /// # Errors
    /// Accepting connections failed.
    pub async fn http(self, listener: TcpListener) -> io::Result<()> {
        let stop = told_to_stop()?;
        serve_http(listener, Arc::new(self), HttpOptions::default(), stop).await
    }
}

/// Resolves at SIGINT or SIGTERM.
fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
