//! Keys of `_meta` (specification, basic/index#_meta).

/// Protocol version of one request; required on every modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client of one request can do; required on every modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who sends the request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Log level asked for by one request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who answered, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which listen request a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Token that ties progress notifications to a request.
pub const PROGRESS_TOKEN: &str = "progressToken";
