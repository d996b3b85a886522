//! What putting one entry leaves of a file: everything else, byte for byte.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{put::put, read, table::Format, tree};
use crate::config::text::Source;

fn source(text: &str) -> Source {
    Source::decode(Path::new("f"), text.as_bytes()).unwrap()
}

fn entry() -> Json {
    json!({"command": "npx", "args": ["-y", "a b"], "env": {"K": "${K}"}, "on": true})
}

fn after(format: Format, text: &str, path: &[&str]) -> String {
    put(format, &source(text), path, &entry()).unwrap_or_else(|problem| format!("! {problem}"))
}

/// Text without blanks and commas, which an editor of JSON may set anew, outside of strings and
/// comments.
fn essence(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '"' => {
                let mut escaped = false;
                let close = rest.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    closes
                });
                close.map_or(rest.len(), |(at, _)| at + 1)
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            _ => c.len_utf8(),
        };
        let piece = &rest[..end];
        if !(piece == "," || piece.trim().is_empty()) {
            out.push_str(piece.trim_end());
        }
        rest = &rest[end..];
    }
    out
}

/// True when `new` is `old` with one piece put in somewhere.
fn is_insertion(old: &str, new: &str) -> bool {
    let common = |pairs: &mut dyn Iterator<Item = (u8, u8)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let front = common(&mut old.bytes().zip(new.bytes()));
    let back = common(&mut old.bytes().rev().zip(new.bytes().rev()));
    front + back >= old.len() && new.len() > old.len()
}

#[test]
fn json_keeps_its_comments_its_order_and_its_layout() {
    let text = "// head\n{\n    \"z\": [1, 2],   // tail\n    \"mcpServers\": {\n        // one\n        \
                \"a\": {\"command\": \"x\"}, /* two */\n    },\n    \"b\": null,\n}\n// end\n";
    insta::assert_snapshot!(after(Format::Json, text, &["mcpServers", "new"]), @r#"
    // head
    {
        "z": [1, 2],   // tail
        "mcpServers": {
            // one
            "a": {"command": "x"}, /* two */
            "new": {
                "command": "npx",
                "args": ["-y", "a b"],
                "env": {
                    "K": "${K}",
                },
                "on": true,
            },
        },
        "b": null,
    }
    // end
    "#);
    insta::assert_snapshot!(after(Format::Json, text, &["mcpServers", "a"]), @r#"
    // head
    {
        "z": [1, 2],   // tail
        "mcpServers": {
            // one
            "a": {
                "command": "npx",
                "args": ["-y", "a b"],
                "env": {
                    "K": "${K}"
                },
                "on": true
            }, /* two */
        },
        "b": null,
    }
    // end
    "#);
    let windows = text.replace('\n', "\r\n");
    let new = after(Format::Json, &windows, &["mcpServers", "new"]);
    assert_eq!(new.replace("\r\n", "\n"), after(Format::Json, text, &["mcpServers", "new"]));
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count(), "{new:?}");
}

#[test]
fn json_gets_the_tables_that_are_missing() {
    let text = "{\n  \"b\": null, // b\n}\n";
    insta::assert_snapshot!(after(Format::Json, text, &["b", "c", "new"]), @r#"
    {
      "b": {
        "c": {
          "new": {
            "command": "npx",
            "args": ["-y", "a b"],
            "env": {
              "K": "${K}"
            },
            "on": true
          }
        }
      }, // b
    }
    "#);
    insta::assert_snapshot!(after(Format::Json, "", &["mcpServers", "new"]), @r#"
    {
      "mcpServers": {
        "new": {
          "command": "npx",
          "args": ["-y", "a b"],
          "env": {
            "K": "${K}"
          },
          "on": true
        }
      }
    }
    "#);
    insta::assert_snapshot!(after(Format::Json, "{\"a\": 1}", &["mcpServers", "new"]), @r#"
    {
      "a": 1,
      "mcpServers": {
        "new": {
          "command": "npx",
          "args": ["-y", "a b"],
          "env": {
            "K": "${K}"
          },
          "on": true
        }
      }
    }
    "#);
}

#[test]
fn toml_keeps_its_comments_its_order_and_its_line_ends() {
    let text = "# head\nmodel = \"x\" # tail\n\n[mcp_servers.a]\n# one\ncommand = \"x\"\n\n\
                [mcp_servers.a.env]\nA = \"b\"\n\n[tui]\ntheme = 1\n# end\n";
    let new = after(Format::Toml, text, &["mcp_servers", "new"]);
    insta::assert_snapshot!(new, @r#"
    # head
    model = "x" # tail

    [mcp_servers.a]
    # one
    command = "x"

    [mcp_servers.a.env]
    A = "b"

    [mcp_servers.new]
    command = "npx"
    args = ["-y", "a b"]
    env = { K = "${K}" }
    on = true

    [tui]
    theme = 1
    # end
    "#);
    assert!(is_insertion(text, &new));
    insta::assert_snapshot!(after(Format::Toml, text, &["mcp_servers", "a"]), @r#"
    # head
    model = "x" # tail

    [mcp_servers.a]
    command = "npx"
    args = ["-y", "a b"]
    env = { K = "${K}" }
    on = true

    [tui]
    theme = 1
    # end
    "#);
    insta::assert_snapshot!(after(Format::Toml, "", &["mcp_servers", "new"]), @r#"
    [mcp_servers.new]
    command = "npx"
    args = ["-y", "a b"]
    env = { K = "${K}" }
    on = true
    "#);
    let windows = text.replace('\n', "\r\n");
    assert_eq!(after(Format::Toml, &windows, &["mcp_servers", "new"]), new.replace('\n', "\r\n"));
    insta::assert_snapshot!(after(Format::Toml, "a = 1\r\nb = 2\n", &["mcp_servers", "new"]), @"! f: mixes line ends of Windows and of Unix; let an editor settle on one");
    insta::assert_snapshot!(after(Format::Toml, "mcp_servers = 1\n", &["mcp_servers", "new"]), @"! f: `mcp_servers` is not a table; mend it or remove it first");
}

/// The text with the entry, which must be the text with one piece more.
#[track_caller]
fn yaml_insertion(text: &str) -> String {
    let new = after(Format::Yaml, text, &["extensions", "new"]);
    assert!(is_insertion(text, &new), "{new}");
    new
}

#[test]
fn yaml_keeps_every_line() {
    let text = "# head\nMODEL: x # tail\nextensions:\n    # one\n    a:\n        cmd: 'x' # y\n        \
                text: |\n            # no comment\n            two\n    b: {cmd: y}   # b\n# end\nz: 1\n";
    insta::assert_snapshot!(yaml_insertion(text), @r#"
    # head
    MODEL: x # tail
    extensions:
        # one
        a:
            cmd: 'x' # y
            text: |
                # no comment
                two
        b: {cmd: y}   # b
        new:
          command: npx
          args:
          - "-y"
          - "a b"
          env:
            K: "${K}"
          "on": true
    # end
    z: 1
    "#);
    let last = "extensions:\n  a:\n    args:\n    - x\n    - |\n      y\n\n# end\n";
    insta::assert_snapshot!(yaml_insertion(last), @r#"
    extensions:
      a:
        args:
        - x
        - |
          y
      new:
        command: npx
        args:
        - "-y"
        - "a b"
        env:
          K: "${K}"
        "on": true

    # end
    "#);
    insta::assert_snapshot!(after(Format::Yaml, text, &["extensions", "a"]), @r#"
    # head
    MODEL: x # tail
    extensions:
        # one
        a:
          command: npx
          args:
          - "-y"
          - "a b"
          env:
            K: "${K}"
          "on": true
        b: {cmd: y}   # b
    # end
    z: 1
    "#);
}

#[test]
fn yaml_keeps_every_line_of_odd_files() {
    for text in [
        "",
        "# only\n",
        "a: 1",
        "a: 1\n",
        "extensions:\n",
        "extensions: # none\n",
        "extensions:\nb: 1\n",
        "extensions:\n  a: {}\n",
        "extensions:\n  a:\n    x: \"q # r\"\n    y: 'it''s'   # c\n",
        "extensions:\n  a:\n    x: >-\n      t\n      u\n  \nb: 1\n",
        "---\nextensions:\n  a:\n    x: 1\n",
        "\"extensions\":\n  \"a\": 1\n",
        "extensions:\n  ä:\n    x: 1 # ö\n  # below\nb: 1\n",
    ] {
        yaml_insertion(text);
        let windows = text.replace('\n', "\r\n");
        let new = yaml_insertion(&windows);
        if text.contains('\n') {
            assert_eq!(new.matches('\n').count(), new.matches("\r\n").count(), "{new:?}");
        }
    }
    insta::assert_snapshot!(after(Format::Yaml, "extensions: {}\nb: 1\n", &["extensions", "new"]), @r#"
    extensions:
      new:
        command: npx
        args:
        - "-y"
        - "a b"
        env:
          K: "${K}"
        "on": true
    b: 1
    "#);
}

#[test]
fn what_cannot_be_changed_safely_is_left_alone() {
    let cases = [
        (Format::Yaml, "extensions: {a: {cmd: x}}\n", "extensions"),
        (Format::Yaml, "extensions: [a]\n", "extensions"),
        (Format::Yaml, "a: 1\n...\n", "extensions"),
        (Format::Yaml, "- a\n", "extensions"),
        (Format::Yaml, "a: [\n", "extensions"),
        (Format::Json, "[]", "mcpServers"),
        (Format::Json, "{\"mcpServers\": []}", "mcpServers"),
        (Format::Json, "{\"mcpServers\": {}, \"mcpServers\": {}}", "mcpServers"),
        (Format::Json, "{\"mcpServers\": {\"new\": 1, \"new\": 2}}", "mcpServers"),
        (Format::Json, "{\n\"a\": }", "mcpServers"),
        (Format::Toml, "[a\n", "mcp_servers"),
    ];
    let said = cases.map(|(format, text, section)| after(format, text, &[section, "new"]));
    insta::assert_snapshot!(said.join("\n"), @"
    ! f: `extensions` is written in braces; put its entries on lines of their own first
    ! f: `extensions` is not a table; mend it or remove it first
    ! f: the entry cannot be put in without touching something else; add it by hand
    ! f: the entry cannot be put in without touching something else; add it by hand
    ! f:2:1: not valid YAML: while parsing a node, did not find expected node content
    ! f: is not a table
    ! f: `mcpServers` is not a table; mend it or remove it first
    ! f: the entry cannot be put in without touching something else; add it by hand
    ! f: the entry cannot be put in without touching something else; add it by hand
    ! f:2:6: not valid JSON: unexpected close brace
    ! f:1:3: not valid TOML: unclosed table, expected `]`
    ");
}

/// JSON with comments, blanks and commas wherever they may stand.
fn jsonc() -> impl Strategy<Value = String> {
    let gap = prop::sample::select(vec!["", " ", "\n", "\n\t", " // c }\n", "/* { */", "\r\n  "]);
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "-1.5e3",
        "\"\\\"}//\"",
        "\"ä\\u00e4\"",
        "[]",
        "{}",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let item = (gap.clone(), inner.clone(), gap.clone());
        let list = (prop::collection::vec(item, 0..4), any::<bool>()).prop_map(|(items, comma)| {
            let items: Vec<_> = items.iter().map(|(a, item, b)| format!("{a}{item}{b}")).collect();
            let comma = if comma && !items.is_empty() { "," } else { "" };
            format!("[{}{comma}]", items.join(","))
        });
        prop_oneof![list, object(inner)]
    });
    object(value)
}

fn object(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let gap = prop::sample::select(vec!["", " ", "\n", "\n\t", " // c }\n", "/* { */", "\r\n  "]);
    let key = prop::sample::select(vec!["a", "b c", "\\u00e4", "mcpServers", "new", "z"]);
    let member = (gap.clone(), key, gap.clone(), gap.clone(), inner, gap.clone());
    (prop::collection::vec(member, 0..4), any::<bool>(), gap).prop_map(|(members, comma, end)| {
        let mut seen = Vec::new();
        let mut texts = Vec::new();
        for (a, key, b, c, value, d) in members {
            if !seen.contains(&key) {
                seen.push(key);
                texts.push(format!("{a}\"{key}\"{b}:{c}{value}{d}"));
            }
        }
        let comma = if comma && !texts.is_empty() { "," } else { "" };
        format!("{{{}{comma}{end}}}", texts.join(","))
    })
}

proptest! {
    #[test]
    fn whatever_the_json_nothing_but_the_entry_changes(text in jsonc(), outer in prop::sample::select(vec!["", "\n", "// x {\n"])) {
        let text = format!("{outer}{text}{outer}");
        let before = read::parse(Format::Json, &source(&text)).unwrap().unwrap();
        let section = tree::at(&before, &["mcpServers"]);
        let named = |key: &str| before.value.members().unwrap().iter().any(|member| member.key == key);
        match put(Format::Json, &source(&text), &["mcpServers", "new"], &entry()) {
            Err(problem) => prop_assert!(section.is_empty() && named("mcpServers"), "{problem}"),
            Ok(new) => {
                let replaces = section.iter().any(|(_, members)| members.iter().any(|one| one.key == "new"));
                // A `null` gives way.
                if !replaces && (!section.is_empty() || !named("mcpServers")) {
                    prop_assert!(is_insertion(&essence(&text), &essence(&new)), "{text}\n=>\n{new}");
                }
                // Once it is there, putting it again changes nothing.
                let again = put(Format::Json, &source(&new), &["mcpServers", "new"], &entry()).unwrap();
                let trees = [&new, &again].map(|text| read::parse(Format::Json, &source(text)).unwrap().unwrap());
                prop_assert!(tree::same(&trees[0], &trees[1]));
            }
        }
    }

    #[test]
    fn whatever_the_yaml_lines_nothing_else_changes(
        lines in prop::collection::vec(prop::sample::select(vec![
            "# c", "", "  # d", "x: 1", "y: 'a # b' # c", "extensions:", "  a:", "    cmd: z",
            "    args: [1, \"]\"]", "    - q", "  b: {c: d}", "  t: |", "      text", "  ",
        ]), 0..12),
    ) {
        let text = lines.join("\n");
        let Ok(_) = read::parse(Format::Yaml, &source(&text)) else { return Ok(()) };
        if let Ok(new) = put(Format::Yaml, &source(&text), &["extensions", "new"], &entry()) {
            prop_assert!(is_insertion(&text, &new), "{text}\n=>\n{new}");
        }
    }
}
