//! Fault cases from public reports, as data: what is wrong with the peer and what is right to do.
//!
//! Reads `cases/`; plays nothing (that is `fake`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

/// One fault case.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// Its id, `C02`.
    pub id: String,
    /// The public thread it was learnt from.
    pub source: String,
    /// Its kind, `negotiation`.
    pub kind: String,
    /// What is wrong.
    pub fault: String,
    /// The input: `scenario` (what the fake server plays), or settings of its own.
    pub input: Value,
    /// What must be observable.
    pub right: String,
}

impl Case {
    /// All cases, in their order.
    pub fn all() -> Vec<Self> {
        let path = folder().join("cases.jsonl");
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line}")))
            .collect()
    }

    /// The case of this id.
    ///
    /// # Panics
    /// There is none.
    pub fn load(id: &str) -> Self {
        Self::all().into_iter().find(|case| case.id == id).unwrap_or_else(|| panic!("no case {id}"))
    }
}

/// The scenario file of a case.
///
/// # Panics
/// The case has none (it is about configuration only).
pub fn scenario(id: &str) -> PathBuf {
    let path = folder().join("scenarios").join(format!("{id}.json"));
    assert!(path.is_file(), "case {id} has no scenario");
    path
}

/// The program that plays scenarios.
pub(crate) fn player() -> PathBuf {
    folder().join("fakeserver.py")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_read_and_its_scenario_is_there() {
        let cases = Case::all();
        assert_eq!(cases.len(), 75);
        for case in &cases {
            if case.input.get("scenario_file").is_some() {
                assert!(scenario(&case.id).is_file());
            }
        }
        assert_eq!(Case::load("C02").kind, "negotiation");
    }
}
