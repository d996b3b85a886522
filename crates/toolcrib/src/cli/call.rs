//! `call`: one tool, arguments checked before anything is sent.

use std::io::Read as _;

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{
    code::Code,
    limits::Limits,
    raw::Raw,
    rpc::{Params, message::members},
    surface::ListKind,
};
use toolcrib_engine::{CallOptions, Called, Engine, options::ResultCheck};

use super::{
    args::{Call, Global},
    ask,
    named::{await_name, owners},
    setup::{Setup, with_engine},
    wait,
};
use crate::{
    failure::{Failure, Outcome},
    show::{Out, Talk, content, json},
};

pub(crate) async fn run(global: &Global, args: Call) -> Outcome {
    let given = given(args.arguments.as_deref())?;
    let setup = Setup::load(global)?;
    let servers = owners(&setup, &args.name)?;
    let mut options = setup.options();
    options.handlers = ask::handlers(global);
    if args.strict {
        options.results = ResultCheck::Strict;
    }
    let engine = setup.start(servers, options)?;
    with_engine(engine, async |engine| call(global, engine, &args, given).await).await
}

async fn call(global: &Global, engine: &Engine, args: &Call, given: Option<Raw>) -> Outcome {
    await_name(engine, ListKind::Tools, &args.name).await?;
    let arguments = with_pairs(engine, args, given)?;
    let options = call_options(global);
    let called = engine.call(&args.name, arguments.as_ref(), options).await?;
    if let Some(misfit) = &called.misfit {
        Talk::warn(format!("the result does not fit the tool's output schema: {misfit}"));
    }
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &Shown::of("call", &called))?;
    } else {
        content::tool_result(&mut out, &called.result)?;
    }
    Ok(if called.is_error { Code::ToolError } else { Code::Ok })
}

/// The shape of `call`, `read` and `prompt` with `--json`. The result is as the server sent it.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    format: json::Format,
    server: &'a str,
    item: &'a str,
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    misfit: Option<&'a str>,
    took_ms: u64,
    result: &'a Raw,
}

impl<'a> Shown<'a> {
    pub(super) fn of(what: &'static str, called: &'a Called) -> Self {
        Self {
            format: json::Format(what),
            server: &called.server,
            item: &called.item,
            code: if called.is_error { Code::ToolError } else { Code::Ok },
            misfit: called.misfit.as_deref(),
            took_ms: u64::try_from(called.took.as_millis()).unwrap_or(u64::MAX),
            result: &called.result,
        }
    }
}

/// How long to wait, as the command line says.
pub(super) fn call_options(global: &Global) -> CallOptions {
    CallOptions { timeout: global.timeout, progress: wait::progress(), ..CallOptions::default() }
}

/// The JSON of the command line, or of standard input for `-`.
pub(super) fn given(text: Option<&str>) -> Result<Option<Raw>, Failure> {
    let text = match text {
        None => return Ok(None),
        Some("-") => {
            let mut text = String::new();
            let limit = 64 << 20;
            std::io::stdin()
                .take(limit)
                .read_to_string(&mut text)
                .map_err(|error| Failure::usage(format!("standard input: {error}")))?;
            text
        }
        Some(text) => text.to_owned(),
    };
    Raw::parse(text.trim().to_owned()).map(Some).map_err(|error| {
        Failure::usage(format!("the arguments are no JSON: {error}"))
            .hint(r#"quote them for the shell: '{"name": "value"}', or use --arg name=value"#)
    })
}

/// Adds `--arg name=value` to the JSON given, each read as the tool's schema says.
fn with_pairs(engine: &Engine, args: &Call, given: Option<Raw>) -> Result<Option<Raw>, Failure> {
    if args.arg.is_empty() {
        return Ok(given);
    }
    let snapshot = engine.snapshot();
    let named = snapshot.resolve(ListKind::Tools, &args.name).ok();
    let tool = named.and_then(|named| snapshot.part(&named.server)?.tool(&named.item));
    let schema: Value = tool
        .and_then(|tool| tool.input_schema.as_ref())
        .and_then(|schema| schema.tree(Limits::default().schema_values).ok())
        .unwrap_or(Value::Null);
    merged(given, &args.arg, |name, text| typed(&schema["properties"][name], text)).map(Some)
}

/// Puts pairs over the members of an object.
pub(super) fn merged(
    given: Option<Raw>,
    pairs: &[(String, String)],
    value: impl Fn(&str, &str) -> Raw,
) -> Result<Raw, Failure> {
    let mut members: Vec<(String, Raw)> = match &given {
        None => Vec::new(),
        Some(given) => members(given)
            .map_err(|_| Failure::usage("--arg goes with a JSON object, not with another value"))?,
    };
    for (name, text) in pairs {
        let new = value(name, text);
        match members.iter_mut().find(|(known, _)| known == name) {
            Some(member) => member.1 = new,
            None => members.push((name.clone(), new)),
        }
    }
    let params =
        members.into_iter().fold(Params::new(), |params, (name, value)| params.with(name, value));
    Raw::parse(params.encode()).map_err(|error| Failure::usage(error.to_string()))
}

/// A value as a property's schema says: a string stays text, anything else is read as JSON where
/// that is possible.
fn typed(schema: &Value, text: &str) -> Raw {
    let takes_string = match &schema["type"] {
        Value::String(kind) => kind == "string",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    if takes_string {
        return Raw::of(&text);
    }
    Raw::parse(text.to_owned()).unwrap_or_else(|_| Raw::of(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pair_is_read_as_the_schema_says() {
        let check = |schema: Value, text: &str, expect: &str| {
            assert_eq!(typed(&schema, text).get(), expect, "{schema} {text}");
        };
        check(json!({"type": "string"}), "42", "\"42\"");
        check(json!({"type": "integer"}), "42", "42");
        check(json!({"type": "integer"}), "x", "\"x\"");
        check(json!({"type": ["string", "null"]}), "null", "\"null\"");
        check(Value::Null, "{\"a\":1}", "{\"a\":1}");
        check(Value::Null, "plain", "\"plain\"");
    }

    #[test]
    fn pairs_win_over_the_object_and_keep_its_lexemes() {
        let given = Raw::parse(r#"{"a":1.0,"b":2}"#).unwrap();
        let pairs = [("b".to_owned(), "3".to_owned()), ("c".to_owned(), "x".to_owned())];
        let merged = merged(Some(given), &pairs, |_, text| typed(&Value::Null, text)).unwrap();
        assert_eq!(merged.get(), r#"{"a":1.0,"b":3,"c":"x"}"#);
    }
}
