//! `read`: one resource by its URI, listed or fitting a template.

use toolcrib_core::{code::Code, surface::ListKind};
use toolcrib_engine::{Engine, Options};

use super::{
    args::{Global, Read},
    ask,
    call::{Shown, call_options},
    setup::{Setup, with_engine},
    wait,
};
use crate::{
    failure::{Failure, Outcome},
    show::{Out, content, json},
};

pub(crate) async fn run(global: &Global, args: Read) -> Outcome {
    let setup = Setup::load(global)?;
    if let Some(name) = &args.server {
        setup.server(name)?;
    }
    let servers =
        setup.servers(|name| args.server.as_deref().is_none_or(|server| server == name))?;
    let options = Options { handlers: ask::handlers(global), ..setup.options() };
    let engine = setup.start(servers, options)?;
    with_engine(engine, async |engine| read(global, engine, &args).await).await
}

async fn read(global: &Global, engine: &Engine, args: &Read) -> Outcome {
    let kinds = [ListKind::Resources, ListKind::ResourceTemplates];
    let snapshot = wait::settled(engine, &kinds).await;
    let called = match engine.read(&args.uri, args.server.as_deref(), call_options(global)).await {
        Ok(called) => called,
        Err(error) => {
            // When the only server is away, that is the reason.
            let mut parts = snapshot.parts();
            return Err(match (parts.next(), parts.next()) {
                (Some(part), None) if part.session.is_none() => Failure::of_server(part),
                _ => error.into(),
            });
        }
    };
    let mut out = Out::new();
    if global.json {
        json::print(&mut out, &Shown::of("read", &called))?;
    } else {
        content::resource(&mut out, &called.result)?;
    }
    Ok(Code::Ok)
}
