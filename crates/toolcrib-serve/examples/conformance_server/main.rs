//! The server that the MCP conformance suite talks to, made of declarations. The names and texts of
//! its items are those the suite asks for.
//!
//! `conformance_server [ADDRESS]` serves HTTP at `/mcp` and writes the address to standard error.

mod asking;
mod content;
mod prompts;
mod tools;

use std::io::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use toolcrib_serve::declare::{DeclareError, Json, Resource, Server, Template};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    writeln!(std::io::stderr(), "listening on http://{}/mcp", listener.local_addr()?)?;
    declared()?.http(listener).await?;
    Ok(())
}

fn declared() -> Result<Server, DeclareError> {
    let mut server = Server::builder("toolcrib-conformance", env!("CARGO_PKG_VERSION"))
        .logging()
        .follow_resources();
    for tool in tools::all().into_iter().chain(asking::all()) {
        server = server.with(tool);
    }
    for prompt in prompts::all() {
        server = server.with(prompt);
    }
    let text = async || "This is the content of the static text resource.";
    server
        .with(Resource::new("test://static-text", "static-text", text).mime_type("text/plain"))
        .with(
            Resource::new("test://static-binary", "static-binary", async || content::PNG.to_vec())
                .mime_type("image/png"),
        )
        .with(
            Resource::new("test://watched-resource", "watched-resource", async || "watched")
                .mime_type("text/plain"),
        )
        .with(Template::new("test://template/{id}/data", "template", async |Id { id }: Id| {
            let data = format!("Data for ID: {id}");
            Json(json!({ "id": id, "templateTest": true, "data": data }))
        }))
        .build()
}

#[derive(Deserialize, JsonSchema)]
struct Id {
    id: String,
}
