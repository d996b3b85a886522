//! The repository's files as text, and just enough reading of Rust to judge them: comments and
//! literals blanked out, test modules cut away, paths spelt out. It knows no rule and is no parser;
//! what rustc and clippy can check is left to them.

use std::{fs, io, ops::Range, path::Path};

/// A text file of the repository.
pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The crate's name and the path inside its `src`, if it is such a file.
    pub(crate) fn in_src(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once("/src/")
    }

    /// Code alone: comments and the insides of literals are blanks.
    pub(crate) fn code(&self) -> String {
        blank(&self.text, Keep::Code).into_iter().collect()
    }

    /// A test module in a file of its own: `tests.rs`, `edit_tests.rs`.
    fn is_test_module(&self) -> bool {
        self.name() == "tests.rs" || self.name().ends_with("_tests.rs")
    }

    /// Code alone, without test modules.
    pub(crate) fn product_code(&self) -> String {
        if self.is_test_module() {
            return String::new();
        }
        without_tests(&self.text, Keep::Code)
    }

    /// Code with its literals, without comments and test modules.
    pub(crate) fn product_text(&self) -> String {
        if self.is_test_module() {
            return String::new();
        }
        without_tests(&self.text, Keep::CodeAndLiterals)
    }
}

/// Every text file below the root, generated ones apart, in a stable order.
pub(crate) fn read_repository() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    read_folder(&root, "", &mut files).expect("the repository can be read");
    assert!(files.len() > 30, "the repository was not found at {}", root.display());
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            let generated = ["target", ".git", "node_modules", "__pycache__"];
            if !generated.contains(&name.as_str()) {
                read_folder(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push(File { path, text });
        }
    }
    Ok(())
}

/// Looks up a file that must be there.
pub(crate) fn file<'a>(files: &'a [File], path: &str) -> &'a File {
    files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} is missing"))
}

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Code,
    CodeAndLiterals,
}

fn without_tests(text: &str, keep: Keep) -> String {
    let code = blank(text, Keep::Code);
    let mut kept = if keep == Keep::Code { code.clone() } else { blank(text, keep) };
    for range in test_items(&code) {
        wipe(&mut kept, range);
    }
    kept.into_iter().collect()
}

/// Where the items behind `#[cfg(test)]` are.
fn test_items(code: &[char]) -> Vec<Range<usize>> {
    let marker: Vec<char> = "#[cfg(test)]".chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + marker.len() <= code.len() {
        if code[at..].starts_with(&marker) {
            let end = item_end(code, at + marker.len());
            found.push(at..end);
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// The end of an item: its closing brace, or a semicolon outside of any.
fn item_end(code: &[char], from: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code.iter().enumerate().skip(from) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, '}' | ';') {
            return at + 1;
        }
    }
    code.len()
}

fn wipe(text: &mut [char], range: Range<usize>) {
    for c in &mut text[range] {
        if *c != '\n' {
            *c = ' ';
        }
    }
}

/// Blanks comments, and literals unless kept; every line stays where it is.
fn blank(text: &str, keep: Keep) -> Vec<char> {
    let mut out: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < out.len() {
        let (end, comment) = match token(&out, at) {
            Token::Comment(end) => (end, true),
            Token::Literal(end) => (end, false),
            Token::Other(end) => {
                at = end;
                continue;
            }
        };
        if comment || keep == Keep::Code {
            wipe(&mut out, at..end);
        }
        at = end;
    }
    out
}

enum Token {
    Comment(usize),
    Literal(usize),
    Other(usize),
}

fn token(text: &[char], at: usize) -> Token {
    let rest = &text[at..];
    let before = at.checked_sub(1).map(|before| text[before]);
    if rest.starts_with(&['/', '/']) {
        Token::Comment(at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()))
    } else if rest.starts_with(&['/', '*']) {
        Token::Comment(at + block_comment(rest))
    } else if rest[0] == '"' {
        Token::Literal(at + quoted(rest, '"'))
    } else if rest[0] == '\'' && is_char_literal(rest) {
        Token::Literal(at + quoted(rest, '\''))
    } else if rest[0] == 'r' && !before.is_some_and(|c| is_word(c) && c != 'b' && c != 'c') {
        raw_string(rest).map_or(Token::Other(at + 1), |len| Token::Literal(at + len))
    } else {
        Token::Other(at + 1)
    }
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at.min(rest.len())
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(rest: &[char]) -> bool {
    rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'')
}

/// The length of `r"…"` or `r#"…"#`, if `r` starts one.
fn raw_string(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let mut close = vec!['"'];
    close.extend(vec!['#'; hashes]);
    let from = 2 + hashes;
    let end = (from..rest.len()).find(|at| rest[*at..].starts_with(&close));
    Some(end.map_or(rest.len(), |end| end + close.len()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A path as code spells it, groups written out: `use a::{b, c::*}` is `a::b` and `a::c::*`.
pub(crate) struct Spelt {
    pub(crate) line: usize,
    pub(crate) path: Vec<String>,
}

impl Spelt {
    /// Whether the path is `prefix` or goes on from it.
    pub(crate) fn is_under(&self, prefix: &str) -> bool {
        let prefix: Vec<&str> = prefix.split("::").collect();
        self.path.len() >= prefix.len() && prefix.iter().zip(&self.path).all(|(a, b)| a == b)
    }
}

/// All paths in code that was blanked before, single names among them.
pub(crate) fn paths(code: &str) -> Vec<Spelt> {
    let code: Vec<char> = code.chars().collect();
    let mut spelt = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < code.len() {
        if is_word(code[at]) {
            let mut ends = Vec::new();
            let end = read_path(&code, at, &[], &mut ends);
            spelt.extend(ends.into_iter().map(|path| Spelt { line, path }));
            line += code[at..end].iter().filter(|c| **c == '\n').count();
            at = end;
        } else {
            line += usize::from(code[at] == '\n');
            at += 1;
        }
    }
    spelt
}

fn read_path(code: &[char], from: usize, prefix: &[String], ends: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = from;
    loop {
        let word: String = code[at..].iter().take_while(|c| is_word(**c)).collect();
        at += word.chars().count();
        path.push(word);
        let next = skip_blanks(code, at);
        if !code[next..].starts_with(&[':', ':']) {
            break;
        }
        let next = skip_blanks(code, next + 2);
        match code.get(next) {
            Some('{') => return read_group(code, next + 1, &path, ends),
            Some('*') => {
                path.push("*".to_owned());
                at = next + 1;
                break;
            }
            Some(c) if is_word(*c) => at = next,
            _ => break,
        }
    }
    ends.push(path);
    at
}

fn read_group(code: &[char], from: usize, prefix: &[String], ends: &mut Vec<Vec<String>>) -> usize {
    let mut at = from;
    while at < code.len() {
        match code[at] {
            '}' => return at + 1,
            '*' => {
                ends.push([prefix, &["*".to_owned()]].concat());
                at += 1;
            }
            c if is_word(c) => {
                at = read_path(code, at, prefix, ends);
                // What follows `as` is a new name, not a path.
                let item_goes_on = |c: &&char| !matches!(c, ',' | '}');
                at += code[at..].iter().take_while(item_goes_on).count();
            }
            _ => at += 1,
        }
    }
    at
}

fn skip_blanks(code: &[char], from: usize) -> usize {
    from + code[from..].iter().take_while(|c| c.is_whitespace()).count()
}

/// The modules that code declares in files of their own, in order.
pub(crate) fn declared_modules(code: &str) -> Vec<String> {
    let spaced = code.replace(';', " ; ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let declarations = words.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
    declarations.map(|three| three[1].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> File {
        File { path: "crates/x/src/lib.rs".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let check = |text: &str, expect: &str| assert_eq!(source(text).code(), expect);
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("x\"y", 'q', '\'')"#, "f(      ,    ,     )");
        check("r#\"a\"b\"# + br\"c\"", "         + b    ");
        check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
        check("var\"x\"", "var   ");
    }

    #[test]
    fn test_modules_are_no_product() {
        let text = "a();\n#[cfg(test)]\nmod tests {\n fn b() { \"}\" }\n}\nc(\"d\"); // e\n";
        let words = |code: String| code.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(source(text).product_code()), "a(); c( );");
        assert!(source(text).product_text().contains("c(\"d\");"));
        assert!(!source(text).product_text().contains('b'));
        assert!(source("#[cfg(test)]\nmod tests;\nkept").product_code().contains("kept"));
    }

    #[test]
    fn groups_are_written_out() {
        let check = |code: &str, expect: &[&str]| {
            let spelt: Vec<String> = paths(code).iter().map(|p| p.path.join("::")).collect();
            assert_eq!(spelt, expect);
        };
        check(
            "use a::{b, c::{self, d as e}, f::*};",
            &["use", "a::b", "a::c::self", "a::c::d", "a::f::*"],
        );
        check("x.y::<T>(crate::m::f())", &["x", "y", "T", "crate::m::f"]);
        assert_eq!(paths("a\n\nb").last().unwrap().line, 3);
    }

    #[test]
    fn declarations_keep_their_order() {
        assert_eq!(declared_modules("pub mod b;\nmod a;\nmod inline { }"), ["b", "a"]);
    }
}
