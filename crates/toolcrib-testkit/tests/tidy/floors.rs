//! Which room may use which: the floors of the house, read from the manifests.

use crate::source::File;

/// What each room may depend on. A room that is not here has no floor yet: put it in, with a reason
/// in ARCHITECTURE.md. Development dependencies are free, `bench` is beside the house.
const FLOORS: [(&str, &[&str]); 6] = [
    ("toolcrib-core", &[]),
    ("toolcrib-link", &["toolcrib-core"]),
    ("toolcrib-serve", &["toolcrib-core"]),
    ("toolcrib-engine", &["toolcrib-core", "toolcrib-link"]),
    ("toolcrib", &["toolcrib-core", "toolcrib-link", "toolcrib-serve", "toolcrib-engine"]),
    ("toolcrib-testkit", &["toolcrib-core", "toolcrib-link", "toolcrib-serve", "toolcrib-engine"]),
];

/// Edges between rooms that go up or sideways.
pub(crate) fn wrong_edges(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (room, manifest) in manifests(files) {
        let Some((_, allowed)) = FLOORS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: the room {room} has no floor", manifest.path));
            continue;
        };
        for used in dependencies(&manifest.text) {
            if used.starts_with("toolcrib") && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: {room} may not use {used}", manifest.path));
            }
        }
    }
    wrong
}

/// Rooms that do not take the workspace's lints.
pub(crate) fn without_lints(files: &[File]) -> Vec<String> {
    let takes_lints = |text: &str| text.contains("[lints]\nworkspace = true");
    let members = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    members.filter(|file| !takes_lints(&file.text)).map(|file| file.path.clone()).collect()
}

fn manifests(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    files.iter().filter_map(|file| {
        let room = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some((room, file))
    })
}

/// What a manifest builds with, per target or not; development dependencies are left out.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_list = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            in_list = is_dependency_list(section);
            if let Some((list, name)) = section.rsplit_once('.')
                && is_dependency_list(list)
            {
                names.push(name.to_owned());
            }
        } else if in_list && !line.is_empty() && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next().map(str::to_owned));
        }
    }
    names
}

fn is_dependency_list(section: &str) -> bool {
    let list = section.rsplit('.').next().unwrap_or(section);
    matches!(list, "dependencies" | "build-dependencies")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(room: &str, text: &str) -> Vec<File> {
        vec![File { path: format!("crates/{room}/Cargo.toml"), text: text.to_owned() }]
    }

    #[test]
    fn an_edge_up_or_sideways_is_found() {
        let check = |room: &str, text: &str, wrong: usize| {
            assert_eq!(wrong_edges(&manifest(room, text)).len(), wrong, "{room}: {text}");
        };
        check("toolcrib-core", "[dependencies]\nserde.workspace = true\n", 0);
        check("toolcrib-core", "[dependencies]\ntoolcrib-link.workspace = true\n", 1);
        check("toolcrib-link", "[dependencies]\ntoolcrib-core = { workspace = true }\n", 0);
        check("toolcrib-link", "[dependencies.toolcrib-serve]\nworkspace = true\n", 1);
        check("toolcrib-serve", "[target.'cfg(unix)'.dependencies]\ntoolcrib-link = \"1\"\n", 1);
        check("toolcrib-engine", "[build-dependencies]\ntoolcrib-serve.workspace = true\n", 1);
        check("toolcrib", "[dependencies]\ntoolcrib-testkit.workspace = true\n", 1);
        check("toolcrib", "[dev-dependencies]\ntoolcrib-testkit.workspace = true\n", 0);
        check("toolcrib-utils", "[dependencies]\n", 1);
    }

    #[test]
    fn a_room_without_the_lints_is_found() {
        assert_eq!(without_lints(&manifest("x", "[lints]\nworkspace = true\n")).len(), 0);
        assert_eq!(without_lints(&manifest("x", "[package]\n")).len(), 1);
    }
}
