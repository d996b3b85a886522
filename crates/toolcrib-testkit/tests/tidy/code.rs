//! What product code may not contain: impurity in a pure room, a second way to run something
//! upstream, globs, silenced lints.

use crate::source::{File, paths};

/// Rooms that only turn values into values.
const PURE_ROOMS: [&str; 2] = ["toolcrib-core", "toolcrib-search"];

/// What reaches outside. Plain data has pure names: addresses are in `core::net`.
const IMPURE: [&str; 14] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::time::SystemTime",
    "std::time::Instant",
    "tokio",
    "rand",
    "getrandom",
    "async",
];

/// I/O, clocks, tasks and randomness in pure rooms.
pub(crate) fn impure(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    let pure = |file: &&File| file.in_src().is_some_and(|(room, _)| PURE_ROOMS.contains(&room));
    for file in files.iter().filter(|file| file.is_rust()).filter(pure) {
        for spelt in paths(&file.product_code()) {
            if let Some(found) = IMPURE.iter().find(|impure| spelt.is_under(impure)) {
                wrong.push(format!("{}:{}: {found}", file.path, spelt.line));
            }
        }
    }
    wrong
}

/// The methods that make a server do or give something, as constants and as sent.
const OPERATIONS: [(&str, &str); 4] = [
    ("TOOLS_CALL", "\"tools/call\""),
    ("RESOURCES_READ", "\"resources/read\""),
    ("PROMPTS_GET", "\"prompts/get\""),
    ("COMPLETE", "\"completion/complete\""),
];

/// The one file of the client side that names those methods.
const NAMES_OPERATIONS: &str = "crates/toolcrib-link/src/operation.rs";

/// The one file that performs an operation, behind policy, checks and receipt.
const CALL_SITE: &str = "crates/toolcrib-engine/src/call.rs";

/// Ways to run something upstream that do not pass the one call site.
pub(crate) fn ways_round(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some((room, _)) = file.in_src() else { continue };
        let code = file.product_code();
        if matches!(room, "toolcrib-link" | "toolcrib-engine") && file.path != NAMES_OPERATIONS {
            let text = file.product_text();
            let last_words: Vec<_> = paths(&code).into_iter().map(|mut p| p.path.pop()).collect();
            for (constant, literal) in OPERATIONS {
                let named = last_words.iter().flatten().any(|word| word == constant);
                if named || text.contains(literal) {
                    wrong.push(format!("{}: names {literal}", file.path));
                }
            }
        }
        // Defining it is the link's; `.perform(` is a use.
        if file.path != CALL_SITE && (code.contains(".perform(") || code.contains("::perform(")) {
            wrong.push(format!("{}: performs an operation", file.path));
        }
    }
    wrong
}

/// Glob imports. Test modules may take all of what they test and a library's prelude.
pub(crate) fn globs(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let is_test = file.path.contains("/tests/");
        let in_product = if is_test { Vec::new() } else { globs_in(&file.product_code()) };
        for glob in globs_in(&file.code()) {
            let (line, taken) = &glob;
            let allowed = taken == "super::*" || taken.ends_with("prelude::*");
            if !allowed || in_product.contains(&glob) {
                wrong.push(format!("{}:{line}: {taken}", file.path));
            }
        }
    }
    wrong
}

fn globs_in(code: &str) -> Vec<(usize, String)> {
    let all = paths(code).into_iter().map(|spelt| (spelt.line, spelt.path.join("::")));
    all.filter(|(_, path)| path.ends_with("::*")).collect()
}

/// Lints silenced for good: `expect` tells when its reason is gone, `allow` never does.
pub(crate) fn silenced_lints(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for (number, line) in file.code().lines().enumerate() {
            let squeezed = line.replace(' ', "");
            if squeezed.contains("[allow(") || squeezed.contains(",allow(") {
                wrong.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&[File]) -> Vec<String>, path: &str, text: &str) -> usize {
        rule(&[File { path: path.to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn impurity_is_found() {
        let check = |text: &str, expect: usize| {
            assert_eq!(found(impure, "crates/toolcrib-core/src/a.rs", text), expect, "{text}");
        };
        check("use std::fs;", 1);
        check("use std::{collections::HashMap, time::{Duration, Instant}};", 1);
        check("let now = std::time::SystemTime::now();", 1);
        check("async fn f() {}", 1);
        check("tokio::spawn(x); rand::random()", 2);
        check("use std::time::Duration; // std::fs\nlet operand = \"std::env\";", 0);
        assert_eq!(found(impure, "crates/toolcrib-link/src/a.rs", "use std::fs;"), 0);
    }

    #[test]
    fn a_way_round_the_call_site_is_found() {
        let check = |path: &str, text: &str, expect: usize| {
            assert_eq!(found(ways_round, path, text), expect, "{path}: {text}");
        };
        check("crates/toolcrib-link/src/a.rs", "send(method::TOOLS_CALL)", 1);
        check("crates/toolcrib-engine/src/a.rs", "send(\"prompts/get\")", 1);
        check("crates/toolcrib-engine/src/a.rs", "use x::{RESOURCES_READ, COMPLETE};", 2);
        check("crates/toolcrib-link/src/operation.rs", "method::TOOLS_CALL", 0);
        check("crates/toolcrib-link/src/a.rs", "#[cfg(test)]\nmod t { f(\"tools/call\"); }", 0);
        check("crates/toolcrib-serve/src/a.rs", "method::TOOLS_CALL", 0);
        check("crates/toolcrib/src/a.rs", "session.perform(x)", 1);
        check("crates/toolcrib/src/a.rs", "Session::perform(&s, x)", 1);
        check("crates/toolcrib-engine/src/call.rs", "session.perform(x)", 0);
        check("crates/toolcrib-link/src/session.rs", "pub async fn perform(&self) {}", 0);
    }

    #[test]
    fn globs_are_found() {
        let check = |text: &str, expect: usize| {
            assert_eq!(found(globs, "crates/x/src/a.rs", text), expect, "{text}");
        };
        check("use crate::*;", 1);
        check("use super::*;", 1);
        check("use a::{b, c::*};", 1);
        check("let x = 2 * y;", 0);
        check("#[cfg(test)]\nmod tests {\n    use super::*;\n}", 0);
        check("#[cfg(test)]\nmod tests {\n    use crate::*;\n}", 1);
    }

    #[test]
    fn silenced_lints_are_found() {
        let check = |text: &str, expect: usize| {
            assert_eq!(found(silenced_lints, "bench/src/a.rs", text), expect, "{text}");
        };
        check(concat!("#[", "allow(dead_code)]"), 1);
        check(concat!("#![", "allow(dead_code, reason = \"x\")]"), 1);
        check("#[cfg_attr(test, allow(dead_code))]", 1);
        check("#[expect(dead_code, reason = \"x\")]", 0);
        check("fn allow(x: u8) {}", 0);
    }
}
