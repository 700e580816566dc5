//! The resources that are served: a row each, read from `data/resources.tsv` or from a CustomResourceDefinition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use steersman_base::{Resource, Scope};

use super::custom::Custom;
use super::owners::FieldTypes;
use super::{Verbs, convert};
use crate::kinds::{self, Rules};
use crate::status::GroupResource;
use crate::store::Collection;

/// One resource in one version.
#[derive(Debug)]
pub(crate) struct Row {
    /// The group, version, plural, kind and scope.
    pub resource: Resource,
    /// The kind of lists.
    pub list_kind: Cow<'static, str>,
    /// The singular name.
    pub singular: Cow<'static, str>,
    /// The short names, for command lines.
    pub short_names: Vec<Cow<'static, str>>,
    /// The categories, such as `all`.
    pub categories: Vec<Cow<'static, str>>,
    /// The verbs that are served.
    pub verbs: Verbs,
    /// The subresources.
    pub subresources: Vec<Subresource>,
    /// The hash by which discovery names the stored version; empty if objects are not stored.
    pub storage_hash: Cow<'static, str>,
    /// The collection in which objects are stored.
    pub collection: Collection,
    /// The rule set of the kind.
    pub(crate) rules: &'static Rules,
    /// The types of its fields, for server-side apply.
    pub(crate) field_types: FieldTypes,
    /// The properties from its CustomResourceDefinition, if the resource is not built in.
    pub custom: Option<Custom>,
    /// The entry in aggregated discovery, as JSON, once it was asked for.
    pub(crate) discovered: OnceLock<String>,
}

/// A subresource: a part of an object with a path of its own.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    /// The name, such as `status`.
    pub name: Cow<'static, str>,
    /// The kind of bodies.
    pub kind: Cow<'static, str>,
    /// The group and version of bodies, if they are not the resource's.
    pub answer: Option<(Cow<'static, str>, Cow<'static, str>)>,
    /// The verbs that are served.
    pub verbs: Verbs,
}

static BUILT_IN: LazyLock<Vec<Arc<Row>>> = LazyLock::new(|| read_rows(include_str!("../../data/resources.tsv")));
static INDEX: LazyLock<BTreeMap<(&'static str, &'static str, &'static str), usize>> = LazyLock::new(|| {
    let key = |row: &'static Arc<Row>| (&*row.resource.group, &*row.resource.version, &*row.resource.plural);
    BUILT_IN.iter().enumerate().map(|(at, row)| (key(row), at)).collect()
});

/// Returns the built-in resources, in the order of discovery.
#[must_use]
pub(crate) fn built_in() -> &'static [Arc<Row>] {
    &BUILT_IN
}

/// Returns the built-in resource with these names.
pub(super) fn find_built_in(group: &str, version: &str, plural: &str) -> Option<Arc<Row>> {
    INDEX.get(&(group, version, plural)).map(|at| Arc::clone(&BUILT_IN[*at]))
}

/// Returns the rows of the table of resources, in which subresources follow their resource.
fn read_rows(table: &'static str) -> Vec<Arc<Row>> {
    let mut rows: Vec<Row> = Vec::with_capacity(128);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let [group, version, name, singular, kind] = [next(), next(), next(), next(), next()];
        let scope = if next() == "n" { Scope::Namespaced } else { Scope::Cluster };
        let verbs = Verbs::from_letters(next());
        let [short_names, categories, answer, storage_hash] = [next(), next(), next(), next()];
        if let Some((_, part)) = name.split_once('/') {
            let answer = answer.split_once('/').map(|(group, version)| (Cow::Borrowed(group), Cow::Borrowed(version)));
            let subresource = Subresource { name: part.into(), kind: kind.into(), answer, verbs };
            if let Some(row) = rows.last_mut() {
                row.subresources.push(subresource);
            }
            continue;
        }
        let words = |text: &'static str| text.split(',').filter(|word| !word.is_empty()).map(Cow::Borrowed).collect();
        let resource = match scope {
            Scope::Namespaced => Resource::namespaced(group, version, name, kind),
            Scope::Cluster => Resource::cluster(group, version, name, kind),
        };
        let rules = kinds::rules(group, kind).unwrap_or(&Rules::DEFAULT);
        let storage_group = rules.stored_as.map_or(group, |form| form.group);
        rows.push(Row {
            collection: rules.strategy.collection(storage_group, name),
            resource,
            list_kind: format!("{kind}List").into(),
            singular: singular.into(),
            short_names: words(short_names),
            categories: words(categories),
            verbs,
            subresources: Vec::new(),
            storage_hash: storage_hash.into(),
            rules,
            field_types: FieldTypes::default(),
            custom: None,
            discovered: OnceLock::new(),
        });
    }
    rows.into_iter().map(Arc::new).collect()
}

// === impl Row ===

impl Row {
    /// The columns that the definition of a custom resource declares.
    pub(crate) fn declared_columns(&self) -> &[serde_json::Value] {
        self.custom.as_ref().map_or(&[], |custom| &custom.columns)
    }

    /// Returns the warning to users of the resource in this version.
    #[must_use]
    pub(crate) fn warning(&self) -> Option<&str> {
        let custom = self.custom.as_ref().and_then(|custom| custom.warning.as_deref());
        custom.or(self.rules.strategy.warning)
    }

    /// Whether a write is heavy, however few bytes it has.
    #[must_use]
    pub(crate) fn has_heavy_writes(&self) -> bool {
        self.rules.is_heavy || self.custom.as_ref().is_some_and(Custom::has_heavy_rules)
    }

    /// Returns group and plural, for messages.
    #[must_use]
    pub(crate) fn target(&self) -> GroupResource<'_> {
        GroupResource { group: &self.resource.group, resource: &self.resource.plural }
    }

    /// Returns group and kind of the stored form, which upstream names in messages.
    #[must_use]
    pub(crate) fn kind(&self) -> GroupResource<'_> {
        let (group, ..) = convert::storage_kind(self);
        GroupResource { group, resource: &self.resource.kind }
    }

    /// Whether objects belong to namespaces.
    #[must_use]
    pub(crate) fn is_namespaced(&self) -> bool {
        self.resource.scope == Scope::Namespaced
    }

    /// Returns a subresource by its name.
    #[must_use]
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|part| part.name == name)
    }

    /// Whether the status is written through a subresource.
    #[must_use]
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}
