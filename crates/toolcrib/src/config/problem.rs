//! What a person is told about a configuration: the file, the place in it, the entry, what is
//! wrong and what to do. Values from a file never appear in it, only names of keys and entries.

use std::{
    error::Error,
    fmt,
    path::{Path, PathBuf},
};

use toolcrib_core::sanitise;

/// A position in a text file, both counted from one; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Line.
    pub(crate) line: usize,
    /// Column.
    pub(crate) column: usize,
}

/// One warning or error about a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The file.
    pub(crate) file: PathBuf,
    /// Where in it, when it concerns a place.
    pub(crate) place: Option<Place>,
    /// The server entry it concerns, by the name written in the file.
    pub(crate) entry: Option<String>,
    /// What is wrong.
    pub(crate) what: String,
    /// What to do about it, for a line of its own.
    pub(crate) hint: Option<String>,
}

impl Problem {
    /// A problem with a file as a whole.
    pub(crate) fn file(file: &Path, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), place: None, entry: None, what: what.into(), hint: None }
    }

    /// The same problem, at a place.
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// The same problem, of one entry.
    pub(crate) fn of(mut self, entry: &str) -> Self {
        self.entry = Some(entry.to_owned());
        self
    }

    /// The same problem, with advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&path(&self.file))?;
        if let Some(Place { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if let Some(entry) = &self.entry {
            write!(f, "server {}: ", quoted(entry))?;
        }
        f.write_str(&self.what)
    }
}

impl Error for Problem {}

/// A path, safe to show.
pub(crate) fn path(path: &Path) -> String {
    sanitise::line(&path.to_string_lossy(), 1_000)
}

/// A name from a file, safe to show.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", sanitise::line(name, 80))
}

/// The one of `known` that `word` is most likely a misspelling of.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nothing we know is longer than this, and the distance takes quadratic time.
    const LONGEST_WORD: usize = 64;
    if word.len() > LONGEST_WORD {
        return None;
    }
    let plain = |text: &str| text.replace(['_', '-', ' '], "").to_lowercase();
    let word = plain(word);
    known
        .into_iter()
        .filter(|known| known.len().abs_diff(word.len()) <= known.len() / 2)
        .map(|known| (strsim::damerau_levenshtein(&word, &plain(known)), known))
        .filter(|(distance, known)| *distance <= (known.len() / 3).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_find_their_key() {
        let known = ["command", "args", "env", "call_timeout_ms", "call_max_timeout_ms"];
        let check = |word: &str, expect: Option<&str>| assert_eq!(closest(word, known), expect);
        check("comand", Some("command"));
        check("Command", Some("command"));
        check("arg", Some("args"));
        check("callTimeoutMs", Some("call_timeout_ms"));
        check("notes", None);
        check("e", None);
    }

    #[test]
    fn names_and_paths_cannot_steer_a_terminal() {
        let problem = Problem::file(Path::new("a\u{1b}[2J.toml"), "is odd").of("x\u{202e}y");
        insta::assert_snapshot!(problem, @r"a\u{1b}[2J.toml: server `x\u{202e}y`: is odd");
    }
}
