//! What a change does to a text, as a unified diff. The texts come with their secrets blotted out.

use std::{io, time::Duration};

use anstyle::{AnsiColor, Style};
use similar::TextDiff;
use toolcrib_core::sanitise;

use super::out::Out;

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// How long the shortest diff is looked for; then a longer one will do.
const SEARCH: Duration = Duration::from_secs(2);
/// Longest line shown, in characters.
const MAX_CHARS: usize = 400;

/// The diff between two states of a file, empty when they are the same. `file` is its name as
/// shown, and `new` says that it is made.
pub(crate) fn unified(file: &str, new: bool, before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(SEARCH).diff_lines(before, after);
    let old = if new { "/dev/null" } else { file };
    let text = diff.unified_diff().context_radius(CONTEXT).header(old, file).to_string();
    let lines = text.lines().map(|line| {
        let line = sanitise::block(line);
        match line.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…\n", &line[..end]),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// Writes a diff, in colours on a terminal.
pub(crate) fn print(out: &mut Out, diff: &str) -> io::Result<()> {
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => Style::new().bold(),
            Some(b'+') => AnsiColor::Green.on_default(),
            Some(b'-') => AnsiColor::Red.on_default(),
            Some(b'@') => AnsiColor::Cyan.on_default(),
            _ => Style::new(),
        };
        out.line(format!("{style}{line}{style:#}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_shown_and_nothing_steers_the_terminal() {
        let before = "1\n2\n3\n4\n5\n\u{1b}[2J6\n";
        insta::assert_snapshot!(unified("f", false, before, &before.replace('5', "five")), @r"
        --- f
        +++ f
        @@ -2,5 +2,5 @@
         2
         3
         4
        -5
        +five
         \u{1b}[2J6
        ");
        insta::assert_snapshot!(unified("f", true, "", "a\n"), @"
        --- /dev/null
        +++ f
        @@ -0,0 +1 @@
        +a
        ");
        assert_eq!(unified("f", false, "a", "a"), "");
        assert!(unified("f", true, "", &"x".repeat(9_000)).len() < 1_000);
    }
}
