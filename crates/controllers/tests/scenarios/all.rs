//! What runs on every server, and what it needs for that.

pub(crate) mod accounts;
#[path = "../support/beside.rs"]
pub(crate) mod beside;
pub(crate) mod deployment;
pub(crate) mod garbage_collector;
pub(crate) mod gates;
pub(crate) mod issues;
#[path = "../support/line.rs"]
pub(crate) mod line;
pub(crate) mod namespace;
pub(crate) mod pod_gc;
pub(crate) mod replicaset;
pub(crate) mod replication_controller;
pub(crate) mod services;
pub(crate) mod setup;
pub(crate) mod table;
