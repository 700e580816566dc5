//! The writer and the events on the embedded server, under the paused clock.

mod events;
mod support;
mod verbs;
mod writer;
