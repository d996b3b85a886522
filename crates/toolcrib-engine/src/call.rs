//! The fast loop: name → checks → one request → checks → answer. This is the one place that sends
//! anything which makes a server act.

use std::{
    sync::Arc,
    time::{Duration, Instant as Clock},
};

use thiserror::Error;
use tokio::{sync::mpsc, time::Instant};
use toolcrib_core::{
    catalog::{NameError, Names},
    check::{arguments, headers, result},
    code::Code,
    limits::Limits,
    raw::Raw,
    rpc::error,
    sanitise,
    surface::{ListKind, Tool},
    target::Target,
    template::UriTemplate,
};
use toolcrib_link::{Answer, Operation, Performing, RequestError, Session};

use crate::{engine::Engine, options::ResultCheck, part::Part, snapshot::Snapshot, status::Status};

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// How long to wait for the answer; the server's own setting when absent.
    pub timeout: Option<Duration>,
    /// Where progress notifications go (their parameters).
    pub progress: Option<mpsc::Sender<Raw>>,
}

/// What came of a call, a read or a prompt.
#[derive(Debug, Clone)]
pub struct Called {
    /// The server that answered.
    pub server: String,
    /// The server's own name of the item: tool or prompt name, or URI.
    pub item: String,
    /// The result as sent.
    pub result: Raw,
    /// True when the tool ran and reported an error.
    pub is_error: bool,
    /// How the result misfits the output schema, when it does.
    pub misfit: Option<String>,
    /// From sending to the answer.
    pub took: Duration,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum CallError {
    /// The name leads to nothing, or to more than one thing.
    #[error("{0}")]
    Name(#[from] NameError),
    /// No server offers a resource with this URI.
    #[error("no server lists {uri} or a template that fits it{}", near(.candidates))]
    UnknownUri {
        /// The URI asked for.
        uri: String,
        /// What comes near.
        candidates: Vec<String>,
    },
    /// Several servers offer a resource with this URI.
    #[error("several servers offer {uri}: {}; name one with --server", servers.join(", "))]
    AmbiguousUri {
        /// The URI asked for.
        uri: String,
        /// The servers.
        servers: Vec<String>,
    },
    /// The item is not to be used.
    #[error("{item} of {server} is refused: {why}")]
    Refused {
        /// The server.
        server: String,
        /// The item.
        item: String,
        /// Why.
        why: String,
    },
    /// The arguments do not fit; nothing was sent.
    #[error("the arguments do not fit {item} of {server}; nothing was sent\n{errors}")]
    Arguments {
        /// The server.
        server: String,
        /// The tool.
        item: String,
        /// What is wrong and how to mend it.
        errors: arguments::ArgumentErrors,
    },
    /// The result does not fit the output schema, and that is an error here.
    #[error("the result of {item} of {server} does not fit its output schema: {why}")]
    Result {
        /// The server.
        server: String,
        /// The tool.
        item: String,
        /// The misfit.
        why: String,
        /// The result all the same.
        result: Raw,
    },
    /// The server is not there.
    #[error("server {server} {}{}", status.phrase(), status.why().map(|why| format!(": {why}")).unwrap_or_default())]
    Server {
        /// The server.
        server: String,
        /// How it stands.
        status: Status,
    },
    /// The server asks its client for input before it goes on.
    #[error("{item} of {server} asks for input that this client does not offer ({asks})")]
    InputRequired {
        /// The server.
        server: String,
        /// The item.
        item: String,
        /// The methods asked for.
        asks: String,
        /// The answer as sent.
        result: Raw,
    },
    /// The request failed.
    #[error("{item} of {server}: {error}")]
    Request {
        /// The server.
        server: String,
        /// The item.
        item: String,
        /// Why.
        error: RequestError,
    },
}

fn near(candidates: &[String]) -> String {
    if candidates.is_empty() { String::new() } else { format!("; near: {}", candidates.join(", ")) }
}

impl CallError {
    /// The stable code of this failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Name(NameError::Ambiguous { .. }) | Self::AmbiguousUri { .. } => {
                Code::AmbiguousName
            }
            Self::Name(_) | Self::UnknownUri { .. } => Code::UnknownName,
            Self::Refused { .. } => Code::Refused,
            Self::Arguments { .. } => Code::InvalidArguments,
            Self::Result { .. } => Code::InvalidResult,
            Self::Server { status: Status::NeedsAuth { .. }, .. } => Code::NeedsAuth,
            Self::Server { status: Status::Failed { code, .. }, .. } => *code,
            Self::Server { .. } => Code::Unreachable,
            Self::InputRequired { .. } => Code::InputRequired,
            Self::Request { error, .. } => match error {
                RequestError::Rpc(_) | RequestError::Unusable { .. } => Code::ServerError,
                RequestError::NeedsAuth { .. } => Code::NeedsAuth,
                RequestError::Timeout { .. } => Code::Timeout,
                RequestError::Exchange(_)
                | RequestError::Closed(_)
                | RequestError::Violation(_)
                | RequestError::Renewal(_) => Code::Unreachable,
            },
        }
    }
}

impl Engine {
    /// Calls a tool by canonical, portable or short name. Arguments are checked before anything is
    /// sent; the result is held against the output schema as the options say.
    ///
    /// # Errors
    /// See [`CallError`]. A tool that reports an error (`isError`) is no error here.
    pub async fn call(
        &self,
        name: &str,
        given: Option<&Raw>,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let (part, item) = self.find(ListKind::Tools, name).await?;
        self.touch(part.name());
        if self.options().strict_freshness {
            let deadline = Instant::now() + part.config.timeouts.list;
            self.refresh(part.name(), &[ListKind::Tools], deadline).await;
        }
        let mut relisted = false;
        loop {
            let part = self.snapshot().part(part.name()).map_or(Arc::clone(&part), Arc::clone);
            let outcome = self.call_once(&part, &item, given, options.clone()).await;
            let stale =
                matches!(&outcome, Err(CallError::Request { error, .. }) if is_stale(error));
            if relisted || !stale {
                return outcome;
            }
            // The server knows the tool otherwise than we do: look again, once. A refused header
            // was refused before anything ran, so the call itself may be repeated.
            let deadline = Instant::now() + part.config.timeouts.list;
            self.refresh(part.name(), &[ListKind::Tools], deadline).await;
            relisted = true;
            let repeat = matches!(&outcome, Err(CallError::Request { error: RequestError::Rpc(error), .. }) if error.code == error::HEADER_MISMATCH);
            if !repeat {
                return outcome;
            }
        }
    }

    async fn call_once(
        &self,
        part: &Part,
        item: &str,
        given: Option<&Raw>,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let server = part.name().to_owned();
        let tool = part.tool(item).ok_or_else(|| NameError::unknown(item))?;
        if let Some(why) = part.refusal(ListKind::Tools, item) {
            let (item, why) = (item.to_owned(), why.to_owned());
            return Err(CallError::Refused { server, item, why });
        }
        if let Some(check) = part.check(item).cloned() {
            let given = given.cloned();
            let fit = judge(move || check.arguments(given.as_ref())).await;
            fit.map_err(|errors| CallError::Arguments {
                server: server.clone(),
                item: item.to_owned(),
                errors,
            })?;
        }
        let operation = Operation::Call { name: item.to_owned(), arguments: given.cloned() };
        let mirrored = mirrored(part, tool, given, &self.options().limits);
        let mut called = self.send(part, operation, item, mirrored, options).await?;
        called.is_error = result::is_error(&called.result);
        if self.options().results == ResultCheck::Off || tool.output_schema.is_none() {
            return Ok(called);
        }
        let Some(check) = part.check(item).cloned() else { return Ok(called) };
        let result = called.result.clone();
        if let Err(misfit) = judge(move || check.result(&result)).await {
            let why = misfit.to_string();
            if self.options().results == ResultCheck::Strict {
                let item = item.to_owned();
                return Err(CallError::Result { server, item, why, result: called.result });
            }
            called.misfit = Some(why);
        }
        Ok(called)
    }

    /// Reads a resource by URI, from the one server that lists it or has a template that fits it,
    /// or from `server`. While servers are still starting, one that nobody has shown yet is waited
    /// for.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn read(
        &self,
        uri: &str,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let kinds = [ListKind::Resources, ListKind::ResourceTemplates];
        let unknown = |seen: &Snapshot| {
            matches!(owner_of(seen, uri, server), Err(CallError::UnknownUri { .. }))
        };
        let snapshot = self.seen(&kinds, |seen| !unknown(seen)).await;
        let part = owner_of(&snapshot, uri, server)?;
        self.touch(part.name());
        let operation = Operation::Read { uri: uri.to_owned() };
        self.send(&part, operation, uri, Vec::new(), options).await
    }

    /// Renders a prompt by canonical, portable or short name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Option<&Raw>,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let (part, item) = self.find(ListKind::Prompts, name).await?;
        self.touch(part.name());
        let operation = Operation::Prompt { name: item.clone(), arguments: arguments.cloned() };
        self.send(&part, operation, &item, Vec::new(), options).await
    }

    /// Completes an argument of a prompt or a template of `server`.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn complete(
        &self,
        server: &str,
        reference: Raw,
        argument: Raw,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let snapshot = self.snapshot();
        let part = snapshot.part(server).ok_or_else(|| NameError::unknown(server))?;
        let operation = Operation::Complete { reference, argument };
        self.send(part, operation, "completion", Vec::new(), options).await
    }

    /// Finds an item; a name that leads nowhere while servers are still starting is looked for
    /// again when they have settled.
    async fn find(&self, kind: ListKind, name: &str) -> Result<(Arc<Part>, String), CallError> {
        let snapshot = self.seen(&[kind], |seen| seen.resolve(kind, name).is_ok()).await;
        let named = match snapshot.resolve(kind, name) {
            Ok(named) => named,
            Err(error) => return Err(refused(&snapshot, kind, name).unwrap_or(error.into())),
        };
        let part = snapshot.part(&named.server).ok_or_else(|| NameError::unknown(name))?;
        Ok((Arc::clone(part), named.item.clone()))
    }

    /// The snapshot as it is when it shows what is looked for; else as it is when all servers have
    /// settled `kinds`.
    async fn seen(&self, kinds: &[ListKind], shows: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let snapshot = self.snapshot();
        if shows(&snapshot) || snapshot.is_settled(kinds) {
            return snapshot;
        }
        // Servers that are tried over and over need not all be settled at any one time.
        let most = snapshot.parts().map(|part| {
            let timeouts = &part.config.timeouts;
            timeouts.start + timeouts.list
        });
        let deadline = most.max().map(|most| Instant::now() + most);
        self.settled(kinds, deadline).await
    }

    /// Sends an operation to a server, waiting for it when it is just (re)starting. The only call
    /// site of [`Session::perform`].
    async fn send(
        &self,
        part: &Part,
        operation: Operation,
        item: &str,
        mirrored: Vec<(String, String)>,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let server = part.name().to_owned();
        let session = self.session(part).await?;
        let performing = Performing {
            timeout: options.timeout,
            progress: options.progress,
            mirrored,
            resumed: None,
        };
        let began = Clock::now();
        let outcome = session.perform(&operation, performing).await;
        let took = began.elapsed();
        let item = sanitise::line(item, 200);
        match outcome {
            Ok(Answer::Complete(result)) => {
                Ok(Called { server, item, result, is_error: false, misfit: None, took })
            }
            Ok(Answer::InputRequired(result)) => {
                let asks = result::input_requests(&result).join(", ");
                Err(CallError::InputRequired { server, item, asks, result })
            }
            Err(error) => Err(CallError::Request { server, item, error }),
        }
    }

    async fn session(&self, part: &Part) -> Result<Arc<Session>, CallError> {
        let server = part.name();
        let deadline = Instant::now() + part.config.timeouts.start;
        let mut part = self.snapshot().part(server).cloned();
        loop {
            let Some(now) = part else { return Err(NameError::unknown(server).into()) };
            if let Some(session) = &now.session {
                return Ok(Arc::clone(session));
            }
            if now.status.is_settled() || Instant::now() >= deadline {
                let (server, status) = (server.to_owned(), now.status.clone());
                return Err(CallError::Server { server, status });
            }
            let snapshot = self.server_settled(server, &[], Some(deadline)).await;
            part = snapshot.part(server).cloned();
        }
    }
}

/// The server to read `uri` from.
fn owner_of(snapshot: &Snapshot, uri: &str, server: Option<&str>) -> Result<Arc<Part>, CallError> {
    if let Some(server) = server {
        let part = snapshot.part(server).ok_or_else(|| NameError::unknown(server))?;
        return Ok(Arc::clone(part));
    }
    let owners = |owns: &dyn Fn(&Part) -> bool| -> Vec<Arc<Part>> {
        snapshot.parts().filter(|part| owns(part)).cloned().collect()
    };
    let mut found = owners(&|part| part.lists_uri(uri));
    if found.is_empty() {
        found = owners(&|part| part.template_for(uri).is_some());
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let candidates = near_uris(snapshot, uri);
            Err(CallError::UnknownUri { uri: sanitise::line(uri, 200), candidates })
        }
        _ => Err(CallError::AmbiguousUri {
            uri: sanitise::line(uri, 200),
            servers: found.iter().map(|part| part.name().to_owned()).collect(),
        }),
    }
}

/// Judges a value by a server's schema. A hostile one takes seconds to compile and to judge by, so
/// that is kept off the tasks of others.
async fn judge<T: Send + 'static>(judging: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(judging).await {
        Ok(judged) => judged,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going, and with it whoever waits for this.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Why nothing has this name, when that is because what has it is not to be used.
fn refused(snapshot: &Snapshot, kind: ListKind, name: &str) -> Option<CallError> {
    let names = Names::build(snapshot.parts().flat_map(|part| part.refused()));
    let named = names.resolve(kind, name).ok()?;
    let why = snapshot.part(&named.server)?.refusal(kind, &named.item)?.to_owned();
    let item = sanitise::line(&named.item, 200);
    Some(CallError::Refused { server: named.server.clone(), item, why })
}

/// True for errors that say that our list is older than the server.
fn is_stale(error: &RequestError) -> bool {
    match error {
        RequestError::Rpc(error) => {
            let unknown =
                error.code == error::INVALID_PARAMS || error.code == error::METHOD_NOT_FOUND;
            let words = error.message.to_lowercase();
            error.code == error::HEADER_MISMATCH
                || unknown
                    && ["unknown tool", "not found", "no such tool"]
                        .iter()
                        .any(|sign| words.contains(sign))
        }
        _ => false,
    }
}

/// The `Mcp-Param-*` headers of a call over modern HTTP.
fn mirrored(
    part: &Part,
    tool: &Tool,
    given: Option<&Raw>,
    limits: &Limits,
) -> Vec<(String, String)> {
    let over_http = matches!(part.config.target, Target::Http(_));
    match (&tool.input_schema, given) {
        (Some(schema), Some(given)) if over_http => headers::values(schema, given, limits),
        _ => Vec::new(),
    }
}

/// The URIs and templates that come nearest, for an error.
fn near_uris(snapshot: &Snapshot, uri: &str) -> Vec<String> {
    let scheme = uri.split(':').next().unwrap_or_default();
    let mut found: Vec<String> = snapshot
        .parts()
        .filter_map(|part| part.surface.as_ref())
        .flat_map(|surface| {
            let resources = surface.resources.items.iter().map(|resource| &resource.uri);
            let templates = surface.templates.items.iter().map(|template| &template.uri_template);
            resources.chain(templates)
        })
        .filter(|known| known.split(':').next() == Some(scheme))
        .map(|known| sanitise::line(known, 120))
        .collect();
    found.sort();
    found.dedup();
    found.truncate(5);
    found
}

impl Part {
    /// True when the server lists exactly this URI.
    pub fn lists_uri(&self, uri: &str) -> bool {
        let surface = self.surface.as_ref();
        surface.is_some_and(|surface| {
            surface.resources.items.iter().any(|resource| resource.uri == uri)
        })
    }

    /// The server's template that fits this URI, with the values of its variables.
    pub fn template_for(
        &self,
        uri: &str,
    ) -> Option<(String, std::collections::BTreeMap<String, String>)> {
        let surface = self.surface.as_ref()?;
        surface.templates.items.iter().find_map(|template| {
            let parsed = UriTemplate::parse(&template.uri_template).ok()?;
            Some((template.uri_template.clone(), parsed.match_uri(uri)?))
        })
    }
}
