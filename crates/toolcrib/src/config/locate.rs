//! Which files make up the configuration, nearest first.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// The variable with a list of files, read in place of the files that would be found.
pub(crate) const CONFIG_VARIABLE: &str = "TOOLCRIB_CONFIG";

/// The files looked for in the working directory, nearest first.
const WORKING_DIR_FILES: [&str; 3] = ["toolcrib.toml", ".mcp.json", ".vscode/mcp.json"];

/// Where a file came from, and so whether it may start commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Named on the command line or in the environment.
    Given,
    /// The user's own.
    User,
    /// Found in the working directory: may be anybody's.
    Found,
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The file.
    pub(crate) path: PathBuf,
    /// Where it came from.
    pub(crate) trust: Trust,
}

/// What the search depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// The files of `--config`.
    pub(crate) given: Vec<PathBuf>,
    /// The value of `TOOLCRIB_CONFIG`.
    pub(crate) variable: Option<OsString>,
    /// The working directory.
    pub(crate) working_dir: PathBuf,
    /// The user's configuration file.
    pub(crate) user_file: Option<PathBuf>,
}

impl Search {
    /// The files to read, nearest first, each once.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let mut seen = HashSet::new();
        let mut candidates = self.all();
        candidates.retain(|candidate| seen.insert(real(&candidate.path)));
        let user = self.user_file.as_deref().map(real);
        for candidate in &mut candidates {
            // In the folder of the user's own file, the file found is that file.
            if candidate.trust == Trust::Found && Some(real(&candidate.path)) == user {
                candidate.trust = Trust::User;
            }
        }
        candidates
    }

    fn all(&self) -> Vec<Candidate> {
        let given = |path: PathBuf| Candidate { path, trust: Trust::Given };
        if !self.given.is_empty() {
            return self.given.iter().cloned().map(given).collect();
        }
        let named: Vec<_> = self
            .variable
            .iter()
            .flat_map(std::env::split_paths)
            .filter(|path| !path.as_os_str().is_empty())
            .map(given)
            .collect();
        if !named.is_empty() {
            return named;
        }
        let found = WORKING_DIR_FILES
            .iter()
            .map(|name| Candidate { path: self.working_dir.join(name), trust: Trust::Found });
        let user = self.user_file.iter().cloned();
        found.chain(user.map(|path| Candidate { path, trust: Trust::User })).collect()
    }
}

/// The file a path leads to; the path itself when there is none.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search() -> Search {
        Search {
            working_dir: "/w".into(),
            user_file: Some("/u/toolcrib.toml".into()),
            ..Search::default()
        }
    }

    fn check(search: &Search, expect: &[(&str, Trust)]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|(path, trust)| Candidate { path: path.into(), trust: *trust })
            .collect();
        assert_eq!(search.candidates(), expect);
    }

    #[test]
    fn the_working_directory_comes_before_the_user() {
        check(
            &search(),
            &[
                ("/w/toolcrib.toml", Trust::Found),
                ("/w/.mcp.json", Trust::Found),
                ("/w/.vscode/mcp.json", Trust::Found),
                ("/u/toolcrib.toml", Trust::User),
            ],
        );
    }

    #[test]
    fn files_that_are_named_are_the_only_ones() {
        let variable = Some("/b.toml::/c.json".into());
        let named = Search { variable, ..search() };
        check(&named, &[("/b.toml", Trust::Given), ("/c.json", Trust::Given)]);
        let given = Search { given: vec!["/a.toml".into(), "/a.toml".into()], ..named };
        check(&given, &[("/a.toml", Trust::Given)]);
    }

    #[test]
    fn the_users_own_file_is_trusted_wherever_one_stands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("toolcrib.toml");
        fs::write(&file, "").unwrap();
        let search = Search {
            working_dir: dir.path().join("."),
            user_file: Some(file),
            ..Search::default()
        };
        let first = search.candidates().remove(0);
        assert_eq!(first.trust, Trust::User);
        assert_eq!(search.candidates().len(), 3);
    }
}
