//! What there is: groups, versions and resources, as lists and as one aggregated document.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::aggregated;
use crate::auth::ISSUER;
use crate::http::order::{self, Order};
use crate::openapi;
use crate::registry::{Registry, Row, Subresource, built_in};

/// The address in the answer to old clients, which have reached the server already.
const SERVER_ADDRESS: &str = "127.0.0.1:443";

/// `/version`
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": "v1.37.1",
        "gitCommit": concat!("steersman-", env!("CARGO_PKG_VERSION")),
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    })
}

fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/.well-known/openid-configuration`
pub(crate) fn openid() -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// `/`
pub(crate) fn paths(registry: &Registry) -> Value {
    let mut paths: Vec<String> = vec![
        "/.well-known/openid-configuration".into(),
        "/api".into(),
        "/api/v1".into(),
        "/apis".into(),
        "/apis/".into(),
    ];
    for (group, versions) in by_group(registry).into_iter().filter(|(group, _)| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.into_iter().map(|(version, _)| format!("/apis/{group}/{version}")));
    }
    let rest =
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"];
    paths.extend(rest.map(str::to_owned));
    paths.extend(registry.aggregated.iter().flat_map(|source| aggregated::paths(&**source)));
    paths.sort();
    json!({"paths": paths})
}

/// `/api`
pub(crate) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": SERVER_ADDRESS}],
    })
}

/// `/apis`
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups = by_group(registry).into_iter().filter(|(group, _)| !group.is_empty());
    let mut groups: Vec<_> = groups.map(|(group, versions)| Value::Object(group_map(&group, &versions))).collect();
    groups.extend(registry.aggregated.iter().flat_map(|source| aggregated::groups(&**source)));
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`
pub(crate) fn group(registry: &Registry, group: &str) -> Option<Value> {
    let (_, versions) = by_group(registry).into_iter().find(|(held, _)| held == group && !held.is_empty())?;
    let mut map = group_map(group, &versions);
    map.insert("kind".into(), "APIGroup".into());
    map.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(map))
}

type Versions = Vec<(String, Vec<Arc<Row>>)>;

/// Groups and their versions, the preferred one first, in the order of the table; custom groups behind them, by name.
fn by_group(registry: &Registry) -> Vec<(String, Versions)> {
    let mut groups: Vec<(String, Versions)> = Vec::new();
    let custom = registry.custom.read();
    let mut customs: Vec<_> = custom.values().collect();
    customs.sort_by_key(|row| {
        (row.resource.group.to_string(), version_rank(&row.resource.version), row.resource.plural.to_string())
    });
    for row in built_in().iter().chain(customs) {
        let group = &*row.resource.group;
        let version = &*row.resource.version;
        let at = groups.iter().position(|(held, _)| held == group).unwrap_or_else(|| {
            groups.push((group.to_owned(), Vec::new()));
            groups.len() - 1
        });
        let versions = &mut groups[at].1;
        match versions.iter_mut().find(|(held, _)| held == version) {
            Some((_, rows)) => rows.push(Arc::clone(row)),
            None => versions.push((version.to_owned(), vec![Arc::clone(row)])),
        }
    }
    groups
}

/// Returns the order of a version: stable before beta before alpha, newer before older, others by name at the end.
pub(crate) fn version_rank(version: &str) -> (u8, i64, i64, String) {
    let digits = |text: &str| text.parse::<i64>().ok();
    let parsed = version.strip_prefix('v').and_then(|rest| {
        for (rank, stage) in [(1, "beta"), (2, "alpha")] {
            if let Some((major, minor)) = rest.split_once(stage) {
                return Some((rank, -digits(major)?, -digits(minor).unwrap_or(0)));
            }
        }
        Some((0, -digits(rest)?, 0))
    });
    match parsed {
        Some((rank, major, minor)) => (rank, major, minor, String::new()),
        None => (3, 0, 0, version.to_owned()),
    }
}

fn group_map(group: &str, versions: &Versions) -> Map<String, Value> {
    let entry = |version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let all: Vec<_> = versions.iter().map(|(version, _)| entry(version)).collect();
    let mut map = Map::new();
    map.insert("name".into(), group.into());
    map.insert("preferredVersion".into(), all.first().cloned().unwrap_or_default());
    map.insert("versions".into(), all.into());
    map
}

/// `/api/v1`, `/apis/<group>/<version>`
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let (_, versions) = by_group(registry).into_iter().find(|(held, _)| held == group)?;
    let (_, rows) = versions.into_iter().find(|(held, _)| held == version)?;
    let mut resources = Vec::new();
    for row in rows {
        resources.push(resource(&row));
        resources.extend(row.subresources.iter().map(|part| subresource(&row, part)));
    }
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
        "resources": resources,
    });
    // The core group's list has none, and has always been so.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

fn resource(row: &Row) -> Value {
    let mut json = json!({
        "name": row.resource.plural,
        "singularName": row.singular,
        "namespaced": row.is_namespaced(),
        "kind": row.resource.kind,
        "verbs": verbs(row),
    });
    if !row.short_names.is_empty() {
        json["shortNames"] = row.short_names.iter().map(|name| Value::from(&**name)).collect();
    }
    if !row.categories.is_empty() {
        json["categories"] = row.categories.iter().map(|name| Value::from(&**name)).collect();
    }
    if !row.storage_hash.is_empty() {
        json["storageVersionHash"] = row.storage_hash.as_ref().into();
    }
    json
}

/// Returns the verbs of a resource; upstream lists it in another order for custom resources.
fn verbs(row: &Row) -> Vec<&'static str> {
    match row.custom {
        Some(_) => vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        None => row.verbs.names().collect(),
    }
}

fn subresource(row: &Row, part: &Subresource) -> Value {
    let mut json = json!({
        "name": format!("{}/{}", row.resource.plural, part.name),
        "singularName": "",
        "namespaced": row.is_namespaced(),
        "kind": part.kind,
        "verbs": part.verbs.names().collect::<Vec<_>>(),
    });
    if let Some((group, version)) = &part.answer {
        json["group"] = group.as_ref().into();
        json["version"] = version.as_ref().into();
    }
    json
}

/// One document of aggregated discovery: `/api` or `/apis`.
#[derive(Debug)]
pub(crate) struct Aggregated {
    /// The custom resources that were served when it was written, and the groups that are not the server's own. All else in
    /// it never changes.
    customs: Vec<Arc<Row>>,
    others: Vec<String>,
    /// The text.
    pub(crate) bytes: Bytes,
    /// Its tag.
    pub(crate) tag: String,
}

/// The documents of aggregated discovery, as they were sent last: `/apis` and `/api`.
#[derive(Debug, Default)]
pub(crate) struct Kept([Mutex<Option<Arc<Aggregated>>>; 2]);

/// Returns `/api` or `/apis` as one document. Every manager asks for both every half minute, and they hardly ever change.
pub(crate) fn aggregated(registry: &Registry, is_core: bool) -> Arc<Aggregated> {
    // Read before the document is written: if one is changed in between, the next request writes another document.
    let customs: Vec<Arc<Row>> = registry.custom.read().values().cloned().collect();
    let others = registry.aggregated.iter().filter(|_| !is_core);
    let others: Vec<String> = others.flat_map(|source| aggregated::documents(&**source)).collect();
    let mut kept = registry.discovered.0[usize::from(is_core)].lock();
    let is_same = |known: &&Arc<Aggregated>| {
        known.others == others
            && known.customs.len() == customs.len()
            && known.customs.iter().zip(&customs).all(|(a, b)| Arc::ptr_eq(a, b))
    };
    if let Some(known) = kept.as_ref().filter(is_same) {
        return Arc::clone(known);
    }
    let text = aggregated_text(registry, is_core, &others);
    let tag = openapi::tag_of(&text);
    let document = Arc::new(Aggregated { customs, others, bytes: text.into(), tag });
    *kept = Some(Arc::clone(&document));
    document
}

fn aggregated_text(registry: &Registry, is_core: bool, others: &[String]) -> String {
    // Upstream's aggregated document leaves out what is on its way out; the lists have it to the end.
    let is_staying = |row: &Row| row.custom.as_ref().is_none_or(|custom| !custom.is_terminating);
    let mut groups = by_group(registry);
    groups.retain_mut(|(group, versions)| {
        for (_, rows) in versions.iter_mut() {
            rows.retain(|row| is_staying(row));
        }
        versions.retain(|(_, rows)| !rows.is_empty());
        group.is_empty() == is_core && !versions.is_empty()
    });
    let groups = groups.iter().map(|(group, versions)| {
        let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
        let versions = versions.iter().map(|(version, rows)| {
            let resources = rows
                .iter()
                .map(|row| row.discovered.get_or_init(|| order::encode(&aggregated_resource(row), Order::Part, false)));
            let version = Value::from(version.as_str());
            format!(r#"{{"version":{version},"resources":{},"freshness":"Current"}}"#, array(resources))
        });
        format!(r#"{{"metadata":{metadata},"versions":{}}}"#, array(versions))
    });
    let items = array(groups.chain(others.iter().cloned()));
    let head = r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{}"#;
    format!(r#"{{{head},"items":{items}}}"#)
}

/// Joins JSON texts to the text of an array.
pub(crate) fn array(items: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::from("[");
    for (at, item) in items.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push(']');
    text
}

fn aggregated_resource(row: &Row) -> Value {
    // Upstream leaves group and version empty where they are the resource's own.
    let own = |kind: &str| json!({"group": "", "version": "", "kind": kind});
    let mut json = json!({
        "resource": row.resource.plural,
        "responseKind": own(&row.resource.kind),
        "scope": if row.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": row.singular,
        "verbs": verbs(row),
    });
    if row.custom.is_some() {
        let resource = &row.resource;
        json["responseKind"] = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    }
    if !row.short_names.is_empty() {
        json["shortNames"] = row.short_names.iter().map(|name| Value::from(&**name)).collect();
    }
    if !row.categories.is_empty() {
        json["categories"] = row.categories.iter().map(|name| Value::from(&**name)).collect();
    }
    if !row.subresources.is_empty() {
        let parts = row.subresources.iter().map(|part| {
            let mut kind = own(&part.kind);
            if let Some((group, version)) = &part.answer {
                kind["group"] = group.as_ref().into();
                kind["version"] = version.as_ref().into();
            } else if row.custom.is_some() {
                kind = json["responseKind"].clone();
            }
            json!({"subresource": part.name, "responseKind": kind, "verbs": part.verbs.names().collect::<Vec<_>>()})
        });
        json["subresources"] = parts.collect();
    }
    json
}
