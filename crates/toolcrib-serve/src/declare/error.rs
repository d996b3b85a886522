//! Why a declaration is refused: before anything is served, so that its author meets it and no client.

use thiserror::Error;

/// Why an item cannot be declared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeclareError {
    /// There is one already.
    #[error("there are two {kind}s called {key:?}")]
    Taken {
        /// tool, resource, template or prompt
        kind: &'static str,
        /// Its name or URI.
        key: String,
    },
    /// No client could use it.
    #[error("the {kind} {key:?} cannot be declared: {why}")]
    Unusable {
        /// tool, resource, template or prompt
        kind: &'static str,
        /// Its name or URI.
        key: String,
        /// What is wrong.
        why: String,
    },
}

impl DeclareError {
    pub(crate) fn unusable(kind: &'static str, key: &str, why: String) -> Self {
        Self::Unusable { kind, key: key.to_owned(), why }
    }
}
