//! Pure: the groups, versions and resources of the metrics APIs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_base::aggregated::AggregatedVersion;

use super::api::World;
use super::path::{CUSTOM, EXTERNAL, USAGE};
use super::script::Subject;
use super::usage;

/// Returns the versions, the preferred one of a group first.
pub(super) fn versions(world: &World) -> Vec<AggregatedVersion> {
    let usage = |name: &str, kind: &str, namespaced: bool| {
        let verbs = ["get", "list"];
        json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs})
    };
    let usage = vec![usage("nodes", "NodeMetrics", false), usage("pods", "PodMetrics", true)];
    let version = |group: &str, version: &str, resources: Vec<Value>| AggregatedVersion {
        group: group.to_owned(),
        version: version.to_owned(),
        resources,
    };
    let custom = custom(world);
    vec![
        version(USAGE, "v1beta1", usage),
        version(CUSTOM, "v1beta2", custom.clone()),
        version(CUSTOM, "v1beta1", custom),
        version(EXTERNAL, "v1beta1", external(world)),
    ]
}

/// Returns `/apis/<group>`.
pub(super) fn group(world: &World, group: &str) -> Option<Value> {
    let versions = versions(world).into_iter().filter(|held| held.group == group);
    let entry =
        |held: AggregatedVersion| json!({"groupVersion": format!("{group}/{}", held.version), "version": held.version});
    let versions: Vec<Value> = versions.map(entry).collect();
    let preferred = versions.first()?.clone();
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions, "preferredVersion": preferred,
    }))
}

/// Returns `/apis/<group>/<version>`.
pub(super) fn resources(world: &World, group: &str, version: &str) -> Option<Value> {
    let found = versions(world).into_iter().find(|held| held.group == group && held.version == version)?;
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"),
        "resources": found.resources,
    }))
}

/// Returns the metrics of objects, as `<resource>/<metric>`.
fn custom(world: &World) -> Vec<Value> {
    let of_pods = world.pods.iter().flat_map(|pod| usage::metrics_of(pod).map(|(metric, _)| format!("pods/{metric}")));
    let mut names: BTreeSet<String> = of_pods.collect();
    names.extend(world.all_series().filter_map(|series| match &series.subject {
        Subject::Object { resource, .. } => Some(format!("{resource}/{}", series.metric)),
        Subject::External => None,
    }));
    let resource = |name: &String| {
        // Metrics of namespaces are not within one.
        let namespaced = !name.starts_with("namespaces/");
        json!({
            "name": name, "singularName": "", "namespaced": namespaced, "kind": "MetricValueList", "verbs": ["get"],
        })
    };
    names.iter().map(resource).collect()
}

fn external(world: &World) -> Vec<Value> {
    let series = world.all_series().filter(|series| series.subject == Subject::External);
    let names: BTreeSet<String> = series.map(|series| series.metric).collect();
    let resource = |name: &String| {
        json!({
            "name": name, "singularName": "", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": ["get"],
        })
    };
    names.iter().map(resource).collect()
}
