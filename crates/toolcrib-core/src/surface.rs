//! What one server shows: the negotiated handshake and its four lists, raw JSON kept, with typed
//! views that tolerate every odd item.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    finding::{Finding, Tier},
    raw::{Raw, present},
    rpc::{
        message::{each_member, member},
        method,
    },
    sanitise,
    version::Era,
};

/// The four kinds of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `prompts/list`
    Prompts,
}

impl ListKind {
    /// All four, in the order they are shown.
    pub const ALL: [Self; 4] =
        [Self::Tools, Self::Resources, Self::ResourceTemplates, Self::Prompts];

    /// The method that lists it.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::ResourceTemplates => method::TEMPLATES_LIST,
            Self::Prompts => method::PROMPTS_LIST,
        }
    }

    /// The member of the result that holds the items.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The capability that offers it.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::ResourceTemplates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The member that identifies an item within its list.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::ResourceTemplates => "uriTemplate",
        }
    }

    /// One item of it, in words.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Resources => "resource",
            Self::ResourceTemplates => "resource template",
            Self::Prompts => "prompt",
        }
    }
}

/// What the handshake settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// How the session talks.
    pub era: Era,
    /// The protocol version string in use.
    pub version: String,
    /// How the era was decided, in words for a person, step by step.
    pub how: Vec<String>,
    /// `Implementation` of the server as it described itself; never trusted.
    pub server: Option<Raw>,
    /// Its capabilities as sent.
    pub capabilities: Capabilities,
    /// Its instructions.
    pub instructions: Option<String>,
    /// What was odd about the handshake.
    pub findings: Vec<Finding>,
}

impl Negotiated {
    /// Name and version the server gives itself, when it gives any.
    pub fn server_label(&self) -> Option<(String, String)> {
        let server = self.server.as_ref()?;
        let text = |key: &str| {
            let value = member(server, key)?;
            Some(value.read::<String>().unwrap_or_else(|_| value.get().to_owned()))
        };
        Some((text("name")?, text("version").unwrap_or_default()))
    }
}

/// Server capabilities: raw, with the few questions we ask of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// As sent; `None` when the server sent none at all.
    pub raw: Option<Raw>,
}

impl Capabilities {
    /// The member `name` when it is present and not null. Any other value counts as declared,
    /// `[]` and a misplaced list included.
    pub fn get(&self, name: &str) -> Option<Raw> {
        member(self.raw.as_ref()?, name)
    }

    /// True when the server declares `name`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// True when the server declares none of tools, resources and prompts.
    pub fn declares_no_list(&self) -> bool {
        ListKind::ALL.into_iter().all(|kind| !self.has(kind.capability()))
    }

    /// True when `capability.flag` is `true` (other values do not count).
    pub fn flag(&self, capability: &str, flag: &str) -> bool {
        self.get(capability).is_some_and(|value| {
            let mut set = false;
            let read = each_member(&value, |name, value| {
                set |= name == flag && value.get() == "true";
            });
            read.is_ok() && set
        })
    }
}

/// How far a cached list may be shared (specification, server/utilities/caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Any user may be served it.
    Public,
    /// Only the authorization context it was obtained with. Also when the server says nothing.
    #[default]
    Private,
}

/// How a list ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum ListState {
    /// Not asked yet, or the answer is still out.
    Pending,
    /// The server does not offer this list.
    NotOffered,
    /// Read to the last page.
    Complete,
    /// Stopped by a limit or an error; the items before that are served, nothing is concluded
    /// about the others.
    Partial(String),
    /// Nothing could be read.
    Failed(String),
}

/// One list of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The items, in the server's order; shared, so that a surface is cheap to copy.
    pub items: Arc<[T]>,
    /// How it ended.
    pub state: ListState,
    /// How long the server says it stays fresh.
    pub ttl: Duration,
    /// Who may be served it.
    pub scope: CacheScope,
    /// Pages read.
    pub pages: usize,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Arc::default(),
            state: ListState::Pending,
            ttl: Duration::ZERO,
            scope: CacheScope::Private,
            pages: 0,
        }
    }
}

impl<T> Listing<T> {
    /// True when the list is known to the last item (a list that is not offered is).
    pub fn is_complete(&self) -> bool {
        matches!(self.state, ListState::Complete | ListState::NotOffered)
    }
}

/// What one server shows now.
#[derive(Debug, Clone)]
pub struct Surface {
    /// The handshake.
    pub negotiated: Negotiated,
    /// Its tools.
    pub tools: Listing<Tool>,
    /// Its resources.
    pub resources: Listing<Resource>,
    /// Its resource templates.
    pub templates: Listing<Template>,
    /// Its prompts.
    pub prompts: Listing<Prompt>,
    /// What the reading noticed.
    pub findings: Vec<Finding>,
}

impl Surface {
    /// A surface before any list has been read.
    pub fn new(negotiated: Negotiated) -> Self {
        Self {
            negotiated,
            tools: Listing::default(),
            resources: Listing::default(),
            templates: Listing::default(),
            prompts: Listing::default(),
            findings: Vec::new(),
        }
    }

    /// The state of each list.
    pub fn states(&self) -> [(ListKind, &ListState); 4] {
        [
            (ListKind::Tools, &self.tools.state),
            (ListKind::Resources, &self.resources.state),
            (ListKind::ResourceTemplates, &self.templates.state),
            (ListKind::Prompts, &self.prompts.state),
        ]
    }
}

/// What all items of lists have in common.
pub trait Item: Sized + Send {
    /// Which list it stands in.
    const KIND: ListKind;

    /// Reads an item; one that cannot be identified is reported and left out.
    fn read(raw: Raw, findings: &mut Vec<Finding>) -> Option<Self>;

    /// What identifies it within its list.
    fn key(&self) -> &str;

    /// As received.
    fn raw(&self) -> &Raw;
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// As received.
    pub raw: Raw,
    /// Name, unique within a well-behaved server.
    pub name: String,
    /// Display name (`title`, else `annotations.title`).
    pub title: Option<String>,
    /// What the server says it does; untrusted.
    pub description: Option<String>,
    /// Schema of its arguments as sent; absent when missing or null.
    pub input_schema: Option<Raw>,
    /// Schema of its structured results as sent.
    pub output_schema: Option<Raw>,
    /// Hints; untrusted.
    pub hints: Hints,
}

/// Behaviour hints of a tool; `None` where the server says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: Option<bool>,
    /// May destroy.
    pub destructive: Option<bool>,
    /// Twice is as once.
    pub idempotent: Option<bool>,
    /// Reaches beyond the server.
    pub open_world: Option<bool>,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// As received.
    pub raw: Raw,
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description; untrusted.
    pub description: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
}

/// A resource template (RFC 6570).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// As received.
    pub raw: Raw,
    /// The URI template.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description; untrusted.
    pub description: Option<String>,
    /// Media type of what it expands to.
    pub mime_type: Option<String>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// As received.
    pub raw: Raw,
    /// Its name.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description; untrusted.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Description; untrusted.
    pub description: Option<String>,
    /// Must be given.
    pub required: bool,
}

/// The members of an item that views are made of. A member of a wrong type reads as absent.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Members<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    uri_template: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow)]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

fn text(value: Option<&RawValue>) -> Option<String> {
    value.and_then(|value| serde_json::from_str(value.get()).ok())
}

fn schema(value: Option<&RawValue>) -> Option<Raw> {
    value.filter(|value| value.get() != "null").map(Raw::from)
}

/// Reads an item's members, or says why it is no usable item.
fn item<'a>(raw: &'a Raw, kind: ListKind, findings: &mut Vec<Finding>) -> Option<Members<'a>> {
    if !raw.is_object() {
        findings.push(odd(
            kind,
            raw,
            format!("a {} that is not an object was left out", kind.noun()),
        ));
        return None;
    }
    match raw.view::<Members<'a>>() {
        Ok(members) => Some(members),
        Err(error) => {
            let why = format!("a {} was left out: {error}", kind.noun());
            findings.push(odd(kind, raw, why));
            None
        }
    }
}

/// The identifying member, or a finding that it is missing.
fn identity(
    raw: &Raw,
    value: Option<&RawValue>,
    kind: ListKind,
    findings: &mut Vec<Finding>,
) -> Option<String> {
    let found = text(value);
    if found.is_none() {
        let why = format!("a {} without a usable `{}` was left out", kind.noun(), kind.key());
        findings.push(odd(kind, raw, why));
    }
    found
}

fn odd(kind: ListKind, raw: &Raw, message: String) -> Finding {
    let excerpt = sanitise::line(raw.get(), 80);
    Finding::new("list/odd-item", Tier::Soft, kind.method(), format!("{message}: {excerpt}"))
}

impl Item for Tool {
    const KIND: ListKind = ListKind::Tools;

    fn key(&self) -> &str {
        &self.name
    }

    fn raw(&self) -> &Raw {
        &self.raw
    }

    fn read(raw: Raw, findings: &mut Vec<Finding>) -> Option<Self> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Annotations<'a> {
            #[serde(borrow)]
            title: Option<&'a RawValue>,
            #[serde(borrow)]
            read_only_hint: Option<&'a RawValue>,
            #[serde(borrow)]
            destructive_hint: Option<&'a RawValue>,
            #[serde(borrow)]
            idempotent_hint: Option<&'a RawValue>,
            #[serde(borrow)]
            open_world_hint: Option<&'a RawValue>,
        }
        let flag = |value: Option<&RawValue>| {
            value.and_then(|value| serde_json::from_str(value.get()).ok())
        };
        let members = item(&raw, ListKind::Tools, findings)?;
        let name = identity(&raw, members.name, ListKind::Tools, findings)?;
        let annotations: Annotations<'_> = members
            .annotations
            .and_then(|value| serde_json::from_str(value.get()).ok())
            .unwrap_or_default();
        Some(Self {
            title: text(members.title).or_else(|| text(annotations.title)),
            description: text(members.description),
            input_schema: schema(members.input_schema),
            output_schema: schema(members.output_schema),
            hints: Hints {
                read_only: flag(annotations.read_only_hint),
                destructive: flag(annotations.destructive_hint),
                idempotent: flag(annotations.idempotent_hint),
                open_world: flag(annotations.open_world_hint),
            },
            name,
            raw,
        })
    }
}

impl Item for Resource {
    const KIND: ListKind = ListKind::Resources;

    fn key(&self) -> &str {
        &self.uri
    }

    fn raw(&self) -> &Raw {
        &self.raw
    }

    fn read(raw: Raw, findings: &mut Vec<Finding>) -> Option<Self> {
        let members = item(&raw, ListKind::Resources, findings)?;
        let uri = identity(&raw, members.uri, ListKind::Resources, findings)?;
        Some(Self {
            name: text(members.name).unwrap_or_else(|| uri.clone()),
            title: text(members.title),
            description: text(members.description),
            mime_type: text(members.mime_type),
            uri,
            raw,
        })
    }
}

impl Item for Template {
    const KIND: ListKind = ListKind::ResourceTemplates;

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn raw(&self) -> &Raw {
        &self.raw
    }

    fn read(raw: Raw, findings: &mut Vec<Finding>) -> Option<Self> {
        let members = item(&raw, ListKind::ResourceTemplates, findings)?;
        let uri_template =
            identity(&raw, members.uri_template, ListKind::ResourceTemplates, findings)?;
        Some(Self {
            name: text(members.name).unwrap_or_else(|| uri_template.clone()),
            title: text(members.title),
            description: text(members.description),
            mime_type: text(members.mime_type),
            uri_template,
            raw,
        })
    }
}

impl Item for Prompt {
    const KIND: ListKind = ListKind::Prompts;

    fn key(&self) -> &str {
        &self.name
    }

    fn raw(&self) -> &Raw {
        &self.raw
    }

    fn read(raw: Raw, findings: &mut Vec<Finding>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            #[serde(default)]
            description: Option<Raw>,
            #[serde(default)]
            required: Option<Raw>,
        }
        let members = item(&raw, ListKind::Prompts, findings)?;
        let name = identity(&raw, members.name, ListKind::Prompts, findings)?;
        let arguments: Vec<Raw> = members
            .arguments
            .and_then(|value| serde_json::from_str(value.get()).ok())
            .unwrap_or_default();
        let arguments = arguments
            .into_iter()
            .filter_map(|raw| match raw.read::<Argument>() {
                Ok(argument) => Some(PromptArgument {
                    name: argument.name,
                    description: argument.description.and_then(|value| value.read().ok()),
                    required: argument.required.is_some_and(|value| value.get() == "true"),
                }),
                Err(error) => {
                    let subject = format!("prompt {}", sanitise::line(&name, 128));
                    let why = format!("an argument was left out: {error}");
                    findings.push(Finding::new("list/odd-item", Tier::Soft, subject, why));
                    None
                }
            })
            .collect();
        Some(Self {
            title: text(members.title),
            description: text(members.description),
            arguments,
            name,
            raw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &str) -> (Option<Tool>, Vec<Finding>) {
        let mut findings = Vec::new();
        (Tool::read(Raw::parse(text).unwrap(), &mut findings), findings)
    }

    #[test]
    fn members_of_a_wrong_type_cost_nothing() {
        let (read, findings) = tool(
            r#"{"name":"a","title":null,"description":7,"inputSchema":null,"icons":"x",
                "annotations":{"readOnlyHint":"true","destructiveHint":false},"_meta":"x","x-new":1}"#,
        );
        let read = read.unwrap();
        assert_eq!((read.name.as_str(), read.title, read.description), ("a", None, None));
        assert_eq!(read.input_schema, None);
        assert_eq!((read.hints.read_only, read.hints.destructive), (None, Some(false)));
        assert!(read.raw.get().contains("x-new"));
        assert_eq!(findings, []);
    }

    #[test]
    fn an_item_that_cannot_be_named_is_a_finding() {
        for text in ["{}", "7", "null", "[]", r#"{"name":7}"#, r#"{"name":"a","name":"b"}"#] {
            let (read, findings) = tool(text);
            assert_eq!((read, findings.len()), (None, 1), "{text}");
            assert_eq!(findings[0].rule, "list/odd-item");
        }
    }

    #[test]
    fn capabilities_count_when_present_and_not_null() {
        let check = |text: &str, tools: bool, none: bool, changed: bool| {
            let capabilities = Capabilities { raw: Some(Raw::parse(text).unwrap()) };
            assert_eq!(capabilities.has("tools"), tools, "{text}");
            assert_eq!(capabilities.declares_no_list(), none, "{text}");
            assert_eq!(capabilities.flag("tools", "listChanged"), changed, "{text}");
        };
        check(r#"{"tools":[]}"#, true, false, false);
        check(r#"{"tools":null,"prompts":{}}"#, false, false, false);
        check(r#"{"tools":{"listChanged":true}}"#, true, false, true);
        check(r#"{"tools":{"listChanged":"yes"}}"#, true, false, false);
        check("{}", false, true, false);
        check("[]", false, true, false);
    }
}
