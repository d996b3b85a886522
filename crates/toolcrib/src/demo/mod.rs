//! What `demo` and `demo-server` run: a small server, and a tour of the main job over three of it.

pub(crate) mod server;
pub(crate) mod tour;
