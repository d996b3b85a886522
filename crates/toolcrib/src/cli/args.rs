//! The shape of the command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::PossibleValuesParser};
use toolcrib_core::{surface::ListKind, version::EraPolicy};

use crate::hosts::table::HOSTS;

/// Discover what MCP servers offer, and call it checked.
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0 done                     7 result misfits (--strict)   13 the server asks for input
  1 the tool reports errors  8 server out of reach         14 findings (--strict)
  2 wrong usage              9 authorization needed        70 a fault of ours
  3 configuration           10 no answer in time          130 interrupted
  4 no such name            11 refused
  5 ambiguous name          12 the server answered with an error
  6 arguments do not fit";

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Read only this configuration (may be repeated): toolcrib.toml, or any mcpServers JSON
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Agree without being asked: to start what a configuration of this folder names, to write
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// Ask nothing at the terminal; what a server wants to know is not answered
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Longest wait for one answer of a call, in seconds
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Say more on stderr (repeat for more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the main job on servers of its own: discover, check, call, notice a change
    Demo,
    /// Run a small MCP server to try things against
    DemoServer(DemoServer),
    /// Reach one server and show everything it offers and how it was reached
    Inspect(Inspect),
    /// List what all configured servers offer
    List(List),
    /// Show one tool, prompt, resource or template in full
    Describe(Describe),
    /// Call a tool; its arguments are checked before anything is sent
    Call(Call),
    /// Read a resource by its URI
    Read(Read),
    /// Render a prompt
    Prompt(Prompt),
    /// Start every configured server and show how each stands
    Status,
    /// Print changes as they happen, of servers and their lists or of one resource
    Watch(Watch),
    /// Show what a server wrote to its standard error
    Logs(Logs),
    /// Add a server to the configuration
    Add(Add),
    /// Remove a server from the configuration
    Remove(Named),
    /// Switch a server on
    Enable(Named),
    /// Switch a server off, keeping its configuration
    Disable(Named),
    /// Show the programs that use MCP servers, their files and how many servers each has
    Hosts,
    /// Take over the servers that other programs have
    Import(Import),
    /// Write our servers into the file of another program
    Connect(Connect),
    /// Print a script that completes commands in a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a folder
    Man(Man),
}

/// Which era to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EraChoice {
    /// Ask with server/discover, fall back to initialize
    Auto,
    /// 2026-07-28 only
    Modern,
    /// 2025-11-25 and older only
    Legacy,
}

impl From<EraChoice> for EraPolicy {
    fn from(choice: EraChoice) -> Self {
        match choice {
            EraChoice::Auto => Self::Auto,
            EraChoice::Modern => Self::Modern,
            EraChoice::Legacy => Self::Legacy,
        }
    }
}

/// Which eras the demo server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServedEra {
    /// 2026-07-28 only
    Modern,
    /// 2025-11-25 and older only
    Legacy,
    /// Both on one endpoint
    Dual,
}

#[derive(Debug, Args)]
pub(crate) struct DemoServer {
    /// Serve HTTP on this address instead of standard input and output
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,
    /// Which eras to speak
    #[arg(long, default_value = "dual")]
    pub(crate) era: ServedEra,
    /// The name it gives itself
    #[arg(long, value_name = "NAME", default_value = "toolcrib-demo", hide = true)]
    pub(crate) server_name: String,
    /// Add a tool whose definition cannot be used
    #[arg(long, hide = true)]
    pub(crate) broken: bool,
}

/// How a server is reached that stands in no configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reach {
    /// Environment for the command (may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,
    /// Header for the URL (may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) header: Vec<(String, String)>,
    /// Which era to speak
    #[arg(long)]
    pub(crate) era: Option<EraChoice>,
    /// How long an answer to server/discover is awaited before initialize is sent, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) probe_timeout: Option<std::time::Duration>,
    /// How long starting and shaking hands may take, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) start_timeout: Option<std::time::Duration>,
    /// How long an answer to a list is awaited, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) list_timeout: Option<std::time::Duration>,
    /// Longest message accepted, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_message_bytes: Option<usize>,
}

#[derive(Debug, Args)]
#[command(override_usage = "toolcrib inspect [OPTIONS] <NAME|URL>
       toolcrib inspect [OPTIONS] -- <COMMAND>...")]
pub(crate) struct Inspect {
    /// A configured server, or a URL
    #[arg(value_name = "NAME|URL", required_unless_present = "command")]
    pub(crate) target: Option<String>,
    /// A command to start, after --
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "target")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Show every message out and in, on stderr
    #[arg(long)]
    pub(crate) trace: bool,
    /// Fail when there are findings, informative ones aside
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A kind of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Tools
    Tools,
    /// Resources
    Resources,
    /// Resource templates
    Templates,
    /// Prompts
    Prompts,
}

impl From<Kind> for ListKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Tools => Self::Tools,
            Kind::Resources => Self::Resources,
            Kind::Templates => Self::ResourceTemplates,
            Kind::Prompts => Self::Prompts,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Which list; all four when absent
    pub(crate) kind: Option<Kind>,
    /// Only this server (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// A tool or prompt by any of its names, a resource URI or a URI template
    pub(crate) name: String,
    /// Look only at this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool: server.tool, server__tool, or its short name where only one server has it
    pub(crate) name: String,
    /// Its arguments as a JSON object; `-` reads them from standard input
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// One argument (may be repeated); the value is read as the schema says, or as JSON
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) arg: Vec<(String, String)>,
    /// A result that does not fit the tool's output schema is an error
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Read {
    /// The resource
    pub(crate) uri: String,
    /// The server to read it from, when several have it
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Prompt {
    /// The prompt: server.prompt, server__prompt, or its short name
    pub(crate) name: String,
    /// Its arguments as a JSON object of strings
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// One argument (may be repeated)
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) arg: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(override_usage = "toolcrib watch [OPTIONS] [SERVER]...
       toolcrib watch [OPTIONS] [SERVER] <URI>")]
pub(crate) struct Watch {
    /// Servers, all when absent; or the URI of one resource, with its server when several have it
    #[arg(value_name = "SERVER|URI")]
    pub(crate) what: Vec<String>,
    /// Show the content of the resource as well, at first and after each update
    #[arg(long)]
    pub(crate) read: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The server
    pub(crate) server: String,
    /// How many lines, from the end
    #[arg(short = 'n', long, default_value_t = 100)]
    pub(crate) lines: usize,
}

#[derive(Debug, Args)]
#[command(override_usage = "toolcrib add [OPTIONS] <NAME> <URL>
       toolcrib add [OPTIONS] <NAME> -- <COMMAND>...")]
pub(crate) struct Add {
    /// The name to give it: letters, digits, _ and -
    pub(crate) name: String,
    /// Its URL
    #[arg(value_name = "URL", required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// A command to start, after --
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Replace a server of this name
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The server
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The programs to take over from; all that are found when absent
    #[arg(value_name = "HOST", value_parser = host_names())]
    pub(crate) hosts: Vec<String>,
    /// Read the files of the project in this folder, not your own
    #[arg(long)]
    pub(crate) project: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// The program to write for
    #[arg(value_name = "HOST", value_parser = host_names())]
    pub(crate) host: String,
    /// The servers; all that are switched on when absent
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Write the file of the project in this folder, not your own
    #[arg(long)]
    pub(crate) project: bool,
    /// Replace other entries of the same names
    #[arg(long)]
    pub(crate) replace: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; without it the main page is printed
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

fn host_names() -> PossibleValuesParser {
    PossibleValuesParser::new(HOSTS.iter().map(|host| host.id))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if !(0.001..=86_400.0).contains(&seconds) {
        return Err("expected between 0.001 and 86400 seconds".to_owned());
    }
    Ok(std::time::Duration::from_secs_f64(seconds))
}
