//! Configurations as people and editors write them.

use serde_json::{Value, json};
use toolcrib_testkit::{case::Case, fake::Fake, world::World};

use crate::play::{Crib, parsed, world};

/// The servers `status` shows of this file, whatever became of them.
fn servers(world: &World, file: &str) -> Vec<String> {
    let run = world.run(&["--config", file, "status", "--json"]);
    let json = parsed(&run);
    let all = json["servers"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|server| server["name"].as_str()).map(str::to_owned).collect()
}

#[test]
fn c57_comments_and_trailing_commas_are_read() {
    let world = world();
    world.write("mcp.json", Case::load("C57").input["text"].as_str().unwrap());
    assert_eq!(servers(&world, "mcp.json"), ["a", "b"]);
}

/// A real mistake is placed, and the other files are kept.
#[test]
fn c57_a_real_mistake_is_placed() {
    let world = world();
    world.write("broken.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}\n");
    let fake = Fake::stdio("C20");
    let good = json!({"mcpServers": {"good": {"command": fake.program(), "args": fake.args()}}});
    world.write("good.json", &good.to_string());
    let run = world.run(&["--config", "broken.json", "--config", "good.json", "status", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let json = parsed(&run);
    assert_eq!(
        (&json["servers"][0]["name"], &json["servers"][0]["state"]),
        (&json!("good"), &json!("ready"))
    );
    assert!(run.stderr.contains("broken.json:3:"), "{}", run.stderr);
    let alone = world.run(&["--config", "broken.json", "status"]);
    assert_eq!(alone.code, Some(3), "{}", alone.stderr);
    assert!(alone.stderr.contains("broken.json:3:21"), "{}", alone.stderr);
}

/// Does this file name a server `a`? It is asked for and gives up quickly.
fn names_a(world: &World, file: &str) -> (Option<i32>, String) {
    let flags = ["--probe-timeout", "0.2", "--start-timeout", "0.5"];
    let run = world.run(&[&["--config", file, "inspect", "a"][..], &flags].concat());
    (run.code, run.stderr)
}

#[test]
fn c58_a_byte_order_mark_is_no_matter() {
    let world = world();
    // {"mcpServers":{"a":{"command":"python3"}}} with a mark and CRLF: python3 waits in silence.
    let text = "\u{feff}{\"mcpServers\":{\"a\":{\"command\":\"python3\"}}}\r\n";
    assert_eq!(Case::load("C58").input["bytes_b64"], base64(text.as_bytes()));
    world.write("mcp.json", text);
    let (code, stderr) = names_a(&world, "mcp.json");
    assert_eq!(code, Some(10), "{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
}

/// What an older shell writes: UTF-16 in either order. Decoded, or refused by its name.
#[test]
fn c58_utf_16_is_decoded_or_named() {
    let world = world();
    let text = "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"python3\"}}}\r\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (file, bytes) in [("little.json", little), ("big.json", big)] {
        std::fs::write(world.cwd().join(file), bytes).unwrap();
        let (code, stderr) = names_a(&world, file);
        assert!(code == Some(10) || stderr.contains("UTF-16"), "{file}: {code:?} {stderr}");
    }
}

fn base64(bytes: &[u8]) -> Value {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        for at in 0..4_usize {
            let letter = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize] as char;
            text.push(if at <= chunk.len() { letter } else { '=' });
        }
    }
    json!(text)
}

#[test]
fn c109_a_command_line_in_one_word_is_named() {
    let world = world();
    world.write("mcp.json", &Case::load("C109").input["config"].to_string());
    let run = world.run(&["--config", "mcp.json", "list"]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    for part in ["k", "command contains spaces", "args is empty"] {
        assert!(run.stderr.contains(part), "{part} is not in {}", run.stderr);
    }
}

/// No shell is started for it, and a broken entry costs no other.
#[test]
fn c109_a_broken_entry_costs_no_other() {
    let crib = Crib::case("C20")
        .with_entry("k", json!({"command": "touch pwned; echo"}))
        .with_entry("n", json!({"command": 7}))
        .with_entry("u", json!({"url": "ftp://x.example"}));
    let run = crib.run(&["status", "--json"]);
    assert_eq!(parsed(&run)["servers"][0]["state"], "ready");
    for name in ["k", "n", "u"] {
        let named = run.stderr.lines().any(|line| {
            line.contains(&format!("{name}:"))
                || line.contains(&format!("`{name}`"))
                || line.contains(&format!("\"{name}\""))
                || line.contains(&format!("server {name}"))
        });
        assert!(named, "{name} is not named in {}", run.stderr);
    }
    assert!(!crib.world.cwd().join("pwned").exists());
}
