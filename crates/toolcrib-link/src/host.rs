//! What this client offers a server that asks it for something: elicitation, sampling, roots.
//!
//! Without a host nothing is declared and every such request is refused. With one, the capabilities
//! it names are declared and only the methods they cover are handed to it.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, error, message::member, method},
    surface::Capabilities,
};

/// Answers one request of a server: its method and parameters in, its result out.
pub type Answering =
    dyn Fn(String, Option<Raw>) -> BoxFuture<'static, Result<Raw, RpcError>> + Send + Sync;

/// What the client offers.
#[derive(Clone)]
pub struct Host {
    /// `ClientCapabilities` as declared.
    pub capabilities: Raw,
    /// Answers what they cover.
    pub answer: Arc<Answering>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

impl Host {
    /// Has one request answered. Whoever panics over it has answered with an error of ours.
    pub(crate) async fn ask(&self, method: String, params: Option<Raw>) -> Result<Raw, RpcError> {
        // Nothing of ours is touched by what panics.
        let asking = AssertUnwindSafe(async { (self.answer)(method, params).await });
        asking.catch_unwind().await.unwrap_or_else(|_| {
            let message = "the client failed while it answered".to_owned();
            Err(RpcError::new(error::INTERNAL, message))
        })
    }

    /// As [`Host::offers`], and for a question to a person in the mode it comes in. A host that
    /// names no mode offers forms (specification, client/elicitation).
    pub(crate) fn offers_question(&self, method: &str, params: Option<&Raw>) -> bool {
        if method != method::ELICIT {
            return self.offers(method);
        }
        let Some(modes) = member(&self.capabilities, "elicitation") else { return false };
        let url = params.and_then(|params| member(params, "mode"));
        match url.is_some_and(|mode| mode.get() == "\"url\"") {
            true => member(&modes, "url").is_some(),
            false => member(&modes, "form").is_some() || member(&modes, "url").is_none(),
        }
    }

    /// True when the declared capabilities cover this method of a server.
    pub fn offers(&self, method: &str) -> bool {
        let capability = match method {
            method::ELICIT => "elicitation",
            method::SAMPLING => "sampling",
            method::ROOTS_LIST => "roots",
            _ => return false,
        };
        Capabilities { raw: Some(self.capabilities.clone()) }.has(capability)
    }
}

/// What is declared: the host's capabilities, or none.
pub(crate) fn declared(host: Option<&Host>) -> Raw {
    host.map_or_else(Raw::empty_object, |host| host.capabilities.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_is_offered() {
        let host = Host {
            capabilities: Raw::parse(r#"{"elicitation":{}}"#).unwrap(),
            answer: Arc::new(|_, _| Box::pin(async { Ok(Raw::empty_object()) })),
        };
        assert!(host.offers(method::ELICIT));
        assert!(!host.offers(method::SAMPLING));
        assert!(!host.offers("tools/call"));
    }

    #[test]
    fn a_question_is_offered_by_its_mode() {
        let check = |modes: &str, form: bool, url: bool| {
            let host = Host {
                capabilities: Raw::parse(format!(r#"{{"elicitation":{modes}}}"#)).unwrap(),
                answer: Arc::new(|_, _| Box::pin(async { Ok(Raw::empty_object()) })),
            };
            let asked = |params: &str| {
                host.offers_question(method::ELICIT, Some(&Raw::parse(params).unwrap()))
            };
            assert_eq!(asked(r#"{"message":"m"}"#), form, "{modes}");
            assert_eq!(asked(r#"{"mode":"form"}"#), form, "{modes}");
            assert_eq!(asked(r#"{"mode":"url"}"#), url, "{modes}");
        };
        check("{}", true, false);
        check(r#"{"form":{}}"#, true, false);
        check(r#"{"url":{}}"#, false, true);
        check(r#"{"form":{},"url":{}}"#, true, true);
    }
}
