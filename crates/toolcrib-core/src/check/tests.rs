//! Tools with odd and hostile schemas, from the list to a judged call.

use std::time::{Duration, Instant};

use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_oneof, proptest};
use serde_json::{Value, json};

use super::{ToolCheck, look_over};
use crate::{
    finding::Tier,
    limits::Limits,
    raw::Raw,
    surface::{Item as _, Tool},
};

fn tool(definition: &Value) -> Tool {
    Tool::read(Raw::of(definition), &mut Vec::new()).unwrap()
}

fn checked(definition: &Value) -> ToolCheck {
    let tool = tool(definition);
    let mut looked = look_over([&tool].into_iter(), &Limits::default(), |_| None);
    std::sync::Arc::into_inner(looked.remove(0).1).unwrap()
}

fn input(schema: &Value) -> ToolCheck {
    checked(&json!({ "name": "t", "inputSchema": schema }))
}

fn output(schema: &Value) -> ToolCheck {
    checked(&json!({ "name": "t", "outputSchema": schema }))
}

fn fits(check: &ToolCheck, arguments: &Value) -> bool {
    check.arguments(Some(&Raw::of(arguments))).is_ok()
}

/// The message about arguments that do not fit.
fn fault(check: &ToolCheck, arguments: &Value) -> String {
    check.arguments(Some(&Raw::of(arguments))).unwrap_err().to_string()
}

/// Findings as `tier rule path: message`.
fn findings(check: &ToolCheck) -> Vec<String> {
    let shown = |finding: &crate::finding::Finding| {
        assert_eq!(finding.subject, "tool t");
        format!("{:?} {} {}: {}", finding.tier, finding.rule, finding.path, finding.message)
    };
    check.findings().iter().map(shown).collect()
}

#[test]
fn null_keywords_are_dropped_and_named() {
    let check = input(&json!({
        "type": "object", "properties": { "a": { "type": "string", "enum": null } },
        "required": null, "additionalProperties": null,
    }));
    insta::assert_snapshot!(findings(&check).join("\n"), @r"
    Soft schema/repaired /inputSchema/properties/a/enum: `enum: null` was dropped
    Soft schema/repaired /inputSchema/required: `required: null` was dropped
    Soft schema/repaired /inputSchema/additionalProperties: `additionalProperties: null` was dropped
    ");
    assert!(fits(&check, &json!({})) && fits(&check, &json!({ "a": "x", "b": 1 })));
    assert!(!fits(&check, &json!({ "a": 1 })));
}

#[test]
fn null_stays_a_value_where_it_is_one() {
    let check = input(&json!({ "properties": {
        "c": { "const": null }, "e": { "enum": [null, 1], "default": null }
    } }));
    assert_eq!(findings(&check), [""; 0]);
    assert!(fits(&check, &json!({ "c": null, "e": null })));
    assert!(!fits(&check, &json!({ "c": 0 })));
}

#[test]
fn look_around_works_and_backtracking_is_bounded() {
    let check = input(&json!({ "properties": {
        "pw": { "type": "string", "pattern": "^(?=.*\\d)(?=.*[a-z]).{8,}$" },
        "u": { "type": "string", "pattern": "^(?<!x)\\p{L}+$" },
        "slow": { "type": "string", "pattern": "^(a+)+$" },
        "worse": { "type": "string", "pattern": "^(?=(a+)+$)(a+)+\\1$" },
        "bad": { "type": "string", "pattern": "^(unclosed" },
    } }));
    insta::assert_snapshot!(findings(&check).join("\n"), @"Soft schema/pattern /inputSchema/properties/bad/pattern: the pattern `^(unclosed` cannot be used and is not checked");
    assert!(fits(&check, &json!({ "pw": "Passw0rd", "u": "ünïcode", "bad": "anything" })));
    assert!(!fits(&check, &json!({ "pw": "short" })));
    let began = Instant::now();
    let long = "a".repeat(5_000) + "!";
    assert!(!fits(&check, &json!({ "slow": long })));
    assert!(!fits(&check, &json!({ "worse": long })));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn recursive_schemas_judge_every_level() {
    let check = input(&json!({
        "type": "object", "properties": { "top": { "$ref": "#/$defs/node" } }, "required": ["top"],
        "$defs": { "node": {
            "type": "object", "required": ["v"],
            "properties": {
                "v": { "type": "integer" },
                "kids": { "type": "array", "items": { "$ref": "#/$defs/node" } },
            },
        } },
    }));
    assert_eq!(findings(&check), [""; 0]);
    let tree = |leaf: Value| json!({ "top": { "v": 1, "kids": [{ "v": 2, "kids": [{ "v": 3 }, { "v": leaf }] }] } });
    assert!(fits(&check, &tree(json!(4))));
    insta::assert_snapshot!(fault(&check, &tree(json!("4"))), @r#"/top/kids/0/kids/1/v has the wrong type: expected integer, got "4"; send it without quotes"#);
}

#[test]
fn older_dialects_are_honoured_and_unknown_ones_read_as_the_newest() {
    let pair = |schema: &str| {
        input(&json!({
            "$schema": schema, "type": "object",
            "definitions": { "n": { "type": "integer" } },
            "properties": { "pair": {
                "type": "array", "items": [{ "$ref": "#/definitions/n" }, { "type": "string" }],
                "additionalItems": false,
            } },
        }))
    };
    for schema in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        let check = pair(schema);
        assert_eq!(findings(&check), [""; 0], "{schema}");
        assert!(fits(&check, &json!({ "pair": [1, "a"] })));
        assert!(!fits(&check, &json!({ "pair": ["a", 1] })));
        assert!(!fits(&check, &json!({ "pair": [1, "a", 2] })));
    }
    let check = pair("https://example.invalid/my-dialect");
    insta::assert_snapshot!(findings(&check).join("\n"), @r"
    Soft schema/dialect /inputSchema/$schema: the dialect `https://example.invalid/my-dialect` is unknown; read as 2020-12
    Soft schema/repaired /inputSchema/properties/pair/items: a list under `items` was read as `prefixItems`
    ");
    assert!(fits(&check, &json!({ "pair": [1, "a"] })));
    assert!(!fits(&check, &json!({ "pair": [1, "a", 2] })));
}

#[test]
fn dialects_differ_where_they_differ() {
    let draft4 = "http://json-schema.org/draft-04/schema#";
    let check = input(&json!({ "$schema": draft4, "properties": {
        "n": { "minimum": 1, "exclusiveMinimum": true }, "c": { "const": 1 },
    } }));
    assert!(fits(&check, &json!({ "n": 2, "c": 2 })));
    assert!(!fits(&check, &json!({ "n": 1 })));
    // Before 2019-09 nothing beside a `$ref` counts.
    let beside = |schema: &str| {
        input(&json!({ "$schema": schema, "$defs": { "s": {} }, "properties": {
            "a": { "$ref": "#/$defs/s", "type": "string" }
        } }))
    };
    assert!(fits(&beside("http://json-schema.org/draft-07/schema"), &json!({ "a": 1 })));
    assert!(!fits(&beside("https://json-schema.org/draft/2020-12/schema"), &json!({ "a": 1 })));
    let check = input(&json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {
            "list": { "type": "array", "items": { "$recursiveRef": "#" } }, "v": { "type": "integer" }
        },
    }));
    assert!(!fits(&check, &json!({ "list": [{ "list": [{ "v": "x" }] }] })));
    let check = input(&json!({ "properties": { "t": { "$dynamicRef": "#node" } }, "$defs": {
        "node": { "$dynamicAnchor": "node", "type": "integer" }
    } }));
    assert!(fits(&check, &json!({ "t": 1 })) && !fits(&check, &json!({ "t": "x" })));
}

#[test]
fn type_lists_work_and_unknown_keywords_and_formats_judge_nothing() {
    let check = input(&json!({ "type": "object", "properties": {
        "corr": { "type": ["number", "null"] },
        "owner": { "type": "string", "nullable": true },
        "size": { "type": "integer", "format": "uint64", "minimum": 0 },
        "when": { "type": "string", "format": "google-datetime" },
        "mail": { "type": "string", "format": "email", "contentEncoding": "base64" },
        "k": { "const": "fixed" },
    } }));
    insta::assert_snapshot!(findings(&check).join("\n"), @"Info schema/unknown-keyword /inputSchema: keywords without effect: `nullable`");
    for good in [json!({ "corr": null }), json!({ "corr": 5 }), json!({ "mail": "no", "when": "" })]
    {
        assert!(fits(&check, &good), "{good}");
    }
    for bad in [
        json!({ "corr": "x" }),
        json!({ "owner": null }),
        json!({ "size": -1 }),
        json!({ "k": "x" }),
    ] {
        assert!(!fits(&check, &bad), "{bad}");
    }
}

#[test]
fn errors_are_not_judged_by_the_output_schema() {
    let check = output(&json!({ "type": "object", "required": ["success"] }));
    let judged =
        |result: Value| check.result(&Raw::of(&result)).map_err(|errors| errors.to_string());
    assert_eq!(judged(json!({ "isError": true, "structuredContent": { "code": 1 } })), Ok(()));
    assert_eq!(judged(json!({ "structuredContent": { "success": 1 } })), Ok(()));
    insta::assert_snapshot!(judged(json!({ "structuredContent": {} })).unwrap_err(), @"/success is missing");
    insta::assert_snapshot!(judged(json!({ "content": [] })).unwrap_err(), @"the whole lacks structuredContent, which the tool's outputSchema promises");
}

#[test]
fn structured_content_may_be_any_value() {
    let check = output(&json!({ "type": "array", "items": { "type": "object" } }));
    let judged = |content: Value| check.result(&Raw::of(&json!({ "structuredContent": content })));
    assert_eq!(judged(json!([{ "id": 1 }])), Ok(()));
    assert!(judged(json!([1])).is_err());
    let none = checked(&json!({ "name": "t" }));
    assert_eq!(none.result(&Raw::of(&json!({ "structuredContent": [1] }))), Ok(()));
    assert_eq!(
        output(&json!(true)).result(&Raw::of(&json!({ "structuredContent": null }))),
        Ok(())
    );
}

#[test]
fn empty_lists_read_as_empty_objects() {
    let check = input(&json!({ "type": "object", "properties": {
        "opt": { "type": "object", "properties": [] }, "any": []
    }, "required": [] }));
    insta::assert_snapshot!(findings(&check).join("\n"), @r"
    Soft schema/repaired /inputSchema/properties/opt/properties: `properties: []` was read as {}
    Soft schema/repaired /inputSchema/properties/any: an empty list was read as an empty schema
    ");
    assert!(fits(&check, &json!({})) && fits(&check, &json!({ "opt": { "x": 1 }, "any": 7 })));
    assert!(fits(&input(&json!({ "type": "object", "properties": [] })), &json!({})));
}

#[test]
fn a_dangling_reference_judges_nothing() {
    let check = input(&json!({
        "type": "object", "required": ["q"], "properties": {
            "who": { "type": "object", "properties": { "of": { "$ref": "#/$defs/Group" } },
                     "$defs": { "Group": { "type": "object" } } },
            "q": { "type": "string" },
        },
    }));
    insta::assert_snapshot!(findings(&check).join("\n"), @"Soft schema/dangling-ref /inputSchema/properties/who/properties/of/$ref: `#/$defs/Group` points at nothing in this schema; any value is taken here");
    assert!(
        fits(&check, &json!({ "q": "a" }))
            && fits(&check, &json!({ "q": "a", "who": { "of": 1 } }))
    );
    assert!(!fits(&check, &json!({ "who": {} })));
}

#[test]
fn a_tool_without_a_usable_schema_takes_any_object() {
    for definition in [
        json!({ "name": "t" }),
        json!({ "name": "t", "inputSchema": null }),
        json!({ "name": "t", "inputSchema": true }),
        json!({ "name": "t", "inputSchema": false }),
        json!({ "name": "t", "inputSchema": [] }),
        json!({ "name": "t", "inputSchema": "x" }),
        json!({ "name": "t", "inputSchema": { "type": "string" } }),
    ] {
        let check = checked(&definition);
        assert_eq!(check.findings().len(), 1, "{definition}");
        assert_eq!(check.findings()[0].tier, Tier::Soft);
        assert!(fits(&check, &json!({})) && fits(&check, &json!({ "a": 1 })));
        assert!(!fits(&check, &json!([])));
    }
}

#[test]
fn absent_arguments_are_an_empty_object_and_nothing_else_is() {
    let whoami = input(&json!({ "type": "object", "properties": {} }));
    let need = input(&json!({ "properties": { "x": { "type": "string" } }, "required": ["x"] }));
    assert_eq!(whoami.arguments(None), Ok(()));
    insta::assert_snapshot!(need.arguments(None).unwrap_err(), @"/x is missing: expected string");
    insta::assert_snapshot!(fault(&whoami, &json!(null)), @"the whole is no object: expected an object, got null; leave `arguments` out, or send {}");
    insta::assert_snapshot!(fault(&whoami, &json!("{}")), @r#"the whole is no object: expected an object, got "{}"; send the JSON object itself, not a string that holds it"#);
    insta::assert_snapshot!(fault(&whoami, &json!([])), @"the whole is no object: expected an object, got []");
}

/// The last one is judged; a server may take the first.
#[test]
fn a_repeated_member_is_refused() {
    let check = input(&json!({ "properties": { "a": { "type": "string" } } }));
    let judge = |text: &str| check.arguments(Some(&Raw::parse(text).unwrap())).is_ok();
    assert!(judge(r#"{"a":"x","b":{"a":1,":":2}}"#));
    for text in [r#"{"a":1,"a":"x"}"#, r#"{"a":"x","\u0061":"y"}"#, r#"{"b":[{"c":1,"c":1}]}"#] {
        assert!(!judge(text), "{text}");
    }
}

#[test]
fn wrongly_typed_keywords_are_dropped() {
    let check = input(&json!({
        "type": "object", "required": "x", "properties": {
            "a": { "type": "str", "required": true }, "b": { "type": "STRING" },
            "c": { "type": "integer", "minimum": "5", "maxLength": -1, "multipleOf": 0 },
            "d": { "enum": [], "pattern": 7, "anyOf": [], "uniqueItems": "yes" },
            "e": "string", "f": { "$ref": 7, "items": 1, "additionalProperties": "no" },
        },
    }));
    assert!(fits(&check, &json!({ "a": 1, "b": "x", "c": 1, "d": [1, 1], "e": 1, "f": [1] })));
    assert!(!fits(&check, &json!({ "b": 1 })) && !fits(&check, &json!({ "c": "1" })));
    insta::assert_snapshot!(findings(&check).join("\n"), @r"
    Soft schema/repaired /inputSchema/required: `required` must be a list of names; it was dropped
    Soft schema/repaired /inputSchema/properties/a/type: there is no type `str`; any type is taken
    Soft schema/repaired /inputSchema/properties/a/required: `required` on a property itself has no effect; the object above lists its names
    Soft schema/repaired /inputSchema/properties/b/type: the type `STRING` was read as `string`
    Soft schema/repaired /inputSchema/properties/c/minimum: `minimum` must be a number; it was dropped
    Soft schema/repaired /inputSchema/properties/c/maxLength: `maxLength` must be a whole number, zero or more; it was dropped
    Soft schema/repaired /inputSchema/properties/c/multipleOf: `multipleOf` must be a number above zero; it was dropped
    Soft schema/repaired /inputSchema/properties/d/enum: `enum` without a value allows nothing; it was dropped
    Soft schema/repaired /inputSchema/properties/d/pattern: `pattern` must be a string; it was dropped
    Soft schema/repaired /inputSchema/properties/d/anyOf: `anyOf` must be a list of schemas; it was dropped
    Soft schema/repaired /inputSchema/properties/d/uniqueItems: `uniqueItems` must be true or false; it was dropped
    Soft schema/repaired /inputSchema/properties/e: this is no schema; any value is taken
    Soft schema/repaired /inputSchema/properties/f/$ref: `$ref` must be a string; it was dropped
    Soft schema/repaired /inputSchema/properties/f/items: `items` must be a schema; it was dropped
    Soft schema/repaired /inputSchema/properties/f/additionalProperties: `additionalProperties` must be a schema; it was dropped
    ");
}

#[test]
fn references_that_leave_the_document_refuse_what_reaches_them() {
    for reference in [
        "http://169.254.169.254/x",
        "https://a.test/s.json#/d",
        "file:///etc/passwd",
        "//host/x",
        "other.json",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let check = input(&json!({ "properties": { "a": { keyword: reference }, "b": {} } }));
            assert_eq!(check.findings().len(), 1);
            assert_eq!(check.findings()[0].rule, "schema/external-ref");
            assert_eq!(check.findings()[0].tier, Tier::Hard);
            assert!(fits(&check, &json!({ "b": 1 })));
            let expect = format!(
                "/a cannot be judged: `{reference}` refers to an external document, which is never fetched"
            );
            assert_eq!(fault(&check, &json!({ "a": 1 })), expect);
        }
    }
    // An identifier cannot move references out of the document unseen, nor keep local ones out.
    let check =
        input(&json!({ "$id": "http://evil.test/s", "$defs": { "n": { "type": "integer" } },
        "properties": { "in": { "$ref": "#/$defs/n" }, "out": { "$ref": "other" } } }));
    assert!(fits(&check, &json!({ "in": 1 })) && !fits(&check, &json!({ "in": "x" })));
    assert!(fault(&check, &json!({ "out": 1 })).contains("`other` refers to an external document"));
    // Refusing under a negation would accept.
    for condition in [
        json!({ "not": { "$ref": "http://a.test/" } }),
        json!({ "not": { "properties": { "x": { "$ref": "#/$defs/d" } } } }),
        json!({ "if": { "$ref": "http://a.test/" }, "then": false }),
    ] {
        let check = input(&json!({
            "properties": { "a": condition, "b": { "$ref": "#/$defs/d" } },
            "$defs": { "d": { "$ref": "http://a.test/" } },
        }));
        assert!(!fits(&check, &json!({ "a": {} })), "{condition}");
        assert!(fits(&check, &json!({ "c": 1 })));
    }
    // A property may be called like a keyword.
    let check = input(&json!({ "properties": {
        "not": { "type": "string" }, "if": { "$ref": "http://a.test/" }, "$ref": { "type": "string" },
    } }));
    assert!(
        fits(&check, &json!({ "not": "x", "$ref": "x" })) && !fits(&check, &json!({ "not": 1 }))
    );
    assert!(!fits(&check, &json!({ "if": 1 })));
}

fn unusable(schema: &Raw) -> String {
    let raw = Raw::parse(format!(r#"{{"name":"t","inputSchema":{}}}"#, schema.get())).unwrap();
    let tool = Tool::read(raw, &mut Vec::new()).unwrap();
    let began = Instant::now();
    let (_, check) = look_over([&tool].into_iter(), &Limits::default(), |_| None).remove(0);
    let fault = check.arguments(None).unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(check.findings().last().unwrap().tier, Tier::Hard);
    fault
}

#[test]
fn schemas_beyond_the_bounds_are_not_used() {
    let deep = |levels: usize| {
        Raw::parse(format!("{}true{}", r#"{"items":"#.repeat(levels), "}".repeat(levels))).unwrap()
    };
    insta::assert_snapshot!(unusable(&deep(65)), @"the whole cannot be judged: the tool's inputSchema is not used: it nests more than 64 levels deep");
    assert_eq!(unusable(&deep(100_000)), unusable(&deep(65)));
    let long = Raw::of(&json!({ "enum": vec![0; 100_000] }));
    insta::assert_snapshot!(unusable(&long), @"the whole cannot be judged: the tool's inputSchema is not used: it holds more than 100000 values");
    let mut bomb = json!({ "$defs": { "d29": {} }, "allOf": [{ "$ref": "#/$defs/d0" }] });
    for n in 0..29 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        bomb["$defs"][format!("d{n}")] = json!({ "allOf": [next, next] });
    }
    insta::assert_snapshot!(unusable(&Raw::of(&bomb)), @"the whole cannot be judged: the tool's inputSchema is not used: its subschemas number more than 10000 once references are followed");
    let none = json!({ "$ref": "#" });
    insta::assert_snapshot!(unusable(&Raw::of(&none)), @"the whole cannot be judged: the tool's inputSchema is not used: a reference in it leads back to itself without looking at any part of the value");
    let mutual = json!({ "$ref": "#/$defs/a", "$defs": {
        "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" }
    } });
    assert_eq!(unusable(&Raw::of(&mutual)), unusable(&Raw::of(&none)));
    // References that each carry a large part of the document along.
    let mut nested = json!({ "enum": ["x".repeat(10_000)] });
    let (mut place, mut references) = (String::new(), Vec::new());
    for _ in 0..30 {
        nested = json!({ "properties": { "p": nested } });
        place.push_str("/properties/p");
        references.push(json!({ "$ref": format!("#/properties/n{place}") }));
    }
    let copies = json!({ "properties": { "n": nested }, "oneOf": references });
    insta::assert_snapshot!(unusable(&Raw::of(&copies)), @"the whole cannot be judged: the tool's inputSchema is not used: its references repeat large parts of it too often");
}

/// Stacks are smallest in test threads: 2 MiB.
#[test]
fn the_deepest_schema_and_value_allowed_do_not_exhaust_the_stack() {
    let mut definitions = serde_json::Map::new();
    for n in 0..55 {
        let next = format!("#/$defs/{}", n + 1);
        definitions.insert(n.to_string(), json!({ "allOf": [{ "$ref": next }] }));
    }
    definitions.insert("55".to_owned(), json!({ "properties": { "a": { "$ref": "#" } } }));
    let half: serde_json::Map<_, _> = definitions
        .iter()
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .filter(|(name, _)| name.parse::<u32>().unwrap() >= 30)
        .collect();
    let check = input(&json!({ "$ref": "#/$defs/30", "$defs": half }));
    assert_eq!(findings(&check), [""; 0]);
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert!(fits(&check, &nested(15)));
    assert!(fault(&check, &nested(60)).contains("nests too deep"));
    let flat = input(&json!({ "properties": { "a": { "$ref": "#" } } }));
    assert!(fits(&flat, &nested(63)));
    assert!(!fits(&flat, &nested(64)));
    let deep =
        Raw::parse(format!("{}{}{}", r#"{"a":"#.repeat(10_000), "{}", "}".repeat(10_000))).unwrap();
    assert!(flat.arguments(Some(&deep)).is_err());
}

#[test]
fn the_longest_chains_of_references_allowed_compile() {
    let check = |length: usize, link: fn(Value) -> Value| {
        let mut definitions = serde_json::Map::new();
        for n in 0..length {
            let next = json!({ "$ref": format!("#/$defs/{}", n + 1) });
            definitions.insert(n.to_string(), link(next));
        }
        definitions.insert(length.to_string(), json!({ "type": "object" }));
        let check = input(&json!({ "$ref": "#/$defs/0", "$defs": definitions }));
        assert_eq!(findings(&check), [""; 0]);
        assert!(fits(&check, &json!({ "a": {} })));
        assert!(check.compiles());
    };
    check(62, |next| next);
    check(31, |next| json!({ "allOf": [next] }));
    check(126, |next| json!({ "properties": { "a": next } }));
}

#[test]
fn messages_let_a_caller_mend_the_call() {
    let check = input(&json!({
        "type": "object", "additionalProperties": false, "required": ["path", "mode"],
        "properties": {
            "path": { "type": "string", "minLength": 1 },
            "mode": { "enum": ["read", "write"] },
            "count": { "type": "integer", "minimum": 1, "maximum": 5 },
            "tags": { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
            "who": { "anyOf": [{ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } }, { "type": "null" }] },
            "where": { "oneOf": [{ "type": "string" }, { "type": "integer" }] },
            "shape": { "anyOf": [
                { "type": "object", "required": ["kind", "r"], "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } } },
                { "type": "object", "required": ["kind", "w"], "properties": { "kind": { "const": "square" }, "w": { "type": "number" } } },
            ] },
            "date": { "type": "string", "pattern": "^\\d{4}-\\d\\d$" },
            "flag": { "type": "boolean" },
        },
    }));
    let good = |extra: Value| {
        let mut given = json!({ "path": "/a", "mode": "read" });
        given.as_object_mut().unwrap().append(&mut extra.as_object().unwrap().clone());
        given
    };
    assert!(fits(&check, &good(json!({}))));
    insta::assert_snapshot!(fault(&check, &json!({ "pth": "/a", "mode": "Read" })), @r#"
    /path is missing: expected string of at least 1 character; `pth` was given, did you mean `path`?
    /mode is not one of the allowed values: expected one of "read", "write", got "Read"; did you mean "read"?
    /pth is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`; did you mean `path`?
    "#);
    insta::assert_snapshot!(fault(&check, &good(json!({ "count": "3", "flag": "true" }))), @r#"
    /count has the wrong type: expected integer, got "3"; send it without quotes
    /flag has the wrong type: expected boolean, got "true"; send it without quotes
    "#);
    insta::assert_snapshot!(fault(&check, &good(json!({ "count": 9 }))), @"/count is out of range: expected integer from 1 to 5, got 9");
    insta::assert_snapshot!(fault(&check, &good(json!({ "tags": "a" }))), @r#"/tags has the wrong type: expected array, got "a"; put it in a list"#);
    insta::assert_snapshot!(fault(&check, &good(json!({ "tags": ["a", "a", 1] }))), @r"
    /tags has equal items: expected items that all differ, got an array of 3
    /tags/2 has the wrong type: expected string, got 1; put it in quotes
    ");
    insta::assert_snapshot!(fault(&check, &good(json!({ "who": { "name": "x" } }))), @"/who/id is missing: expected integer");
    insta::assert_snapshot!(fault(&check, &good(json!({ "who": 7 }))), @"/who fits none of the alternatives: expected object with `id` or null, got 7");
    insta::assert_snapshot!(fault(&check, &good(json!({ "where": [] }))), @"/where fits none of the alternatives: expected string or integer, got []");
    insta::assert_snapshot!(fault(&check, &good(json!({ "shape": { "kind": "circle" } }))), @"/shape/r is missing: expected number");
    insta::assert_snapshot!(fault(&check, &good(json!({ "shape": { "kind": "hexagon" } }))), @r#"/shape/kind is not one of the allowed values: expected one of "circle", "square", got "hexagon""#);
    insta::assert_snapshot!(fault(&check, &good(json!({ "date": "2026" }))), @r#"/date does not match: expected string matching `^\d{4}-\d\d$`, got "2026""#);
    insta::assert_snapshot!(fault(&check, &good(json!({ "flag": null }))), @"/flag has the wrong type: expected boolean, got null; leave it out instead of sending null");
    let many: serde_json::Map<_, _> = (0..20).map(|n| (format!("x{n}"), json!(1))).collect();
    insta::assert_snapshot!(fault(&check, &good(Value::Object(many))), @r"
    /x0 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x1 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x2 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x3 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x4 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x5 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x6 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    /x7 is unknown: expected only `path`, `mode`, `count`, `tags`, `who`, `where`, `shape`, `date`, `flag`
    and 12 more
    ");
    let nasty = "\u{1b}[31m".to_owned() + &"x".repeat(500);
    insta::assert_snapshot!(fault(&check, &json!({ "path": "", "mode": nasty })), @r#"
    /path is too short: expected string of at least 1 character, got ""
    /mode is not one of the allowed values: expected one of "read", "write", got "\u001b[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    "#);
}

#[test]
fn many_faults_in_a_large_value_are_not_all_collected() {
    let check = input(
        &json!({ "type": "object", "properties": { "a": { "items": { "anyOf": [{ "type": "string" }, { "type": "boolean" }] } } } }),
    );
    let large = json!({ "a": vec![1; 100_000] });
    insta::assert_snapshot!(fault(&check, &large), @"the whole does not fit, and is too large to say where: expected object");
}

fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!(1e300)),
        prop::sample::select(vec![
            "string",
            "object",
            "Int",
            "^a",
            "(",
            "#",
            "#/$defs/a",
            "#/items",
            "http://x",
            "a"
        ])
        .prop_map(Value::from),
    ];
    let keyword = prop::sample::select(vec![
        "type",
        "enum",
        "const",
        "minimum",
        "exclusiveMinimum",
        "multipleOf",
        "minLength",
        "maxItems",
        "uniqueItems",
        "pattern",
        "required",
        "properties",
        "patternProperties",
        "additionalProperties",
        "not",
        "if",
        "then",
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "minContains",
        "allOf",
        "anyOf",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "propertyNames",
        "$ref",
        "$dynamicRef",
        "$defs",
        "definitions",
        "$id",
        "$anchor",
        "a",
        "default",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((keyword.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_schema_says_it_compiles_when_mended_or_is_refused(
        schema in schema_like(),
        dialect in prop::sample::select(vec!["", "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]),
        value in schema_like(),
    ) {
        let mut schema = schema;
        if let (Value::Object(schema), false) = (&mut schema, dialect.is_empty()) {
            schema.insert("$schema".to_owned(), json!(dialect));
        }
        let check = checked(&json!({ "name": "t", "inputSchema": schema, "outputSchema": schema }));
        let _ = check.arguments(Some(&Raw::of(&json!({ "a": value }))));
        let _ = check.result(&Raw::of(&json!({ "structuredContent": value })));
        prop_assert!(check.compiles(), "{}", schema);
    }
}
