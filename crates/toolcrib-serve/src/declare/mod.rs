//! Declares a server: functions with typed arguments become tools, resources, templates and prompts.
//!
//! One implementation of [`Handler`](crate::Handler). Schemas come from the types, and what arrives
//! is held against the schema that was published before a function runs. Nothing here knows a
//! transport.

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
mod catalog;
mod server;
mod run;

pub use catalog::Item;
pub use complete::Completing;
pub use content::{Content, Contents, Message, Role};
pub use context::Context;
pub use elicit::{Elicited, Root, Sampled, Sampling};
pub use error::DeclareError;
pub use failure::Failure;
pub use function::Function;
pub use output::{IntoContents, IntoMessages, IntoToolResult, Json, ToolResult};
pub use prompt::Prompt;
pub use resource::{Resource, Template};
pub use server::{Server, ServerBuilder};
pub use tool::Tool;
