//! An immutable generation of everything that is known: the parts of all servers and the table of
//! names over them.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_core::{
    catalog::{NameError, Named, Names},
    surface::ListKind,
};

use crate::part::Part;

/// What is known of all servers at one moment. Readers hold one and never see it change.
pub struct Snapshot {
    generation: u64,
    parts: BTreeMap<String, Arc<Part>>,
    names: Names,
}

impl Snapshot {
    pub(crate) fn build(generation: u64, parts: BTreeMap<String, Arc<Part>>) -> Self {
        let names = Names::build(parts.values().flat_map(|part| part.entries()));
        Self { generation, parts, names }
    }

    /// Counts snapshots of one engine.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// All servers, by name.
    pub fn parts(&self) -> impl Iterator<Item = &Arc<Part>> {
        self.parts.values()
    }

    /// One server.
    pub fn part(&self, server: &str) -> Option<&Arc<Part>> {
        self.parts.get(server)
    }

    /// The table of names over all tools and prompts.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Finds a tool or prompt by canonical, portable or short name.
    ///
    /// # Errors
    /// Nothing or more than one thing has this name; the error names the near ones.
    pub fn resolve(&self, kind: ListKind, name: &str) -> Result<&Named, NameError> {
        self.names.resolve(kind, name)
    }

    /// True when `kinds` are settled on every server.
    pub fn is_settled(&self, kinds: &[ListKind]) -> bool {
        self.parts.values().all(|part| part.is_settled(kinds))
    }
}
