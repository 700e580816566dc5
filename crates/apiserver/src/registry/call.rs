//! A request about a resource, once its path, its query and its user are known.

use std::sync::Arc;

use steersman_base::ObjectKey;

use super::admission::webhook::Session;
use super::owners::SERVER_ITSELF;
use super::{Row, query};
use crate::auth::User;
use crate::schema::FieldValidation;

/// A request about a resource.
#[derive(Debug)]
pub(crate) struct Call {
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
    /// The treatment of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// The manager that owns the fields that it changes.
    pub manager: String,
    /// Whether an apply takes fields that others own.
    pub force: bool,
    /// The session that calls webhooks; none if no webhook is concerned.
    pub(crate) session: Option<Arc<Session>>,
}

// === impl Call ===

impl Call {
    /// A request that the server makes of itself.
    pub(crate) fn by_server(row: Arc<Row>, namespace: &str, name: &str, subresource: &str) -> Self {
        Self {
            row,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            user: User::admin(),
            query: query::Query::default(),
            dry_run: false,
            field_validation: FieldValidation::Ignore,
            manager: SERVER_ITSELF.to_owned(),
            force: false,
            session: None,
        }
    }

    /// Returns the key of the object.
    #[must_use]
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}
