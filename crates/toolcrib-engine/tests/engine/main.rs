//! The engine against servers that change, forget and fall over, where time and order matter.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;
mod catalog;
mod changes;
mod requests;
mod sessions;
mod restarts;
mod subscriptions;
mod listening;
mod asking;
mod finding;
mod embed;
