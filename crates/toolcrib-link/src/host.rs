//! What this client offers a server that asks it for something: elicitation, sampling, roots.
//!
//! Without a host nothing is declared and every such request is refused. With one, the capabilities
//! it names are declared and only the methods they cover are handed to it.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, error, method},
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
}
