//! Server side of the MCP wire: stdio and HTTP, both eras on one endpoint, behind one trait.
//!
//! **To write a server, begin at [`declare`]**: functions with typed arguments become tools. What
//! stands beside it here is the layer below, for servers whose items are not known when they are
//! built, such as a gateway.
//!
//! A [`Handler`] takes a request and gives raw JSON back; everything that belongs to the protocol
//! and not to one server's content is done here: eras, versions, `_meta`, capability gates, change
//! streams, sessions, headers and status codes. Nothing here knows a tool.
//!
//! Modules are listed bottom-up: a module uses only those above it.

mod stop;
mod lock;
mod splice;
mod change;
mod about;
mod era;
mod fault;
mod seal;
mod ask;
mod peer;
mod handler;
mod envelope;
mod session;
mod service;
mod exchange;
mod listening;
mod stdin;
mod stdio;
mod http;
pub mod declare;

pub use about::{CacheScope, ServerAbout};
pub use ask::AskError;
pub use change::{Change, Changes, ListKind};
pub use era::{EraSupport, UnknownEra};
pub use fault::{invalid_params, method_not_found, unknown_resource};
pub use handler::{Answer, Handler, Reply, Request};
pub use http::{HttpOptions, router, serve_http};
pub use peer::Peer;
pub use seal::StateKey;
pub use service::complete;
pub use stdin::stdin;
pub use stdio::{StdioOptions, serve_stdio};
pub use stop::{Stop, Stopper};
pub use toolcrib_core::level::LogLevel;
