//! What scenarios and the tests of both tiers are made of: managers beside the cluster's own, ways to the server with
//! troubles, crashes, logs.
#![allow(dead_code, reason = "each tier uses a part of it")]

pub(crate) mod beside;
pub(crate) mod controllers;
pub(crate) mod crash;
pub(crate) mod gangs;
pub(crate) mod gated;
pub(crate) mod line;
pub(crate) mod log;

use steersman_testing::{Builder, TestCluster};

/// A cluster whose managers a scenario starts itself.
pub(crate) fn no_controllers() -> Builder {
    TestCluster::builder()
}
