#![doc = include_str!("../README.md")]

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
#[cfg(feature = "runtime")]
pub use steersman_runtime::prometheus;
#[cfg(feature = "testing")]
pub use steersman_testing as testing;
#[cfg(feature = "workqueue")]
pub use steersman_workqueue as workqueue;
#[cfg(feature = "runtime")]
pub use tokio_util::sync::CancellationToken;

#[cfg(feature = "runtime")]
pub mod prelude;
