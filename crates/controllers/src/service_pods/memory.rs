//! What the controllers of services remember between passes. Decisions do not depend on it.

mod once;
mod tracker;
mod trigger_time;

pub(crate) use once::Once;
pub(crate) use tracker::Tracker;
pub(crate) use trigger_time::TriggerTimes;
