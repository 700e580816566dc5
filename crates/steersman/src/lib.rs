//! Steersman: a Kubernetes controller manager, a controller framework and (soon) an embedded cluster.
//!
//! This crate is the door: it holds the binary, and names the crates underneath.
//!
//! | name here | what it is |
//! |---|---|
//! | [`base`] | keys, metadata, selectors, quantities, time |
//! | [`model`] | what caches hold of the built-in kinds |
//! | [`workqueue`] | the queue every controller works from |
//! | [`informer`] | caches that follow the API server |
//! | [`runtime`] | connection, manager, reconcilers, writer |
//! | [`controllers`] | the built-in controllers |

pub use steersman_base as base;
pub use steersman_controllers as controllers;
pub use steersman_informer as informer;
pub use steersman_model as model;
pub use steersman_runtime as runtime;
pub use steersman_workqueue as workqueue;

pub mod cli;
