//! The reflector against a scripted server: every way in which lists and watches go wrong.

mod cuts;
mod formats;
mod lists;
mod silence;
mod support;
mod unreadable;
mod watches;
