//! The vocabulary every other crate of Steersman speaks: keys, metadata, owner references, selectors,
//! quantities, resource versions and time. No I/O, no client, no async.
//!
//! | module | what it holds |
//! |---|---|
//! | [`istr`] | interned strings and pools of shared values |
//! | [`key`] | [`ObjectKey`] and [`Resource`]: which object, which API |
//! | [`meta`] | [`Meta`], [`OwnerRef`], [`StringMap`]: what every object carries |
//! | [`uid`] | [`Uid`], 16 bytes for the usual case |
//! | [`resource_version`] | [`ResourceVersion`], comparable within one resource, and never a number |
//! | [`time`] | [`Time`], [`MicroTime`], and the one [`Clock`] |
//! | [`selector`] | label selectors, equality- and set-based |
//! | [`field_selector`] | field selectors |
//! | [`condition`] | conditions: find, set, compare |
//! | [`int_or_string`] | [`IntOrString`](int_or_string::IntOrString) with upstream's rounding |
//! | [`quantity`] | [`Quantity`](quantity::Quantity): exact parse, format, compare and arithmetic |
//! | [`names`] | well-known finalizers, annotations and labels |

pub mod istr;
pub mod key;
pub mod meta;
pub mod names;
pub mod resource_version;
pub mod time;
pub mod uid;

pub use istr::Istr;
pub use key::{ObjectKey, Resource, Scope};
pub use meta::{Meta, OwnerRef, StringMap};
pub use resource_version::ResourceVersion;
pub use time::{Clock, MicroTime, Time};
pub use uid::Uid;
