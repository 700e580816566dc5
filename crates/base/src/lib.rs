//! The vocabulary of all crates of Steersman: keys, metadata, owner references, selectors, quantities, resource
//! versions and time. No I/O, no client, no async.
//!
//! | module | what it holds |
//! |---|---|
//! | [`istr`] | interned strings and pools of shared values |
//! | [`key`] | [`ObjectKey`] and [`Resource`]: which object, which API |
//! | [`meta`] | [`Meta`], [`OwnerRef`], [`StringMap`]: what every object carries |
//! | [`uid`] | [`Uid`], 16 bytes for the usual case |
//! | [`resource_version`] | [`ResourceVersion`], comparable within one resource, and never a number |
//! | [`time`] | [`Time`], [`MicroTime`], and the one [`Clock`] |
//! | [`bucket`] | [`Bucket`]: a token bucket, for bursts and a rate |
//! | [`selector`] | [`LabelSelector`] and [`Selector`]: label selectors, equality- and set-based |
//! | [`field_selector`] | [`FieldSelector`] |
//! | [`cron`] | [`Schedule`](cron::Schedule)s of CronJobs, and time zones |
//! | [`condition`] | [`Condition`]: find, set, compare |
//! | [`int_or_string`] | [`IntOrString`] with upstream's rounding |
//! | [`quantity`] | [`Quantity`]: exact parse, format, compare and arithmetic |
//! | [`quota`] | usage, scopes and bounds of ResourceQuotas and LimitRanges |
//! | [`validation`] | the syntax of names and labels, in upstream's words |
//! | [`aggregated`] | API groups of other parts of the process |
//! | [`go`] | values in Go's words |
//! | [`names`] | well-known finalizers, annotations, labels and taints |

pub mod aggregated;
pub mod bucket;
mod calendar;
pub mod condition;
pub mod cron;
pub mod field_selector;
pub mod go;
pub mod int_or_string;
pub mod istr;
pub mod key;
pub mod meta;
pub mod names;
mod null;
pub mod quantity;
pub mod quota;
pub mod resource_version;
pub mod selector;
pub mod time;
pub mod uid;
pub mod validation;
pub mod watch;

pub use bucket::Bucket;
pub use condition::{Condition, ConditionStatus};
pub use field_selector::FieldSelector;
pub use int_or_string::IntOrString;
pub use istr::Istr;
pub use key::{ObjectKey, Resource, Scope};
pub use meta::{Meta, OwnerRef, StringMap};
pub use quantity::Quantity;
pub use resource_version::ResourceVersion;
pub use selector::{LabelSelector, Selector};
pub use time::{Clock, MicroTime, Time};
pub use uid::Uid;
