//! The server side over real pipes and sockets, spoken to with raw messages, in both eras. What it
//! answers is held against the published schemas.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;
mod stdio;
mod http;
mod both;
mod conformance;
