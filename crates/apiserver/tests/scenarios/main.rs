//! What clients see of the server, through `kube::Client` in process and under the paused clock.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

mod access;
mod aggregated;
mod apply;
mod autoscalers;
mod bad_input;
mod bounds;
mod corpus;
mod definitions;
mod deletion;
mod grants;
mod hostile;
mod legacy_tokens;
mod lists;
mod logs;
mod mutations;
mod plugins;
mod pod_security;
mod policies;
mod restart;
mod rules;
mod schemas;
mod strategies;
mod support;
mod watches;
mod webhooks;
mod writes;
