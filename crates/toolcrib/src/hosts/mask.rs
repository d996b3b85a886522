//! Texts of files with their secrets blotted out, for showing.
//!
//! What is shown is never written, and what is written never comes from here.

use std::{collections::BTreeMap, path::Path};

use super::{
    read,
    reference::{self, Form},
    secrecy::{self, Spot},
    table::Format,
    tree,
};
use crate::config::{
    node::{Node, Value},
    text::Source,
};

/// The text with `***` for each value that may be a secret. A text that cannot be read is blotted
/// out as a whole. `form` is how the host writes references, which are shown.
pub(crate) fn masked(format: Format, form: Option<Form>, text: &str) -> String {
    let tree = Source::decode(Path::new(""), text.as_bytes())
        .ok()
        .and_then(|source| read::parse(format, &source).ok());
    let Some(tree) = tree else { return "***\n".to_owned() };
    let mut blots = BTreeMap::new();
    if let Some(root) = &tree {
        let shown = tree::mapped(root, &mut |text| {
            Ok::<_, ()>(reference::ours(text, form, None).unwrap_or_else(|_| text.to_owned()))
        });
        if let Ok(root) = shown {
            blot(&root, None, &mut blots);
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end) in blots {
        if start < at {
            continue;
        }
        out.push_str(&text[at..start]);
        out.push_str("\"***\"");
        at = end;
    }
    out.push_str(&text[at..]);
    without_tokens(&out, form)
}

/// Finds the texts that may be secrets. `section` is the table they stand in.
fn blot(node: &Node, section: Option<&str>, blots: &mut BTreeMap<usize, usize>) {
    match &node.value {
        Value::Map(members) => {
            for member in members {
                let header = section.is_some_and(|section| section.ends_with("headers"));
                let spot = match header {
                    true => Spot::Header(&member.key),
                    false => Spot::Named(&member.key),
                };
                // These hold the names of variables, not their values.
                let names = ["bearer_token_env_var", "env_http_headers"];
                let about =
                    names.contains(&&*member.key) || section.is_some_and(|s| names.contains(&s));
                match &member.node.value {
                    Value::Text(_) if about => {}
                    Value::Text(text) if secrecy::is_secret(spot, text) => {
                        blots.insert(member.node.at, member.node.end);
                    }
                    _ => blot(&member.node, Some(&member.key), blots),
                }
            }
        }
        Value::List(items) => {
            let mut before = None;
            for item in items {
                match &item.value {
                    Value::Text(text) => {
                        if secrecy::is_secret(Spot::Argument(before), text) {
                            blots.insert(item.at, item.end);
                        }
                        before = Some(text.as_str());
                    }
                    _ => blot(item, section, blots),
                }
            }
        }
        _ => {}
    }
}

/// The text without what shows itself as a secret wherever it stands, in comments too.
fn without_tokens(text: &str, form: Option<Form>) -> String {
    let apart = |c: char| c.is_whitespace() || "\"'`,;()[]<>".contains(c);
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(apart) {
        let word = piece.trim_end_matches(apart);
        let ours = reference::ours(word, form, None);
        match secrecy::is_secret(Spot::Argument(None), ours.as_deref().unwrap_or(word)) {
            true => {
                out.push_str("***");
                out.push_str(&piece[word.len()..]);
            }
            false => out.push_str(piece),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::table::HOSTS, *};

    proptest! {
        /// Whatever a file holds, reading and showing it ends in order.
        #[test]
        fn no_text_is_too_odd_to_be_shown(
            parts in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "\"mcpServers\"", ":", ",", "\"é\"", "[", "]", "extensions:", "\n", "\n  ",
                "- ", "'", "\"", "|", "#", " = ", "[mcp_servers.x]\n", "\u{3000}", "token", "\u{feff}",
                "a: ", "&a ", "*a", "\\", "1", "args", "${", "\r\n", "//", "/*", "\u{1b}",
            ]), 0..24),
        ) {
            let text = parts.concat();
            for host in &HOSTS {
                let shown = masked(host.format, host.shape.reference, &text);
                prop_assert!(shown.len() <= text.len() + 9 * parts.len());
                if let Ok(source) = Source::decode(Path::new("f"), text.as_bytes()) {
                    let _ = read::entries(host, &source, Path::new("/"), None);
                }
            }
        }
    }

    #[test]
    fn secrets_are_blotted_out_and_nothing_else() {
        let json = r#"{
  // old: ghp_0123456789abcdefghij --token=abc https://u:pw@h /tmp/world-aB3dEf6hIj9kLm
  "a": {"command": "x", "args": ["--token", "abc", "--port", "1"], "env": {"A_KEY": "k", "B": "b"}},
  "b": {"url": "https://h.example/mcp", "headers": {"Authorization": "Bearer abc", "X": "${K}"}}
}
"#;
        insta::assert_snapshot!(masked(Format::Json, None, json), @r#"
        {
          // old: *** *** *** /tmp/world-aB3dEf6hIj9kLm
          "a": {"command": "x", "args": ["--token", "***", "--port", "1"], "env": {"A_KEY": "***", "B": "b"}},
          "b": {"url": "https://h.example/mcp", "headers": {"Authorization": "***", "X": "${K}"}}
        }
        "#);
        let toml = "[mcp_servers.a]\nbearer_token_env_var = \"TOK\"\nhttp_headers = { Cookie = \"c\", X = \"y\" }\n";
        insta::assert_snapshot!(masked(Format::Toml, None, toml), @r#"
        [mcp_servers.a]
        bearer_token_env_var = "TOK"
        http_headers = { Cookie = "***", X = "y" }
        "#);
        let yaml = "extensions:\n  a:\n    envs:\n      A_TOKEN: abc # mine\n      LEVEL: debug\n";
        insta::assert_snapshot!(masked(Format::Yaml, None, yaml), @r#"
        extensions:
          a:
            envs:
              A_TOKEN: "***" # mine
              LEVEL: debug
        "#);
        assert_eq!(masked(Format::Json, None, "{"), "***\n");
    }
}
