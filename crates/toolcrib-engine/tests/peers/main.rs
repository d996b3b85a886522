//! The engine against real servers of other makers, over every transport they have, and against the
//! conformance harness of the protocol.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;
mod surfaces;
mod eras;
mod conformance;
mod asking;
