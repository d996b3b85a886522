//! Declares a server: functions with typed arguments become tools, resources, templates and prompts.
//!
//! One implementation of [`Handler`](crate::Handler). Schemas come from the types, and what arrives
//! is held against the schema that was published before a function runs. Nothing here knows a
//! transport.
//!
//! # Tools
//!
//! The type of the argument gives the `inputSchema`, its doc text the description, the doc texts of
//! its fields theirs; what serde and schemars know of it (defaults, ranges, renaming, unknown
//! fields) is published and kept. [`Json`] gives the result a schema, too. Text, [`Content`], several
//! of them, a whole [`ToolResult`] and nothing at all are results as well, and so is a `Result` of
//! these: its error, which only has to be displayable, is told to the model as a result with
//! `isError`.
//!
//! ```
//! use toolcrib_serve::declare::{Context, Failure, Json, Server, Tool};
//!
//! /// Look up how many of a tool are on the shelf
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Stock {
//!     /// Name of the tool
//!     tool: String,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Count {
//!     pieces: u32,
//! }
//!
//! async fn stock(Stock { tool }: Stock, context: Context) -> Result<Json<Count>, Failure> {
//!     context.progress(0.5, Some(1.0), Some("counting")).await;
//!     match tool.as_str() {
//!         "hammer" => Ok(Json(Count { pieces: 3 })),
//!         other => Err(Failure::new(format!("there is no {other}; try hammer"))),
//!     }
//! }
//!
//! let stock = Tool::new("stock", stock).title("Stock").read_only().closed_world();
//! let server = Server::builder("crib", "1.0.0").ttl_ms(60_000).with(stock).build()?;
//! # Ok::<(), toolcrib_serve::declare::DeclareError>(())
//! ```
//!
//! # Resources, templates, prompts
//!
//! A [`Resource`] has one URI, a [`Template`] a pattern whose variables are the fields of its
//! argument, a [`Prompt`] arguments that are the fields of its own. On the wire these are texts; a
//! field that is a number or a flag is read from one. Variables and arguments can be completed.
//!
//! ```
//! use toolcrib_serve::declare::{Prompt, Resource, Server, Template};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Place {
//!     row: u8,
//! }
//!
//! let server = Server::builder("crib", "1.0.0")
//!     .with(Resource::new("crib:rules", "rules", async || "Bring it back."))
//!     .with(
//!         Template::new("crib:rows/{row}", "row", async |Place { row }: Place| format!("row {row}"))
//!             .complete("row", async |asked| {
//!                 ["1", "2"].into_iter().filter(|row| row.starts_with(&asked.value))
//!                     .map(str::to_owned).collect()
//!             }),
//!     )
//!     .with(Prompt::new("tidy", async |Place { row }: Place| format!("Tidy row {row}.")))
//!     .build()?;
//! # Ok::<(), toolcrib_serve::declare::DeclareError>(())
//! ```
//!
//! # Questions
//!
//! A function may ask the person, the client's model or for the client's roots
//! ([`Context::elicit`], [`Context::sample`], [`Context::roots`]), if the client declared that it
//! can; otherwise the call ends with the error that says what is missing (-32021). A legacy client
//! is asked by a request. A modern one (2026-07-28) gets the questions as the result of its call
//! and calls again with the answers, so **the function begins anew with each answer**: what must
//! happen once belongs after the last question or into [`Context::once`]. Questions that are polled
//! together are asked together.
//!
//! ```
//! use toolcrib_serve::declare::{Context, Elicited, Failure, Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Signature {
//!     /// Who takes it
//!     name: String,
//! }
//!
//! async fn lend(context: Context) -> Result<String, Failure> {
//!     let number: u32 = context.once("number", async { Ok(7) }).await?;
//!     match context.elicit("signature", "Please sign").await? {
//!         Elicited::Accepted(Signature { name }) => Ok(format!("{name} has number {number}")),
//!         Elicited::Declined | Elicited::Cancelled => Ok("it stays here".to_owned()),
//!     }
//! }
//!
//! let server = Server::builder("crib", "1.0.0").with(Tool::new("lend", lend)).build()?;
//! # Ok::<(), toolcrib_serve::declare::DeclareError>(())
//! ```
//!
//! # State
//!
//! A function is called many times, at the same time too. What it shares it holds behind an `Arc` and
//! clones for each call:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use toolcrib_serve::declare::{Server, Tool};
//!
//! /// Put something on the list
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Put {
//!     what: String,
//! }
//!
//! let list = Arc::new(Mutex::new(Vec::new()));
//! let put = move |Put { what }: Put| {
//!     let list = Arc::clone(&list);
//!     async move {
//!         let mut list = list.lock().map_err(|_| "the list is broken")?;
//!         list.push(what);
//!         Ok::<_, &str>(format!("{} things", list.len()))
//!     }
//! };
//! let server = Server::builder("list", "1.0.0").with(Tool::new("put", put)).build()?;
//! # Ok::<(), toolcrib_serve::declare::DeclareError>(())
//! ```
//!
//! # Running
//!
//! [`Server::stdio`] and [`Server::http`] serve until they are told to stop. For other options, a
//! server is a handler for [`serve_stdio`](crate::serve_stdio), [`serve_http`](crate::serve_http)
//! and [`router`](crate::router). Both eras are served side by side. Items can be added and removed
//! at any time, from outside or from [`Context::server`], and clients that listen are told.

mod schema;
mod content;
mod failure;
mod output;
mod elicit;
mod context;
mod function;
mod complete;
mod error;
mod shelf;
mod tool;
mod resource;
mod prompt;
mod shelves;
mod server;
mod run;

pub use complete::Completing;
pub use content::{Content, Contents, Message, Role};
pub use context::Context;
pub use elicit::{Elicited, Sampled, Sampling};
pub use error::DeclareError;
pub use failure::Failure;
pub use function::Function;
pub use output::{IntoContents, IntoMessages, IntoToolResult, Json, ToolResult};
pub use prompt::Prompt;
pub use resource::{Resource, Template};
pub use server::{Server, ServerBuilder};
pub use shelves::Item;
pub use tool::Tool;
pub use toolcrib_core::ask::Root;
