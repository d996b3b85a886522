//! A server made of declarations.

use std::{collections::BTreeMap, convert::Infallible, fmt, sync::Arc};

use serde::Deserialize;
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, method},
};

use super::{
    complete::{Complete, Completing, Reference},
    context::Context,
    error::DeclareError,
    shelf::{Shelf, Shelved},
    shelves::{Item, Shared, Shelves, take},
};
use crate::{
    about::{CacheScope, ServerAbout},
    change::{Change, Changes, ListKind},
    fault,
    handler::{Answer, Handler, Reply, Request},
    peer::Peer,
};

/// A server made of declarations. Every clone is the same server.
///
/// Items can be added and removed while it runs; clients that listen are told.
#[derive(Clone)]
pub struct Server(Shared);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.0.now().about.name).finish_non_exhaustive()
    }
}

/// What a server is to be.
#[derive(Debug, Clone)]
#[must_use]
pub struct ServerBuilder {
    about: ServerAbout,
    page_size: usize,
    logging: bool,
    follows: bool,
    items: Vec<Item>,
}

impl ServerBuilder {
    /// Its display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.about.title = Some(title.into());
        self
    }

    /// How a model is to use the server.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.about.instructions = Some(text.into());
        self
    }

    /// How long clients may reuse lists and resources, in milliseconds (`ttlMs`); 0 by default.
    pub const fn ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.about.ttl_ms = ttl_ms;
        self
    }

    /// Everybody sees the same: shared caches may keep what is listed and read
    /// (`cacheScope: "public"`).
    pub const fn public(mut self) -> Self {
        self.about.cache_scope = CacheScope::Public;
        self
    }

    /// Most items in one page of a list; 1,000 by default.
    pub fn page_size(mut self, items: usize) -> Self {
        self.page_size = items.max(1);
        self
    }

    /// Lets clients ask for log messages.
    pub const fn logging(mut self) -> Self {
        self.logging = true;
        self
    }

    /// Lets clients follow single resources; announce their changes by
    /// [`Server::resource_changed`].
    pub const fn follow_resources(mut self) -> Self {
        self.follows = true;
        self
    }

    /// Declares an item.
    pub fn with(mut self, item: impl Into<Item>) -> Self {
        self.items.push(item.into());
        self
    }

    /// Checks all declarations.
    ///
    /// # Errors
    /// Two items have one name, or no client could use an item.
    pub fn build(self) -> Result<Server, DeclareError> {
        let mut shelves = Shelves::new(self.about);
        shelves.page_size = self.page_size;
        shelves.logging = self.logging;
        shelves.follows = self.follows;
        for item in self.items {
            shelves.add(item.declare()?)?;
        }
        shelves.declare_capabilities();
        Ok(Server(Shared::new(shelves)))
    }
}

impl Server {
    /// Begins a server with its `serverInfo`.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder {
            about: ServerAbout {
                name: name.into(),
                version: version.into(),
                title: None,
                instructions: None,
                capabilities: Raw::empty_object(),
                ttl_ms: 0,
                cache_scope: CacheScope::Private,
            },
            page_size: 1_000,
            logging: false,
            follows: false,
            items: Vec::new(),
        }
    }

    /// Adds an item; clients are told.
    ///
    /// # Errors
    /// As [`ServerBuilder::build`].
    pub fn add(&self, item: impl Into<Item>) -> Result<(), DeclareError> {
        // Checked before anybody has to wait for the change.
        let item = item.into().declare()?;
        self.0.change(|shelves| shelves.add(item).map(Some)).map(|_| ())
    }

    /// Removes a tool; false when there is none of this name.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove(ListKind::Tools, |shelves| take(&mut shelves.tools, name))
    }

    /// Removes a resource; false when there is none of this URI.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove(ListKind::Resources, |shelves| take(&mut shelves.resources, uri))
    }

    /// Removes a resource template; false when there is none of this text.
    pub fn remove_template(&self, template: &str) -> bool {
        self.remove(ListKind::Resources, |shelves| take(&mut shelves.templates, template))
    }

    /// Removes a prompt; false when there is none of this name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove(ListKind::Prompts, |shelves| take(&mut shelves.prompts, name))
    }

    /// True when there is a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.0.now().tools.get(name).is_some()
    }

    /// Tells whoever follows it that the content of a resource changed.
    pub fn resource_changed(&self, uri: impl Into<String>) {
        self.0.changes.announce(Change::Resource(uri.into()));
    }

    fn remove(&self, kind: ListKind, remove: impl FnOnce(&mut Shelves) -> bool) -> bool {
        let removed = self.0.change(|shelves| Ok::<_, Infallible>(remove(shelves).then_some(kind)));
        let Ok(removed) = removed;
        removed
    }

    fn context(&self, request: &Request, peer: Peer) -> Context {
        Context::new(request, peer, Arc::new(self.clone()))
    }

    async fn answer(&self, request: Request, peer: Peer) -> Result<Reply, RpcError> {
        let shelves = self.0.now();
        match request.method.as_str() {
            method::TOOLS_LIST => page(&shelves, &shelves.tools, &request),
            method::RESOURCES_LIST => page(&shelves, &shelves.resources, &request),
            method::TEMPLATES_LIST => page(&shelves, &shelves.templates, &request),
            method::PROMPTS_LIST => page(&shelves, &shelves.prompts, &request),
            method::TOOLS_CALL => {
                let Call { name, arguments } = request.read()?;
                let tool = shelves.tools.get(&name).ok_or_else(|| unknown("tool", &name))?;
                let context = self.context(&request, peer);
                tool.call(arguments, context, &shelves.about).await
            }
            method::RESOURCES_READ => self.read(&shelves, &request, peer).await.map(Reply::Plain),
            method::PROMPTS_GET => {
                let Get { name, arguments } = request.read()?;
                let prompt = shelves.prompts.get(&name).ok_or_else(|| unknown("prompt", &name))?;
                let context = self.context(&request, peer);
                prompt.get(arguments.unwrap_or_default(), context).await.map(Reply::Plain)
            }
            method::COMPLETE => completed(&shelves, request.read()?).await,
            other => Err(fault::method_not_found(other)),
        }
    }

    async fn read(
        &self,
        shelves: &Shelves,
        request: &Request,
        peer: Peer,
    ) -> Result<Raw, RpcError> {
        let Read { uri } = request.read()?;
        let context = self.context(request, peer);
        if let Some(resource) = shelves.resources.get(&uri) {
            return resource.read(context).await;
        }
        for template in shelves.templates.iter() {
            if let Some(variables) = template.variables(&uri) {
                return template.read(&uri, variables, context).await;
            }
        }
        Err(fault::unknown_resource(request.era, &uri))
    }
}

impl Context {
    /// The server itself, to add and remove items and to announce changes.
    pub fn server(&self) -> &Server {
        self.server.downcast_ref().expect("only `Server::context` makes one, of itself")
    }
}

impl Handler for Server {
    fn about(&self) -> Arc<ServerAbout> {
        Arc::clone(&self.0.now().about)
    }

    fn changes(&self) -> &Changes {
        &self.0.changes
    }

    fn input_schema(&self, tool: &str) -> Option<Raw> {
        self.0.now().tools.get(tool).map(|tool| tool.input.clone())
    }

    fn handle(&self, request: Request, peer: Peer) -> Answer<'_> {
        Box::pin(self.answer(request, peer))
    }
}

#[derive(Deserialize)]
struct Call {
    name: String,
    /// Kept even when it is `null`, which is no object.
    #[serde(default, deserialize_with = "toolcrib_core::raw::present")]
    arguments: Option<Raw>,
}

#[derive(Deserialize)]
struct Read {
    uri: String,
}

#[derive(Deserialize)]
struct Get {
    name: String,
    arguments: Option<BTreeMap<String, String>>,
}

fn unknown(kind: &str, name: &str) -> RpcError {
    fault::invalid_params(format!("there is no {kind} {name:?}"))
}

fn page<T: Shelved>(
    shelves: &Shelves,
    shelf: &Shelf<T>,
    request: &Request,
) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Page {
        cursor: Option<String>,
    }
    let Page { cursor } = request.read()?;
    shelf
        .page(cursor.as_deref(), shelves.page_size, request.era, &shelves.about)
        .map(Reply::Complete)
}

async fn completed(shelves: &Shelves, asked: Complete) -> Result<Reply, RpcError> {
    let completers = match &asked.reference {
        Reference::Prompt { name } => {
            &shelves.prompts.get(name).ok_or_else(|| unknown("prompt", name))?.completers
        }
        Reference::Template { uri } => {
            &shelves.templates.get(uri).ok_or_else(|| unknown("template", uri))?.completers
        }
    };
    let completing = Completing { value: asked.argument.value, arguments: asked.context.arguments };
    let completion = completers.complete(&asked.argument.name, completing).await;
    Ok(Raw::of(&serde_json::json!({ "completion": completion })).into())
}
