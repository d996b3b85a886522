//! What a person or a script sees: data to stdout, talk to stderr, outside text sanitised.

mod out;
pub(crate) mod json;
pub(crate) mod event;
pub(crate) mod listing;
pub(crate) mod content;
pub(crate) mod diff;

pub(crate) use out::{Out, Talk};
