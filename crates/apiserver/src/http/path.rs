//! Parsing of paths.
//!
//! Follows `apiserver/pkg/endpoints/request/requestinfo.go` of Kubernetes 1.37.

use crate::auth::rbac::Attributes;
use crate::registry::query::decode;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Version(String, String),
    /// Objects.
    Resource(ResourcePath),
    /// Anything else, in segments.
    Other(Vec<String>),
}

/// A path to objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// Whether it is one of the old paths that begin with `watch`.
    pub(crate) is_watch: bool,
    /// Whether there are segments behind the subresource.
    pub(crate) has_rest: bool,
}

/// The number of segments of the longest paths that are usual: `/apis/<group>/<version>/namespaces/<name>/<plural>/<name>/status`.
const SEGMENTS_USUAL: usize = 8;

impl ResourcePath {
    /// Returns the attributes of a request with this verb, for the authorizer.
    pub(super) fn attributes(&self, verb: &str) -> Attributes {
        Attributes {
            verb: verb.to_owned(),
            namespace: self.namespace.clone(),
            group: self.group.clone(),
            resource: self.plural.clone(),
            subresource: self.subresource.clone(),
            name: self.name.clone(),
            path: None,
        }
    }
}

/// Parses a path.
pub(crate) fn parse(path: &str) -> Target {
    let segments = || path.split('/').filter(|segment| !segment.is_empty());
    // Almost no path has anything to decode, and every request has a path.
    let decoded: Vec<String> = if path.contains('%') { segments().map(decode_segment).collect() } else { Vec::new() };
    let mut words: Vec<&str> = Vec::with_capacity(SEGMENTS_USUAL);
    match decoded.as_slice() {
        [] => words.extend(segments()),
        decoded => words.extend(decoded.iter().map(String::as_str)),
    }
    match words.as_slice() {
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::Version(String::new(), (*version).to_owned()),
        ["apis", group, version] => Target::Version((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => Target::Resource(resource("", version, rest)),
        ["apis", group, version, rest @ ..] => Target::Resource(resource(group, version, rest)),
        other => Target::Other(other.iter().map(|word| (*word).to_owned()).collect()),
    }
}

/// In a path, `+` is a plus.
fn decode_segment(segment: &str) -> String {
    if !segment.contains('%') {
        return segment.to_owned();
    }
    decode(&segment.replace('+', "%2B"))
}

fn resource(group: &str, version: &str, rest: &[&str]) -> ResourcePath {
    let mut path = ResourcePath { group: group.to_owned(), version: version.to_owned(), ..ResourcePath::default() };
    let mut rest = rest;
    if let ["watch", behind @ ..] = rest
        && !behind.is_empty()
    {
        path.is_watch = true;
        rest = behind;
    }
    // `namespaces/<name>` and its subresources refer to a namespace; anything longer is within it.
    if let ["namespaces", namespace, behind @ ..] = rest
        && !matches!(behind, [] | ["status" | "finalize"])
    {
        (*namespace).clone_into(&mut path.namespace);
        rest = behind;
    }
    let mut next = rest.iter().map(|segment| (*segment).to_owned());
    path.plural = next.next().unwrap_or_default();
    path.name = next.next().unwrap_or_default();
    path.subresource = next.next().unwrap_or_default();
    path.has_rest = next.next().is_some();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_upstream_reads_them() {
        let check = |path: &str, want: [&str; 6], is_watch: bool| {
            let Target::Resource(found) = parse(path) else { panic!("{path} is no resource") };
            let got = [&found.group, &found.version, &found.namespace, &found.plural, &found.name, &found.subresource];
            assert_eq!(got, want.each_ref(), "{path}");
            assert_eq!(found.is_watch, is_watch, "{path}");
        };
        check("/api/v1/pods", ["", "v1", "", "pods", "", ""], false);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""], false);
        check("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""], false);
        check("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"], false);
        check("/api/v1/namespaces/a/finalize", ["", "v1", "", "namespaces", "a", "finalize"], false);
        check("/api/v1/namespaces/a/pods/b/log", ["", "v1", "a", "pods", "b", "log"], false);
        check("/api/v1/watch/namespaces/a/pods/b", ["", "v1", "a", "pods", "b", ""], true);
        check("/api/v1/watch/namespaces/a", ["", "v1", "", "namespaces", "a", ""], true);
        check(
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            ["apps", "v1", "a", "deployments", "d", "scale"],
            false,
        );
        check("/apis/apps/v1/watch/deployments", ["apps", "v1", "", "deployments", "", ""], true);
    }
}
