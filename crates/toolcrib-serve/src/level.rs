//! Severity of log messages, least first.

use serde::{Deserialize, Serialize};

/// How severe a log message is (RFC 5424 names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever builds the server.
    Debug,
    /// Normal course.
    Info,
    /// Normal but worth a note.
    Notice,
    /// May become an error.
    Warning,
    /// Something failed.
    Error,
    /// A part is out of order.
    Critical,
    /// To be acted on at once.
    Alert,
    /// Nothing works.
    Emergency,
}
