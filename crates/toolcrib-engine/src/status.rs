//! How a server stands.

use std::time::SystemTime;

use serde::Serialize;
use toolcrib_core::code::Code;

/// How a server stands, as shown to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Status {
    /// Switched off in the configuration.
    Disabled,
    /// Being connected or listed for the first time.
    Starting,
    /// Connected, every offered list read to its end.
    Ready,
    /// Connected, but a list could not be read to its end.
    Degraded {
        /// What is missing.
        why: String,
    },
    /// The server asks for authorization.
    NeedsAuth {
        /// What it said.
        why: String,
    },
    /// Not connected; tried again later unless `retry` is absent.
    Failed {
        /// The stable code.
        code: Code,
        /// What went wrong.
        why: String,
        /// When it is tried again.
        #[serde(skip)]
        retry: Option<SystemTime>,
    },
    /// Closed by us.
    Stopped,
}

impl Status {
    /// One word for a table.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded { .. } => "degraded",
            Self::NeedsAuth { .. } => "needs-auth",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// The state in a sentence, after the server's name.
    pub const fn phrase(&self) -> &'static str {
        match self {
            Self::Disabled => "is disabled",
            Self::Starting => "is starting",
            Self::Ready => "is ready",
            Self::Degraded { .. } => "is degraded",
            Self::NeedsAuth { .. } => "needs authorization",
            Self::Failed { .. } => "has failed",
            Self::Stopped => "is stopped",
        }
    }

    /// The explanation, where there is one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Degraded { why } | Self::NeedsAuth { why } | Self::Failed { why, .. } => {
                Some(why)
            }
            Self::Disabled | Self::Starting | Self::Ready | Self::Stopped => None,
        }
    }

    /// True when waiting longer brings nothing new by itself.
    pub const fn is_settled(&self) -> bool {
        !matches!(self, Self::Starting)
    }
}
