//! From the command line and the configuration to a running engine.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use tokio::signal::unix::{SignalKind, signal};
use toolcrib_core::{code::Code, limits::Limits, target::ServerConfig};
use toolcrib_engine::{Engine, Options};
use toolcrib_link::process;

use super::{args::Global, ask};
use crate::{
    config::{
        self, Loaded,
        consent::Consent,
        locate::{CONFIG_VARIABLE, Search},
        problem::Problem,
        state::Dirs,
    },
    failure::{Failure, Outcome},
    show::Talk,
};

/// The configuration as it was found, and where state is kept.
pub(crate) struct Setup {
    pub(crate) dirs: Dirs,
    pub(crate) loaded: Loaded,
    yes: bool,
    no_input: bool,
}

impl Setup {
    /// Reads the configuration and says what was odd about it.
    pub(crate) fn load(global: &Global) -> Result<Self, Failure> {
        let dirs = dirs()?;
        let working_dir = std::env::current_dir().map_err(|error| {
            Failure::config(format!("the working directory cannot be read: {error}"))
        })?;
        let search = Search {
            given: global.config.clone(),
            variable: std::env::var_os(CONFIG_VARIABLE),
            working_dir,
            user_file: Some(dirs.user_config()),
        };
        let loaded = config::load(&search.candidates());
        for problem in &loaded.warnings {
            Talk::warn(problem.to_string());
            problem.hint.iter().for_each(Talk::hint);
        }
        for problem in &loaded.errors {
            Talk::error(problem.to_string());
            problem.hint.iter().for_each(Talk::hint);
        }
        Ok(Self { dirs, loaded, yes: global.yes, no_input: global.no_input })
    }

    /// The servers whose name is let through, when there are any to choose from.
    pub(crate) fn servers(
        &self,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<ServerConfig>, Failure> {
        let all = &self.loaded.servers;
        if all.is_empty() {
            return Err(if self.loaded.errors.is_empty() {
                Failure::config("no servers are configured")
                    .hint("toolcrib add NAME URL, or toolcrib add NAME -- COMMAND ARGS…")
                    .hint("or --config FILE with any mcpServers JSON you already have")
            } else {
                Failure::config("no server could be read from the configuration")
            });
        }
        Ok(all
            .iter()
            .map(|(config, _)| config)
            .filter(|config| wanted(&config.name))
            .cloned()
            .collect())
    }

    /// The server of this name, or a failure that names the near ones.
    pub(crate) fn server(&self, name: &str) -> Result<ServerConfig, Failure> {
        if let Some((config, _)) = self.loaded.find(name) {
            return Ok(config.clone());
        }
        if let Some(problem) = self.broken(name) {
            let message = format!("the entry of server {name} cannot be used: {problem}");
            let failure = Failure::config(message);
            return Err(problem.hint.iter().fold(failure, Failure::hint));
        }
        let names: Vec<_> =
            self.loaded.servers.iter().map(|(config, _)| config.name.as_str()).collect();
        let failure = Failure::new(Code::UnknownName, format!("no server is called {name:?}"));
        Err(match names.as_slice() {
            [] => failure.hint("no servers are configured: toolcrib add NAME URL"),
            names => failure.hint(format!("configured are: {}", names.join(", "))),
        })
    }

    /// What is wrong with the entry of this name, when it could not be read.
    pub(crate) fn broken(&self, name: &str) -> Option<&Problem> {
        self.loaded.errors.iter().find(|problem| problem.entry.as_deref() == Some(name))
    }

    /// Starts an engine over these servers, once their files may start something.
    pub(crate) fn start(
        &self,
        servers: Vec<ServerConfig>,
        options: Options,
    ) -> Result<Engine, Failure> {
        self.ask(&servers)?;
        process::adopt_orphans();
        Ok(Engine::start(servers, options))
    }

    /// The options of an engine that keeps its state where this configuration says.
    pub(crate) fn options(&self) -> Options {
        Options {
            limits: Limits::default(),
            memory: Some(self.dirs.era_cache()),
            logs: Some(self.dirs.logs()),
            ..Options::default()
        }
    }

    /// Asks once for each file of the working directory that wants to start something.
    fn ask(&self, servers: &[ServerConfig]) -> Result<(), Failure> {
        let consent = Consent::new(self.dirs.consent_file());
        let files: BTreeSet<&PathBuf> = servers
            .iter()
            .filter(|config| config.enabled)
            .filter_map(|config| self.loaded.find(&config.name))
            .map(|(_, origin)| &origin.file)
            .collect();
        let mut unasked = String::new();
        for file in self.loaded.files.iter().filter(|file| files.contains(&file.path)) {
            let question = consent
                .needs_confirmation(file)
                .map_err(|error| Failure::config(error.to_string()))?;
            let Some(question) = question else { continue };
            if !self.yes {
                if self.no_input || !Talk::can_ask() {
                    // All of them: `--yes` agrees to all of them.
                    unasked.push_str(&question.to_string());
                    continue;
                }
                Talk::say(question.to_string());
                if !Talk::ask("Agree?") {
                    return Err(Failure::config("nothing was started"));
                }
            }
            consent.agree(&question).map_err(|error| Failure::config(error.to_string()))?;
        }
        if !unasked.is_empty() {
            return Err(Failure::config(unasked.trim_end())
                .hint("agree to all of it with --yes, or name the files you want with --config"));
        }
        Ok(())
    }
}

/// Where configuration and state are kept.
pub(crate) fn dirs() -> Result<Dirs, Failure> {
    Dirs::find().map_err(|error| Failure::config(error.to_string()))
}

/// Does `work` with an engine and ends what it started, whatever the work comes to. SIGINT and
/// SIGTERM give the work up; servers are still ended in order.
pub(crate) async fn with_engine(
    engine: Engine,
    work: impl AsyncFnOnce(&Engine) -> Outcome,
) -> Outcome {
    let interrupted = || Err(Failure::new(Code::Cancelled, "interrupted"));
    until_interrupted(engine, work, interrupted).await
}

/// As [`with_engine`], for work that is interrupted as a matter of course.
pub(crate) async fn watching(
    engine: Engine,
    work: impl AsyncFnOnce(&Engine) -> Outcome,
) -> Outcome {
    until_interrupted(engine, work, || Ok(Code::Cancelled)).await
}

async fn until_interrupted(
    engine: Engine,
    work: impl AsyncFnOnce(&Engine) -> Outcome,
    then: impl FnOnce() -> Outcome,
) -> Outcome {
    let outcome = tokio::select! {
        outcome = work(&engine) => outcome,
        () = interrupted() => then(),
    };
    engine.shutdown().await;
    process::end_orphans().await;
    outcome
}

/// Returns when the program is asked to end. An interrupt at a question is its answer.
async fn interrupted() {
    let ended = async |kind| match signal(kind) {
        Ok(mut signal) => {
            signal.recv().await;
            while kind == SignalKind::interrupt() && ask::interrupted() {
                signal.recv().await;
            }
        }
        // Then the signal's own default ends the program.
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = ended(SignalKind::interrupt()) => {}
        () = ended(SignalKind::terminate()) => {}
    }
}

/// A wire trace on stderr: one sanitised line per message.
pub(crate) fn trace() -> toolcrib_engine::options::TraceFor {
    Arc::new(|server| {
        let server = server.to_owned();
        Arc::new(move |direction, text: &str| {
            let arrow = match direction {
                toolcrib_link::trace::Direction::Out => "→",
                toolcrib_link::trace::Direction::In => "←",
            };
            let text = toolcrib_core::sanitise::line(text, TRACED_CHARS);
            Talk::say(format!("{server} {arrow} {text}"));
        })
    })
}

/// How much of one message a trace shows.
const TRACED_CHARS: usize = 4_000;
