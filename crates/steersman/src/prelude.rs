//! What most controllers import: `use steersman::prelude::*`.
//!
//! ```
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use steersman::prelude::*;
//! use steersman::workqueue::{Bucket, Exponential, MaxOf};
//!
//! fn add(manager: &Manager, reconciler: impl Reconciler) -> Controller {
//!     let backoff = Exponential::new(Duration::from_millis(5), Duration::from_secs(60));
//!     manager
//!         .controller::<ConfigMap>("copier")
//!         .filter(predicate::labels_changed().or(predicate::annotations_changed()).not())
//!         .limiter(MaxOf(backoff, Bucket::new(10.0, 100)))
//!         .reconcile_with(reconciler)
//! }
//! ```

pub use steersman_base::ObjectKey;
pub use steersman_runtime::owner::OwnedBy;
pub use steersman_runtime::predicate::PredicateExt as _;
pub use steersman_runtime::{
    Action, Context, Controller, Error, LeaseOptions, Lister, Manager, ManagerOptions, Reconciler, conditions,
    connection, definition, handler, predicate, reasons,
};
