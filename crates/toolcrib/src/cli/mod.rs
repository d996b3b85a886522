//! The command line: what can be asked for, and which file answers it.

mod args;
mod wait;
mod ask;
mod setup;
mod named;
mod inspect;
mod list;
mod describe;
mod call;
mod read;
mod prompt;
mod status;
mod logs;
mod watch_resource;
mod watch;
mod edit;
mod hosts;
mod import;
mod connect;
mod pages;
mod demo;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;
use toolcrib_core::code::Code;

use crate::{
    failure::{Failure, Outcome},
    show::{Out, Talk, json},
};
use args::{Cli, Command};

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no failures; clap knows where each belongs.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let json = cli.global.json;
    start_log(&cli);
    let outcome = runtime().and_then(|runtime| {
        let outcome = runtime.block_on(dispatch(cli));
        // A file system that does not answer must not hold us.
        runtime.shutdown_timeout(LAST_WAIT);
        outcome
    });
    let code = match outcome {
        Ok(code) => code,
        Err(failure) if failure.code == Code::Ok => Code::Ok,
        Err(failure) => {
            if !json || json::print_failure(&mut Out::new(), &failure).is_err() {
                Talk::fail(&failure);
            }
            failure.code
        }
    };
    ExitCode::from(code.exit_code())
}

/// How long what still runs when the work is done may take to end.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))
}

/// Logs go to stderr: warnings by default, more with `-v`, or as `TOOLCRIB_LOG` says.
fn start_log(cli: &Cli) {
    let level = match cli.global.verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("TOOLCRIB_LOG")
        .unwrap_or_else(|_| format!("warn,toolcrib={level},toolcrib_link={level},toolcrib_engine={level},toolcrib_serve={level}").into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .without_time()
        .init();
}

async fn dispatch(cli: Cli) -> Outcome {
    let Cli { global, command } = cli;
    match command {
        Command::Demo => demo::demo(&global).await,
        Command::DemoServer(args) => demo::server(args).await,
        Command::Inspect(args) => inspect::run(&global, args).await,
        Command::List(args) => list::run(&global, args).await,
        Command::Describe(args) => describe::run(&global, args).await,
        Command::Call(args) => call::run(&global, args).await,
        Command::Read(args) => read::run(&global, args).await,
        Command::Prompt(args) => prompt::run(&global, args).await,
        Command::Status => status::run(&global).await,
        Command::Watch(args) => watch::run(&global, args).await,
        Command::Logs(args) => logs::run(&global, args),
        Command::Add(args) => edit::add(&global, args),
        Command::Remove(args) => edit::remove(&global, args),
        Command::Enable(args) => edit::set_enabled(&global, args, true),
        Command::Disable(args) => edit::set_enabled(&global, args, false),
        Command::Hosts => hosts::run(&global),
        Command::Import(args) => import::run(&global, &args),
        Command::Connect(args) => connect::run(&global, &args),
        Command::Completions(args) => pages::completions(&args),
        Command::Man(args) => pages::man(&args),
    }
}
