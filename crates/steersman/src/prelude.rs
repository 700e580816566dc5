//! What most controllers import: `use steersman::prelude::*`.

pub use steersman_base::ObjectKey;
pub use steersman_runtime::owner::OwnedBy;
pub use steersman_runtime::{
    Action, Context, Controller, Error, LeaseOptions, Lister, Manager, ManagerOptions, Reconciler, conditions,
    connection, definition, handler, predicate, reasons,
};
