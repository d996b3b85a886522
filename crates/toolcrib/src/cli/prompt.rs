//! `prompt`: one prompt, rendered by its server.

use toolcrib_core::{code::Code, raw::Raw, surface::ListKind};
use toolcrib_engine::{Engine, Options};

use super::{
    args::{Global, Prompt},
    ask,
    call::{Shown, call_options, given, merged},
    named::{await_name, owners},
    setup::{Setup, with_engine},
};
use crate::{
    failure::Outcome,
    show::{Out, content, json},
};

pub(crate) async fn run(global: &Global, args: Prompt) -> Outcome {
    let mut arguments = given(args.arguments.as_deref())?;
    if !args.arg.is_empty() {
        // Arguments of prompts are strings (specification, server/prompts).
        arguments = Some(merged(arguments, &args.arg, |_, text| Raw::of(&text))?);
    }
    let setup = Setup::load(global)?;
    let servers = owners(&setup, &args.name)?;
    let options = Options { handlers: ask::handlers(global), ..setup.options() };
    let engine = setup.start(servers, options)?;
    let arguments = arguments.as_ref();
    with_engine(engine, async |engine| prompt(global, engine, &args.name, arguments).await).await
}

async fn prompt(global: &Global, engine: &Engine, name: &str, arguments: Option<&Raw>) -> Outcome {
    await_name(engine, ListKind::Prompts, name).await?;
    let called = engine.prompt(name, arguments, call_options(global)).await?;
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &Shown::of("prompt", &called))?;
    } else {
        content::prompt(&mut out, &called.result)?;
    }
    Ok(Code::Ok)
}
