//! What a manager promises, on the embedded server under a virtual clock.

mod leading;
mod observed;
mod order;
mod sources;
mod support;
mod trouble;
