//! Seeded simulation: a cluster in one process and in virtual time, with users who change it and faults that hit it.
//! Invariants are checked at the store after every write; then the faults end, and the world must heal and stay quiet.
//!
//! 1. A world is a [`Plan`](plan::Plan): data, made from a seed, kept as JSON. The same plan gives the same trace, to the byte.
//! 2. One world is one thread and one runtime with a paused clock ([`engine::run`]).
//! 3. A recorder at the store observes every write ([`server`]), and knows its author ([`line`]).
//! 4. A failing plan is made small ([`shrink`]), and is then a scripted test.

mod certificates;
#[cfg(feature = "chaos")]
pub mod chaos;
pub mod cli;
#[cfg(feature = "chaos")]
pub mod differential;
pub mod engine;
pub mod exhaustive;
pub mod faults;
pub mod invariants;
pub mod line;
mod managers;
mod nodes;
pub mod plan;
pub mod record;
pub mod report;
pub mod server;
pub mod shrink;
pub mod trace;
mod users;
pub mod world;
