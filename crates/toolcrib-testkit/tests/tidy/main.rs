//! Tidy: the invariants of the house that no compiler checks, held against the repository's own
//! files. Every rule finds breaches in a list of files, so its own tests can show it failing on a
//! few made-up lines; here each is run on the real ones. Nothing is changed or fetched.

mod source;
mod floors;
mod order;
mod code;
mod text;

use source::{file, read_repository};

fn none(breaches: &[String], what_to_do: &str) {
    assert!(breaches.is_empty(), "\n  {}\n=> {what_to_do}\n", breaches.join("\n  "));
}

#[test]
fn rooms_use_only_floors_below() {
    none(
        &floors::wrong_edges(&read_repository()),
        "imports go down only and rooms of one floor do not know each other: move the code to the \
         floor where both can reach it; a new room or edge goes into floors.rs, with its reason in \
         ARCHITECTURE.md",
    );
}

#[test]
fn rooms_take_the_workspace_lints() {
    none(
        &floors::without_lints(&read_repository()),
        "add to the manifest: [lints] workspace = true",
    );
}

#[test]
fn modules_use_only_modules_above() {
    none(
        &order::upward_uses(&read_repository()),
        "modules are listed bottom-up: list the used module above its user, or move what both need \
         into a module above them",
    );
}

#[test]
fn pure_rooms_are_pure() {
    none(
        &code::impure(&read_repository()),
        "this room takes values and returns values: let the caller read the clock, the environment \
         or the disk and pass in what it found (addresses as data are in core::net)",
    );
}

#[test]
fn one_call_site_performs_operations() {
    none(
        &code::ways_round(&read_repository()),
        "calls, reads, prompts and completions go through toolcrib-engine's call.rs alone, so that \
         none misses policy, checks and receipt; their method names are in toolcrib-link's \
         operation.rs alone: ask it, or a judgement in toolcrib-core, instead of naming one",
    );
}

#[test]
fn nothing_is_imported_by_glob() {
    none(
        &code::globs(&read_repository()),
        "name what is imported; only tests may take super::* and a prelude",
    );
}

#[test]
fn no_lint_is_silenced_for_good() {
    none(
        &code::silenced_lints(&read_repository()),
        "use #[expect(lint, reason = \"…\")]: it tells when it is no longer needed",
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    none(
        &text::without_opening(&read_repository()),
        "open the file with //!: what it is for, and what it never does",
    );
}

#[test]
fn no_file_is_too_long() {
    none(&text::too_long(&read_repository()), "split the file: one noun each");
}

#[test]
fn promises_are_not_kept_in_files() {
    none(&text::promises(&read_repository()), "do it now, or open an issue");
}

#[test]
fn no_place_of_one_machine_is_named() {
    none(
        &text::places(&read_repository()),
        "leave machine paths and package registries out: clients know their own",
    );
}

#[test]
fn what_the_readme_shows_is_run() {
    none(
        &text::shown_unrun(&read_repository()),
        "show an example from an `examples` folder, whole and to the letter: a test runs it there",
    );
}

#[test]
fn the_lock_file_stays_small() {
    none(
        &text::too_many_packages(file(&read_repository(), "Cargo.lock")),
        "drop a dependency or one of its features; `cargo tree -i NAME` says who brings a package in",
    );
}

#[test]
fn the_licences_are_there() {
    none(
        &text::missing_licences(&read_repository()),
        "both licence texts belong in the root, as the manifests name them",
    );
}
