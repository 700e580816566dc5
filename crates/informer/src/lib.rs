//! Reflector → delta FIFO → indexed store → subscribers.

pub mod sink;
