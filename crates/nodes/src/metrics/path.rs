//! Pure: what a path of the metrics APIs asks for.

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// `/apis/<group>`
    Group(String),
    /// `/apis/<group>/<version>`
    Version(String, String),
    /// Usage of pods: of one, of those of a namespace, or of all.
    Pods { namespace: Option<String>, name: Option<String> },
    /// Usage of nodes: of one, or of all.
    Nodes { name: Option<String> },
    /// A custom metric of an object, or of all of a resource (`*`).
    Custom { version: String, namespace: String, resource: String, name: String, metric: String },
    /// An external metric.
    External { namespace: String, metric: String },
    /// None of these.
    Unknown,
}

/// The pods that a response is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pods<'a> {
    /// None.
    None,
    /// One: its namespace and name.
    One(&'a str, &'a str),
    /// Those of a namespace.
    Namespace(&'a str),
    /// Those on a node.
    Node(&'a str),
    /// Those whose annotations set custom metrics.
    WithMetrics,
    /// All.
    All,
}

/// The groups.
pub(super) const USAGE: &str = "metrics.k8s.io";
pub(super) const CUSTOM: &str = "custom.metrics.k8s.io";
pub(super) const EXTERNAL: &str = "external.metrics.k8s.io";

// === impl Asked ===

impl Asked {
    /// Returns the pods that the response needs: reading all of them for one would cost more than the response.
    pub(super) fn pods(&self) -> Pods<'_> {
        match self {
            Self::Group(group) | Self::Version(group, _) if group == CUSTOM => Pods::WithMetrics,
            Self::Pods { namespace: Some(namespace), name: Some(name) } => Pods::One(namespace, name),
            Self::Pods { namespace: Some(namespace), name: None } => Pods::Namespace(namespace),
            Self::Nodes { name: Some(name) } => Pods::Node(name),
            Self::Pods { .. } | Self::Nodes { name: None } => Pods::All,
            Self::Custom { namespace, resource, name, .. } if resource == "pods" => match name.as_str() {
                "*" => Pods::Namespace(namespace),
                name => Pods::One(namespace, name),
            },
            Self::Group(_) | Self::Version(..) | Self::Custom { .. } | Self::External { .. } | Self::Unknown => {
                Pods::None
            }
        }
    }
}

/// Parses a path.
pub(super) fn parse(path: &str) -> Asked {
    let segments: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(|part| decode(part, false)).collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    let own = |text: &str| text.to_owned();
    let ["apis", group, rest @ ..] = words.as_slice() else { return Asked::Unknown };
    match (*group, rest) {
        (group, []) => Asked::Group(own(group)),
        (group, [version]) => Asked::Version(own(group), own(version)),
        (USAGE, ["v1beta1", "pods"]) => Asked::Pods { namespace: None, name: None },
        (USAGE, ["v1beta1", "namespaces", namespace, "pods"]) => {
            Asked::Pods { namespace: Some(own(namespace)), name: None }
        }
        (USAGE, ["v1beta1", "namespaces", namespace, "pods", name]) => {
            Asked::Pods { namespace: Some(own(namespace)), name: Some(own(name)) }
        }
        (USAGE, ["v1beta1", "nodes"]) => Asked::Nodes { name: None },
        (USAGE, ["v1beta1", "nodes", name]) => Asked::Nodes { name: Some(own(name)) },
        (CUSTOM, [version @ ("v1beta1" | "v1beta2"), rest @ ..]) => custom(version, rest),
        (EXTERNAL, ["v1beta1", "namespaces", namespace, metric]) => {
            Asked::External { namespace: own(namespace), metric: own(metric) }
        }
        _ => Asked::Unknown,
    }
}

fn custom(version: &str, rest: &[&str]) -> Asked {
    let asked = |namespace: &str, resource: &str, name: &str, metric: &str| Asked::Custom {
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        metric: metric.to_owned(),
    };
    match rest {
        // Metrics of the namespace itself.
        ["namespaces", namespace, "metrics", metric] => asked(namespace, "namespaces", namespace, metric),
        ["namespaces", namespace, resource, name, metric] => asked(namespace, resource, name, metric),
        [resource, name, metric] => asked("", resource, name, metric),
        _ => Asked::Unknown,
    }
}

/// Returns the first value of a parameter of a query; empty if there is none.
pub(super) fn parameter(query: &str, name: &str) -> String {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| decode(key, true) == name).map(|(_, value)| decode(value, true)).unwrap_or_default()
}

/// Percent-decodes a part of a URL. What is no escape stays as it is.
fn decode(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(escaped)) => {
                decoded.push(escaped);
                at += 2;
            }
            (b'+', _) if plus_is_space => decoded.push(b' '),
            _ => decoded.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
