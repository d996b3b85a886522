//! What a server says of itself, and what follows from it for the wire.

use serde::{Deserialize, Serialize, de::IgnoredAny};
use toolcrib_core::{raw::Raw, rpc::method};

use crate::change::Filter;

/// Who may reuse a cached answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Anyone: the answer is the same for every principal.
    Public,
    /// Only the principal that asked.
    #[default]
    Private,
}

/// What a server says of itself; read anew for each request, so a handler may change it.
#[derive(Debug, Clone)]
pub struct ServerAbout {
    /// `serverInfo.name`
    pub name: String,
    /// `serverInfo.version`
    pub version: String,
    /// `serverInfo.title`
    pub title: Option<String>,
    /// How a model is to use the server.
    pub instructions: Option<String>,
    /// The `ServerCapabilities` object. What it does not declare is answered "method not found"
    /// before the handler sees it.
    pub capabilities: Raw,
    /// How long a client may reuse a list, a discovery answer or a resource, in milliseconds.
    pub ttl_ms: u64,
    /// Who may reuse it.
    pub cache_scope: CacheScope,
}

impl ServerAbout {
    /// The `Implementation` object.
    pub(crate) fn server_info(&self) -> Info<'_> {
        Info { name: &self.name, version: &self.version, title: self.title.as_deref() }
    }

    /// The typed view of [`ServerAbout::capabilities`]; nothing when they cannot be read.
    pub(crate) fn offered(&self) -> Offered {
        self.capabilities.read().unwrap_or_default()
    }
}

/// Who a server says it is.
#[derive(Debug, Serialize)]
pub(crate) struct Info<'a> {
    name: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
}

/// The capabilities that decide what is served.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Offered {
    tools: Option<Flags>,
    resources: Option<Flags>,
    prompts: Option<Flags>,
    completions: Option<IgnoredAny>,
    logging: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Flags {
    list_changed: bool,
    subscribe: bool,
}

impl Offered {
    /// True unless `method` belongs to a capability that is not offered.
    pub(crate) fn allows(&self, method: &str) -> bool {
        match method {
            method::SUBSCRIBE | method::UNSUBSCRIBE => self.subscribe(),
            method::SET_LEVEL => self.logging(),
            method::LISTEN => self.changes() != Filter::default() || self.subscribe(),
            _ if method.starts_with("tools/") => self.tools.is_some(),
            _ if method.starts_with("resources/") => self.resources.is_some(),
            _ if method.starts_with("prompts/") => self.prompts.is_some(),
            _ if method.starts_with("completion/") => self.completions.is_some(),
            _ => true,
        }
    }

    /// Whether log messages may be sent at all.
    pub(crate) const fn logging(&self) -> bool {
        self.logging.is_some()
    }

    /// Whether single resources can be followed.
    pub(crate) fn subscribe(&self) -> bool {
        self.resources.as_ref().is_some_and(|flags| flags.subscribe)
    }

    /// The list changes that are announced.
    pub(crate) fn changes(&self) -> Filter {
        let announced =
            |flags: &Option<Flags>| flags.as_ref().is_some_and(|flags| flags.list_changed);
        Filter {
            tools_list_changed: announced(&self.tools),
            prompts_list_changed: announced(&self.prompts),
            resources_list_changed: announced(&self.resources),
            ..Filter::default()
        }
    }

    /// The part of `asked` that is announced.
    pub(crate) fn honour(&self, asked: Filter) -> Filter {
        let offered = self.changes();
        Filter {
            tools_list_changed: asked.tools_list_changed && offered.tools_list_changed,
            prompts_list_changed: asked.prompts_list_changed && offered.prompts_list_changed,
            resources_list_changed: asked.resources_list_changed && offered.resources_list_changed,
            resource_subscriptions: if self.subscribe() {
                asked.resource_subscriptions
            } else {
                Default::default()
            },
        }
    }
}
