//! A server in fifteen lines: `cargo run -p toolcrib-serve --example sums`.

use toolcrib_serve::declare::{Json, Server, Tool};

/// Add two integers
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add(Add { a, b }: Add) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("sums", "1.0.0").with(Tool::new("add", add).read_only());
    Ok(server.build()?.stdio().await?)
}
