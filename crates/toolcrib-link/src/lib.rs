//! Client side of the MCP wire: transports, handshake, lists, calls and change.
//!
//! Modules are listed bottom-up: a module uses only those above it. Nothing here judges what a
//! server shows; it is read leniently and handed up raw.

pub mod trace;
pub mod jitter;
pub mod channel;
pub mod stderr;
mod tree;
pub mod process;
pub mod stdio;
pub mod http;
pub mod host;
mod wire;
mod pending;
mod patience;
mod mux;
mod verdict;
mod handshake;
pub mod session;
pub mod walk;
pub mod operation;
pub mod listen;
pub mod follow;
pub mod watch;
pub mod connect;

pub use connect::{ConnectError, Connecting, connect};
pub use follow::{Follower, Following};
pub use host::Host;
pub use mux::{Changes, ServerEvent};
pub use operation::{Operation, Performing, Resumed};
pub use session::{Answer, RequestError, Session};
pub use verdict::{HandshakeError, NoAnswer};
pub use walk::{Offer, Walked};
pub use watch::{WatchError, Watched};
