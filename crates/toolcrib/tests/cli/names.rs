//! Names: every tool keeps its own, whatever another one is called.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolcrib_testkit::{fake::Fake, traffic::Traffic};

use crate::play::{Crib, inspect, inspect_fake, parsed, scenario, serve};

/// Portable name by (server, tool), as `list --json` prints the table.
fn table(crib: &Crib<'_>) -> BTreeMap<(String, String), String> {
    let run = crib.run(&["list", "tools", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let json = parsed(&run);
    let entries = json["tools"].as_array().unwrap();
    let pair = |entry: &Value| (text(&entry["server"]), text(&entry["item"]["name"]));
    entries.iter().map(|entry| (pair(entry), text(&entry["portable"]))).collect()
}

#[track_caller]
fn valid_and_distinct<'a>(names: impl Iterator<Item = &'a str>, count: usize) {
    let names: BTreeSet<_> = names.collect();
    assert_eq!(names.len(), count, "{names:?}");
    let fits = |name: &&str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    assert!(names.iter().all(fits), "{names:?}");
}

/// The names of the tools called, in order.
fn called(log: &Traffic) -> Vec<String> {
    let name = |call: &Value| call["params"]["name"].as_str().unwrap().to_owned();
    log.requests("tools/call").into_iter().map(name).collect()
}

#[test]
fn c34_names_that_differ_in_punctuation_stay_apart() {
    let fake = Fake::stdio("C34");
    let crib = Crib::of(&fake);
    let table = table(&crib);
    valid_and_distinct(table.values().map(String::as_str), 3);
    for ((_, tool), portable) in &table {
        assert_eq!(crib.calls(portable, &json!({}), 0), format!("C34:{tool}:{{}}"));
    }
    assert_eq!(called(&fake.log()), table.keys().map(|(_, tool)| tool.clone()).collect::<Vec<_>>());
    let report = inspect("C34").shows(&["open-doc", "open_doc", "open.doc"]);
    assert_eq!(report.json["names"].as_object().map(serde_json::Map::len), Some(3));
}

#[test]
fn c35_any_name_gets_a_portable_one() {
    let fake = Fake::stdio("C35");
    let crib = Crib::of(&fake);
    let table = table(&crib);
    valid_and_distinct(table.values().map(String::as_str), 5);
    for ((_, tool), portable) in &table {
        assert_eq!(crib.calls(portable, &json!({}), 0), format!("C35:{tool}:{{}}"));
        assert_eq!(crib.calls(&format!("s.{tool}"), &json!({}), 0), format!("C35:{tool}:{{}}"));
    }
}

/// Over modern HTTP the name travels in a header as well; the fake compares the two.
#[test]
fn c35_a_name_no_header_can_carry_is_encoded() {
    let tools = &crate::play::scenario_of("C35")["tools"];
    let server =
        serve(Fake::scripted(&json!({"era": "modern", "transport": "http", "tools": tools})));
    let crib = Crib::of_http(&server);
    let table = table(&crib);
    assert_eq!(table.len(), 5);
    for ((_, tool), portable) in &table {
        assert_eq!(crib.calls(portable, &json!({}), 0), format!("fake:{tool}:{{}}"));
        let log = server.log();
        let calls = log.requests("tools/call");
        let header = calls.last().unwrap()["headers"]["mcp-name"].as_str().unwrap();
        assert_eq!(header.starts_with("=?base64?"), !tool.is_ascii(), "{tool}: {header}");
    }
}

/// Names at and over the limits of the protocol and of model APIs.
#[test]
fn c35_long_names_get_short_portable_ones() {
    let long =
        |length: usize| json!({"name": "n".repeat(length), "inputSchema": {"type": "object"}});
    let fake = Fake::scripted(&scenario(
        &json!({"tools": [long(60), long(61), long(62), long(128), long(500)]}),
    ));
    let crib = Crib::of(&fake);
    let table = table(&crib);
    valid_and_distinct(table.values().map(String::as_str), 5);
    for portable in table.values() {
        crib.calls(portable, &json!({}), 0);
    }
    inspect_fake(&fake, &[]).reached().notes(&["names/"]);
}

#[test]
fn c36_names_are_case_sensitive() {
    let fake = Fake::stdio("C36");
    let crib = Crib::of(&fake);
    for name in ["s.GetUser", "s__GetUser", "GetUser"] {
        assert_eq!(crib.calls(name, &json!({}), 0), "upper", "{name}");
    }
    for name in ["s.getUser", "s__getUser", "getUser"] {
        assert_eq!(crib.calls(name, &json!({}), 0), "lower", "{name}");
    }
    let message = crib.calls("s.getuser", &json!({}), 4);
    assert!(message.contains("did you mean") && message.contains("s.getUser"), "{message}");
    // A capitalised server is another one, too.
    let linear = Crib::new().with_case("Linear", "C36");
    assert_eq!(linear.calls("Linear.GetUser", &json!({}), 0), "upper");
    let run = linear.call("linear.GetUser", &json!({}));
    assert_eq!(run.code, Some(4), "{}", run.stdout);
    assert!(run.stdout.contains("Linear.GetUser"), "{}", run.stdout);
}

#[test]
fn c94_a_call_never_lands_on_another_server() {
    let names = ["shop_", "shop", "a__b", "a"];
    let fakes = names.map(|name| (name, Fake::stdio("C94").server(name)));
    let crib = fakes.iter().fold(Crib::new(), |crib, (name, fake)| crib.with(name, fake));
    let table = table(&crib);
    valid_and_distinct(table.values().map(String::as_str), 4);
    for ((server, tool), portable) in &table {
        for name in [portable, &format!("{server}.{tool}")] {
            assert_eq!(crib.calls(name, &json!({}), 0), format!("{server}:{tool}:{{}}"), "{name}");
        }
    }
    for (_, fake) in &fakes {
        assert_eq!(called(&fake.log()).len(), 2);
    }
}
