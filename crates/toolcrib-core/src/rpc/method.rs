//! Method names of all five revisions.

/// Modern discovery.
pub const DISCOVER: &str = "server/discover";
/// Legacy handshake.
pub const INITIALIZE: &str = "initialize";
/// Legacy handshake, second half.
pub const INITIALIZED: &str = "notifications/initialized";
/// Legacy liveness check, either direction.
pub const PING: &str = "ping";
/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const TEMPLATES_LIST: &str = "resources/templates/list";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Runs a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Renders a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Completes an argument.
pub const COMPLETE: &str = "completion/complete";
/// Modern change stream.
pub const LISTEN: &str = "subscriptions/listen";
/// First message on a modern change stream.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// The tools changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The resources or templates changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// The prompts changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// One resource's content changed.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// Legacy per-resource subscription.
pub const SUBSCRIBE: &str = "resources/subscribe";
/// Ends a legacy per-resource subscription.
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Progress of one running request.
pub const PROGRESS: &str = "notifications/progress";
/// A log message.
pub const LOG: &str = "notifications/message";
/// A request is given up.
pub const CANCELLED: &str = "notifications/cancelled";
/// Legacy log level.
pub const SET_LEVEL: &str = "logging/setLevel";
/// Server asks for the client's roots (legacy request, modern input request).
pub const ROOTS_LIST: &str = "roots/list";
/// Server asks for a model's answer.
pub const SAMPLING: &str = "sampling/createMessage";
/// Server asks the person.
pub const ELICIT: &str = "elicitation/create";

/// True for the requests a modern server may answer with `input_required` (specification,
/// basic/patterns/mrtr).
pub fn may_ask_for_input(method: &str) -> bool {
    matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ)
}
