//! Words and judgements of Toolcrib: pure functions over values.
//!
//! Nothing here reads a clock, an environment, a disk or a socket, starts a task or draws a random
//! number; `now`, ids and text come in as arguments. Modules are listed bottom-up: a module uses
//! only those above it.

pub mod limits;
pub mod sanitise;
pub mod secret;
pub mod raw;
pub mod code;
pub mod level;
pub mod finding;
pub mod version;
pub mod rpc;
pub mod target;
pub mod surface;
pub mod catalog;
pub mod template;
pub mod check;
pub mod ask;
