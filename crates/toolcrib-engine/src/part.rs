//! What is known of one server: the replaceable unit of a snapshot.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, SystemTime},
};

use toolcrib_core::{
    check::{ToolCheck, lint, look_over},
    finding::{Finding, Tier},
    limits::Limits,
    sanitise,
    surface::{ListKind, ListState, Listing, Prompt, Resource, Surface, Template, Tool},
    target::ServerConfig,
};
use toolcrib_link::Session;

use crate::{options::Checks, status::Status};

/// What is known of one server. Cloning shares everything.
#[derive(Clone)]
pub struct Part {
    /// Its configuration.
    pub config: Arc<ServerConfig>,
    /// How it stands.
    pub status: Status,
    /// What it showed last; kept while it is away.
    pub surface: Option<Arc<Surface>>,
    /// What the checks noticed, worst first.
    pub findings: Arc<Vec<Finding>>,
    /// The live session, when there is one.
    pub session: Option<Arc<Session>>,
    /// When each list was last read.
    listed: [Option<SystemTime>; 4],
    /// True where the items are those of a list that was read to its end, in this session or in one
    /// before it.
    whole: [bool; 4],
    /// Items that are not to be used, with why.
    refused: Arc<BTreeMap<(ListKind, String), String>>,
    checks: Arc<HashMap<String, Arc<ToolCheck>>>,
}

impl Part {
    /// A server nothing is known of yet.
    pub(crate) fn new(config: Arc<ServerConfig>, status: Status) -> Self {
        Self {
            config,
            status,
            surface: None,
            findings: Arc::default(),
            session: None,
            listed: [None; 4],
            whole: [false; 4],
            refused: Arc::default(),
            checks: Arc::default(),
        }
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// True when `kinds` are listed, not offered, or out of reach.
    pub fn is_settled(&self, kinds: &[ListKind]) -> bool {
        if self.status != Status::Starting {
            return true;
        }
        let Some(surface) = self.surface.as_ref().filter(|_| self.session.is_some()) else {
            return false;
        };
        let states = surface.states();
        kinds.iter().all(|kind| *states[*kind as usize].1 != ListState::Pending)
    }

    /// True when a reader sees no difference: everything but when lists were read and how long they
    /// stay fresh.
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        let same_session = match (&self.session, &other.session) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            (None, None) => true,
            _ => false,
        };
        let same_surface = match (&self.surface, &other.surface) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another) || shows_the_same(one, another),
            (None, None) => true,
            _ => false,
        };
        same_session
            && same_surface
            && self.status == other.status
            && self.findings == other.findings
            && self.refused == other.refused
    }

    /// When a list was last read.
    pub const fn listed_at(&self, kind: ListKind) -> Option<SystemTime> {
        self.listed[kind as usize]
    }

    /// Its tools that the configuration lets in, refused ones included.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        let filter = &self.config.tools;
        let tools = self.surface.iter().flat_map(|surface| surface.tools.items.iter());
        tools.filter(move |tool| filter.allows(&tool.name))
    }

    /// The tool of this name, the server's own.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools().find(|tool| tool.name == name)
    }

    /// The prompt of this name, the server's own.
    pub fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts().find(|prompt| prompt.name == name)
    }

    /// Its prompts, refused ones included.
    pub fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.surface.iter().flat_map(|surface| surface.prompts.items.iter())
    }

    /// The resource of this URI, when it is to be used.
    pub fn resource(&self, uri: &str) -> Option<&Resource> {
        self.resources().find(|resource| resource.uri == uri)
    }

    /// The resource template of this text, when it is to be used.
    pub fn template(&self, uri_template: &str) -> Option<&Template> {
        self.templates().find(|template| template.uri_template == uri_template)
    }

    /// Its resources that are to be used.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        let resources = self.surface.iter().flat_map(|surface| surface.resources.items.iter());
        resources.filter(|item| self.refusal(ListKind::Resources, &item.uri).is_none())
    }

    /// Its resource templates that are to be used.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let templates = self.surface.iter().flat_map(|surface| surface.templates.items.iter());
        let kind = ListKind::ResourceTemplates;
        templates.filter(move |item| self.refusal(kind, &item.uri_template).is_none())
    }

    /// Why an item is not to be used, if it is not.
    pub fn refusal(&self, kind: ListKind, key: &str) -> Option<&str> {
        if self.refused.is_empty() {
            return None;
        }
        self.refused.get(&(kind, key.to_owned())).map(String::as_str)
    }

    pub(crate) fn refuses_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.refused, &other.refused) || self.refused == other.refused
    }

    /// The tools and prompts that have no name because they are not to be used: (server, kind, item).
    pub(crate) fn refused(&self) -> impl Iterator<Item = (&str, ListKind, &str)> {
        let named = |kind: &ListKind| matches!(kind, ListKind::Tools | ListKind::Prompts);
        let refused = self.refused.keys().filter(move |(kind, _)| named(kind));
        refused.map(|(kind, item)| (self.config.name.as_str(), *kind, item.as_str()))
    }

    /// The compiled schemas of a tool.
    pub fn check(&self, tool: &str) -> Option<&Arc<ToolCheck>> {
        self.checks.get(tool)
    }

    /// What can be addressed by name: (server, kind, item).
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, ListKind, &str)> {
        let tools = self.tools().map(|tool| (ListKind::Tools, tool.name.as_str()));
        let prompts = self.prompts().map(|prompt| (ListKind::Prompts, prompt.name.as_str()));
        tools
            .chain(prompts)
            .filter(|(kind, name)| self.refusal(*kind, name).is_none())
            .map(|(kind, name)| (self.config.name.as_str(), kind, name))
    }

    /// How long the server says that each list stays fresh; zero where it says nothing.
    pub fn ttls(&self) -> Vec<(ListKind, Duration)> {
        let Some(surface) = &self.surface else { return Vec::new() };
        vec![
            (ListKind::Tools, surface.tools.ttl),
            (ListKind::Resources, surface.resources.ttl),
            (ListKind::ResourceTemplates, surface.templates.ttl),
            (ListKind::Prompts, surface.prompts.ttl),
        ]
    }

    /// Begins a new session: what the last one showed stays until its list is read again.
    pub(crate) fn begin(&mut self, mut fresh: Surface) {
        if let Some(last) = self.surface.take() {
            let last = Arc::unwrap_or_clone(last);
            let keep = |state: &ListState| *state == ListState::Pending;
            if keep(&fresh.tools.state) {
                fresh.tools.items = last.tools.items;
            }
            if keep(&fresh.resources.state) {
                fresh.resources.items = last.resources.items;
            }
            if keep(&fresh.templates.state) {
                fresh.templates.items = last.templates.items;
            }
            if keep(&fresh.prompts.state) {
                fresh.prompts.items = last.prompts.items;
            }
        }
        for (kind, state) in fresh.states() {
            self.whole[kind as usize] &= *state == ListState::Pending;
        }
        self.surface = Some(Arc::new(fresh));
    }

    /// Changes one list of the surface; `change` is told, and tells, whether its items are those of
    /// a whole list.
    pub(crate) fn take<R: Default>(
        &mut self,
        kind: ListKind,
        change: impl FnOnce(&mut Surface, &mut bool) -> R,
    ) -> R {
        let Some(surface) = &mut self.surface else { return R::default() };
        change(Arc::make_mut(surface), &mut self.whole[kind as usize])
    }

    /// Notes that a list was read now.
    pub(crate) fn listed(&mut self, kind: ListKind) {
        self.listed[kind as usize] = Some(SystemTime::now());
    }

    /// Recomputes what follows from the surface: checks, refusals, findings and status. Compiled
    /// schemas of unchanged tools are kept.
    pub(crate) fn settle(&mut self, mut findings: Vec<Finding>, checks: Checks, limits: &Limits) {
        let Some(surface) = self.surface.clone() else { return };
        self.status = status(&surface);
        if checks == Checks::On {
            let over_http = matches!(self.config.target, toolcrib_core::target::Target::Http(_));
            let linted = lint::lint(&surface, over_http, limits);
            findings.extend(linted.findings);
            let known = |tool: &Tool| {
                self.checks.get(&tool.name).filter(|check| check.is_for(tool)).cloned()
            };
            let mut kept = HashMap::with_capacity(surface.tools.items.len());
            for (name, check) in look_over(surface.tools.items.iter(), limits, known) {
                findings.extend(check.findings().iter().cloned());
                kept.insert(name.to_owned(), check);
            }
            self.refused = Arc::new(linted.refused);
            self.checks = Arc::new(kept);
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.tier));
        if findings.len() > limits.findings {
            let rest = findings.len() - limits.findings;
            findings.truncate(limits.findings);
            let message = format!("{rest} more findings are not shown");
            findings.push(Finding::new("findings/more", Tier::Info, "", message));
        }
        self.findings = Arc::new(findings);
    }
}

fn status(surface: &Surface) -> Status {
    let mut missing = Vec::new();
    for (kind, state) in surface.states() {
        match state {
            ListState::Pending => return Status::Starting,
            ListState::NotOffered | ListState::Complete => {}
            ListState::Partial(why) | ListState::Failed(why) => {
                missing.push(format!("{}: {}", kind.member(), sanitise::line(why, 200)));
            }
        }
    }
    if missing.is_empty() { Status::Ready } else { Status::Degraded { why: missing.join("; ") } }
}

fn shows_the_same(one: &Surface, another: &Surface) -> bool {
    fn same<T>(one: &Listing<T>, another: &Listing<T>) -> bool {
        Arc::ptr_eq(&one.items, &another.items) && one.state == another.state
    }
    one.negotiated == another.negotiated
        && same(&one.tools, &another.tools)
        && same(&one.resources, &another.resources)
        && same(&one.templates, &another.templates)
        && same(&one.prompts, &another.prompts)
}
