//! The one trait behind the wire: a raw request in, raw JSON out.

use std::{pin::Pin, sync::Arc};

use serde::de::DeserializeOwned;
use toolcrib_core::{
    raw::Raw,
    rpc::RpcError,
    version::{Era, Version},
};

use crate::{about::ServerAbout, change::Changes, fault, peer::Peer};

/// What [`Handler::handle`] gives: boxed, so that a handler can be `Arc<dyn Handler>`.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Reply, RpcError>> + Send + 'a>>;

/// A result object.
#[derive(Debug, Clone)]
pub enum Reply {
    /// As the handler wrote it: what the client's era wants and it lacks is added.
    Plain(Raw),
    /// Made by [`complete`](crate::complete) for the client's era: goes out as it is. What is sent
    /// often can be made once.
    Complete(Raw),
}

impl From<Raw> for Reply {
    fn from(raw: Raw) -> Self {
        Self::Plain(raw)
    }
}

/// The content of a server.
///
/// Discovery, the legacy handshake, `ping`, log levels and subscriptions are answered before a
/// handler sees anything, and so is every method whose capability [`ServerAbout`] does not declare.
pub trait Handler: Send + Sync + 'static {
    /// What the server says of itself now.
    fn about(&self) -> Arc<ServerAbout>;

    /// Where this handler announces changes.
    fn changes(&self) -> &Changes;

    /// The `inputSchema` of a tool. Over HTTP, arguments that it marks with `x-mcp-header` are held
    /// against the headers that repeat them (specification, transports/streamable-http).
    fn input_schema(&self, _tool: &str) -> Option<Raw> {
        None
    }

    /// Answers one request with a result object.
    ///
    /// For modern clients `resultType`, `ttlMs`, `cacheScope` and `serverInfo` are added where a
    /// [`Reply::Plain`] lacks them. The future is dropped when the request is cancelled.
    fn handle(&self, request: Request, peer: Peer) -> Answer<'_>;
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its parameters as received, `_meta` included.
    pub params: Option<Raw>,
    /// How the client talks.
    pub era: Era,
    /// The revision this request is served in.
    pub version: Version,
}

impl Request {
    /// Reads the parameters; absent ones read as `{}`.
    ///
    /// # Errors
    /// "Invalid params" when they do not have the shape of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let params = self.params.clone().unwrap_or_else(Raw::empty_object);
        params.read().map_err(fault::invalid_params)
    }
}
