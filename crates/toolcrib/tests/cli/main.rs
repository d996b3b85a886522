//! The program against servers that get things wrong: every public fault case of the client side,
//! played by a scripted server, and the hostile inputs it must survive.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod play;
mod negotiation;
mod framing;
mod pagination;
mod capabilities;
mod schema;
mod results;
mod names;
mod jsonrpc;
mod http;
mod auth;
mod process;
mod config;
mod hostile;
mod demo;
mod peer_session;
mod seen;
mod serve_peers;
mod serve_rmcp;
