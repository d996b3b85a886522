//! Modules are listed bottom-up, and a module uses only those above it in its list.

use std::collections::BTreeMap;

use crate::source::{File, declared_modules, paths};

/// Each list of modules, by the crate and the module that holds it.
type Lists<'a> = BTreeMap<(&'a str, Vec<String>), Vec<String>>;

/// Uses of a module that is listed below the user.
pub(crate) fn upward_uses(files: &[File]) -> Vec<String> {
    let lists = lists(files);
    let mut wrong = Vec::new();
    for (room, here, file) in modules(files) {
        for spelt in paths(&file.product_code()) {
            let Some(there) = resolve(&here, &spelt.path) else { continue };
            if let Some((user, used)) = breaks_order(&lists, room, &here, &there) {
                wrong.push(format!("{}:{}: {user} uses {used}", file.path, spelt.line));
            } else if lists.contains_key(&(room, Vec::new())) && is_root_item(&spelt.path) {
                let name = &spelt.path[1];
                wrong.push(format!(
                    "{}:{}: name {name} by its module, not by the crate's root",
                    file.path, spelt.line
                ));
            }
        }
    }
    wrong.dedup();
    wrong
}

fn lists(files: &[File]) -> Lists<'_> {
    let mut lists = Lists::new();
    for (room, here, file) in modules(files) {
        // A crate with both a library and a program: each lists its own modules.
        lists.entry((room, here)).or_default().extend(declared_modules(&file.product_code()));
    }
    lists
}

/// The files that are modules: crate, place in it, file. Programs in `bin/` are on their own.
fn modules(files: &[File]) -> impl Iterator<Item = (&str, Vec<String>, &File)> {
    files.iter().filter_map(|file| {
        let (room, inside) = file.in_src()?;
        let inside = inside.strip_suffix(".rs").filter(|inside| !inside.starts_with("bin/"))?;
        let mut here: Vec<String> = inside.split('/').map(str::to_owned).collect();
        here.pop_if(|last| matches!(last.as_str(), "lib" | "main" | "mod"));
        Some((room, here, file))
    })
}

/// The place a path names, if it goes by `crate`, `self` or `super`.
fn resolve(here: &[String], path: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (base, rest) = match path[0].as_str() {
        "crate" => (&here[..0], &path[1..]),
        "self" => (here, &path[1..]),
        "super" => (&here[..here.len().checked_sub(ups)?], &path[ups..]),
        _ => return None,
    };
    Some([base, rest].concat())
}

/// Where the two places part, both below one list: is the used one listed later than the user?
fn breaks_order<'a>(
    lists: &Lists<'_>,
    room: &str,
    here: &'a [String],
    there: &'a [String],
) -> Option<(&'a str, &'a str)> {
    let shared = here.iter().zip(there).take_while(|(a, b)| a == b).count();
    let (user, used) = (here.get(shared)?, there.get(shared)?);
    let list = lists.get(&(room, here[..shared].to_vec()))?;
    let place = |module: &String| list.iter().position(|listed| listed == module);
    (place(used)? > place(user)?).then_some((user, used))
}

/// `crate::Name`: a type taken from the root's exports, which would hide the module it comes from.
fn is_root_item(path: &[String]) -> bool {
    path[0] == "crate" && path.get(1).is_some_and(|name| name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expect: &[&str]) {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("crates/x/src/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<File> = files.iter().map(file).collect();
        assert_eq!(upward_uses(&files), expect);
    }

    #[test]
    fn a_use_of_a_later_module_is_found() {
        let lib = ("lib.rs", "pub mod a;\nmod b;");
        check(&[lib, ("b.rs", "use crate::a::A;")], &[]);
        check(&[lib, ("a.rs", "use crate::b::B;")], &["crates/x/src/a.rs:1: a uses b"]);
        check(&[lib, ("a.rs", "use crate::{b::B};")], &["crates/x/src/a.rs:1: a uses b"]);
        check(&[lib, ("a.rs", "\nfn f() { super::b::g() }")], &["crates/x/src/a.rs:2: a uses b"]);
        check(&[lib, ("a/mod.rs", "use crate::b::B;")], &["crates/x/src/a/mod.rs:1: a uses b"]);
        check(&[lib, ("a/c.rs", "use crate::b::B;")], &["crates/x/src/a/c.rs:1: a uses b"]);
        check(&[lib, ("a.rs", "// crate::b\n#[cfg(test)]\nmod t { use crate::b; }")], &[]);
    }

    #[test]
    fn order_holds_inside_a_module_too() {
        let lists = [("main.rs", "mod a;"), ("a/mod.rs", "mod one;\nmod two;")];
        let with = |path, text| [lists[0], lists[1], (path, text)];
        check(&with("a/two.rs", "use super::one::X;"), &[]);
        check(&with("a/one.rs", "use super::two::X;"), &["crates/x/src/a/one.rs:1: one uses two"]);
        check(&with("a/one.rs", "use crate::a::two;"), &["crates/x/src/a/one.rs:1: one uses two"]);
    }

    #[test]
    fn the_root_is_no_way_round() {
        let lib = ("lib.rs", "mod a;\nmod b;\npub use b::B;");
        let found = "crates/x/src/a.rs:1: name B by its module, not by the crate's root";
        check(&[lib, ("a.rs", "use crate::B;")], &[found]);
    }
}
