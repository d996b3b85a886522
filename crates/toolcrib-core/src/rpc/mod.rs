//! JSON-RPC 2.0 as MCP uses it: messages, methods, error codes, `_meta` keys, and the sans-IO
//! codecs for lines and server-sent events.

pub mod method;
pub mod error;
pub mod meta;
pub mod message;
pub mod progress;
pub mod lines;
pub mod sse;
pub mod header;

pub use error::RpcError;
pub use message::{Decoded, Message, Params, ReplyId};
pub use progress::Progress;
