//! How grave a log message is, by the words of the protocol (RFC 5424).

use serde::{Deserialize, Serialize};

/// The gravity of a log message, growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For finding faults.
    Debug,
    /// General information.
    Info,
    /// Normal, but significant.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
    /// A part does not work.
    Critical,
    /// To be acted upon at once.
    Alert,
    /// Nothing works.
    Emergency,
}
