//! Node selector and required node affinity: whether a pod may run on a node by its labels.

use std::collections::BTreeSet;

use steersman_base::{Istr, Meta};

use super::filter::Refusal;
use crate::view::{NodeSelectorRequirement, NodeSelectorTerm, SimPodSpec};

/// The nodes that a pod's required affinity names, as that of a DaemonSet's pod does: no others are considered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// It names none: all nodes are considered.
    None,
    /// These nodes.
    Only(BTreeSet<&'a str>),
    /// It names some, and excludes each of them again.
    Conflict,
}

/// Returns the nodes that a pod's required affinity names.
pub(super) fn named(spec: &SimPodSpec) -> Named<'_> {
    let terms = spec.required_node_affinity().map_or(&[][..], |required| &required.node_selector_terms);
    let mut all = BTreeSet::new();
    for term in terms {
        let fields = term.match_fields.iter().filter(|field| field.key == "metadata.name" && field.operator == "In");
        let names = fields.map(|field| field.values.iter().map(Istr::as_str).collect::<BTreeSet<_>>());
        // A term that names none admits all nodes: one matching term is enough.
        let Some(names) = names.reduce(|names, more| names.intersection(&more).copied().collect()) else {
            return Named::None;
        };
        all.extend(names);
    }
    match (terms.is_empty(), all.is_empty()) {
        (true, _) => Named::None,
        (false, true) => Named::Conflict,
        (false, false) => Named::Only(all),
    }
}

// === impl Named ===

impl Named<'_> {
    /// Returns the message for a node that is not considered.
    pub(super) fn refusal(&self) -> Refusal {
        match self {
            Self::Conflict => Refusal::of_all("pod affinity terms conflict"),
            Self::None | Self::Only(_) => Refusal::lasting("node(s) didn't satisfy plugin(s) [NodeAffinity]"),
        }
    }
}

/// Whether the node matches the pod's selector and affinity.
pub(super) fn matches(spec: &SimPodSpec, node: &Meta) -> bool {
    let selected = spec.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let wanted = spec
        .required_node_affinity()
        .is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, node)));
    selected && wanted
}

/// A term without requirements matches nothing, as upstream.
fn term_matches(term: &NodeSelectorTerm, node: &Meta) -> bool {
    let is_empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    let label = |key: &str| node.labels.get(key).map(Istr::as_str);
    // `metadata.name` is the only supported field.
    let field = |key: &str| (key == "metadata.name").then_some(node.name.as_str());
    !is_empty
        && term.match_expressions.iter().all(|required| holds(required, label(&required.key)))
        && term.match_fields.iter().all(|required| holds(required, field(&required.key)))
}

fn holds(required: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let is_listed = |value: &str| required.values.iter().any(|listed| listed == value);
    let compares = |compare: fn(&i64, &i64) -> bool| {
        let bound = required.values.first().and_then(|bound| bound.parse::<i64>().ok());
        let number = value.and_then(|value| value.parse::<i64>().ok());
        number.zip(bound).is_some_and(|(number, bound)| compare(&number, &bound))
    };
    match required.operator.as_str() {
        "In" => value.is_some_and(is_listed),
        "NotIn" => !value.is_some_and(is_listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compares(i64::gt),
        "Lt" => compares(i64::lt),
        _ => false,
    }
}
