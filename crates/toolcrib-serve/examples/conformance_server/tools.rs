//! Tools that answer by themselves.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use toolcrib_serve::{
    LogLevel,
    declare::{Content, Contents, Context, Failure, Prompt, Tool, ToolResult},
};

use crate::content::{PNG, WAV};

pub(crate) fn all() -> Vec<Tool> {
    vec![
        Tool::new("test_simple_text", async || "This is a simple text response for testing.")
            .description("Answer with text"),
        Tool::new("test_image_content", async || Content::image(PNG, "image/png"))
            .description("Answer with an image"),
        Tool::new("test_audio_content", async || Content::audio(WAV, "audio/wav"))
            .description("Answer with sound"),
        Tool::new("test_embedded_resource", async || embedded())
            .description("Answer with a resource"),
        Tool::new("test_multiple_content_types", async || mixed())
            .description("Answer with text, an image and a resource"),
        Tool::new("test_error_handling", async || {
            ToolResult::error("This tool intentionally returns an error for testing")
        })
        .description("Fail"),
        Tool::new("test_tool_with_logging", logging).description("Log three messages"),
        Tool::new("test_logging_tool", logging).description("Log three messages"),
        Tool::new("test_tool_with_progress", progressing).description("Tell of progress"),
        Tool::new("test_reconnection", waiting).description("Take a moment"),
        Tool::new("test_x_mcp_header", async |Mirrored { region, count }: Mirrored| {
            format!("{region} {count:?}")
        })
        .description("Take arguments that headers repeat"),
        Tool::new("json_schema_2020_12_tool", async |given: Value| given.to_string())
            .description("Tool with JSON Schema 2020-12 features")
            .input_schema(wide()),
        Tool::new("test_trigger_tool_change", change_tools).description("Change the tools"),
        Tool::new("test_trigger_prompt_change", change_prompts).description("Change the prompts"),
    ]
}

fn embedded() -> Content {
    let text = "This is an embedded resource content.";
    Content::resource(Contents::text("test://embedded-resource", text).mime_type("text/plain"))
}

fn mixed() -> Vec<Content> {
    let text = r#"{"test":"data","value":123}"#;
    let contents = Contents::text("test://mixed-content-resource", text);
    vec![
        Content::text("Multiple content types test:"),
        Content::image(PNG, "image/png"),
        Content::resource(contents.mime_type("application/json")),
    ]
}

async fn logging(context: Context) -> &'static str {
    context.log(LogLevel::Info, &"Tool execution started").await;
    moment().await;
    context.log(LogLevel::Info, &"Tool processing data").await;
    moment().await;
    context.log(LogLevel::Info, &"Tool execution completed").await;
    "logged"
}

async fn progressing(context: Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        context.progress(done, Some(100.0), None).await;
        moment().await;
    }
    "done"
}

async fn waiting() -> &'static str {
    moment().await;
    "done"
}

async fn moment() {
    sleep(Duration::from_millis(50)).await;
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    #[schemars(extend("x-mcp-header" = "Count"))]
    #[serde(default)]
    count: i64,
}

/// A schema with all that a type could not say.
fn wide() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

async fn change_tools(context: Context) -> Result<&'static str, Failure> {
    let server = context.server();
    if !server.remove_tool("test_passing_tool") {
        let tool = Tool::new("test_passing_tool", async || "here");
        server.add(tool.description("Comes and goes"))?;
    }
    Ok("the tools changed")
}

async fn change_prompts(context: Context) -> Result<&'static str, Failure> {
    let server = context.server();
    if !server.remove_prompt("test_passing_prompt") {
        let prompt = Prompt::new("test_passing_prompt", async || "here");
        server.add(prompt.description("Comes and goes"))?;
    }
    Ok("the prompts changed")
}
