//! Why a declared function gave no result.

use std::{any::Any, error::Error, fmt};

use toolcrib_core::rpc::RpcError;

use crate::ask::AskError;

/// Why a declared function gave no result. Whatever implements [`Error`] converts into it by `?`; for
/// the rest (`anyhow::Error`, `Box<dyn Error>`, a `String`) there is `.map_err(Failure::new)?`. A
/// function may as well return such an error itself: anything that can be displayed will do.
///
/// The client is told what the error itself says; what caused it is logged only.
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
    pub fn new(words: impl fmt::Display) -> Self {
        Self(Kind::Words(words.to_string()))
    }

    /// Of whatever a function returned as its error.
    pub(crate) fn of<E: fmt::Display + 'static>(error: E) -> Self {
        let mut error = Some(error);
        let any: &mut dyn Any = &mut error;
        if let Some(failure) = any.downcast_mut::<Option<Self>>().and_then(Option::take) {
            return failure;
        }
        if let Some(error) = any.downcast_mut::<Option<RpcError>>().and_then(Option::take) {
            return Self(Kind::Protocol(error));
        }
        if let Some(error) = any.downcast_mut::<Option<AskError>>().and_then(Option::take) {
            return Self(Kind::Protocol(error.into()));
        }
        Self(Kind::Words(error.map(|error| error.to_string()).unwrap_or_default()))
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Words(words) => f.write_str(words),
            Kind::NotFound => f.write_str("not found"),
            Kind::Protocol(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            if let Some(error) = one.downcast_ref::<RpcError>() {
                return Self(Kind::Protocol(error.clone()));
            }
            if let Some(error) = one.downcast_ref::<AskError>() {
                return Self(Kind::Protocol(error.clone().into()));
            }
            cause = one.source();
        }
        if let Some(cause) = error.source() {
            tracing::warn!(%error, cause = %chain(cause), "a declared function failed");
        }
        Self(Kind::Words(error.to_string()))
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
