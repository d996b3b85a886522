//! The loops of Toolcrib, and the library to embed: connect to many servers, keep one catalog of
//! what they show, and send checked calls.
//!
//! This is the only room where state changes. The slow loop (one per server: connect, list, follow)
//! publishes immutable snapshots; the fast loop (a call) reads one snapshot and never lists.
//! Modules are listed bottom-up.

mod judge;
pub mod handlers;
pub mod options;
pub mod status;
pub mod memory;
pub mod part;
pub mod snapshot;
pub mod event;
mod board;
mod pace;
mod lists;
mod reach;
mod keeper;
pub mod subscribe;
pub mod outcome;
pub mod find;
pub mod engine;
pub mod listen;
pub mod call;

pub use call::Completing;
pub use engine::Engine;
pub use event::Event;
pub use find::Found;
pub use handlers::{Declined, Handlers};
pub use listen::Listener;
pub use options::{Mode, Options};
pub use outcome::{CallError, CallOptions, Called, Completion};
pub use part::Part;
pub use snapshot::Snapshot;
pub use status::Status;
pub use subscribe::{ResourceEvent, SubscribeError, Subscription};
pub use toolcrib_core::{
    ask::{
        Choice, Elicited, Field, FieldKind, Form, FormQuestion, Root, Sampled, SamplingQuestion,
        UrlQuestion,
    },
    level::LogLevel,
    raw::Raw,
    rpc::Progress,
    surface::ListKind,
    target::{Command, Endpoint, ServerConfig, Target},
};
