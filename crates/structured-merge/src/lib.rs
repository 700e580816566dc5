//! Server-side apply as pure functions.
//!
//! Several writers share an object: people with `kubectl apply`, controllers, autoscalers. Each owns the fields that it
//! has set, `metadata.managedFields` says which, and an apply that would change somebody else's field is a conflict. This
//! crate has all of that and nothing else: no I/O, no clock, no storage, no HTTP. An API server calls
//! [`FieldManager::update`] for creates, replacements and patches, and [`FieldManager::apply`] for applies.
//!
//! ```
//! use serde_json::json;
//! use steersman_structured_merge::{FieldManager, OneVersion, Schema, Writer};
//!
//! let schema = Schema::custom_resource(Some(&json!({"type": "object", "properties": {
//!     "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}},
//! }})))?;
//! let versions = OneVersion { api_version: "example.com/v1".to_owned(), schema };
//! let widgets = FieldManager {
//!     api_version: "example.com/v1",
//!     kind: "Widget",
//!     subresource: "",
//!     versions: &versions,
//!     filters: &[],
//! };
//! let config = |spec| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
//!
//! let one = Writer { manager: "one", now: "2026-11-15T20:06:52Z" };
//! let applied = widgets.apply(None, &config(json!({"size": 1, "color": "red"})), one, false)?;
//!
//! let two = Writer { manager: "two", now: "2026-11-15T20:07:00Z" };
//! let conflict = widgets.apply(Some(&applied.object), &config(json!({"size": 2})), two, false);
//! assert_eq!(
//!     conflict.map_err(|error| error.to_string()),
//!     Err("Apply failed with 1 conflict: conflict with \"one\": .spec.size".to_owned())
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! Each can be used without those below it; the guarantees are stated in their modules.
//!
//! 1. [`path`]: where a field is. [`set`]: sets of fields, and `FieldsV1`.
//! 2. [`schema`]: which lists are keyed, which are sets, what is atomic.
//! 3. [`typed`]: field sets, merge, comparison and removal by schema.
//! 4. [`managed`]: the managers of an object. [`manager`]: what writes do to them. [`scale`]: the same through `scale`.

pub mod conflict;
pub mod filter;
pub mod managed;
pub mod manager;
pub mod path;
pub mod scale;
pub mod schema;
pub mod set;
mod time;
pub mod typed;
mod value;
pub mod versions;

pub use conflict::{Conflict, Conflicts};
pub use filter::{Filter, Pattern};
pub use managed::{Managed, ManagerId, Operation};
pub use manager::{
    Applied, ApplyError, FieldManager, MANAGER_BYTES_MAX, UpdateError, Writer, is_printable, keep_times_of_unchanged,
    manager_name,
};
pub use path::{Path, PathElement};
pub use schema::{Definitions, Schema, SchemaError};
pub use set::{FieldSet, FieldsError};
pub use typed::{Comparison, Duplicates, ValidationErrors};
pub use versions::{OneVersion, Versions};
