//! HTTP transports: streamable HTTP of both eras, and the older HTTP+SSE.
//!
//! They deliver exchanges. They match no ids, run no handshake and never decide to send a request
//! a second time; nothing is sent to another origin than the configured one.

mod body;
mod client;
mod idle;
mod events;
mod peer;
mod deliver;
mod stream;
mod streamable;
mod old_sse;

pub use client::SetupError;
pub use old_sse::{OldSse, OpenError};
pub use streamable::Streamable;
