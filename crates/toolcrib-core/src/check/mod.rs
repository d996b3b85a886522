//! Judgements over what servers show and answer, a file per concern.
//!
//! Schemas are repaired on a copy, bounded, compiled on first use, and then judge arguments and
//! results; lints look over a whole surface. Nothing here decides what is to be done about it.

mod keywords;
mod refs;
mod external;
mod pattern;
mod repair;
mod bounds;
mod plain;
pub mod headers;
pub mod lint;
mod describe;
pub mod arguments;
mod explain;
pub mod prompt;
pub mod result;
pub mod schema;

pub use schema::{ToolCheck, fits, look_over};

#[cfg(test)]
mod tests;
