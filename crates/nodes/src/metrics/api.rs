//! Pure: responses to requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{FieldSelector, Meta, Quantity, Selector, StringMap, Time};
use steersman_model::core::{ConfigMapView, NodeView};

use super::path::{self, Asked, CUSTOM, EXTERNAL, USAGE};
use super::script::{self, Script, Series, Subject};
use super::usage::{self, Used};
use super::{CONFIG_MAP, discovery};
use crate::view::{PREFIX, SimPodView};

/// The state of the cluster that responses are computed from.
#[derive(Default)]
pub(super) struct World {
    /// The pods on simulated nodes, as far as the request needs them ([`Asked::pods`]).
    pub(super) pods: Vec<Arc<SimPodView>>,
    /// The simulated nodes, if the request needs them.
    pub(super) nodes: Vec<Arc<NodeView>>,
    pub(super) config_maps: Vec<Arc<ConfigMapView>>,
    pub(super) script: Arc<Script>,
    pub(super) now: Time,
}

/// The time that a usage is an average of. It is short, so that an autoscaler believes the first reading of a new pod.
const WINDOW: &str = "1s";

type Response = (u16, Value);

// === impl World ===

impl World {
    /// Returns the scripted values that can be read, wherever they are set.
    pub(super) fn all_series(&self) -> impl Iterator<Item = Series> {
        let parsed = self.config_maps.iter().filter_map(|held| script::parse(held).ok()).flatten();
        self.script.series.iter().cloned().chain(parsed)
    }

    /// Returns the scripted values of a namespace. Those that a test has set replace those of a ConfigMap.
    fn series(&self, namespace: &str) -> Result<Vec<Series>, String> {
        let mut all = Script::default();
        for held in self.config_maps.iter().filter(|held| held.metadata.namespace == namespace) {
            script::parse(held)?.into_iter().for_each(|series| all.set(series));
        }
        let own = self.script.series.iter().filter(|series| series.namespace == namespace);
        own.cloned().for_each(|series| all.set(series));
        Ok(all.series)
    }
}

/// Responds to a request.
pub(super) fn get(world: &World, asked: &Asked, query: &str) -> Response {
    let outcome = match asked {
        Asked::Group(group) => discovery::group(world, group).ok_or_else(no_path),
        Asked::Version(group, version) => discovery::resources(world, group, version).ok_or_else(no_path),
        Asked::Pods { namespace, name } => pods(world, namespace.as_deref(), name.as_deref(), query),
        Asked::Nodes { name } => nodes(world, name.as_deref(), query),
        Asked::Custom { version, namespace, resource, name, metric } => {
            custom(world, version, namespace, (resource, name), metric, query)
        }
        Asked::External { namespace, metric } => external(world, namespace, metric, query),
        Asked::Unknown => Err(no_path()),
    };
    outcome.map_or_else(|failure| failure, |found| (200, found))
}

fn pods(world: &World, namespace: Option<&str>, name: Option<&str>, query: &str) -> Result<Value, Response> {
    let metrics = |pod: &SimPodView| {
        let used = usage::of_pod(pod, &world.script);
        let containers: Vec<Value> =
            used.iter().map(|it| json!({"name": it.container, "usage": amounts(it.cpu, it.memory)})).collect();
        (!containers.is_empty()).then(|| {
            json!({
                "metadata": metadata(&pod.metadata, world.now), "timestamp": world.now, "window": WINDOW,
                "containers": containers,
            })
        })
    };
    let is_in = |pod: &SimPodView| namespace.is_none_or(|namespace| pod.metadata.namespace == namespace);
    if let Some(name) = name {
        let pod = world.pods.iter().find(|pod| is_in(pod) && pod.metadata.name == name);
        let found = pod.and_then(|pod| metrics(pod)).ok_or_else(|| not_found("podmetrics", name))?;
        return Ok(object("PodMetrics", found));
    }
    let chosen = Chosen::read(query)?;
    let pods = world.pods.iter().filter(|pod| is_in(pod) && chosen.has(&pod.metadata));
    Ok(list("PodMetricsList", &pods.filter_map(|pod| metrics(pod)).collect::<Vec<_>>()))
}

fn nodes(world: &World, name: Option<&str>, query: &str) -> Result<Value, Response> {
    let mut by_node: BTreeMap<&str, Vec<Used>> = BTreeMap::new();
    for pod in &world.pods {
        by_node.entry(pod.spec.node_name.as_str()).or_default().extend(usage::of_pod(pod, &world.script));
    }
    let metrics = |node: &NodeView| {
        let used = by_node.get(node.metadata.name.as_str()).map_or(&[][..], Vec::as_slice);
        let said = |what: &str| node.metadata.annotations.get(&format!("{PREFIX}{what}"))?.parse::<Quantity>().ok();
        let cpu = said("cpu-usage").unwrap_or_else(|| used.iter().map(|it| it.cpu).sum());
        let memory = said("memory-usage").unwrap_or_else(|| used.iter().map(|it| it.memory).sum());
        json!({
            "metadata": metadata(&node.metadata, world.now), "timestamp": world.now, "window": WINDOW,
            "usage": amounts(cpu, memory),
        })
    };
    if let Some(name) = name {
        let node = world.nodes.iter().find(|node| node.metadata.name == name);
        return Ok(object("NodeMetrics", metrics(node.ok_or_else(|| not_found("nodemetrics", name))?)));
    }
    let chosen = Chosen::read(query)?;
    let nodes = world.nodes.iter().filter(|node| chosen.has(&node.metadata));
    Ok(list("NodeMetricsList", &nodes.map(|node| metrics(node)).collect::<Vec<_>>()))
}

/// Returns the values of a custom metric: of one object, or of all (`*`), where the label selector chooses pods.
fn custom(
    world: &World,
    version: &str,
    namespace: &str,
    (resource, name): (&str, &str),
    metric: &str,
    query: &str,
) -> Result<Value, Response> {
    let chosen = Chosen::read(query)?;
    let is_wanted = |candidate: &str| name == "*" || candidate == name;
    let series = world.series(namespace).map_err(|problem| unreadable(&problem))?;
    let scripted = series.iter().filter_map(|series| match &series.subject {
        Subject::Object { resource: of, name } if of == resource && series.metric == metric && is_wanted(name) => {
            Some((name.clone(), series.value))
        }
        _ => None,
    });
    let mut values: Vec<(String, Quantity)> = scripted.collect();
    if resource == "pods" {
        let pods = world.pods.iter().filter(|pod| pod.metadata.namespace == namespace && !pod.is_over());
        let is_chosen =
            |candidate: &str| pods.clone().any(|pod| pod.metadata.name == candidate && chosen.has(&pod.metadata));
        if name == "*" {
            values.retain(|(candidate, _)| is_chosen(candidate));
        }
        for pod in
            pods.clone().filter(|pod| is_wanted(&pod.metadata.name) && (name != "*" || chosen.has(&pod.metadata)))
        {
            let is_set = values.iter().any(|(held, _)| pod.metadata.name == held.as_str());
            let said = usage::metrics_of(pod).find(|(said, _)| *said == metric);
            if let (false, Some((_, value))) = (is_set, said) {
                values.push((pod.metadata.name.to_string(), value));
            }
        }
    }
    if values.is_empty() && name != "*" {
        let message = format!("the server could not find the metric {metric} for {resource} {name}");
        return Err(failure(404, "NotFound", &message));
    }
    values.sort_by(|(left, _), (right, _)| left.cmp(right));
    let items =
        values.iter().map(|(name, value)| metric_value(world, version, namespace, (resource, name), metric, *value));
    let items: Vec<Value> = items.collect();
    Ok(json!({
        "kind": "MetricValueList", "apiVersion": format!("{CUSTOM}/{version}"), "metadata": {}, "items": items,
    }))
}

fn metric_value(
    world: &World,
    version: &str,
    namespace: &str,
    (resource, name): (&str, &str),
    metric: &str,
    value: Quantity,
) -> Value {
    let mut described = json!({"kind": kind_of(resource), "name": name});
    if resource == "pods" {
        described["apiVersion"] = "v1".into();
    }
    if resource != "namespaces" {
        described["namespace"] = namespace.into();
    }
    let mut item = json!({"describedObject": described, "timestamp": world.now, "value": value.to_string()});
    match version {
        "v1beta1" => item["metricName"] = metric.into(),
        _ => item["metric"] = json!({"name": metric}),
    }
    item
}

/// Returns the kind of a resource, as far as its name shows it: clients do not read it.
fn kind_of(resource: &str) -> String {
    let plural = resource.split('.').next().unwrap_or(resource);
    let single = match plural.strip_suffix("sses") {
        Some(stem) => format!("{stem}ss"),
        None => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    let mut letters = single.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn external(world: &World, namespace: &str, metric: &str, query: &str) -> Result<Value, Response> {
    let chosen = Chosen::read(query)?;
    let series = world.series(namespace).map_err(|problem| unreadable(&problem))?;
    let series = series.iter().filter(|series| series.subject == Subject::External && series.metric == metric);
    let items = series.filter(|series| chosen.labels.matches(&series.labels)).map(|series| {
        json!({
            "metricName": metric, "metricLabels": labels(&series.labels), "timestamp": world.now,
            "value": series.value.to_string(),
        })
    });
    let items: Vec<Value> = items.collect();
    Ok(json!({
        "kind": "ExternalMetricValueList", "apiVersion": format!("{EXTERNAL}/v1beta1"), "metadata": {}, "items": items,
    }))
}

/// The selectors of a request.
struct Chosen {
    labels: Selector,
    fields: FieldSelector,
}

// === impl Chosen ===

impl Chosen {
    fn read(query: &str) -> Result<Self, Response> {
        let bad = |error: &dyn std::fmt::Display| failure(400, "BadRequest", &error.to_string());
        let labels = path::parameter(query, "labelSelector").parse::<Selector>().map_err(|error| bad(&error))?;
        let fields = path::parameter(query, "fieldSelector").parse::<FieldSelector>().map_err(|error| bad(&error))?;
        Ok(Self { labels, fields })
    }

    fn has(&self, meta: &Meta) -> bool {
        let field = |name: &str| match name {
            "metadata.name" => meta.name.clone(),
            "metadata.namespace" => meta.namespace.clone(),
            _ => Default::default(),
        };
        self.labels.matches(&meta.labels) && self.fields.matches(field)
    }
}

fn amounts(cpu: Quantity, memory: Quantity) -> Value {
    json!({"cpu": cpu.to_string(), "memory": memory.to_string()})
}

fn labels(labels: &StringMap) -> Value {
    labels.iter().map(|(key, value)| (key.to_string(), Value::from(value.as_str()))).collect()
}

fn metadata(of: &Meta, now: Time) -> Value {
    let mut metadata = json!({"name": of.name, "creationTimestamp": now});
    if !of.namespace.is_empty() {
        metadata["namespace"] = of.namespace.as_str().into();
    }
    if !of.labels.is_empty() {
        metadata["labels"] = labels(&of.labels);
    }
    metadata
}

fn object(kind: &str, mut object: Value) -> Value {
    object["kind"] = kind.into();
    object["apiVersion"] = format!("{USAGE}/v1beta1").into();
    object
}

fn list(kind: &str, items: &[Value]) -> Value {
    object(kind, json!({"metadata": {}, "items": items}))
}

fn no_path() -> Response {
    failure(404, "NotFound", "the server could not find the requested resource")
}

fn not_found(resource: &str, name: &str) -> Response {
    let (code, mut status) = failure(404, "NotFound", &format!("{resource}.{USAGE} {name:?} not found"));
    status["details"] = json!({"name": name, "group": USAGE, "kind": resource});
    (code, status)
}

fn unreadable(problem: &str) -> Response {
    failure(500, "InternalError", &format!("the {CONFIG_MAP} cannot be read: {problem}"))
}

fn failure(code: u16, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "code": code,
    });
    (code, status)
}
