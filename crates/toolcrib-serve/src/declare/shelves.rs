//! Everything a server declares, as one value that is replaced as a whole.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value, json};
use toolcrib_core::raw::Raw;

use super::{
    error::DeclareError,
    prompt::{DeclaredPrompt, Prompt},
    resource::{DeclaredResource, DeclaredTemplate, Resource, Template},
    shelf::{Shelf, Shelved},
    tool::{self, Tool},
};
use crate::{
    about::ServerAbout,
    change::{Change, Changes, ListKind},
};

/// Anything that can be declared.
#[derive(Debug, Clone)]
pub enum Item {
    /// A tool.
    Tool(Tool),
    /// A resource.
    Resource(Resource),
    /// A resource template.
    Template(Template),
    /// A prompt.
    Prompt(Prompt),
}

impl From<Tool> for Item {
    fn from(tool: Tool) -> Self {
        Self::Tool(tool)
    }
}

impl From<Resource> for Item {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource)
    }
}

impl From<Template> for Item {
    fn from(template: Template) -> Self {
        Self::Template(template)
    }
}

impl From<Prompt> for Item {
    fn from(prompt: Prompt) -> Self {
        Self::Prompt(prompt)
    }
}

/// An item that was checked.
pub(crate) enum Declared {
    Tool(Box<tool::Declared>),
    Resource(DeclaredResource),
    Template(Box<DeclaredTemplate>),
    Prompt(Box<DeclaredPrompt>),
}

impl Item {
    /// Checks it as a client would.
    pub(crate) fn declare(self) -> Result<Declared, DeclareError> {
        Ok(match self {
            Self::Tool(tool) => Declared::Tool(Box::new(tool.declare()?)),
            Self::Resource(resource) => Declared::Resource(resource.declare()?),
            Self::Template(template) => Declared::Template(Box::new(template.declare()?)),
            Self::Prompt(prompt) => Declared::Prompt(Box::new(prompt.declare()?)),
        })
    }
}

/// What a server says of itself and offers, at one moment.
#[derive(Clone)]
pub(crate) struct Shelves {
    pub(crate) about: Arc<ServerAbout>,
    pub(crate) page_size: usize,
    pub(crate) logging: bool,
    /// Whether clients can follow single resources.
    pub(crate) follows: bool,
    pub(crate) tools: Arc<Shelf<tool::Declared>>,
    pub(crate) resources: Arc<Shelf<DeclaredResource>>,
    pub(crate) templates: Arc<Shelf<DeclaredTemplate>>,
    pub(crate) prompts: Arc<Shelf<DeclaredPrompt>>,
}

impl Shelves {
    pub(crate) fn new(about: ServerAbout) -> Self {
        Self {
            about: Arc::new(about),
            page_size: 1_000,
            logging: false,
            follows: false,
            tools: Arc::default(),
            resources: Arc::default(),
            templates: Arc::default(),
            prompts: Arc::default(),
        }
    }

    /// Adds an item, and says which list it is in.
    pub(crate) fn add(&mut self, item: Declared) -> Result<ListKind, DeclareError> {
        Ok(match item {
            Declared::Tool(tool) => {
                put(&mut self.tools, *tool)?;
                ListKind::Tools
            }
            Declared::Resource(resource) => {
                put(&mut self.resources, resource)?;
                ListKind::Resources
            }
            Declared::Template(template) => {
                put(&mut self.templates, *template)?;
                ListKind::Resources
            }
            Declared::Prompt(prompt) => {
                put(&mut self.prompts, *prompt)?;
                ListKind::Prompts
            }
        })
    }

    /// Brings the capabilities up to date. One that was declared once stays, since a client may
    /// have seen it.
    pub(crate) fn declare_capabilities(&mut self) {
        let mut declared: Map<String, Value> = self.about.capabilities.read().unwrap_or_default();
        let listed = json!({ "listChanged": true });
        if !self.tools.is_empty() {
            declared.entry("tools").or_insert_with(|| listed.clone());
        }
        if !(self.resources.is_empty() && self.templates.is_empty()) {
            let mut resources = listed.clone();
            if self.follows {
                resources["subscribe"] = true.into();
            }
            declared.entry("resources").or_insert(resources);
        }
        if !self.prompts.is_empty() {
            declared.entry("prompts").or_insert(listed);
        }
        let completes = self.prompts.iter().any(|prompt| !prompt.completers.is_empty())
            || self.templates.iter().any(|template| !template.completers.is_empty());
        if completes {
            declared.entry("completions").or_insert_with(|| json!({}));
        }
        if self.logging {
            declared.entry("logging").or_insert_with(|| json!({}));
        }
        let capabilities = Raw::of(&declared);
        if capabilities.get() != self.about.capabilities.get() {
            let about = ServerAbout { capabilities, ..ServerAbout::clone(&self.about) };
            self.about = Arc::new(about);
        }
    }
}

fn put<T: Shelved>(shelf: &mut Arc<Shelf<T>>, item: T) -> Result<(), DeclareError> {
    let key = item.key().to_owned();
    if Arc::make_mut(shelf).add(item) {
        Ok(())
    } else {
        Err(DeclareError::Taken { kind: T::KIND, key })
    }
}

/// Takes an item away; false when it is not there.
pub(crate) fn take<T: Shelved>(shelf: &mut Arc<Shelf<T>>, key: &str) -> bool {
    shelf.get(key).is_some() && Arc::make_mut(shelf).remove(key)
}

/// The shelves of a running server, and who hears of its changes.
#[derive(Clone)]
pub(crate) struct Shared {
    shelves: Arc<RwLock<Arc<Shelves>>>,
    pub(crate) changes: Changes,
}

impl Shared {
    pub(crate) fn new(shelves: Shelves) -> Self {
        Self { shelves: Arc::new(RwLock::new(Arc::new(shelves))), changes: Changes::new() }
    }

    /// What is offered now.
    pub(crate) fn now(&self) -> Arc<Shelves> {
        Arc::clone(&self.shelves.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the shelves by what `change` makes of it, and announces the list it names.
    pub(crate) fn change<E>(
        &self,
        change: impl FnOnce(&mut Shelves) -> Result<Option<ListKind>, E>,
    ) -> Result<bool, E> {
        let changed = {
            let mut current = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
            let mut next = Shelves::clone(&current);
            let changed = change(&mut next)?;
            if changed.is_some() {
                next.declare_capabilities();
                *current = Arc::new(next);
            }
            changed
        };
        // After the change is there to be seen.
        if let Some(kind) = changed {
            self.changes.announce(Change::List(kind));
        }
        Ok(changed.is_some())
    }
}
