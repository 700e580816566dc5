//! The writer and the events on the embedded server, under the paused clock.

#![allow(clippy::unwrap_used, reason = "a scenario that cannot go on has failed")]

mod events;
mod named;
mod support;
mod verbs;
mod writer;
