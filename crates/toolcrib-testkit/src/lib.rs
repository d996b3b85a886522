//! What the tests of every room stand on: fault cases played by a scripted server, a fast native
//! server for speed and bombs, and a fake world in which the real program runs.
//!
//! For tests and measurements only. It speaks to loopback and to child processes, never further,
//! and knows nothing of how Toolcrib itself reads a wire. Being for tests, its functions panic with
//! a message where a test could not go on. Modules are listed bottom-up.

pub mod process;
pub mod case;
pub mod traffic;
pub mod fake;
pub mod peers;
pub mod script;
pub mod world;
pub mod dialogue;
