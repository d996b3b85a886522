//! What `_meta` of a request says about the request itself.

use serde::Deserialize;
use toolcrib_core::{
    level::LogLevel,
    raw::Raw,
    rpc::{RpcError, meta},
};

use crate::fault;

/// The keys of `_meta` that the serving layer reads; each kept raw until it is judged.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Envelope {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Raw>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Raw>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client_info: Option<Raw>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    level: Option<Raw>,
    #[serde(rename = "progressToken")]
    token: Option<Raw>,
}

impl Envelope {
    /// Reads it; parameters without a readable `_meta` have an empty one.
    pub(crate) fn read(params: Option<&Raw>) -> Self {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "_meta")]
            meta: Option<Envelope>,
        }
        params.and_then(|raw| raw.read::<Params>().ok()?.meta).unwrap_or_default()
    }

    /// True when a key of the modern era is there.
    pub(crate) const fn is_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some() || self.client_info.is_some()
    }

    /// True when the key that names the version is there.
    pub(crate) const fn names_version(&self) -> bool {
        self.version.is_some()
    }

    /// The version and the client capabilities, both required.
    pub(crate) fn required(&self) -> Result<(String, Raw), RpcError> {
        let version = self
            .version
            .as_ref()
            .and_then(|raw| raw.read::<String>().ok())
            .ok_or_else(|| fault::missing_meta(meta::PROTOCOL_VERSION, "a string"))?;
        let capabilities = self
            .capabilities
            .clone()
            .filter(Raw::is_object)
            .ok_or_else(|| fault::missing_meta(meta::CLIENT_CAPABILITIES, "an object"))?;
        Ok((version, capabilities))
    }

    /// The log level asked for, if any.
    pub(crate) fn level(&self) -> Result<Option<LogLevel>, RpcError> {
        self.level
            .as_ref()
            .map(|raw| {
                raw.read().map_err(|error| fault::invalid_params(format!("logLevel: {error}")))
            })
            .transpose()
    }

    /// The progress token, when it is one.
    pub(crate) fn token(&self) -> Option<Raw> {
        self.token.clone().filter(is_id)
    }
}

/// True for what the protocol takes as an id or a token: a string or an integer, if it is no longer
/// than we keep.
pub(crate) fn is_id(raw: &Raw) -> bool {
    let text = raw.get();
    text.len() <= fault::MOST_ID_BYTES
        && (text.starts_with('"') || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok())
}
