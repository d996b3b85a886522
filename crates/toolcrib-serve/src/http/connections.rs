//! Accepts connections and drives each until it ends, with a limit on how long a request's head may
//! take and on how many connections there are. HTTP/1 only.
//!
//! What is asked on them is none of its business.

use std::{io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::sleep,
};

use crate::stop::Stop;

/// How long to wait when the system has no room for one more connection.
const PAUSE: Duration = Duration::from_secs(1);

/// How connections are kept.
pub(crate) struct Keeping {
    /// Longest time between the end of one answer, or the beginning, and the end of the next head.
    pub(crate) head: Duration,
    /// Most connections at a time; further ones wait to be accepted.
    pub(crate) most: usize,
}

/// Serves `listener` until the word to stop, then lets every connection finish what it is at.
/// Dropping it drops all connections.
pub(crate) async fn serve(listener: TcpListener, router: Router, keeping: Keeping, stop: Stop) {
    let room = Arc::new(Semaphore::new(keeping.most.clamp(1, Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let mut stopped = stop.clone();
    loop {
        let accepted = async {
            // Acquiring fails only when the semaphore is closed, which nobody does.
            let place = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            biased;
            () = stopped.wait() => break,
            Some(_) = connections.join_next() => continue,
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(error) => {
                    if !is_of_one_connection(&error) {
                        tracing::error!(%error, "no connection can be accepted");
                        sleep(PAUSE).await;
                    }
                    continue;
                }
            },
        };
        // Without it small answers may wait for an acknowledgement; it is no failure.
        let _ = stream.set_nodelay(true);
        let driven = drive(stream, router.clone(), keeping.head, stop.clone());
        connections.spawn(async move {
            driven.await;
            drop(place);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn drive(stream: TcpStream, router: Router, head: Duration, mut stop: Stop) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // How a connection ends badly is its client's matter.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.wait() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// True when only the connection that was about to be accepted failed.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
