//! Queries: which objects to list.

use steersman_base::field_selector::ParseFieldSelectorError;
use steersman_base::selector::ParseSelectorError;
use steersman_base::{FieldSelector, Istr, Meta, Selector};
use steersman_informer::Selection;

/// A selection of objects of a kind; all of them by default.
#[derive(Clone, Debug)]
#[must_use]
pub struct Query {
    pub(super) namespace: Option<Istr>,
    pub(super) labels: Selector,
    pub(super) fields: FieldSelector,
}

/// The fields of every object, by which a cache can select too.
const CACHED_FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

// === impl Query ===

impl Query {
    /// Selects all objects, in all namespaces.
    pub fn all() -> Self {
        Self { namespace: None, labels: Selector::everything(), fields: FieldSelector::everything() }
    }

    /// Selects the objects in one namespace.
    pub fn namespace(namespace: &str) -> Self {
        let namespace = (!namespace.is_empty()).then(|| Istr::interned(namespace));
        Self { namespace, ..Self::all() }
    }

    /// Selects by labels, such as `app=web,tier!=test`.
    ///
    /// # Errors
    /// The selector is invalid.
    pub fn labels(self, selector: &str) -> Result<Self, ParseSelectorError> {
        Ok(Self { labels: selector.parse()?, ..self })
    }

    /// Selects by labels.
    pub fn selecting(self, labels: Selector) -> Self {
        Self { labels, ..self }
    }

    /// Selects by fields, such as `spec.nodeName=n1`. Caches know `metadata.name` and `metadata.namespace`; for other
    /// fields read [live](super::CachedClient::live), or use an index of the informer.
    ///
    /// # Errors
    /// The selector is invalid.
    pub fn fields(self, selector: &str) -> Result<Self, ParseFieldSelectorError> {
        Ok(Self { fields: selector.parse()?, ..self })
    }

    /// Returns the first field by which no cache can select.
    pub(super) fn uncached_field(&self) -> Option<&str> {
        let mut fields = self.fields.terms().iter().map(|term| term.field.as_str());
        fields.find(|field| !CACHED_FIELDS.contains(field))
    }

    /// Whether an object matches, by the fields that caches know.
    pub(super) fn wants(&self, meta: &Meta) -> bool {
        let value = |field: &str| match field {
            "metadata.name" => meta.name.clone(),
            _ => meta.namespace.clone(),
        };
        self.namespace.as_ref().is_none_or(|namespace| *namespace == meta.namespace)
            && self.labels.matches(&meta.labels)
            && self.fields.matches(value)
    }

    /// Returns the query for the server.
    pub(super) fn selection(&self) -> Selection {
        let text = |text: String| (!text.is_empty()).then(|| Istr::new(&text));
        let mut selection = Selection::everything();
        selection.namespace.clone_from(&self.namespace);
        selection.labels = text(self.labels.to_string());
        selection.fields = text(self.fields.to_string());
        selection
    }
}

impl Default for Query {
    fn default() -> Self {
        Self::all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_base::StringMap;

    fn meta(namespace: &str, name: &str, app: &str) -> Meta {
        let labels = StringMap::from([("app", app)]);
        Meta { name: name.into(), namespace: namespace.into(), labels, ..Meta::default() }
    }

    #[test]
    fn a_cache_answers_as_the_server_would() {
        let check = |query: Query, want: &[&str]| {
            let all = [meta("a", "x", "web"), meta("a", "y", "db"), meta("b", "x", "web")];
            let got: Vec<_> = all.iter().filter(|meta| query.wants(meta)).map(|meta| meta.key().to_string()).collect();
            assert_eq!(got, want, "{query:?}");
        };
        check(Query::all(), &["a/x", "a/y", "b/x"]);
        check(Query::namespace("a"), &["a/x", "a/y"]);
        check(Query::namespace(""), &["a/x", "a/y", "b/x"]);
        check(Query::all().labels("app=web").unwrap(), &["a/x", "b/x"]);
        check(Query::namespace("b").labels("app!=web").unwrap(), &[]);
        check(Query::all().fields("metadata.name=x,metadata.namespace!=a").unwrap(), &["b/x"]);
        check(Query::all().selecting(Selector::nothing()), &[]);
    }

    #[test]
    fn fields_that_no_cache_knows_are_named() {
        assert_eq!(Query::all().fields("metadata.name=x").unwrap().uncached_field(), None);
        assert_eq!(
            Query::all().fields("spec.nodeName=n,metadata.name=x").unwrap().uncached_field(),
            Some("spec.nodeName")
        );
    }
}
