//! Seeded simulation: a cluster in one process and in virtual time, with users who change it and faults that hit it.
//! Invariants are checked at the store after every write; then the faults end, and the world must heal and stay quiet.

pub mod invariants;
pub mod record;
pub mod world;
