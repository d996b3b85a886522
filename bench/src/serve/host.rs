//! The servers under load, each in a process of its own: ours, a bare JSON echo, and rmcp's.
//!
//! All serve `/mcp` on a loopback port of their choice, say it in one line on standard output, and
//! end with standard input. The tools are the same; none does anything but add.

use std::{
    future,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
    serve::ListenerExt as _,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        tool::ToolCallContext,
        wrapper::{Json as PeerJson, Parameters},
    },
    model::{
        CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool as PeerTool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{io::AsyncReadExt as _, net::TcpListener};
use toolcrib_serve::{
    HttpOptions,
    declare::{Failure, Json, Server, Tool},
    serve_http, stdin,
};

use crate::measure::{Result, say};

/// Add two integers
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// First summand
    a: i64,
    /// Second summand
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Serves one side with so many tools until standard input ends.
///
/// # Errors
/// The side is unknown, or its server failed.
pub(crate) async fn run(side: &str, tools: usize) -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    say(listener.local_addr()?)?;
    io::stdout().flush()?;
    match side {
        "toolcrib" => {
            let server = Arc::new(ours(tools)?);
            serve_http(listener, server, HttpOptions::default(), left()).await?;
        }
        "axum" => bare(listener, Router::new().route("/mcp", post(echo))).await?,
        "rmcp" => bare(listener, Router::new().route_service("/mcp", peer(tools))).await?,
        _ => return Err(format!("serve has no side {side}").into()),
    }
    Ok(())
}

/// The tools are called `add`, `add1`, `add2` and so on.
fn names(tools: usize) -> impl Iterator<Item = String> {
    (0..tools).map(|n| if n == 0 { "add".to_owned() } else { format!("add{n}") })
}

async fn left() {
    let (mut input, mut ignored) = (stdin(), [0_u8; 64]);
    while input.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}

async fn bare(listener: TcpListener, router: Router) -> io::Result<()> {
    // As our own server does; without it an answer may wait for an acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served,
        () = left() => Ok(()),
    }
}

fn ours(tools: usize) -> Result<Server> {
    let server = names(tools).fold(Server::builder("bench", "1"), |server, name| {
        server.with(Tool::new(name, add).title("Add").read_only().closed_world())
    });
    Ok(server.build()?)
}

async fn add(Add { a, b }: Add) -> std::result::Result<Json<Sum>, Failure> {
    let sum = a.checked_add(b).ok_or_else(|| Failure::new("the sum is too large"))?;
    Ok(Json(Sum { sum }))
}

/// What any server of JSON must do: read the body as JSON, and write JSON of its size back.
async fn echo(body: Bytes) -> Response {
    let Ok(value) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body = Body::from(value.to_string());
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The peer's server, its tools routed as its macros would route them.
struct Peer {
    router: ToolRouter<Self>,
}

impl Peer {
    fn add(
        &self,
        Parameters(Add { a, b }): Parameters<Add>,
    ) -> std::result::Result<PeerJson<Sum>, ErrorData> {
        let too_large = || ErrorData::invalid_params("the sum is too large", None);
        Ok(PeerJson(Sum { sum: a.checked_add(b).ok_or_else(too_large)? }))
    }
}

/// Without sessions, and answering in JSON where it can: this is what the modern revision has, and
/// its fastest way to serve a call.
fn peer(tools: usize) -> StreamableHttpService<Arc<Peer>, LocalSessionManager> {
    let router = names(tools).fold(ToolRouter::new(), |router, name| {
        let tool = PeerTool::new(name, "Add two integers", Arc::default())
            .with_title("Add")
            .with_input_schema::<Add>()
            .with_output_schema::<Sum>();
        router.with_route(ToolRoute::new(tool, Peer::add))
    });
    let server = Arc::new(Peer { router });
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    StreamableHttpService::new(move || Ok(Arc::clone(&server)), Arc::default(), config)
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<PeerTool> {
        self.router.get(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        self.router.call(ToolCallContext::new(self, request, context)).await
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = std::result::Result<ListToolsResult, ErrorData>> + Send + '_ {
        future::ready(Ok(ListToolsResult::with_all_items(self.router.list_all())))
    }
}
