//! A small server on the Rust SDK (rmcp): a real peer for the tests, over standard input and
//! output, of both eras. It uses nothing of Toolcrib.
//!
//! Observed of this SDK over stdio: it answers `server/discover` and `initialize` on the same
//! connection, whichever comes first.

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, InitializeResult, ListToolsResult,
        PaginatedRequestParams, SubscriptionFilter,
    },
    service::RequestContext,
    transport::stdio,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Adds.serve(stdio()).await?.waiting().await?;
    Ok(())
}

struct Adds;

impl ServerHandler for Adds {
    fn get_info(&self) -> InitializeResult {
        typed(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "peer-rmcp", "version": "1.0.0"},
            "instructions": "Adds numbers.",
        }))
        .unwrap_or_default()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// Two pages of one tool each.
    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = json!({"type": "integer"});
        let tool = |name: &str| {
            json!({"name": name, "inputSchema": {"type": "object",
                "properties": {"a": number, "b": number}, "required": ["a", "b"]}})
        };
        match request.and_then(|request| request.cursor) {
            None => typed(json!({"tools": [tool("add")], "nextCursor": "second"})),
            Some(_) => typed(json!({"tools": [tool("multiply")]})),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::from(request.arguments.unwrap_or_default());
        let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
        let (a, b) = (number("a"), number("b"));
        let answer = if request.name == "add" { a + b } else { a * b };
        let content = json!([{"type": "text", "text": answer.to_string()}]);
        typed::<CallToolResult>(json!({"content": content})).map(Into::into)
    }
}

/// The SDK's own type of what is written here as it goes over the wire.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
