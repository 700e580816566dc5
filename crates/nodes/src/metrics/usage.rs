//! Pure: how much CPU and memory a pod uses.

use steersman_base::quantity::Format;
use steersman_base::{Istr, Quantity};

use super::script::Script;
use crate::view::{Container, PREFIX, SimPodView};

/// The annotations, and the resources that they set.
const ANNOTATIONS: [(&str, &str); 2] = [("cpu-usage", "cpu"), ("memory-usage", "memory")];
/// The prefix of the annotations that are custom metrics.
pub(super) const METRIC: &str = "metric.";

/// The usage of a container without a request: something that is visible, and little.
const MILLI_CPU: i64 = 10;
const MEMORY: i64 = 20 << 20;

/// The usage of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) container: Istr,
    pub(super) cpu: Quantity,
    pub(super) memory: Quantity,
}

/// Whether an annotation, without its prefix, sets a usage or a metric; and what is wrong with its value.
pub(crate) fn is_usage(name: &str, value: &str) -> Option<Result<(), &'static str>> {
    let what = name.split('.').next().unwrap_or(name);
    let is_ours = name.starts_with(METRIC) || ANNOTATIONS.iter().any(|(annotation, _)| *annotation == what);
    let problem = "is no quantity; write one as 42, 500m or 64Mi";
    is_ours.then(|| value.parse::<Quantity>().map(drop).map_err(|_| problem))
}

/// Returns the usage of each running container of a pod. None if it does not run, or if nobody says what it uses.
pub(super) fn of_pod(pod: &SimPodView, script: &Script) -> Vec<Used> {
    if pod.status.phase != "Running" {
        return Vec::new();
    }
    let statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    let running: Vec<&Istr> = statuses.filter(|it| it.state.running.is_some()).map(|it| &it.name).collect();
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    let containers = pod.spec.containers.iter().chain(sidecars).filter(|it| running.contains(&&it.name));
    containers.filter_map(|container| of_container(pod, container, script)).collect()
}

fn of_container(pod: &SimPodView, container: &Container, script: &Script) -> Option<Used> {
    let of = |cpu, memory| Some(Used { container: container.name.clone(), cpu, memory });
    if let Some((cpu, memory)) = script.usage.get(&pod.metadata.key()) {
        return of(*cpu, *memory);
    }
    let [cpu, memory] = ANNOTATIONS.map(|(annotation, _)| annotated(pod, annotation, &container.name));
    if script.no_defaults && cpu.is_none() && memory.is_none() {
        return None;
    }
    let [by_cpu, by_memory] = by_requests(container);
    of(cpu.unwrap_or(by_cpu), memory.unwrap_or(by_memory))
}

/// Returns the usage that an annotation sets for a container, or for all.
fn annotated(pod: &SimPodView, annotation: &str, container: &str) -> Option<Quantity> {
    let annotations = &pod.metadata.annotations;
    let own = annotations.get(&format!("{PREFIX}{annotation}.{container}"));
    own.or_else(|| annotations.get(&format!("{PREFIX}{annotation}")))?.parse().ok()
}

/// Returns half of what a container requests: an autoscaler with the usual targets leaves it alone.
fn by_requests(container: &Container) -> [Quantity; 2] {
    let requests = &container.resources.requests;
    let cpu = requests.get("cpu").map_or(MILLI_CPU, |cpu| cpu.milli_value() / 2);
    let memory = requests.get("memory").map_or(MEMORY, |memory| memory.value() / 2);
    [Quantity::from_milli(cpu, Format::DecimalSi), Quantity::new(memory, Format::BinarySi)]
}

/// Index function: whether the annotations of a pod set custom metrics.
pub(super) fn with_metrics(pod: &SimPodView) -> Option<()> {
    metrics_of(pod).next().map(drop)
}

/// Returns the custom metrics of a pod that its annotations set: names and values.
pub(super) fn metrics_of(pod: &SimPodView) -> impl Iterator<Item = (&str, Quantity)> {
    pod.metadata.annotations.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix(PREFIX)?.strip_prefix(METRIC)?;
        Some((name, value.parse().ok()?))
    })
}
