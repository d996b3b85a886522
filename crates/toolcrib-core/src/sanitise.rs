//! Makes text from outside safe to show: on a terminal, in a log line or in an error.
//!
//! Control and format characters are spelled out (`\u{1b}`), never obeyed. Raw JSON that is passed
//! on is not touched here: only what a person or a log sees.

use std::fmt::Write as _;

/// True for characters that could steer a terminal or hide text: controls, bidirectional
/// overrides, zero-width and tag characters, line and paragraph separators.
///
/// Zero-width joiner and non-joiner are let through: emoji and several scripts need them.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\u{200c}' | '\u{200d}' => false,
        c if c.is_control() => true,
        '\u{00ad}'
        | '\u{061c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// One line of at most `max_chars` characters; line breaks become spaces, hidden characters are
/// spelled out and a cut is marked with `…`.
pub fn line(text: &str, max_chars: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_chars * 2));
    for (shown, c) in text.trim().chars().enumerate() {
        if shown == max_chars {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c => push_visible(&mut out, c),
        }
    }
    out
}

/// Several lines as they are, with hidden characters other than newline and tab spelled out.
pub fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\t' => out.push(c),
            c => push_visible(&mut out, c),
        }
    }
    out
}

fn push_visible(out: &mut String, c: char) {
    if is_hidden(c) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_spelled_out() {
        let check = |input: &str, expect: &str| assert_eq!(line(input, 80), expect);
        check("\u{1b}[8mhidden", "\\u{1b}[8mhidden");
        check("a\u{202e}b", "a\\u{202e}b");
        check("tag\u{e0041}", "tag\\u{e0041}");
        check("two\r\nlines\tx", "two  lines x");
        check("👩\u{200d}🚀", "👩\u{200d}🚀");
    }

    #[test]
    fn a_cut_is_marked_and_counts_characters() {
        assert_eq!(line("ääää", 3), "äää…");
        assert_eq!(line("ää", 3), "ää");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\r\nb\tc\u{7}"), "a\nb\tc\\u{7}");
    }
}
