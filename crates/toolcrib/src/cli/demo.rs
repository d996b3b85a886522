//! `demo` and `demo-server`.

use toolcrib_core::code::Code;
use toolcrib_serve::EraSupport;

use super::args::{DemoServer, Global, ServedEra};
use crate::{
    demo,
    failure::{Failure, Outcome},
    show::Out,
};

impl From<ServedEra> for EraSupport {
    fn from(era: ServedEra) -> Self {
        match era {
            ServedEra::Modern => Self::Modern,
            ServedEra::Legacy => Self::Legacy,
            ServedEra::Dual => Self::Dual,
        }
    }
}

pub(crate) async fn server(args: DemoServer) -> Outcome {
    let options = demo::server::DemoOptions { name: args.server_name, broken: args.broken };
    demo::server::run(args.http, args.era.into(), options).await.map_err(|error| {
        Failure::new(Code::Internal, format!("the demo server stopped: {error}"))
    })?;
    Ok(Code::Ok)
}

pub(crate) async fn demo(_global: &Global) -> Outcome {
    demo::tour::run(&mut Out::new()).await?;
    Ok(Code::Ok)
}
