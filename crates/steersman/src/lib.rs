//! Steersman: a framework for Kubernetes controllers, and the parts of a cluster to test them on.
//!
//! This crate names the crates underneath; features choose which. No feature chooses a version of Kubernetes: a program does that, with
//! a feature of its own dependency on `k8s-openapi`, such as `v1_37`.
//!
//! | name here | feature | what it is |
//! |---|---|---|
//! | [`base`] | | keys, metadata, selectors, quantities, time |
//! | `model` | `informer` | what caches hold of the built-in kinds |
//! | `informer` | `informer` | caches that follow the API server |
//! | `workqueue` | `workqueue` | the queue every controller works from |
//! | `runtime` | `runtime` (default) | connection, manager, reconcilers, writer |
//! | `controllers` | `controllers` | the built-in controllers |
//! | `apiserver` | `apiserver` | the embedded API server |
//! | `nodes` | `nodes` | simulated nodes |
//! | `testing` | `testing` | clusters for tests |

#[cfg(feature = "informer")]
pub use k8s_openapi;
#[cfg(feature = "informer")]
pub use kube;
#[cfg(feature = "apiserver")]
pub use steersman_apiserver as apiserver;
pub use steersman_base as base;
#[cfg(feature = "controllers")]
pub use steersman_controllers as controllers;
#[cfg(feature = "informer")]
pub use steersman_informer as informer;
#[cfg(feature = "informer")]
pub use steersman_model as model;
#[cfg(feature = "nodes")]
pub use steersman_nodes as nodes;
#[cfg(feature = "runtime")]
pub use steersman_runtime as runtime;
#[cfg(feature = "testing")]
pub use steersman_testing as testing;
#[cfg(any(feature = "runtime", feature = "workqueue"))]
pub use steersman_workqueue as workqueue;
