//! The target of an informer: a resource, and a selection of its objects.

use std::fmt;

use steersman_base::{Istr, Resource};

/// One resource, and a selection of its objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The resource.
    pub resource: Resource,
    /// The selection.
    pub selection: Selection,
}

/// A selection of objects of a resource; all of them by default. Selectors have the syntax of queries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Selection {
    /// The namespace.
    pub namespace: Option<Istr>,
    /// A label selector, such as `app=web,tier!=test`.
    pub labels: Option<Istr>,
    /// A field selector, such as `metadata.name=kube-root-ca.crt`.
    pub fields: Option<Istr>,
}

// === impl Target ===

impl Target {
    /// Selects all objects of a resource.
    #[must_use]
    pub fn all(resource: Resource) -> Self {
        Self { resource, selection: Selection::default() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resource)?;
        if self.selection.is_everything() { Ok(()) } else { write!(f, " ({})", self.selection) }
    }
}

// === impl Selection ===

impl Selection {
    /// Selects all objects.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects the objects in one namespace.
    #[must_use]
    pub fn namespace(namespace: &str) -> Self {
        Self { namespace: Some(Istr::interned(namespace)), ..Self::default() }
    }

    /// Selects by labels.
    #[must_use]
    pub fn with_labels(self, selector: &str) -> Self {
        Self { labels: Some(Istr::interned(selector)), ..self }
    }

    /// Selects by fields.
    #[must_use]
    pub fn with_fields(self, selector: &str) -> Self {
        Self { fields: Some(Istr::interned(selector)), ..self }
    }

    /// Whether everything is selected: only then does a store's resourceVersion cover every write to the resource.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("namespace", &self.namespace), ("labels", &self.labels), ("fields", &self.fields)];
        let mut gap = "";
        for (name, value) in parts.into_iter().filter_map(|(name, part)| part.as_ref().map(|value| (name, value))) {
            write!(f, "{gap}{name} {value}")?;
            gap = ", ";
        }
        if gap.is_empty() { f.write_str("everything") } else { Ok(()) }
    }
}
