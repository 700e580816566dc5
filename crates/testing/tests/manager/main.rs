//! What a manager promises, on the embedded server under a virtual clock.

mod create_or_patch;
mod ending;
mod events;
mod finalizers;
mod leading;
mod observed;
mod order;
mod panics;
mod retries;
mod sources;
mod support;
mod trouble;
