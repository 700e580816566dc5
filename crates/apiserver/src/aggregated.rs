//! Aggregated APIs: groups that another part of the process serves, as an extension API server does behind an `APIService`.
//!
//! 1. A request to such a group is authenticated, authorized and bounded like any other; then [`Aggregated::get`] answers it.
//!    There are only reads.
//! 2. Discovery lists the groups behind those of the server, in the lists and in the aggregated document.
//! 3. Every version has an `APIService` that is available.
//!
//! Follows `kube-aggregator` of Kubernetes 1.37.1 in what clients see.

use serde_json::{Map, Value, json};
pub use steersman_base::aggregated::{Aggregated, AggregatedVersion};

use crate::discovery::array;
use crate::http::order::{self, Order};

/// The Service to which the `APIService`s point: no such Service exists, since the server does not need one.
const SERVICE: (&str, &str) = ("kube-system", "metrics-server");

/// Returns the versions of each group, in the order in which they come.
fn by_group(versions: Vec<AggregatedVersion>) -> Vec<(String, Vec<AggregatedVersion>)> {
    let mut groups: Vec<(String, Vec<AggregatedVersion>)> = Vec::new();
    for version in versions {
        match groups.iter_mut().find(|(group, _)| *group == version.group) {
            Some((_, held)) => held.push(version),
            None => groups.push((version.group.clone(), vec![version])),
        }
    }
    groups
}

/// Returns the groups for `/apis`.
pub(crate) fn groups(source: &dyn Aggregated) -> Vec<Value> {
    let groups = by_group(source.versions());
    groups.iter().map(|(group, versions)| Value::Object(group_map(group, versions))).collect()
}

/// Returns the paths for `/`.
pub(crate) fn paths(source: &dyn Aggregated) -> Vec<String> {
    let groups = by_group(source.versions());
    let of_group = |(group, versions): &(String, Vec<AggregatedVersion>)| {
        let own = std::iter::once(format!("/apis/{group}"));
        own.chain(versions.iter().map(|held| format!("/apis/{group}/{}", held.version))).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

/// Returns `/apis/<group>`.
pub(crate) fn group(source: &dyn Aggregated, wanted: &str) -> Option<Value> {
    let (group, versions) = by_group(source.versions()).into_iter().find(|(group, _)| group == wanted)?;
    let mut map = group_map(&group, &versions);
    map.insert("kind".into(), "APIGroup".into());
    map.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(map))
}

fn group_map(group: &str, versions: &[AggregatedVersion]) -> Map<String, Value> {
    let entry = |held: &AggregatedVersion| {
        let whole = format!("{group}/{}", held.version);
        json!({"groupVersion": whole, "version": held.version})
    };
    let all: Vec<Value> = versions.iter().map(entry).collect();
    let mut map = Map::new();
    map.insert("name".into(), group.into());
    map.insert("preferredVersion".into(), all.first().cloned().unwrap_or_default());
    map.insert("versions".into(), all.into());
    map
}

/// Returns `/apis/<group>/<version>`.
pub(crate) fn resources(source: &dyn Aggregated, group: &str, version: &str) -> Option<Value> {
    let found = source.versions().into_iter().find(|held| held.group == group && held.version == version)?;
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"),
        "resources": found.resources,
    }))
}

/// Returns the groups of the aggregated document, each as JSON text.
pub(crate) fn documents(source: &dyn Aggregated) -> Vec<String> {
    let groups = by_group(source.versions());
    let text = |(group, versions): &(String, Vec<AggregatedVersion>)| {
        let versions = versions.iter().map(|held| {
            let resources = discovered(held);
            let resources = resources.iter().map(|resource| order::encode(resource, Order::Part, false));
            let version = Value::from(held.version.as_str());
            format!(r#"{{"version":{version},"resources":{},"freshness":"Current"}}"#, array(resources))
        });
        format!(r#"{{"metadata":{},"versions":{}}}"#, json!({"name": group}), array(versions))
    };
    groups.iter().map(text).collect()
}

/// Returns the resources of a version in the form of the aggregated document. `pods/requests` is a subresource of `pods`, which
/// is listed even if it is none by itself, as upstream does.
fn discovered(version: &AggregatedVersion) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for resource in &version.resources {
        let name = resource["name"].as_str().unwrap_or_default();
        let kind = json!({"group": version.group, "version": version.version, "kind": resource["kind"]});
        let is_namespaced = resource["namespaced"] == true;
        let scope = if is_namespaced { "Namespaced" } else { "Cluster" };
        let (parent, part) = name.split_once('/').unwrap_or((name, ""));
        if part.is_empty() {
            all.push(json!({
                "resource": name, "responseKind": kind, "scope": scope, "singularResource": resource["singularName"],
                "verbs": resource["verbs"],
            }));
            continue;
        }
        let at = all.iter().position(|held| held["resource"] == parent).unwrap_or_else(|| {
            let none = json!({"group": "", "version": "", "kind": ""});
            all.push(json!({
                "resource": parent, "responseKind": none, "scope": scope, "singularResource": "", "verbs": [],
            }));
            all.len() - 1
        });
        let part = json!({"subresource": part, "responseKind": kind, "verbs": resource["verbs"]});
        match all[at]["subresources"].as_array_mut() {
            Some(parts) => parts.push(part),
            None => all[at]["subresources"] = json!([part]),
        }
    }
    all
}

/// Returns the `APIService`s, complete but for uid and times.
pub(crate) fn api_services(source: &dyn Aggregated) -> Vec<Value> {
    let of_version = |held: AggregatedVersion| {
        let (namespace, name) = SERVICE;
        let spec = ["group", "groupPriorityMinimum", "insecureSkipTLSVerify", "service", "version", "versionPriority"];
        let fields: Map<String, Value> = spec.map(|field| (format!("f:{field}"), json!({}))).into_iter().collect();
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": format!("{}.{}", held.version, held.group),
                "managedFields": [{
                    "apiVersion": "apiregistration.k8s.io/v1", "fieldsType": "FieldsV1", "manager": "steersman",
                    "operation": "Update", "fieldsV1": {"f:spec": fields},
                }],
            },
            "spec": {
                "group": held.group, "version": held.version, "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true, "service": {"namespace": namespace, "name": name, "port": 443},
            },
            "status": {"conditions": [{
                "type": "Available", "status": "True", "reason": "Passed", "message": "all checks passed",
            }]},
        })
    };
    source.versions().into_iter().map(of_version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Aggregated for Fixed {
        fn versions(&self) -> Vec<AggregatedVersion> {
            let version = |version: &str, resources| AggregatedVersion {
                group: "cakes.example.com".to_owned(),
                version: version.to_owned(),
                resources,
            };
            let resource = |name: &str| {
                let verbs = ["get"];
                json!({"name": name, "singularName": "", "namespaced": true, "kind": "Cake", "verbs": verbs})
            };
            vec![version("v2", vec![resource("cakes")]), version("v1", vec![resource("pods/a"), resource("pods/b")])]
        }

        fn get(&self, path: &str, query: &str) -> (u16, Value) {
            (200, json!({"path": path, "query": query}))
        }
    }

    #[test]
    fn discovery_lists_groups_versions_and_resources() {
        let found = groups(&Fixed);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["preferredVersion"]["groupVersion"], "cakes.example.com/v2");
        assert_eq!(found[0]["versions"].as_array().map(Vec::len), Some(2));
        assert_eq!(group(&Fixed, "cakes.example.com").unwrap_or_default()["kind"], "APIGroup");
        assert_eq!(group(&Fixed, "pies.example.com"), None);
        let listed = resources(&Fixed, "cakes.example.com", "v2").unwrap_or_default();
        assert_eq!(listed["resources"][0]["name"], "cakes");
        assert_eq!(resources(&Fixed, "cakes.example.com", "v3"), None);
        let all = ["/apis/cakes.example.com", "/apis/cakes.example.com/v2", "/apis/cakes.example.com/v1"];
        assert_eq!(paths(&Fixed), all);
    }

    #[test]
    fn the_aggregated_document_puts_parts_under_their_resource() {
        let text = &documents(&Fixed)[0];
        let document: Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(document["versions"][0]["resources"][0]["responseKind"]["kind"], "Cake");
        let pods = &document["versions"][1]["resources"][0];
        assert_eq!(pods["resource"], "pods");
        assert_eq!(pods["subresources"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn every_version_has_an_available_service() {
        let services = api_services(&Fixed);
        let names: Vec<_> = services.iter().map(|service| &service["metadata"]["name"]).collect();
        assert_eq!(names, ["v2.cakes.example.com", "v1.cakes.example.com"]);
        assert_eq!(services[0]["status"]["conditions"][0]["status"], "True");
    }
}
