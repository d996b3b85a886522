//! Serves both eras over streamable HTTP on one path.
//!
//! Modern requests are stateless POSTs; legacy ones belong to a session, which also has a standing
//! GET stream. The old HTTP+SSE transport is not served.

mod mirror;
mod sessions;
mod reply;
mod guard;
mod modern;
mod legacy;
mod post;
mod connections;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    http::StatusCode,
    middleware,
    routing::{self, MethodRouter},
};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};
use toolcrib_core::{limits::Limits, version::Era};

use crate::{
    era::EraSupport,
    handler::Handler,
    seal::{StateKeeping, StateKey},
    service::Service,
    stop::{Stop, Stopper},
};
use connections::Keeping;
use sessions::Sessions;

/// How an HTTP endpoint is served.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Which eras are served.
    pub era: EraSupport,
    /// Bounds on what clients send.
    pub limits: Limits,
    /// `Host` values served besides the loopback names and the address itself, without port.
    pub hosts: Vec<String>,
    /// `Origin` values served besides loopback ones, in full (`https://app.example`).
    pub origins: Vec<String>,
    /// Most legacy sessions at a time; of those that nobody is at, the one unused for longest makes
    /// room.
    pub sessions: usize,
    /// Most modern requests and change streams at a time; further ones are answered 503.
    pub running: usize,
    /// Most connections at a time, silent ones included; further ones wait.
    pub connections: usize,
    /// Longest time the head of a request may take to arrive, and so the longest silence between two
    /// requests on one connection, in milliseconds.
    pub head_ms: u64,
    /// How often a silent stream is kept alive with a comment, in milliseconds.
    pub keep_alive_ms: u64,
    /// Longest time a request body may take to arrive, in milliseconds.
    pub body_ms: u64,
    /// How long running requests may still take after the word to stop, in milliseconds.
    pub drain_ms: u64,
    /// How long one request may take, in milliseconds.
    pub request_ms: u64,
    /// How long a legacy client may take to answer a question, in milliseconds.
    pub answer_ms: u64,
    /// What the state that modern clients carry from round to round is sealed with.
    pub state_key: Option<StateKey>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            era: EraSupport::Dual,
            limits: Limits::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            sessions: 1_000,
            running: 10_000,
            connections: 20_000,
            head_ms: 30_000,
            keep_alive_ms: 15_000,
            body_ms: 30_000,
            drain_ms: 2_000,
            request_ms: 3_600_000,
            answer_ms: 600_000,
            state_key: None,
        }
    }
}

/// The endpoint as the parts of this module share it.
pub(crate) struct Endpoint {
    service: Arc<Service>,
    options: HttpOptions,
    sessions: Sessions,
    room: Arc<Semaphore>,
}

/// The endpoint at `/mcp`, to be merged into a router of yours. Every stream ends when `stop` is
/// told; a [`Stopper`] tells it.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_serve::{HttpOptions, Stopper, declare::{Server, Tool}, router};
///
/// let server = Server::builder("s", "1").with(Tool::new("hello", async || "hello")).build()?;
/// let (stopper, stop) = Stopper::new();
/// let app: axum::Router = axum::Router::new()
///     .route("/health", axum::routing::get(async || "ok"))
///     .merge(router(Arc::new(server), HttpOptions::default(), stop));
/// // axum::serve(listener, app).with_graceful_shutdown(…) as usual, and at its end:
/// stopper.stop();
/// # Ok::<(), toolcrib_serve::declare::DeclareError>(())
/// ```
pub fn router(handler: Arc<dyn Handler>, options: HttpOptions, stop: Stop) -> Router {
    let service = Service {
        handler,
        era: options.era,
        limits: options.limits.clone(),
        request: Duration::from_millis(options.request_ms),
        answer: Duration::from_millis(options.answer_ms),
        state_key: Arc::new(StateKeeping::new(options.state_key.clone())),
        stop,
    };
    let endpoint = Arc::new(Endpoint {
        service: Arc::new(service),
        sessions: Sessions::new(options.sessions),
        room: Arc::new(Semaphore::new(options.running.min(Semaphore::MAX_PERMITS))),
        options,
    });
    let mut methods: MethodRouter<Arc<Endpoint>> = routing::post(post::post);
    if endpoint.service.era.serves(Era::Legacy) {
        // Without a word of its own, HEAD would open the stream of a session and close it.
        let head = || async { StatusCode::METHOD_NOT_ALLOWED };
        methods = methods.get(legacy::get).head(head).delete(legacy::delete);
    }
    Router::new()
        .route("/mcp", methods)
        .layer(middleware::from_fn_with_state(Arc::clone(&endpoint), guard::guard))
        .with_state(endpoint)
}

/// The options and the name of an address that was bound on purpose.
fn with_own_name(mut options: HttpOptions, bound: SocketAddr) -> HttpOptions {
    let address = bound.ip();
    if !(address.is_loopback() || address.is_unspecified()) {
        options.hosts.push(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
    }
    options
}

/// Serves `listener` until `shutdown` resolves, then lets running requests end within `drain_ms`
/// and gives each change stream its result.
///
/// # Errors
/// The listener has no address.
pub async fn serve_http(
    listener: TcpListener,
    handler: Arc<dyn Handler>,
    options: HttpOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stopper, stop) = Stopper::new();
    let drain = Duration::from_millis(options.drain_ms);
    let keeping =
        Keeping { head: Duration::from_millis(options.head_ms), most: options.connections };
    let options = with_own_name(options, listener.local_addr()?);
    let router = router(handler, options, stop.clone());
    let mut serving = pin!(connections::serve(listener, router, keeping, stop));
    tokio::select! {
        () = &mut serving => return Ok(()),
        () = shutdown => stopper.stop(),
    }
    // What is still running after that is dropped with its connection.
    let _ = timeout(drain, serving).await;
    Ok(())
}
