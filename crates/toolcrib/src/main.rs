//! The program: discovers what MCP servers offer, and issues the right tool or says that it cannot.

mod failure;
mod config;
mod hosts;
mod show;
mod demo;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
