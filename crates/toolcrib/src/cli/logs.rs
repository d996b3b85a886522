//! `logs`: what a server wrote to its standard error, kept from its last runs.

use std::{fs, io};

use serde::Serialize;
use toolcrib_core::{code::Code, sanitise};

use super::{
    args::{Global, Logs},
    setup::Setup,
};
use crate::{
    failure::{Failure, Outcome},
    show::{Out, Talk, json},
};

pub(crate) fn run(global: &Global, args: Logs) -> Outcome {
    let setup = Setup::load(global)?;
    let name = setup.server(&args.server)?.name;
    let file = setup.dirs.logs().join(format!("{name}.log"));
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", file.display());
            return Err(Failure::new(Code::Internal, message));
        }
    };
    let text = sanitise::block(&String::from_utf8_lossy(&bytes));
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(args.lines)..];
    let mut out = Out::new();
    if global.json {
        #[derive(Serialize)]
        struct Shown<'a> {
            format: json::Format,
            server: &'a str,
            lines: &'a [&'a str],
        }
        let shown = Shown { format: json::Format("logs"), server: &name, lines: last };
        json::print(&mut out, &shown)?;
        return Ok(Code::Ok);
    }
    if last.is_empty() {
        Talk::say(format!("{name} has written nothing to its standard error"));
    }
    for line in last {
        out.line(line)?;
    }
    Ok(Code::Ok)
}
