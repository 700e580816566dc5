//! Pure: what a namespace's ConfigMap should be.

use serde_json::{Value, json};
use steersman_base::names::annotations::DESCRIPTION;
use steersman_model::View;
use steersman_model::core::ConfigMapView;

use super::NAME;

const KEY: &str = "ca.crt";
/// What upstream tells people who find the ConfigMap.
const TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such \
                    as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                    distributions of Kubernetes clusters.";

/// Whether a ConfigMap holds the certificates and nothing else, and says what it is for.
pub(super) fn is_as_wanted(map: &ConfigMapView, root_ca: &str) -> bool {
    let is_described = map.meta().annotations.get(DESCRIPTION).is_some_and(|text| !text.is_empty());
    let mut data = map.data.iter().map(|(key, value)| (&**key, &**value));
    is_described && data.next() == Some((KEY, root_ca)) && data.next().is_none()
}

/// The ConfigMap of a namespace that has none.
pub(super) fn new(namespace: &str, root_ca: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": namespace, "annotations": { DESCRIPTION: TEXT } },
        "data": { KEY: root_ca },
    })
}

/// Makes a ConfigMap as it should be; whether it was not.
pub(super) fn mend(map: &mut Value, root_ca: &str) -> bool {
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
