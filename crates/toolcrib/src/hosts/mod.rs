//! Other programs that use MCP servers: where their files are, what stands in them, and how an entry
//! is put into one.
//!
//! The facts about hosts are data in [`shape`] and [`table`]; the rest is the same for all. Servers
//! go one way through [`read`], [`secrecy`] and [`import`], the other way through [`mod@write`], [`put`]
//! and [`connect`]. Secrets go by reference both ways, and neither way writes a file: that is done
//! with a [`crate::config::change::Change`] once a person has seen it.

pub(crate) mod reference;
mod secrecy;
mod shape;
pub(crate) mod table;
mod tree;
mod yaml;
pub(crate) mod read;
pub(crate) mod import;
mod write;
mod put_json;
mod put_toml;
mod put_yaml;
mod put;
#[cfg(test)]
mod put_tests;
pub(crate) mod connect;
pub(crate) mod mask;
