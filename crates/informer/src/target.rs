//! What an informer watches: a resource, and which part of it.

use std::fmt;

use steersman_base::{Istr, Resource};

/// One resource, and which of its objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The resource.
    pub resource: Resource,
    /// Which of its objects.
    pub scope: Scope,
}

/// Which objects of a resource; all of them by default. Selectors are written as in a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// Those in this namespace.
    pub namespace: Option<Istr>,
    /// Those whose labels match, such as `app=web,tier!=test`.
    pub labels: Option<Istr>,
    /// Those whose fields match, such as `metadata.name=kube-root-ca.crt`.
    pub fields: Option<Istr>,
}

// === impl Target ===

impl Target {
    /// All objects of a resource.
    #[must_use]
    pub fn all(resource: Resource) -> Self {
        Self { resource, scope: Scope::default() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resource)?;
        if self.scope.is_everything() { Ok(()) } else { write!(f, " ({})", self.scope) }
    }
}

// === impl Scope ===

impl Scope {
    /// All objects of the resource.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The objects in one namespace.
    #[must_use]
    pub fn namespace(namespace: &str) -> Self {
        Self { namespace: Some(Istr::interned(namespace)), ..Self::default() }
    }

    /// Only those whose labels match.
    #[must_use]
    pub fn with_labels(self, selector: &str) -> Self {
        Self { labels: Some(Istr::interned(selector)), ..self }
    }

    /// Only those whose fields match.
    #[must_use]
    pub fn with_fields(self, selector: &str) -> Self {
        Self { fields: Some(Istr::interned(selector)), ..self }
    }

    /// Whether nothing is left out: only then does a store's resourceVersion tell about every write to the resource.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Scope {
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
