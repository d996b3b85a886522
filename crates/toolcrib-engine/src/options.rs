//! How an engine works.

use std::{path::PathBuf, sync::Arc};

use toolcrib_core::{level::LogLevel, limits::Limits};
use toolcrib_link::trace::Trace;

use crate::handlers::Handlers;

/// How long an engine is meant to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// List once and stay quiet: no change streams, no reconnects.
    #[default]
    Once,
    /// Follow changes, reconnect, refresh.
    Live,
}

/// How results are held against their output schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultCheck {
    /// A misfit is reported beside the result.
    #[default]
    Warn,
    /// A misfit is an error.
    Strict,
    /// Results are not checked.
    Off,
}

/// Makes the wire trace of a server, given its name.
pub type TraceFor = Arc<dyn Fn(&str) -> Trace + Send + Sync>;

/// How an engine works.
#[derive(Clone, Default)]
pub struct Options {
    /// How long it is meant to live.
    pub mode: Mode,
    /// Bounds to keep.
    pub limits: Limits,
    /// Where eras are remembered between runs; nowhere when absent.
    pub memory: Option<PathBuf>,
    /// Folder for the standard error of child processes, a file per server.
    pub logs: Option<PathBuf>,
    /// Sees the wire.
    pub trace: Option<TraceFor>,
    /// Probe every server's era afresh, whatever is remembered.
    pub probe_afresh: bool,
    /// Skip the checks of definitions (only for measuring the reading alone).
    pub checks: Checks,
    /// How results are held against their output schema.
    pub results: ResultCheck,
    /// List again before every call.
    pub strict_freshness: bool,
    /// What this client does for servers that ask it for something; nothing when there is none.
    pub handlers: Handlers,
    /// The least level of the log messages that servers are asked for; none are asked for when
    /// absent. They come as [`Event::Log`](crate::Event::Log).
    pub log_level: Option<LogLevel>,
}

/// Whether definitions are checked when they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checks {
    /// Schemas and names are checked; what is odd becomes a finding.
    #[default]
    On,
    /// They are taken as they are.
    Off,
}
