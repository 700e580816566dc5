//! Decoding of views: objects in which every field is set, absent and null fields, bad input, and sharing.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

mod bad_input;
mod kinds;
mod nulls;
mod pod;
mod sharing;
mod storage;
mod support;
mod template;
