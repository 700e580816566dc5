//! Pods, lists and events in JSON, as a server writes them.

/// A pod `default/{name}` with uid `uid-{name}`.
pub fn pod(name: &str, version: u64) -> String {
    format!(r#"{{"kind":"Pod","apiVersion":"v1",{}"#, &item(name, version)[1..])
}

/// A pod as an item of a list, where kind and apiVersion are left out.
pub fn item(name: &str, version: u64) -> String {
    // Braces, quotes and backslashes in strings: what a careless scanner stumbles over.
    let annotations = if name == "a" { r#","annotations":{"x":"a \"}]{\\"}"# } else { "" };
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default","uid":"uid-{name}","resourceVersion":"{version}"{annotations}}},"spec":{{"nodeName":"node-{version}"}}}}"#
    )
}

pub fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

pub fn added(name: &str, version: u64) -> String {
    event("ADDED", &pod(name, version))
}

pub fn modified(name: &str, version: u64) -> String {
    event("MODIFIED", &pod(name, version))
}

pub fn deleted(name: &str, version: u64) -> String {
    event("DELETED", &pod(name, version))
}

pub fn bookmark(version: u64) -> String {
    event(
        "BOOKMARK",
        &format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","creationTimestamp":null}},"spec":{{"containers":null}}}}"#
        ),
    )
}

/// The bookmark that ends a streaming list.
pub fn synced(version: u64) -> String {
    event(
        "BOOKMARK",
        &format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
        ),
    )
}

pub fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
    )
}

pub fn error(code: u16, reason: &str) -> String {
    event("ERROR", &status(code, reason, "told by the watch"))
}

/// A list with the metadata before the items, as kube-apiserver writes it.
pub fn list(version: u64, items: &[(&str, u64)]) -> String {
    page(version, "", items)
}

/// A page with more to come, unless the token is empty.
pub fn page(version: u64, token: &str, items: &[(&str, u64)]) -> String {
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":[{}]}}"#,
        items.iter().map(|(name, version)| item(name, *version)).collect::<Vec<_>>().join(",")
    )
}

/// A streaming list, up to and including its last bookmark.
pub fn streamed(version: u64, items: &[(&str, u64)]) -> String {
    items.iter().map(|(name, version)| added(name, *version)).chain([synced(version)]).collect()
}
