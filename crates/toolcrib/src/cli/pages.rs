//! `completions` and `man`: what shells and readers of manuals get, made from the command line.

use std::fs;

use clap::CommandFactory as _;
use toolcrib_core::code::Code;

use super::args::{Cli, Completions, Man};
use crate::{
    config::problem,
    failure::{Failure, Outcome},
    show::{Out, Talk},
};

/// Prints a script that completes commands, options and hosts.
pub(crate) fn completions(args: &Completions) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toolcrib", &mut script);
    Out::new().line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Code::Ok)
}

/// Prints the main page, or writes every page into a folder.
pub(crate) fn man(args: &Man) -> Outcome {
    let Some(folder) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        Out::new().line(String::from_utf8_lossy(&page).trim_end())?;
        return Ok(Code::Ok);
    };
    let name = problem::path(folder);
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::config(format!("cannot write to {name}: {error}")))?;
    Talk::say(format!("wrote the pages to {name}"));
    Ok(Code::Ok)
}
