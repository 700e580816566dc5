//! The plug-in PodTopologyLabels: a pod that is bound to a node gets the labels of its zone and its region.
//!
//! Follows `plugin/pkg/admission/podtopologylabels` of Kubernetes 1.37.

use serde_json::Value;

use crate::kinds::shared::json::{set, with};

/// The labels that a pod gets from its node.
const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Gives an object (a pod, or the Binding of one) the labels of a node, whatever it had there.
pub(super) fn label(object: &mut Value, of_node: impl Fn(&str) -> Option<String>) {
    for (label, value) in LABELS.iter().filter_map(|label| Some((label, of_node(label)?))) {
        with(object, "metadata", |metadata| with(metadata, "labels", |labels| set(labels, label, value)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_gets_zone_and_region_of_its_node_and_no_other_label() {
        let node = json!({"topology.kubernetes.io/zone": "z", "kubernetes.io/hostname": "h"});
        let of_node = |label: &str| node[label].as_str().map(str::to_owned);
        let mut pod = json!({"metadata": {"labels": {"a": "b", "topology.kubernetes.io/zone": "mine"}}});
        label(&mut pod, of_node);
        assert_eq!(pod["metadata"]["labels"], json!({"a": "b", "topology.kubernetes.io/zone": "z"}));
        let mut bare = json!({"metadata": {}});
        label(&mut bare, |_| None);
        assert_eq!(bare, json!({"metadata": {}}));
    }
}
