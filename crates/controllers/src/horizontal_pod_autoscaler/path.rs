//! Pure: the paths of the metrics APIs.

use std::fmt::Write as _;

use steersman_base::{LabelSelector, Selector};

/// The group of the custom metrics API.
pub(super) const CUSTOM_GROUP: &str = "custom.metrics.k8s.io";
/// The known versions of the custom metrics API.
pub(super) const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// Returns the path of the resource usage of the selected pods.
pub(super) fn of_pods(namespace: &str, selector: &Selector) -> String {
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods", segment(namespace));
    with_query(path, &[("labelSelector", &selector.to_string())])
}

/// Returns the path of a custom metric of the selected pods.
pub(super) fn of_custom_pods(
    version: &str,
    namespace: &str,
    metric: &str,
    pods: &Selector,
    series: &Selector,
) -> String {
    let path = format!("{}/pods/*/{}", custom(version, namespace), segment(metric));
    let query = [("labelSelector", &*pods.to_string()), ("metricLabelSelector", &*series.to_string())];
    with_query(path, &query)
}

/// Returns the path of a custom metric of one object; `resource` is its plural with its group.
pub(super) fn of_custom_object(
    version: &str,
    namespace: &str,
    (resource, name): (&str, &str),
    metric: &str,
    series: &Selector,
) -> String {
    let path = format!("{}/{resource}/{}/{}", custom(version, namespace), segment(name), segment(metric));
    with_query(path, &[("metricLabelSelector", &series.to_string())])
}

/// Returns the path of a custom metric of a namespace.
pub(super) fn of_custom_namespace(version: &str, namespace: &str, metric: &str, series: &Selector) -> String {
    let path = format!("{}/metrics/{}", custom(version, namespace), segment(metric));
    with_query(path, &[("metricLabelSelector", &series.to_string())])
}

/// Returns the path of an external metric.
pub(super) fn of_external(namespace: &str, metric: &str, series: &Selector) -> String {
    let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{}", segment(namespace), segment(metric));
    with_query(path, &[("labelSelector", &series.to_string())])
}

fn custom(version: &str, namespace: &str) -> String {
    format!("/apis/{CUSTOM_GROUP}/{version}/namespaces/{}", segment(namespace))
}

fn with_query(mut path: String, query: &[(&str, &str)]) -> String {
    let mut mark = '?';
    for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        path.push(mark);
        path.push_str(name);
        path.push('=');
        path.push_str(&segment(value));
        mark = '&';
    }
    path
}

/// Encodes a text as a part of a path or a query.
fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Prints a selector as messages of upstream do, which is how Go prints its struct.
pub(super) fn shown(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in selector.match_labels.iter() {
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for requirement in &selector.match_expressions {
        let values: Vec<_> = requirement.values.iter().map(|value| &**value).collect();
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            requirement.key,
            requirement.operator,
            values.join(" ")
        );
    }
    text.push_str("},}");
    text
}
