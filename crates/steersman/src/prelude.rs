//! What most controllers import: `use steersman::prelude::*`.

pub use steersman_base::ObjectKey;
pub use steersman_informer::{Lister, Scope, Typed};
pub use steersman_model::View;
pub use steersman_runtime::owner::OwnedBy;
pub use steersman_runtime::{
    Action, Context, Controller, Error, LeaseOptions, Manager, ManagerOptions, Patch, Reconciler, connection, handler,
    predicate, reasons,
};
pub use tokio_util::sync::CancellationToken;
