//! The reflector against a scripted server: every way in which lists and watches go wrong.

#[path = "../support/mod.rs"]
mod support;

mod cuts;
mod formats;
mod lists;
mod silence;
mod watches;
