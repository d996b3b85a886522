//! Why a declared function gave no result.

use std::{error::Error, fmt};

use toolcrib_core::rpc::RpcError;

use crate::ask::AskError;

/// Why a declared function gave no result. Every error converts into it by `?`.
///
/// From a tool it becomes a result with `isError`, which a model reads and can act on; an
/// [`RpcError`] and an [`AskError`] stay errors of the protocol. From a resource or a prompt it
/// becomes an error of the protocol.
pub struct Failure(Kind);

enum Kind {
    Words(String),
    NotFound,
    Protocol(RpcError),
}

impl Failure {
    /// In words that help whoever called to do better.
    pub fn new(words: impl Into<String>) -> Self {
        Self(Kind::Words(words.into()))
    }

    /// There is no such resource.
    pub const fn not_found() -> Self {
        Self(Kind::NotFound)
    }

    /// The words for a result with `isError`, or the error of the protocol.
    pub(crate) fn into_words(self) -> Result<String, RpcError> {
        match self.0 {
            Kind::Words(words) => Ok(words),
            Kind::NotFound => Ok("not found".to_owned()),
            Kind::Protocol(error) => Err(error),
        }
    }

    /// As an error of the protocol; `not_found` is the one for a resource that is not there.
    pub(crate) fn into_error(self, not_found: impl FnOnce() -> RpcError) -> RpcError {
        match self.0 {
            Kind::Words(words) => crate::fault::internal(words),
            Kind::NotFound => not_found(),
            Kind::Protocol(error) => error,
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Words(words) => f.write_str(words),
            Kind::NotFound => f.write_str("not found"),
            Kind::Protocol(error) => fmt::Debug::fmt(error, f),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let boxed: Box<dyn Error + Send + Sync> = Box::new(error);
        let boxed = match boxed.downcast::<RpcError>() {
            Ok(error) => return Self(Kind::Protocol(*error)),
            Err(other) => other,
        };
        match boxed.downcast::<AskError>() {
            Ok(error) => Self(Kind::Protocol((*error).into())),
            Err(other) => Self(Kind::Words(chain(other.as_ref()))),
        }
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push_str(": ");
        words.push_str(&inner.to_string());
        cause = inner.source();
    }
    words
}
