//! What is wrong with arguments (or a structured result), in words that let a caller mend them:
//! where, what was expected, what came instead, and what was probably meant.

use std::fmt;

use serde::Serialize;

/// Most faults that are spelled out.
const SPELLED_OUT: usize = 8;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ArgumentError {
    /// JSON Pointer to the value, or to where a missing one belongs; empty for the whole.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
    /// What is expected there; may be empty.
    pub expected: String,
    /// What was given; empty where nothing was.
    pub got: String,
    /// How to mend it, where that can be guessed.
    pub hint: String,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, problem, expected, got, hint } = self;
        match path.as_str() {
            "" => write!(f, "the whole {problem}")?,
            path => write!(f, "{path} {problem}")?,
        }
        match (expected.as_str(), got.as_str()) {
            ("", "") => {}
            ("", got) => write!(f, ": got {got}")?,
            (expected, "") => write!(f, ": expected {expected}")?,
            (expected, got) => write!(f, ": expected {expected}, got {got}")?,
        }
        if !hint.is_empty() {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// Why arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentErrors {
    /// The faults, the first of them.
    pub errors: Vec<ArgumentError>,
    /// How many more there are.
    pub more: usize,
}

impl ArgumentErrors {
    /// A fault of the whole.
    pub(super) fn whole(
        problem: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        hint: &str,
    ) -> Self {
        let error = ArgumentError {
            path: String::new(),
            problem: problem.into(),
            expected: expected.into(),
            got: got.into(),
            hint: hint.to_owned(),
        };
        Self { errors: vec![error], more: 0 }
    }

    /// One fault at a place.
    pub(crate) fn at(path: String, problem: &str, expected: &str, got: impl Into<String>) -> Self {
        let (problem, expected, got) = (problem.to_owned(), expected.to_owned(), got.into());
        let error = ArgumentError { path, problem, expected, got, hint: String::new() };
        Self { errors: vec![error], more: 0 }
    }

    /// The first of many.
    pub(super) fn of(mut errors: Vec<ArgumentError>) -> Self {
        let more = errors.len().saturating_sub(SPELLED_OUT);
        errors.truncate(SPELLED_OUT);
        Self { errors, more }
    }
}

impl fmt::Display for ArgumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.errors.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}
