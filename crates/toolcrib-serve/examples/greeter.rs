//! A whole server. `toolcrib inspect -- target/debug/examples/greeter` looks at it.

use toolcrib_serve::declare::{Server, Tool};

/// Greet someone
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greet = async |Greet { name }: Greet| format!("Hello, {name}!");
    let server = Server::builder("greeter", "1.0.0").with(Tool::new("greet", greet));
    Ok(server.build()?.stdio().await?)
}
