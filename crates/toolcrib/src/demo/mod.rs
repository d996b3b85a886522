//! The servers that `demo` and `demo-server` run.

pub(crate) mod server;
