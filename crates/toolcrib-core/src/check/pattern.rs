//! Which regular expressions can be used. Look-around works, through an engine whose backtracking
//! is bounded; what is too long, nests too deep or grows too large when compiled is not used.

use std::collections::HashMap;

use jsonschema::{FancyRegex, PatternOptions};
use serde_json::json;

use super::external::NeverFetched;

/// Longest pattern tried, in bytes.
const PATTERN_BYTES: usize = 4_096;
/// Deepest nesting of groups tried: engines read them by recursion.
const PATTERN_DEPTH: usize = 50;
/// Largest compiled pattern, in bytes.
const COMPILED_BYTES: usize = 1 << 20;
/// Most steps a backtracking match may take before it counts as undecided.
const BACKTRACKS: usize = 100_000;

/// The settings every validator matches patterns with.
pub(super) fn options() -> PatternOptions<FancyRegex> {
    PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
}

/// Remembers which patterns compile, and how much trying is left. Large patterns take milliseconds
/// each, so a list of nothing else must not be tried to its end.
pub(super) struct Patterns {
    known: HashMap<String, bool>,
    left: usize,
    /// The answer for patterns that are not tried any more.
    otherwise: bool,
}

impl Patterns {
    /// For one schema about to be compiled: what was not tried is not used.
    pub(super) fn for_compiling() -> Self {
        Self { known: HashMap::new(), left: 2_000, otherwise: false }
    }

    /// For looking over a whole list: what was not tried gets its verdict when it is compiled.
    pub(super) fn for_listing() -> Self {
        Self { known: HashMap::new(), left: 4_000, otherwise: true }
    }

    /// True when `pattern` can be used.
    pub(super) fn compiles(&mut self, pattern: &str) -> bool {
        if pattern.len() > PATTERN_BYTES || depth(pattern) > PATTERN_DEPTH {
            return false;
        }
        if let Some(known) = self.known.get(pattern) {
            return *known;
        }
        let Some(left) = self.left.checked_sub(charge(pattern)) else { return self.otherwise };
        self.left = left;
        let compiles = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .with_retriever(NeverFetched)
            .with_pattern_options(options())
            .build(&json!({ "pattern": pattern }))
            .is_ok();
        self.known.insert(pattern.to_owned(), compiles);
        compiles
    }
}

/// What trying a pattern counts for: long ones, counted repetition and Unicode classes are dear.
fn charge(pattern: &str) -> usize {
    1 + pattern.len() / 32 + if pattern.contains('{') { 20 } else { 0 }
}

/// An upper bound on how deep groups and classes nest.
fn depth(pattern: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    for byte in pattern.bytes() {
        match byte {
            b'(' | b'[' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b')' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_patterns_are_told_from_others() {
        let check = |pattern: &str, expect: bool| {
            assert_eq!(Patterns::for_compiling().compiles(pattern), expect, "{pattern}");
        };
        check("^[a-z]+$", true);
        check("^(?=.*\\d)(?=.*[a-z]).{8,}$", true);
        check("^(?<!x)\\p{L}+$", true);
        check("^(a)\\1$", true);
        check("^(?=(a+)+$)(a+)+$", true);
        check("(", false);
        check("[z-a]", false);
        check("^(\\w{1,1000}){1,1000}$", false);
        check(&"(".repeat(4_000), false);
        check(&format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000)), false);
        check(&"a".repeat(5_000), false);
    }
}
