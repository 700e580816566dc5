//! Whether a node is one that a pod may go to by labels: node selector and required node affinity.

use steersman_base::Meta;

use crate::view::{NodeSelectorRequirement, NodeSelectorTerm, SimPodSpec};

/// Whether the node has what the pod's selector and affinity require.
pub(super) fn matches(spec: &SimPodSpec, node: &Meta) -> bool {
    let selected = spec.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let wanted = spec
        .required_node_affinity()
        .is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, node)));
    selected && wanted
}

/// A term without requirements matches nothing, as upstream has it.
fn term_matches(term: &NodeSelectorTerm, node: &Meta) -> bool {
    let is_empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    let label = |key: &str| node.labels.get(key).map(steersman_base::Istr::as_str);
    // There is one field that can be asked for.
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
