//! The one set of stable string codes: JSON-RPC error data, `--json`, exit codes and receipts all
//! speak these, so that a script, a log and a gateway client name a failure alike.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a request came to, as a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Done.
    Ok,
    /// The tool ran and reported an error (`isError`).
    ToolError,
    /// The command line or a name in it cannot be understood.
    Usage,
    /// A configuration file is missing, malformed or not trusted.
    Config,
    /// Nothing in the catalog has this name.
    UnknownName,
    /// Several servers have this short name.
    AmbiguousName,
    /// The arguments do not fit the tool's input schema; nothing was sent.
    InvalidArguments,
    /// The result does not fit the tool's output schema (strict mode).
    InvalidResult,
    /// The server cannot be reached, started or understood.
    Unreachable,
    /// The server asks for authorization.
    NeedsAuth,
    /// No answer in time.
    Timeout,
    /// The request was cancelled.
    Cancelled,
    /// The item exists but is not to be used (its finding says why).
    Refused,
    /// The server answered with a JSON-RPC error.
    ServerError,
    /// The server asks its client for something this client does not offer.
    InputRequired,
    /// Findings under `--strict`.
    Findings,
    /// A fault of ours.
    Internal,
}

impl Code {
    /// Every code, in the order of the documentation.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::ToolError,
        Self::Usage,
        Self::Config,
        Self::UnknownName,
        Self::AmbiguousName,
        Self::InvalidArguments,
        Self::InvalidResult,
        Self::Unreachable,
        Self::NeedsAuth,
        Self::Timeout,
        Self::Cancelled,
        Self::Refused,
        Self::ServerError,
        Self::InputRequired,
        Self::Findings,
        Self::Internal,
    ];

    /// The code's string.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool-error",
            Self::Usage => "usage",
            Self::Config => "config",
            Self::UnknownName => "unknown-name",
            Self::AmbiguousName => "ambiguous-name",
            Self::InvalidArguments => "invalid-arguments",
            Self::InvalidResult => "invalid-result",
            Self::Unreachable => "unreachable",
            Self::NeedsAuth => "needs-auth",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::ServerError => "server-error",
            Self::InputRequired => "input-required",
            Self::Findings => "findings",
            Self::Internal => "internal",
        }
    }

    /// The process exit code for it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::ToolError => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::UnknownName => 4,
            Self::AmbiguousName => 5,
            Self::InvalidArguments => 6,
            Self::InvalidResult => 7,
            Self::Unreachable => 8,
            Self::NeedsAuth => 9,
            Self::Timeout => 10,
            Self::Refused => 11,
            Self::ServerError => 12,
            Self::InputRequired => 13,
            Self::Findings => 14,
            Self::Internal => 70,
            Self::Cancelled => 130,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_and_exit_codes_are_distinct_and_serialise_alike() {
        let strings: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let exits: HashSet<_> = Code::ALL.iter().map(|code| code.exit_code()).collect();
        assert_eq!((strings.len(), exits.len()), (Code::ALL.len(), Code::ALL.len()));
        for code in Code::ALL {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{code}\""));
        }
    }
}
