//! The wire as a person may want to watch it: every message, as text, in both directions.
//!
//! A trace only looks. It sees what a server said before anything is sanitised and what we sent
//! including arguments, so whoever shows it must sanitise and redact.

use std::sync::Arc;

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From us to the server.
    Out,
    /// From the server to us.
    In,
}

/// Called once per message with its text, from the task that sends or reads; it must be quick.
pub type Trace = Arc<dyn Fn(Direction, &str) + Send + Sync>;
