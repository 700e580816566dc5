//! Pure: the ConfigMap that a namespace should have.

use serde_json::{Value, json};
use steersman_base::names::annotations::DESCRIPTION;
use steersman_model::View;
use steersman_model::core::ConfigMapView;

use super::NAME;

const KEY: &str = "ca.crt";
/// Upstream's description of the ConfigMap.
const TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such \
                    as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                    distributions of Kubernetes clusters.";

/// Whether a ConfigMap holds the certificates and nothing else, and has the description.
pub(super) fn is_as_wanted(map: &ConfigMapView, root_ca: &str) -> bool {
    let is_described = map.meta().annotations.get(DESCRIPTION).is_some_and(|text| !text.is_empty());
    let mut data = map.data.iter().map(|(key, value)| (&**key, &**value));
    is_described && data.next() == Some((KEY, root_ca)) && data.next().is_none()
}

/// Returns the ConfigMap of a namespace that has none.
pub(super) fn new(namespace: &str, root_ca: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": namespace, "annotations": { DESCRIPTION: TEXT } },
        "data": { KEY: root_ca },
    })
}

/// Corrects a ConfigMap; returns whether it changed.
pub(super) fn correct(map: &mut Value, root_ca: &str) -> bool {
    let data = json!({ KEY: root_ca });
    let is_described = map["metadata"]["annotations"][DESCRIPTION].as_str().is_some_and(|text| !text.is_empty());
    if map["data"] == data && is_described {
        return false;
    }
    map["data"] = data;
    if !map["metadata"]["annotations"].is_object() {
        map["metadata"]["annotations"] = json!({});
    }
    map["metadata"]["annotations"][DESCRIPTION] = TEXT.into();
    true
}
