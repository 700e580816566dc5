//! The recorded tables, and what they do not show.

use serde_json::{Value, json};
use steersman_base::{Resource, Scope, Time};

use super::IncludeObject;
use super::duration::human as human_duration;
use crate::recorded::{self, kind_of};
use crate::registry::built_in;

/// Renders objects of a built-in resource, or of a custom one.
fn render(
    group: &str,
    version: &str,
    plural: &str,
    objects: &[&Value],
    metadata: &Value,
    include: IncludeObject,
    now: Time,
) -> Value {
    let is_it =
        |resource: &Resource| (&*resource.group, &*resource.version, &*resource.plural) == (group, version, plural);
    let custom = Resource {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        plural: plural.to_owned().into(),
        kind: "Custom".into(),
        scope: Scope::Namespaced,
    };
    match built_in().iter().find(|row| is_it(&row.resource)) {
        Some(row) => super::render(&row.resource, &row.rules.printer, &[], objects, metadata, include, now),
        None => super::render(&custom, &super::Printer::DEFAULT, &[], objects, metadata, include, now),
    }
}

/// Group, version and resource of a path.
fn resource_of(path: &str) -> (String, String, String) {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let group = if parts.remove(0) == "api" { "" } else { parts.remove(0) };
    let version = parts.remove(0);
    if parts.len() > 2 && parts[0] == "namespaces" {
        parts.drain(..2);
    }
    (group.to_owned(), version.to_owned(), parts[0].to_owned())
}

/// The objects of a recorded table as they were at that time: the last answer about each.
fn objects_before(all: &[recorded::Recorded], index: usize) -> Vec<Value> {
    let rows = all[index].answer["rows"].as_array().expect("a table has rows");
    rows.iter()
        .map(|row| {
            let uid = &row["object"]["metadata"]["uid"];
            let seen = all[..index]
                .iter()
                .rev()
                .find(|recorded| recorded.answer["metadata"]["uid"] == *uid && kind_of(&recorded.answer).2 != "Scale");
            seen.unwrap_or_else(|| panic!("{}: {uid} was not seen before", all[index].id)).answer.clone()
        })
        .collect()
}

#[test]
fn the_recorded_tables_are_equal() {
    let all = recorded::all();
    let mut seen = 0;
    for (index, recorded) in all.iter().enumerate().filter(|(_, recorded)| recorded.id.starts_with("table-")) {
        let (group, version, resource) = resource_of(&recorded.path);
        let mut objects = objects_before(&all, index);
        for (object, row) in objects.iter_mut().zip(recorded.answer["rows"].as_array().expect("rows")) {
            // What changed unseen: the pod was bound, the definition established.
            match object["kind"].as_str() {
                Some("Pod") if object["metadata"]["name"] == "p1" => object["spec"]["nodeName"] = json!("rec-node"),
                Some("CustomResourceDefinition") => {
                    object["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
                }
                _ => {}
            }
            object["metadata"] = row["object"]["metadata"].clone();
        }
        let created = objects[0]["metadata"]["creationTimestamp"].as_str().expect("a time");
        let now = created.parse::<Time>().expect("a time").plus_seconds(6);
        let objects: Vec<&Value> = objects.iter().collect();
        let metadata = &recorded.answer["metadata"];
        let table = render(&group, &version, &resource, &objects, metadata, IncludeObject::Metadata, now);
        assert_eq!(table, recorded.answer, "{}", recorded.id);
        seen += 1;
    }
    assert_eq!(seen, 25);
}

#[test]
fn every_resource_has_as_many_cells_as_columns() {
    for line in include_str!("../../data/table-columns.tsv").lines() {
        let key = line.split('\t').next().expect("a key");
        let parts: Vec<&str> = key.split('/').collect();
        let object = json!({"metadata": {"name": "x"}});
        let table =
            render(parts[0], parts[1], parts[2], &[&object], &json!({}), IncludeObject::None, Time::from_unix(0));
        let cells = table["rows"][0]["cells"].as_array().expect("cells").len();
        let columns = table["columnDefinitions"].as_array().expect("columns").len();
        // Upstream has more cells than columns here.
        let columns = if key.ends_with("/ipaddresses") { columns + 1 } else { columns };
        assert_eq!(cells, columns, "{key}");
    }
}

#[test]
fn durations_have_upstreams_precision() {
    for (seconds, want) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_799, "7h59m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_199, "7d23h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ] {
        assert_eq!(human_duration(seconds), want, "{seconds}");
    }
}

fn cells(group: &str, resource: &str, object: &Value) -> Value {
    let now = "2026-11-15T12:00:00Z".parse().expect("a time");
    render(group, "v1", resource, &[object], &json!({}), IncludeObject::None, now)["rows"][0]["cells"].clone()
}

#[test]
fn a_pods_status_is_what_its_containers_say() {
    let running = json!({"name": "c", "ready": true, "state": {"running": {}}, "restartCount": 0});
    let waiting = |reason: &str| {
        json!({"name": "c", "state": {"waiting": {"reason": reason}}, "restartCount": 3,
        "lastState": {"terminated": {"finishedAt": "2026-11-15T11:58:00Z", "exitCode": 1}}})
    };
    let ended = |code: i64, reason: &str| json!({"name": "c", "state": {"terminated": {"exitCode": code, "reason": reason}}, "restartCount": 0});
    for (name, deleted, spec, status, want) in [
        (
            "running",
            false,
            json!({"containers": [{}]}),
            json!({"phase": "Running", "containerStatuses": [running]}),
            ["1/1", "Running", "0"],
        ),
        (
            "crashing",
            false,
            json!({"containers": [{}]}),
            json!({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}),
            ["0/1", "CrashLoopBackOff", "3 (2m ago)"],
        ),
        (
            "completed",
            false,
            json!({"containers": [{}]}),
            json!({"phase": "Succeeded", "containerStatuses": [ended(0, "Completed")]}),
            ["0/1", "Completed", "0"],
        ),
        (
            "failed without reason",
            false,
            json!({"containers": [{}]}),
            json!({"phase": "Failed", "containerStatuses": [ended(2, "")]}),
            ["0/1", "ExitCode:2", "0"],
        ),
        (
            "one of two completed",
            false,
            json!({"containers": [{}, {}]}),
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [ended(0, "Completed"), running]}),
            ["1/2", "Running", "0"],
        ),
        (
            "one of two completed, not ready",
            false,
            json!({"containers": [{}, {}]}),
            json!({"phase": "Running", "containerStatuses": [ended(0, "Completed"), running]}),
            ["1/2", "NotReady", "0"],
        ),
        (
            "initializing",
            false,
            json!({"containers": [{}], "initContainers": [{"name": "c"}, {"name": "d"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [ended(0, ""), {"name": "d", "state": {"running": {}}}]}),
            ["0/1", "Init:1/2", "0"],
        ),
        (
            "failing to initialize",
            false,
            json!({"containers": [{}], "initContainers": [{"name": "c"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [waiting("CrashLoopBackOff")]}),
            ["0/1", "Init:CrashLoopBackOff", "3 (2m ago)"],
        ),
        (
            "a sidecar",
            false,
            json!({"containers": [{}], "initContainers": [{"name": "c", "restartPolicy": "Always"}]}),
            json!({"phase": "Running", "initContainerStatuses": [{"name": "c", "started": true, "ready": true, "restartCount": 1}], "containerStatuses": [running]}),
            ["2/2", "Running", "1"],
        ),
        (
            "gated",
            false,
            json!({"containers": [{}]}),
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            ["0/1", "SchedulingGated", "0"],
        ),
        (
            "evicted",
            false,
            json!({"containers": [{}]}),
            json!({"phase": "Failed", "reason": "Evicted"}),
            ["0/1", "Evicted", "0"],
        ),
        (
            "terminating",
            true,
            json!({"containers": [{}]}),
            json!({"phase": "Running", "containerStatuses": [running]}),
            ["1/1", "Terminating", "0"],
        ),
        (
            "lost",
            true,
            json!({"containers": [{}]}),
            json!({"phase": "Running", "reason": "NodeLost", "containerStatuses": [running]}),
            ["1/1", "Unknown", "0"],
        ),
    ] {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
        }
        assert_eq!(cells("", "pods", &pod).as_array().expect("cells")[1..4], want.map(Value::from), "{name}");
    }
}

#[test]
fn ended_pods_have_a_row_condition() {
    let pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Succeeded"}});
    let table = render("", "v1", "pods", &[&pod], &json!({}), IncludeObject::Object, Time::from_unix(0));
    assert_eq!(table["rows"][0]["conditions"][0]["reason"], "Succeeded");
    assert_eq!(table["rows"][0]["object"], pod);
}

#[test]
fn cells_of_other_kinds() {
    for (name, group, resource, object, want) in [
        (
            "many endpoints",
            "",
            "endpoints",
            json!({"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 80}, {"port": 443}]}]}),
            json!(["", "1.1.1.1:80,[::1]:80,1.1.1.1:443 + 1 more...", "<unknown>"]),
        ),
        (
            "a ready node",
            "",
            "nodes",
            json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "a"}}, "spec": {"unschedulable": true},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "amd64"}}}),
            json!([
                "",
                "Ready,SchedulingDisabled",
                "a,worker",
                "<unknown>",
                "v1",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "6 (amd64)",
                "<unknown>"
            ]),
        ),
        (
            "a quota",
            "",
            "resourcequotas",
            json!({"status": {"hard": {"pods": "10", "limits.cpu": "2"}, "used": {"pods": "1"}}}),
            json!(["", "pods: 1/10", "limits.cpu: 0/2", "<unknown>"]),
        ),
        (
            "a finished job",
            "batch",
            "jobs",
            json!({"spec": {"parallelism": 3}, "status": {"succeeded": 1, "startTime": "2026-11-15T11:00:00Z", "completionTime": "2026-11-15T11:05:00Z",
                "conditions": [{"type": "Complete", "status": "True"}]}}),
            json!(["", "Complete", "1/1 of 3", "5m", "<unknown>", "", "", "<none>"]),
        ),
        (
            "a new event",
            "events.k8s.io",
            "events",
            json!({"metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p"}, "note": " n ", "reportingController": "c", "reportingInstance": "i",
                "eventTime": "2026-11-15T11:59:00.000000Z", "series": {"count": 4, "lastObservedTime": "2026-11-15T11:59:30.000000Z"}}),
            json!(["30s", "", "", "pod/p", "", "c, i", "n", "60s", 4, "e"]),
        ),
        (
            "a revision",
            "apps",
            "controllerrevisions",
            json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": true}]}, "revision": 3}),
            json!(["", "statefulset.apps/s", 3, "<unknown>"]),
        ),
        (
            "many hosts",
            "networking.k8s.io",
            "ingresses",
            json!({"spec": {"tls": [{}], "rules": [{"host": "a"}, {"host": "b"}, {}, {"host": "c"}, {"host": "d"}]},
                "status": {"loadBalancer": {"ingress": [{"hostname": "z"}, {"ip": "1.1.1.1"}]}}}),
            json!(["", "<none>", "a,b,c + 2 more...", "1.1.1.1,z", "80, 443", "<unknown>"]),
        ),
        (
            "a selector with expressions",
            "apps",
            "replicasets",
            json!({"spec": {"selector": {"matchLabels": {"b": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "DoesNotExist"}]}}}),
            json!(["", 0, 0, 0, "<unknown>", "", "", "a in (x,y),b=1,!c"]),
        ),
        (
            "a custom resource",
            "example.com",
            "widgets",
            json!({"metadata": {"name": "w", "creationTimestamp": "2026-11-15T11:00:00Z"}}),
            json!(["w", "60m"]),
        ),
        (
            "a kind without a printer",
            "",
            "limitranges",
            json!({"metadata": {"name": "l", "creationTimestamp": "2026-11-15T11:00:00Z"}}),
            json!(["l", "2026-11-15T11:00:00Z"]),
        ),
    ] {
        assert_eq!(cells(group, resource, &object), want, "{name}");
    }
}

#[test]
fn the_default_storage_class_is_marked_in_lists() {
    let class = |name: &str, created: &str| {
        json!({"metadata": {"name": name, "creationTimestamp": created,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}})
    };
    let classes =
        [class("a", "2026-11-15T11:00:00Z"), class("c", "2026-11-15T12:00:00Z"), class("b", "2026-11-15T12:00:00Z")];
    let classes: Vec<&Value> = classes.iter().collect();
    let table = |metadata: Value, objects: &[&Value]| {
        render("storage.k8s.io", "v1", "storageclasses", objects, &metadata, IncludeObject::None, Time::from_unix(0))
    };
    let names: Vec<Value> = table(json!({}), &classes)["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["cells"][0].clone())
        .collect();
    assert_eq!(names, ["a", "c", "b (default)"]);
    assert_eq!(table(json!({"name": "b"}), &classes[2..])["rows"][0]["cells"][0], "b");
}
