//! What holds for files as text: openings, sizes, words that must not be there, the lock file's
//! length, the licences. The forbidden words are put together here so that this file passes too.

use crate::source::File;

/// Longer files hold more than one noun.
const MAX_LINES: usize = 800;

/// Few dependencies: each is someone else's code that we answer for.
const MAX_PACKAGES: usize = 450;

/// Promises that belong in an issue.
const PROMISES: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Places of one machine, and package registries: clients know their own.
const PLACES: [&str; 8] = [
    concat!("/ro", "ot/"),
    concat!("/work", "/main"),
    concat!("/work", "/shared"),
    concat!("..", "/shared"),
    concat!("npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("crates", ".io"),
];

/// Rust files that do not say what they are for.
pub(crate) fn without_opening(files: &[File]) -> Vec<String> {
    let opens = |file: &&File| file.text.starts_with("//! ");
    files.iter().filter(|f| f.is_rust()).filter(|f| !opens(f)).map(|f| f.path.clone()).collect()
}

/// Rust files that are too long.
pub(crate) fn too_long(files: &[File]) -> Vec<String> {
    let lines = |file: &File| file.text.lines().count();
    let long = files.iter().filter(|file| file.is_rust() && lines(file) > MAX_LINES);
    long.map(|file| format!("{}: {} lines", file.path, lines(file))).collect()
}

/// Promises in place of work.
pub(crate) fn promises(files: &[File]) -> Vec<String> {
    lines_with(files, &PROMISES)
}

/// Names of places that mean nothing to a stranger's clone.
pub(crate) fn places(files: &[File]) -> Vec<String> {
    lines_with(files, &PLACES)
}

/// Rust code in the README that is no example, whole and to the letter, with its opening or without.
pub(crate) fn shown_unrun(files: &[File]) -> Vec<String> {
    let body = |file: &File| {
        let code = file.text.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
        [code.collect::<Vec<_>>().join("\n"), file.text.trim_end().to_owned()]
    };
    let examples: Vec<_> =
        files.iter().filter(|file| file.path.contains("/examples/")).flat_map(body).collect();
    let readme = files.iter().filter(|file| file.path == "README.md");
    let blocks = readme.flat_map(|file| file.text.split("```rust\n").skip(1));
    let shown = blocks.map(|block| block.split("\n```").next().unwrap_or_default());
    shown
        .filter(|code| !examples.iter().any(|example| example == code))
        .map(|code| format!("README.md: {}", code.lines().next().unwrap_or_default()))
        .collect()
}

/// Lock files are written by their tools, and hold hashes in which any word may occur.
fn is_lock(file: &File) -> bool {
    file.path.ends_with(".lock") || file.name() == "package-lock.json"
}

fn lines_with(files: &[File], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !is_lock(file)) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                found.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    found
}

/// Too many packages in the lock file.
pub(crate) fn too_many_packages(lock: &File) -> Vec<String> {
    let packages = lock.text.lines().filter(|line| *line == "[[package]]").count();
    let over = packages > MAX_PACKAGES;
    over.then(|| format!("{}: {packages} packages, over {MAX_PACKAGES}", lock.path))
        .into_iter()
        .collect()
}

/// Licence files that are missing or not what their name says.
pub(crate) fn missing_licences(files: &[File]) -> Vec<String> {
    let expected = [
        ("LICENSE-MIT", "Permission is hereby granted, free of charge"),
        ("LICENSE-APACHE", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"),
    ];
    let holds = |path: &str, words: &str| {
        files.iter().any(|file| file.path == path && file.text.contains(words))
    };
    let missing = expected.iter().filter(|(path, words)| !holds(path, words));
    missing.map(|(path, _)| (*path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> Vec<File> {
        vec![File { path: path.to_owned(), text: text.to_owned() }]
    }

    #[test]
    fn a_file_without_opening_is_found() {
        assert_eq!(without_opening(&one("a.rs", "//! What it is for.\n")).len(), 0);
        assert_eq!(without_opening(&one("a.rs", "use std::fmt;\n")).len(), 1);
        assert_eq!(without_opening(&one("a.py", "import os\n")).len(), 0);
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(too_long(&one("a.rs", &"x\n".repeat(MAX_LINES))).len(), 0);
        assert_eq!(too_long(&one("a.rs", &"x\n".repeat(MAX_LINES + 1))).len(), 1);
    }

    #[test]
    fn forbidden_words_are_found() {
        for word in PROMISES {
            assert_eq!(promises(&one("a.md", word)), [format!("a.md:1: {word}")]);
            assert_eq!(promises(&one("peers/npm/package-lock.json", word)).len(), 0);
        }
        for word in PLACES {
            assert_eq!(
                places(&one("a.toml", &format!("\nx{word}"))),
                [format!("a.toml:2: {word}")]
            );
            assert_eq!(places(&one("Cargo.lock", word)).len(), 0);
        }
    }

    #[test]
    fn code_that_is_no_example_is_found() {
        let shown = |code: &str| {
            let mut files = one("README.md", &format!("A\n```rust\n{code}\n```\nB"));
            files.extend(one("crates/a/examples/b.rs", "//! What.\n//! More.\n\nfn main() {}\n"));
            shown_unrun(&files).len()
        };
        assert_eq!(shown("fn main() {}"), 0);
        assert_eq!(shown("fn main() { }"), 1);
    }

    #[test]
    fn a_heavy_lock_file_is_found() {
        let lock = |packages: usize| one("Cargo.lock", &"[[package]]\n".repeat(packages)).remove(0);
        assert_eq!(too_many_packages(&lock(MAX_PACKAGES)).len(), 0);
        assert_eq!(too_many_packages(&lock(MAX_PACKAGES + 1)).len(), 1);
    }

    #[test]
    fn a_missing_licence_is_found() {
        assert_eq!(missing_licences(&[]).len(), 2);
        assert_eq!(missing_licences(&one("LICENSE-MIT", "Some other text")).len(), 2);
    }
}
