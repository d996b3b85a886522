//! The loops of Toolcrib, and the library to embed: connect to many servers, keep one catalog of
//! what they show, and send checked calls.
//!
//! This is the only room where state changes. The slow loop (one per server: connect, list, follow)
//! publishes immutable snapshots; the fast loop (a call) reads one snapshot and never lists.
//! Modules are listed bottom-up.

pub mod options;
pub mod status;
pub mod memory;
pub mod part;
pub mod snapshot;
mod board;
mod pace;
mod keeper;
pub mod engine;
pub mod call;

pub use call::{CallError, CallOptions, Called};
pub use engine::Engine;
pub use options::{Mode, Options};
pub use part::Part;
pub use snapshot::Snapshot;
pub use status::Status;
