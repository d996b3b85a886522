//! Finding an item in a snapshot: tools and prompts by any of their names, resources by URI,
//! templates by their text. Nothing is sent, and nothing is waited for.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use toolcrib_core::{
    catalog::{NameError, Names},
    sanitise,
    surface::{ListKind, Prompt, Resource, Template, Tool},
    template::UriTemplate,
};

use crate::{outcome::CallError, part::Part, snapshot::Snapshot};

/// An item, and the server that has it.
#[derive(Clone, Copy)]
pub struct Found<'a, T> {
    /// The server's part.
    pub part: &'a Arc<Part>,
    /// The item; its members are those of the found one, too.
    pub item: &'a T,
}

impl<T> Deref for Found<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item
    }
}

impl<T> Found<'_, T> {
    /// The name of the server that has it.
    pub fn server(&self) -> &str {
        self.part.name()
    }
}

impl Snapshot {
    /// Finds a tool by canonical name (`server.tool`), portable name (`server__tool`), or by its own
    /// name where only one server has it.
    ///
    /// # Errors
    /// [`CallError::Name`] names what comes near, or all that have this name; [`CallError::Refused`]
    /// says why a tool is not to be used.
    pub fn tool(&self, name: &str) -> Result<Found<'_, Tool>, CallError> {
        let (part, item) = self.named(ListKind::Tools, name)?;
        let item = part.tool(item).ok_or_else(|| NameError::unknown(name))?;
        Ok(Found { part, item })
    }

    /// Finds a prompt, by the same names as a tool.
    ///
    /// # Errors
    /// As [`Snapshot::tool`].
    pub fn prompt(&self, name: &str) -> Result<Found<'_, Prompt>, CallError> {
        let (part, item) = self.named(ListKind::Prompts, name)?;
        let item = part.prompt(item).ok_or_else(|| NameError::unknown(name))?;
        Ok(Found { part, item })
    }

    /// Finds a listed resource by its URI, among those of `server` when it is given.
    ///
    /// # Errors
    /// [`CallError::UnknownUri`] names what comes near, [`CallError::AmbiguousUri`] all servers that
    /// list it; [`CallError::Refused`] says why a resource is not to be used.
    pub fn resource(
        &self,
        uri: &str,
        server: Option<&str>,
    ) -> Result<Found<'_, Resource>, CallError> {
        self.only(ListKind::Resources, uri, server, |part| part.resource(uri))
    }

    /// Finds a resource template by its text, among those of `server` when it is given.
    ///
    /// # Errors
    /// As [`Snapshot::resource`].
    pub fn template(
        &self,
        uri_template: &str,
        server: Option<&str>,
    ) -> Result<Found<'_, Template>, CallError> {
        self.only(ListKind::ResourceTemplates, uri_template, server, |part| {
            part.template(uri_template)
        })
    }

    fn named(&self, kind: ListKind, name: &str) -> Result<(&Arc<Part>, &str), CallError> {
        match self.resolve(kind, name) {
            Ok(named) => {
                let part = self.part(&named.server).ok_or_else(|| NameError::unknown(name))?;
                Ok((part, named.item.as_str()))
            }
            Err(error) => Err(refused(self, kind, name).unwrap_or(error.into())),
        }
    }

    fn only<'a, T>(
        &'a self,
        kind: ListKind,
        uri: &str,
        server: Option<&str>,
        item: impl Fn(&'a Arc<Part>) -> Option<&'a T>,
    ) -> Result<Found<'a, T>, CallError> {
        let among =
            || self.parts().filter(|part| server.is_none_or(|server| part.name() == server));
        let mut found = among().filter_map(|part| Some(Found { part, item: item(part)? }));
        let Some(first) = found.next() else {
            let refused = among().find_map(|part| refusal(part, kind, uri));
            return Err(refused.unwrap_or_else(|| unknown(self, uri)));
        };
        let more: Vec<_> = found.collect();
        if more.is_empty() {
            return Ok(first);
        }
        let servers = std::iter::once(&first).chain(&more);
        let servers = servers.map(|found| found.server().to_owned()).collect();
        Err(CallError::AmbiguousUri { uri: sanitise::line(uri, 200), servers })
    }
}

/// The server to read `uri` from.
pub(crate) fn owner_of(
    snapshot: &Snapshot,
    uri: &str,
    server: Option<&str>,
) -> Result<Arc<Part>, CallError> {
    if let Some(server) = server {
        let part = snapshot.part(server).ok_or_else(|| NameError::unknown(server))?;
        return refused_uri(part, uri).map_or_else(|| Ok(Arc::clone(part)), Err);
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
            let refused = snapshot.parts().find_map(|part| refused_uri(part, uri));
            Err(refused.unwrap_or_else(|| unknown(snapshot, uri)))
        }
        _ => Err(CallError::AmbiguousUri {
            uri: sanitise::line(uri, 200),
            servers: found.iter().map(|part| part.name().to_owned()).collect(),
        }),
    }
}

/// Why this URI is not to be read from a server, when what it shows of it is not to be used.
fn refused_uri(part: &Part, uri: &str) -> Option<CallError> {
    if let Some(refused) = refusal(part, ListKind::Resources, uri) {
        return Some(refused);
    }
    if part.lists_uri(uri) || part.template_for(uri).is_some() {
        return None;
    }
    let templates = part.surface.iter().flat_map(|surface| surface.templates.items.iter());
    templates
        .filter(|template| matched(template, uri).is_some())
        .find_map(|template| refusal(part, ListKind::ResourceTemplates, &template.uri_template))
}

fn refusal(part: &Part, kind: ListKind, key: &str) -> Option<CallError> {
    let why = part.refusal(kind, key)?.to_owned();
    Some(CallError::Refused { server: part.name().to_owned(), item: sanitise::line(key, 200), why })
}

/// The values of a template's variables that make this URI.
fn matched(template: &Template, uri: &str) -> Option<BTreeMap<String, String>> {
    UriTemplate::parse(&template.uri_template).ok()?.match_uri(uri)
}

fn unknown(snapshot: &Snapshot, uri: &str) -> CallError {
    let candidates = near_uris(snapshot, uri);
    CallError::UnknownUri { uri: sanitise::line(uri, 200), candidates }
}

/// Why nothing has this name, when that is because what has it is not to be used.
pub(crate) fn refused(snapshot: &Snapshot, kind: ListKind, name: &str) -> Option<CallError> {
    let names = Names::build(snapshot.parts().flat_map(|part| part.refused()));
    let named = names.resolve(kind, name).ok()?;
    refusal(snapshot.part(&named.server)?, kind, &named.item)
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
    /// True when the server lists exactly this URI, for use.
    pub fn lists_uri(&self, uri: &str) -> bool {
        self.resource(uri).is_some()
    }

    /// The server's template that fits this URI and is to be used, with the values of its variables.
    pub fn template_for(&self, uri: &str) -> Option<(String, BTreeMap<String, String>)> {
        self.templates()
            .find_map(|template| Some((template.uri_template.clone(), matched(template, uri)?)))
    }
}
