//! Servers made of declarations, in each era on each transport.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_core::version::Era;
use toolcrib_serve::{
    StdioOptions,
    declare::{
        Completing, Content, Contents, Context, DeclareError, Failure, Json, Message, Prompt,
        Resource, Server, ServerBuilder, Template, Tool, ToolResult,
    },
    invalid_params,
};

use crate::{
    house::{code, fits, modern},
    stdio::Client,
    talk::{Talk, everywhere as serve_everywhere},
};

/// Weigh something
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Weigh {
    /// What to weigh
    thing: Thing,
    #[schemars(range(min = 1, max = 9))]
    times: u8,
    #[serde(default)]
    exact: bool,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Thing {
    Hammer,
    Nail,
}

#[derive(Serialize, JsonSchema)]
struct Weight {
    grams: u32,
}

async fn weigh(Weigh { thing, times, exact }: Weigh) -> Json<Weight> {
    let grams = match thing {
        Thing::Hammer => 700,
        Thing::Nail => 3,
    };
    Json(Weight { grams: grams * u32::from(times) + u32::from(exact) })
}

#[derive(Deserialize, JsonSchema)]
struct Shelf {
    row: u8,
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct Host {
    address: std::net::Ipv4Addr,
}

/// Plan a job
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// What is to be done
    job: String,
    /// How many days
    days: Option<u8>,
    careful: Option<bool>,
}

async fn plan(Plan { job, days, careful }: Plan) -> Vec<Message> {
    let words = format!("{job} in {} days, careful: {careful:?}", days.unwrap_or(1));
    vec![Message::user(words), Message::assistant("All right.")]
}

async fn collapse() -> &'static str {
    panic!("a tool that fails on purpose")
}

fn workshop() -> ServerBuilder {
    Server::builder("workshop", "1.0")
        .title("Workshop")
        .ttl_ms(5)
        .public()
        .follow_resources()
        .with(Tool::new("weigh", weigh).title("Weigh").read_only().idempotent().closed_world())
        .with(Tool::new("list", async || Json(vec![1, 2])).description("A list"))
        .with(Tool::new("nothing", async || ()).with("_meta", json!({"a/b": 1})))
        .with(Tool::new("fail", async || {
            let failed: Result<(), Failure> = Err(Failure::new("the saw is blunt"));
            failed
        }))
        .with(Tool::new("words", async || Err::<(), _>("only words".to_owned())))
        .with(Tool::new("boxed", async || {
            Err::<(), Box<dyn std::error::Error + Send + Sync>>("in a box".into())
        }))
        .with(Tool::new("refuse", async || Err::<(), _>(invalid_params("not like this"))))
        .with(Tool::new("read_file", async || std::fs::read_to_string("/no/such/file")))
        .with(Tool::new("collapse", collapse))
        .with(Tool::new("lie", async || Json(1)).output_schema(json!({"type": "string"})))
        .with(Tool::new("sleep", async || pending::<&str>().await))
        .with(Resource::new("shop:rules", "rules", async || "no smoking").mime_type("text/plain"))
        .with(Resource::new("shop:photo", "photo", async || vec![0_u8, 255]))
        .with(Resource::new("shop:gone", "gone", async || {
            let gone: Result<String, Failure> = Err(Failure::not_found());
            gone
        }))
        .with(
            Template::new(
                "shop:shelf/{row}/{label}",
                "shelf",
                async |Shelf { row, label }: Shelf| {
                    Contents::text(format!("shop:shelf/{row}/{label}"), format!("{row}:{label}"))
                },
            )
            .complete("label", async |asked: Completing| {
                (0..150).map(|number| format!("{}{number}", asked.value)).collect()
            }),
        )
        .with(Template::new("shop:host/{address}", "host", async |Host { address }: Host| {
            address.to_string()
        }))
        .with(Prompt::new("plan", plan).title("Plan").complete("job", async |asked: Completing| {
            vec![format!("{} after {:?}", asked.value, asked.arguments)]
        }))
}

async fn everywhere(body: impl AsyncFn(Talk<Server>)) {
    serve_everywhere(|| Arc::new(workshop().build().unwrap()), &json!({}), body).await;
}

impl Talk<Server> {
    async fn run(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }
}

#[tokio::test]
async fn every_answer_fits_its_schema() {
    everywhere(async |mut talk| {
        for (method, definition, params) in [
            ("tools/list", "ListToolsResult", json!({})),
            ("prompts/list", "ListPromptsResult", json!({})),
            ("resources/list", "ListResourcesResult", json!({})),
            ("resources/templates/list", "ListResourceTemplatesResult", json!({})),
            ("resources/read", "ReadResourceResult", json!({"uri": "shop:rules"})),
            ("resources/read", "ReadResourceResult", json!({"uri": "shop:photo"})),
            ("resources/read", "ReadResourceResult", json!({"uri": "shop:shelf/3/a%20b"})),
            ("tools/call", "CallToolResult", json!({"name": "nothing"})),
            ("tools/call", "CallToolResult", json!({"name": "fail"})),
            ("tools/call", "CallToolResult", json!({"name": "list"})),
            ("prompts/get", "GetPromptResult", json!({"name": "plan", "arguments": {"job": "x"}})),
            (
                "completion/complete",
                "CompleteResult",
                json!({
                    "ref": {"type": "ref/prompt", "name": "plan"},
                    "argument": {"name": "job", "value": "p"},
                }),
            ),
        ] {
            let answer = talk.ask(method, params).await;
            fits(talk.revision(), "JSONRPCResultResponse", &answer);
            fits(talk.revision(), definition, &answer["result"]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_definition_says_what_its_types_say() {
    everywhere(async |mut talk| {
        let answer = talk.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        let weigh = json!({
            "name": "weigh",
            "description": "Weigh something",
            "title": "Weigh",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "thing": {
                        "description": "What to weigh",
                        "type": "string",
                        "enum": ["hammer", "nail"],
                    },
                    "times": { "type": "integer", "minimum": 1, "maximum": 9 },
                    "exact": { "type": "boolean", "default": false },
                },
                "additionalProperties": false,
                "required": ["thing", "times"],
            },
            "outputSchema": {
                "type": "object",
                "properties": { "grams": { "type": "integer", "minimum": 0, "maximum": u32::MAX } },
                "required": ["grams"],
            },
            "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
        });
        assert_eq!(tools[0], weigh);
        // Older revisions know structured objects only.
        let list = &tools[1];
        assert_eq!(list["outputSchema"]["type"] == "array", talk.era == Era::Modern, "{list}");
        assert_eq!(tools[2]["_meta"], json!({"a/b": 1}));
        let answer = talk.ask("prompts/list", json!({})).await;
        let arguments = json!([
            {"name": "job", "description": "What is to be done", "required": true},
            {"name": "days", "description": "How many days", "required": false},
            {"name": "careful", "required": false},
        ]);
        assert_eq!(answer["result"]["prompts"][0]["arguments"], arguments);
        assert_eq!(answer["result"]["prompts"][0]["description"], "Plan a job");
    })
    .await;
}

#[tokio::test]
async fn functions_get_what_fits_and_nothing_else() {
    everywhere(async |mut talk| {
        let good = talk.run("weigh", json!({"thing": "nail", "times": 2.0})).await;
        assert_eq!(good["result"]["structuredContent"], json!({"grams": 6}));
        assert_eq!(good["result"]["content"][0]["text"], r#"{"grams":6}"#);
        for (arguments, part) in [
            (json!({"thing": "nail"}), "/times is missing"),
            (json!({"thing": "saw", "times": 1}), "/thing"),
            (json!({"thing": "nail", "times": 10}), "/times"),
            (json!({"thing": "nail", "times": "1"}), "without quotes"),
            (json!({"thing": "nail", "times": 1, "time": 1}), "/time is unknown"),
            (json!([]), "no object"),
            (json!("{}"), "not a string that holds it"),
            (Value::Null, "leave `arguments` out"),
        ] {
            let answer = talk.run("weigh", arguments.clone()).await;
            let result = &answer["result"];
            assert_eq!(result["isError"], true, "{arguments}: {answer}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(part), "{arguments}: {text}");
        }
        let answer = talk.ask("tools/call", json!({"name": "nothing"})).await;
        assert_eq!(answer["result"]["content"], json!([]));
        assert_eq!(code(&talk.run("no-such", json!({})).await), -32602);
        assert_eq!(code(&talk.ask("tools/call", json!({"name": 1})).await), -32602);
    })
    .await;
}

#[tokio::test]
async fn a_failure_is_told_to_the_model_and_a_fault_to_the_client() {
    everywhere(async |mut talk| {
        for (tool, part) in [
            ("fail", "the saw is blunt"),
            ("words", "only words"),
            ("boxed", "in a box"),
            ("read_file", "No such file"),
        ] {
            let result = talk.run(tool, json!({})).await["result"].clone();
            assert_eq!(result["isError"], true, "{result}");
            assert!(result["content"][0]["text"].as_str().unwrap().contains(part), "{result}");
        }
        assert_eq!(code(&talk.run("refuse", json!({})).await), -32602);
        assert_eq!(code(&talk.run("collapse", json!({})).await), -32603);
        let lie = talk.run("lie", json!({})).await;
        match talk.era {
            Era::Modern => assert_eq!(code(&lie), -32603),
            // Nothing structured was promised.
            Era::Legacy => assert_eq!(lie["result"]["content"][0]["text"], "1"),
        }
        let list = talk.run("list", json!({})).await;
        let structured = list["result"].get("structuredContent");
        assert_eq!(structured == Some(&json!([1, 2])), talk.era == Era::Modern, "{list}");
        let gone = if talk.era == Era::Modern { -32602 } else { -32002 };
        for uri in
            ["shop:gone", "shop:none", "shop:shelf/x/y", "shop:shelf/256/y", "shop:host/nope"]
        {
            let answer = talk.ask("resources/read", json!({"uri": uri})).await;
            assert_eq!((code(&answer), &answer["error"]["data"]["uri"]), (gone, &uri.into()));
        }
    })
    .await;
}

#[tokio::test]
async fn resources_and_prompts_are_typed_too() {
    everywhere(async |mut talk| {
        let read = async |talk: &mut Talk<Server>, uri: &str| {
            talk.ask("resources/read", json!({"uri": uri})).await["result"]["contents"][0].clone()
        };
        let rules = json!({"uri": "shop:rules", "mimeType": "text/plain", "text": "no smoking"});
        assert_eq!(read(&mut talk, "shop:rules").await, rules);
        assert_eq!(read(&mut talk, "shop:photo").await["blob"], "AP8=");
        assert_eq!(read(&mut talk, "shop:shelf/3/a%20b").await["text"], "3:a b");
        // A text stays a text where one is wanted, also one that looks like a number.
        assert_eq!(read(&mut talk, "shop:shelf/3/7").await["text"], "3:7");
        let mut plan = async |arguments: Value| {
            talk.ask("prompts/get", json!({"name": "plan", "arguments": arguments})).await
        };
        let good = plan(json!({"job": "1", "days": "2", "careful": "true"})).await;
        let messages = &good["result"]["messages"];
        assert_eq!(messages[0]["content"]["text"], "1 in 2 days, careful: Some(true)");
        assert_eq!(messages[1]["role"], "assistant");
        for bad in [json!({}), json!({"job": "x", "days": "two"}), json!({"job": 1})] {
            assert_eq!(code(&plan(bad.clone()).await), -32602, "{bad}");
        }
    })
    .await;
}

#[tokio::test]
async fn completion_gives_a_hundred_at_most() {
    everywhere(async |mut talk| {
        let mut complete = async |reference: Value, name: &str| {
            let params = json!({
                "ref": reference,
                "argument": {"name": name, "value": "v"},
                "context": {"arguments": {"a": "b"}},
            });
            talk.ask("completion/complete", params).await
        };
        let prompt = json!({"type": "ref/prompt", "name": "plan"});
        let template = json!({"type": "ref/resource", "uri": "shop:shelf/{row}/{label}"});
        let known = complete(prompt.clone(), "job").await;
        let arguments = BTreeMap::from([("a", "b")]);
        let values = json!([format!("v after {arguments:?}")]);
        assert_eq!(known["result"]["completion"]["values"], values);
        let many = complete(template, "label").await["result"]["completion"].clone();
        assert_eq!((&many["total"], &many["hasMore"]), (&150.into(), &true.into()));
        assert_eq!(many["values"].as_array().unwrap().len(), 100);
        let none = complete(prompt, "days").await["result"]["completion"].clone();
        assert_eq!(none, json!({"values": [], "total": 0, "hasMore": false}));
        for odd in [json!({"type": "ref/prompt", "name": "no"}), json!({"type": "other"})] {
            assert_eq!(code(&complete(odd.clone(), "job").await), -32602, "{odd}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_added_while_it_runs_is_there_and_announced() {
    let server = Server::builder("s", "1").with(Tool::new("one", async || "1")).build().unwrap();
    let mut client = Client::of(Arc::new(server.clone()), StdioOptions::default());
    let filter = json!({"toolsListChanged": true, "promptsListChanged": true});
    let listen = modern("l", "subscriptions/listen", json!({"notifications": filter}));
    client.send(&listen.to_string()).await;
    let granted = client.next().await["params"]["notifications"].clone();
    assert_eq!(granted, json!({"toolsListChanged": true}), "there are no prompts yet");
    server.add(Tool::new("two", async || "2")).unwrap();
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    assert!(server.remove_tool("one") && !server.remove_tool("one"));
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    assert!(matches!(
        server.add(Tool::new("two", async || "2")),
        Err(DeclareError::Taken { kind: "tool", .. })
    ));
    server.add(Prompt::new("p", async || "p")).unwrap();
    client.send(&modern(2, "tools/list", json!({})).to_string()).await;
    let tools = client.next().await["result"]["tools"].clone();
    assert_eq!(tools[0]["name"], "two");
    assert_eq!(tools.as_array().unwrap().len(), 1);
    client.send(&modern(3, "server/discover", json!({})).to_string()).await;
    let capabilities = client.next().await["result"]["capabilities"].clone();
    let listed = json!({"listChanged": true});
    assert_eq!(capabilities, json!({"tools": listed, "prompts": listed}));
}

#[tokio::test]
async fn lists_are_paged_to_the_letter() {
    let numbers = (0..5).map(|number| format!("tool{number}"));
    let server = numbers.clone().fold(Server::builder("s", "1").page_size(2), |server, name| {
        server.with(Tool::new(name, async || ""))
    });
    let mut client = Client::of(Arc::new(server.build().unwrap()), StdioOptions::default());
    let (mut seen, mut params, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        pages += 1;
        client.send(&modern(pages, "tools/list", params.clone()).to_string()).await;
        let result = client.next().await["result"].clone();
        fits("2026-07-28", "ListToolsResult", &result);
        for tool in result["tools"].as_array().unwrap() {
            seen.push(tool["name"].as_str().unwrap().to_owned());
        }
        match result.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!((pages, seen), (3, numbers.collect()));
    params["cursor"] = "99".into();
    client.send(&modern(9, "tools/list", params).to_string()).await;
    assert_eq!(code(&client.next().await), -32602);
}

#[tokio::test]
async fn a_tool_that_never_ends_is_given_up() {
    let options = StdioOptions { request_ms: 50, ..StdioOptions::default() };
    let mut client = Client::of(Arc::new(workshop().build().unwrap()), options);
    client.send(&modern(1, "tools/call", json!({"name": "sleep"})).to_string()).await;
    let answer = client.next().await;
    assert_eq!(code(&answer), -32603);
    assert!(answer["error"]["message"].as_str().unwrap().contains("50 ms"), "{answer}");
}

/// Each keyword of JSON Schema that can refuse a value, a value it refuses, and one it takes.
fn keywords() -> Vec<(Value, Value, Value)> {
    vec![
        (json!({"type": "string"}), json!(1), json!("a")),
        (json!({"enum": [1, "b"]}), json!(2), json!("b")),
        (json!({"const": null}), json!(0), json!(null)),
        (json!({"multipleOf": 5}), json!(7), json!(10)),
        (json!({"maximum": 3}), json!(4), json!(3)),
        (json!({"exclusiveMaximum": 3}), json!(3), json!(2)),
        (json!({"minimum": 3}), json!(2), json!(3)),
        (json!({"exclusiveMinimum": 3}), json!(3), json!(4)),
        (json!({"maxLength": 2}), json!("abc"), json!("ab")),
        (json!({"minLength": 2}), json!("a"), json!("ab")),
        (json!({"pattern": "^a+$"}), json!("b"), json!("aa")),
        (json!({"items": {"type": "string"}}), json!([1]), json!(["a"])),
        (json!({"prefixItems": [{"type": "string"}]}), json!([1]), json!(["a", 1])),
        (json!({"prefixItems": [true], "items": false}), json!([1, 2]), json!([1])),
        (json!({"maxItems": 1}), json!([1, 2]), json!([1])),
        (json!({"minItems": 1}), json!([]), json!([1])),
        (json!({"uniqueItems": true}), json!([1, 1]), json!([1, 2])),
        (json!({"contains": {"const": 1}}), json!([2]), json!([2, 1])),
        (json!({"contains": {"const": 1}, "minContains": 2}), json!([1]), json!([1, 1])),
        (json!({"contains": {"const": 1}, "maxContains": 1}), json!([1, 1]), json!([1])),
        (json!({"maxProperties": 1}), json!({"a": 1, "b": 1}), json!({"a": 1})),
        (json!({"minProperties": 1}), json!({}), json!({"a": 1})),
        (json!({"required": ["a"]}), json!({}), json!({"a": 1})),
        (json!({"properties": {"a": {"type": "string"}}}), json!({"a": 1}), json!({"a": "b"})),
        (json!({"patternProperties": {"^a": false}}), json!({"ab": 1}), json!({"b": 1})),
        (json!({"additionalProperties": false}), json!({"a": 1}), json!({})),
        (json!({"unevaluatedProperties": false}), json!({"a": 1}), json!({})),
        (json!({"unevaluatedItems": false}), json!([1]), json!([])),
        (json!({"propertyNames": {"maxLength": 1}}), json!({"ab": 1}), json!({"a": 1})),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), json!({"a": 1, "b": 1})),
        (json!({"dependentSchemas": {"a": {"required": ["b"]}}}), json!({"a": 1}), json!({"b": 1})),
        (json!({"not": {"type": "string"}}), json!("a"), json!(1)),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(3), json!(2)),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!(1), json!(null)),
        (json!({"oneOf": [{"minimum": 1}, {"maximum": 2}]}), json!(1.5), json!(3)),
        (
            json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"maximum": 2}}),
            json!(6),
            json!(10),
        ),
        (json!({"$ref": "#/$defs/short"}), json!("abc"), json!("a")),
        (json!(false), json!(1), json!("unused")),
    ]
}

#[tokio::test]
async fn every_keyword_refuses_before_the_function_runs() {
    let table = keywords();
    let runs = Arc::new(AtomicUsize::new(0));
    let mut server = Server::builder("keywords", "1");
    for (number, (schema, ..)) in table.iter().enumerate() {
        let runs = Arc::clone(&runs);
        let schema = json!({
            "type": "object",
            "properties": {"value": schema},
            "required": ["value"],
            "$defs": {"short": {"maxLength": 2}},
        });
        let run = move |_: Value| {
            runs.fetch_add(1, Ordering::Relaxed);
            std::future::ready("ran")
        };
        server = server.with(Tool::new(format!("t{number}"), run).input_schema(schema));
    }
    let mut client = Client::of(Arc::new(server.build().unwrap()), StdioOptions::default());
    let mut call = async |number: usize, value: &Value| {
        let arguments = json!({"value": value});
        let params = json!({"name": format!("t{number}"), "arguments": arguments});
        client.send(&modern(1, "tools/call", params).to_string()).await;
        client.next().await["result"].clone()
    };
    for (number, (schema, bad, good)) in table.iter().enumerate() {
        let refused = call(number, bad).await;
        assert_eq!(refused["isError"], true, "{schema} took {bad}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("/value"), "{schema}: {text}");
        assert_eq!(runs.load(Ordering::Relaxed), 0, "{schema} ran with {bad}");
        if *schema != json!(false) {
            let ran = call(number, good).await;
            assert_eq!(ran["content"][0]["text"], "ran", "{schema} refused {good}: {ran}");
            runs.store(0, Ordering::Relaxed);
        }
    }
}

#[test]
fn what_no_client_could_use_cannot_be_declared() {
    let check = |server: ServerBuilder, part: &str| {
        let error = server.build().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let new = || Server::builder("s", "1");
    let tool = |name: &str| Tool::new(name, async || "");
    check(new().with(tool("a")).with(tool("a")), "two tools called \"a\"");
    for name in ["", "a b", "ä", &"a".repeat(129)] {
        check(new().with(tool(name)), "a name has 1 to 128 characters");
    }
    check(new().with(Tool::new("a", async |_: Vec<u8>| "")), "is a struct or a map");
    let deep = (0..80).fold(json!({}), |schema, _| json!({"not": schema}));
    let deep = json!({"type": "object", "properties": {"a": deep}});
    check(new().with(tool("a").input_schema(deep)), "levels deep");
    let header =
        json!({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}});
    check(new().with(tool("a").input_schema(header)), "x-mcp-header");
    let template = |text: &str| Template::new(text, "t", async |_: Shelf| "");
    check(new().with(template("a:{row}")), "needs \"label\"");
    check(new().with(template("a:{row}/{label}/{x}")), "no field \"x\"");
    check(new().with(template("a:{row")), "URI template");
    let completed = template("a:{row}/{label}").complete("x", async |_| Vec::new());
    check(new().with(completed), "completes \"x\"");
    check(
        new().with(tool("a").input_schema(json!({"type": "strng"}))),
        "the root of its inputSchema",
    );
    #[derive(Deserialize, JsonSchema)]
    struct Nested {
        inner: Vec<String>,
    }
    let nested = async |Nested { inner }: Nested| inner.join(" ");
    check(new().with(Prompt::new("p", nested)), "neither text, number, flag nor choice");
    let prompt = Prompt::new("p", plan).complete("x", async |_| Vec::new());
    check(new().with(prompt), "completes \"x\"");
    check(new().with(Resource::new("rules", "r", async || "")), "scheme");
}

#[tokio::test]
async fn every_shape_of_function_can_be_declared() {
    let tools = [
        Tool::new("bare", async || "text"),
        Tool::new("context", async |context: Context| context.version().to_string()),
        Tool::new("argument", async |Plan { job, .. }: Plan| job),
        Tool::new("both", async |Plan { job, .. }: Plan, context: Context| {
            format!("{job} {}", context.client_has("/roots"))
        }),
        Tool::new("block", async || Content::link("a:b", "b").with("description", "c")),
        Tool::new("blocks", async || vec![Content::from("a"), Content::image([1], "image/png")]),
        Tool::new("whole", async || ToolResult::error("no")),
    ];
    let server = tools.into_iter().fold(Server::builder("s", "1"), ServerBuilder::with);
    let mut client = Client::of(Arc::new(server.build().unwrap()), StdioOptions::default());
    for (tool, expect) in [
        ("bare", json!({"content": [{"type": "text", "text": "text"}]})),
        ("context", json!({"content": [{"type": "text", "text": "2026-07-28"}]})),
        ("argument", json!({"content": [{"type": "text", "text": "j"}]})),
        ("both", json!({"content": [{"type": "text", "text": "j false"}]})),
        (
            "block",
            json!({"content": [
                {"type": "resource_link", "uri": "a:b", "name": "b", "description": "c"}]}),
        ),
        (
            "blocks",
            json!({"content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "AQ==", "mimeType": "image/png"}]}),
        ),
        ("whole", json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
    ] {
        let params = json!({"name": tool, "arguments": {"job": "j"}});
        let params =
            if matches!(tool, "argument" | "both") { params } else { json!({"name": tool}) };
        client.send(&modern(1, "tools/call", params).to_string()).await;
        let mut result = client.next().await["result"].clone();
        fits("2026-07-28", "CallToolResult", &result);
        let members = result.as_object_mut().unwrap();
        members.remove("_meta");
        members.remove("resultType");
        assert_eq!(result, expect, "{tool}");
    }
}
