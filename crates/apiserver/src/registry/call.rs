//! A request about a resource, once its path, its query and its user are known.

use std::sync::Arc;

use steersman_base::ObjectKey;

use super::{Row, query};
use crate::auth::User;
use crate::schema::FieldValidation;

/// A request about a resource.
#[derive(Debug)]
pub struct Call {
    /// The resource.
    pub row: Arc<Row>,
    /// The namespace; empty for all namespaces and for cluster-wide resources.
    pub namespace: String,
    /// The name of the object; empty for the collection.
    pub name: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The authenticated user.
    pub user: User,
    /// The query of the URL.
    pub query: query::Query,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// What happens to unknown and duplicate fields.
    pub field_validation: FieldValidation,
}

// === impl Call ===

impl Call {
    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}
