//! Tests of the link against real processes and real sockets on loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod child;
mod pipe;
mod process_end;
mod spawn;
mod web;
mod http;
mod old_sse;
mod tls;
