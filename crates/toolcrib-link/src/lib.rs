//! Client side of the MCP wire: transports, handshake, lists, calls and change.
//!
//! Modules are listed bottom-up: a module uses only those above it. Nothing here judges what a
//! server shows; it is read leniently and handed up raw.

pub mod channel;
pub mod connect;
pub mod follow;
mod handshake;
pub mod http;
mod mux;
pub mod operation;
mod pending;
pub mod process;
pub mod session;
pub mod stderr;
pub mod stdio;
pub mod trace;
mod tree;
pub mod walk;
pub mod host;
mod wire;

pub use connect::{ConnectError, Connecting, connect};
pub use follow::{Follower, Following};
pub use handshake::HandshakeError;
pub use host::Host;
pub use mux::{Changes, ServerEvent};
pub use operation::{Operation, Performing, Resumed};
pub use session::{Answer, RequestError, Session};
pub use walk::{Offer, Walked};
