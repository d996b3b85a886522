//! What is wrong with arguments, in words that let a model mend the call.

use std::fmt;

use jsonschema::ValidationError;

use crate::sanitise;

/// Most faults that are spelled out.
const SPELLED_OUT: usize = 8;

/// Why arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentErrors {
    /// One line each.
    pub lines: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

impl ArgumentErrors {
    pub(super) fn one(line: String) -> Self {
        Self { lines: vec![line], more: 0 }
    }
}

impl fmt::Display for ArgumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))?;
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

pub(super) fn describe<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> ArgumentErrors {
    let mut all: Vec<_> = errors
        .take(100)
        .map(|error| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "(root)".to_owned() } else { sanitise::line(&path, 120) };
            format!("{place}: {}", sanitise::line(&error.to_string(), 300))
        })
        .collect();
    let more = all.len().saturating_sub(SPELLED_OUT);
    all.truncate(SPELLED_OUT);
    ArgumentErrors { lines: all, more }
}
