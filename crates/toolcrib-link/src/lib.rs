//! Client side of the MCP wire: transports, handshake, lists, calls and change.
//!
//! Modules are listed bottom-up: a module uses only those above it. Nothing here judges what a
//! server shows; it is read leniently and handed up raw.

pub mod channel;
pub mod trace;
pub mod stderr;
mod tree;
pub mod process;
pub mod stdio;
pub mod http;
