//! What the controllers of services remember between passes. None of it is needed to decide what is right.

mod once;
mod trigger_time;

pub(crate) use once::Once;
pub(crate) use trigger_time::TriggerTimes;
