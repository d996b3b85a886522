//! The fast loop: name → checks → one request → checks → answer. This is the one place that sends
//! anything which makes a server act.

use std::{collections::BTreeMap, sync::Arc, time::Instant as Clock};

use tokio::time::Instant;
use toolcrib_core::{
    catalog::NameError,
    check::{headers, prompt, result},
    limits::Limits,
    raw::Raw,
    rpc::{error, message::member},
    sanitise,
    surface::{ListKind, Tool},
    target::Target,
    template::UriTemplate,
    version::Era,
};
use toolcrib_link::{Answer, Operation, Performing, RequestError, Session};

use crate::{
    engine::Engine,
    find::{owner_of, refused},
    judge::judge,
    options::ResultCheck,
    outcome::{CallError, CallOptions, Called, Completion},
    part::Part,
    snapshot::Snapshot,
    subscribe::Subscription,
};

/// Something whose argument a server may complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completing<'a> {
    /// A prompt, by any of its names.
    Prompt(&'a str),
    /// A resource template by its text, of this server or the only one that has it.
    Template(&'a str, Option<&'a str>),
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
        check_arguments(part, item, given).await?;
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

    /// Holds arguments against a tool's input schema, as [`Engine::call`] does, without calling it.
    ///
    /// # Errors
    /// [`CallError::Arguments`] says how to mend them; [`CallError::Name`] or
    /// [`CallError::Refused`] when there is no such tool to be called.
    pub async fn check(&self, name: &str, given: Option<&Raw>) -> Result<(), CallError> {
        let (part, item) = self.find(ListKind::Tools, name).await?;
        check_arguments(&part, &item, given).await
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
            let owner = owner_of(seen, uri, server);
            matches!(owner, Err(CallError::UnknownUri { .. } | CallError::Refused { .. }))
        };
        let snapshot = self.seen(&kinds, |seen| !unknown(seen)).await;
        let part = owner_of(&snapshot, uri, server)?;
        self.touch(part.name());
        let operation = Operation::Read { uri: uri.to_owned() };
        self.send(&part, operation, uri, Vec::new(), options).await
    }

    /// Reads the resource that these variables make of a template (RFC 6570), of `server` or of the
    /// only one that has this template. All variables of the template are to be given; an exploded
    /// one is a list joined as it is in the URI.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::Template`] when variables are missing, unknown or refused.
    pub async fn read_template(
        &self,
        uri_template: &str,
        variables: &BTreeMap<String, String>,
        server: Option<&str>,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let kinds = [ListKind::ResourceTemplates];
        let shows = |seen: &Snapshot| seen.template(uri_template, server).is_ok();
        let snapshot = self.seen(&kinds, shows).await;
        let found = snapshot.template(uri_template, server)?;
        self.touch(found.server());
        let uri = expanded(uri_template, variables).map_err(|why| CallError::Template {
            template: sanitise::line(uri_template, 200),
            why,
        })?;
        let operation = Operation::Read { uri: uri.clone() };
        self.send(found.part, operation, &uri, Vec::new(), options).await
    }

    /// Renders a prompt by canonical, portable or short name. The arguments are held against what it
    /// declares before anything is sent: the required ones, no unknown ones, strings only.
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
        let declared = part.prompt(&item).ok_or_else(|| NameError::unknown(name))?;
        prompt::arguments(declared, arguments).map_err(|errors| CallError::Arguments {
            server: part.name().to_owned(),
            item: sanitise::line(&item, 200),
            errors,
        })?;
        let operation = Operation::Prompt { name: item.clone(), arguments: arguments.cloned() };
        self.send(&part, operation, &item, Vec::new(), options).await
    }

    /// Asks what an argument of a prompt, or a variable of a template, may be, given what is typed
    /// so far and the values of other arguments.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::NotOffered`] when the server does not declare `completions`.
    pub async fn complete(
        &self,
        of: Completing<'_>,
        (argument, value): (&str, &str),
        others: &BTreeMap<String, String>,
        options: CallOptions,
    ) -> Result<Completion, CallError> {
        let (part, reference) = match of {
            Completing::Prompt(name) => {
                let (part, item) = self.find(ListKind::Prompts, name).await?;
                (part, serde_json::json!({"type": "ref/prompt", "name": item}))
            }
            Completing::Template(uri_template, server) => {
                let shows = |seen: &Snapshot| seen.template(uri_template, server).is_ok();
                let snapshot = self.seen(&[ListKind::ResourceTemplates], shows).await;
                let found = snapshot.template(uri_template, server)?;
                let reference = serde_json::json!({"type": "ref/resource", "uri": uri_template});
                (Arc::clone(found.part), reference)
            }
        };
        let session = self.session(&part).await?;
        if !offers_completion(&session) {
            let server = part.name().to_owned();
            return Err(CallError::NotOffered { server, what: "completion of arguments" });
        }
        let operation = Operation::Complete {
            reference: Raw::of(&reference),
            argument: Raw::of(&serde_json::json!({"name": argument, "value": value})),
            context: (!others.is_empty())
                .then(|| Raw::of(&serde_json::json!({"arguments": others}))),
        };
        let called = self.send(&part, operation, "completion", Vec::new(), options).await?;
        let completion = member(&called.result, "completion");
        Ok(completion.and_then(|completion| completion.read().ok()).unwrap_or_default())
    }

    /// Subscribes to updates of one resource, of `server` or of the only one that lists it or has a
    /// template that fits it; waits until the server has confirmed it. Modern servers are asked
    /// with `subscriptions/listen`, legacy ones with `resources/subscribe` (specification,
    /// basic/patterns/subscriptions and server/resources).
    ///
    /// A subscription lives until it is dropped and is made again after a reconnect. Several for
    /// one resource are one on the wire.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::Subscribe`] says why no updates are announced.
    pub async fn subscribe(
        &self,
        uri: &str,
        server: Option<&str>,
    ) -> Result<Subscription, CallError> {
        let kinds = [ListKind::Resources, ListKind::ResourceTemplates];
        let shows = |seen: &Snapshot| owner_of(seen, uri, server).is_ok();
        let snapshot = self.seen(&kinds, shows).await;
        let part = owner_of(&snapshot, uri, server)?;
        let timeouts = &part.config.timeouts;
        let deadline = Instant::now() + timeouts.start + timeouts.list;
        Ok(self.subscriptions().subscribe(part.name(), uri, deadline).await?)
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
            timeout_max: options.timeout_total,
            progress: options.progress,
            log_level: options.log_level.or(self.options().log_level),
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

async fn check_arguments(part: &Part, item: &str, given: Option<&Raw>) -> Result<(), CallError> {
    let Some(check) = part.check(item).cloned() else { return Ok(()) };
    let given = given.cloned();
    let fit = judge(move || check.arguments(given.as_ref())).await;
    fit.map_err(|errors| CallError::Arguments {
        server: part.name().to_owned(),
        item: sanitise::line(item, 200),
        errors,
    })
}

/// The URI that these variables make of a template, or why they do not.
fn expanded(uri_template: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let template = UriTemplate::parse(uri_template).map_err(|error| error.to_string())?;
    let known = template.variables();
    let named = |names: Vec<&String>, what: &str| {
        let names: Vec<_> = names.iter().map(|name| sanitise::line(name, 80)).collect();
        if names.is_empty() { Ok(()) } else { Err(format!("{} {what}", names.join(", "))) }
    };
    named(known.iter().filter(|name| !variables.contains_key(*name)).collect(), "missing")?;
    named(variables.keys().filter(|name| !known.contains(name)).collect(), "unknown")?;
    template.expand(variables).map_err(|error| error.to_string())
}

/// True when the server declares completion, or speaks a revision that had it before there was
/// anything to declare.
fn offers_completion(session: &Session) -> bool {
    let negotiated = session.negotiated();
    negotiated.capabilities.has("completions")
        || negotiated.era == Era::Legacy && negotiated.version.as_str() < "2025-03-26"
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
