//! A client for the MCP conformance harness: connects to the URL given last, lists everything,
//! calls every tool, renders every prompt and reads every resource, and answers elicitations with
//! the defaults of their schemas. The harness judges what it sees on the wire.
//!
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` chooses the era, `MCP_CONFORMANCE_CONTEXT` may name the calls.

use std::{env, process::ExitCode};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    raw::Raw,
    rpc::Params,
    surface::ListKind,
    target::{Endpoint, ServerConfig, Target},
    version::{EraPolicy, Version},
};
use toolcrib_engine::{CallError, CallOptions, Elicited, Engine, Handlers, Options, Snapshot};

const SERVER: &str = "peer";

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = env::args().next_back().filter(|arg| arg.starts_with("http")) else {
        return ExitCode::from(2);
    };
    let mut config = ServerConfig::new(SERVER, Target::Http(Endpoint::new(url)));
    let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    config.era = match Version::parse(&version) {
        Some(Version::V2026_07_28) | None => EraPolicy::Auto,
        Some(_) => EraPolicy::Legacy,
    };
    let engine =
        Engine::start(vec![config], Options { handlers: handlers(), ..Options::default() });
    let snapshot = engine.settled(&ListKind::ALL, None).await;
    let reached = snapshot.part(SERVER).is_some_and(|part| part.session.is_some());
    use_everything(&engine, &snapshot).await;
    engine.shutdown().await;
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Errors of single requests are the server's business: the harness wants to see them sent.
async fn use_everything(engine: &Engine, snapshot: &Snapshot) {
    for (name, arguments) in calls(snapshot) {
        let given = Raw::of(&arguments);
        let called = engine.call(&name, Some(&given), CallOptions::default()).await;
        if matches!(called, Err(CallError::Arguments { .. })) {
            // What a model would mend: a null where the schema wants the argument left out.
            let mended = Raw::of(&without_nulls(arguments));
            let _ = engine.call(&name, Some(&mended), CallOptions::default()).await;
        }
    }
    echo_schema(engine, snapshot).await;
    let Some(surface) = snapshot.part(SERVER).and_then(|part| part.surface.clone()) else { return };
    for prompt in surface.prompts.items.iter() {
        let arguments: Map<String, Value> =
            prompt.arguments.iter().map(|arg| (arg.name.clone(), "x".into())).collect();
        let arguments = Raw::of(&arguments);
        let _ = engine.prompt(&prompt.name, Some(&arguments), CallOptions::default()).await;
    }
    for resource in surface.resources.items.iter() {
        let _ = engine.read(&resource.uri, Some(SERVER), CallOptions::default()).await;
    }
}

fn without_nulls(mut arguments: Value) -> Value {
    if let Some(members) = arguments.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    arguments
}

/// The scenario that looks whether a schema arrives whole wants it sent back.
async fn echo_schema(engine: &Engine, snapshot: &Snapshot) {
    let Some(part) = snapshot.part(SERVER) else { return };
    let schema = part.tool("json_schema_2020_12_tool").and_then(|tool| tool.input_schema.clone());
    if let (Some(schema), Some(_)) = (schema, part.tool("json_schema_echo")) {
        let arguments = Params::new().with("schema", schema).encode();
        let arguments = Raw::parse(arguments).ok();
        let _ = engine.call("json_schema_echo", arguments.as_ref(), CallOptions::default()).await;
    }
}

/// The calls the harness asks for, or one of every tool.
fn calls(snapshot: &Snapshot) -> Vec<(String, Value)> {
    let context: Value = env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    if let Some(calls) = context["toolCalls"].as_array() {
        return calls
            .iter()
            .filter_map(|call| Some((call["name"].as_str()?.to_owned(), call["arguments"].clone())))
            .collect();
    }
    let Some(part) = snapshot.part(SERVER) else { return Vec::new() };
    part.tools()
        .map(|tool| {
            let schema: Value =
                tool.input_schema.as_ref().and_then(|raw| raw.read().ok()).unwrap_or_default();
            (format!("{SERVER}.{}", tool.name), sample(&schema))
        })
        .collect()
}

/// A value that fits a simple schema.
fn sample(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("string") => json!("x"),
        _ => {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            let filled: Map<_, _> =
                properties.iter().map(|(name, schema)| (name.clone(), sample(schema))).collect();
            filled.into()
        }
    }
}

/// Answers with the defaults of the form, as the harness wants to see it.
fn handlers() -> Handlers {
    Handlers::new().on_form(|question| async move {
        let schema = question.form.schema.read().unwrap_or_default();
        match sample(&schema) {
            Value::Object(content) => Elicited::Accept(content),
            _ => Elicited::Decline,
        }
    })
}
