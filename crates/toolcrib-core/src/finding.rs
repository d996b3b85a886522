//! A finding: one observation of a check about what a server shows.
//!
//! Findings never decide anything by themselves; admission and callers do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// How much weight a finding has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Worth knowing; nothing to do.
    Info,
    /// Something is off and was worked around.
    Soft,
    /// The item, list or connection is not to be used as it is.
    Hard,
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable id of the rule, `area/name`.
    pub rule: Cow<'static, str>,
    /// Weight.
    pub tier: Tier,
    /// What it is about: `tool read_file`, `tools/list`, or empty for the server as a whole.
    pub subject: String,
    /// JSON Pointer (RFC 6901) inside the subject, empty for the whole of it.
    pub path: String,
    /// One sentence for a person, outside text already sanitised.
    pub message: String,
}

impl Finding {
    /// A finding about the whole of `subject`.
    pub fn new(
        rule: &'static str,
        tier: Tier,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule: Cow::Borrowed(rule),
            tier,
            subject: subject.into(),
            path: String::new(),
            message: message.into(),
        }
    }

    /// The same finding at a JSON Pointer inside its subject.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }
}
