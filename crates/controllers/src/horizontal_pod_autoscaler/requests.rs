//! Pure: the requested amount of a resource, per pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, Quantity};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::core::pod::Container;

/// Returns the requests of the pods in thousandths, by name: of one container, or of the whole pod. A request at pod level
/// goes before those of the containers.
pub(super) fn requests(
    pods: &[Arc<PodView>],
    container: Option<&str>,
    resource: &str,
    pod_level: bool,
) -> Result<BTreeMap<Istr, i64>, String> {
    let each = pods.iter().map(|pod| {
        let request = if pod_level && container.is_none() && has_pod_level_requests(pod) {
            of_pod(pod, resource)
        } else {
            of_containers(pod, container, resource)
        };
        Ok((pod.meta().name.clone(), request?))
    });
    each.collect()
}

fn has_pod_level_requests(pod: &PodView) -> bool {
    pod.spec.shared.resources.requests.iter().any(|(name, _)| is_pod_level(name))
}

/// Whether a request of this resource can be made for a whole pod.
fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy == "Always"
}

/// Returns the request of a pod with requests at pod level: that one, else what its containers need at most, and its overhead.
fn of_pod(pod: &PodView, resource: &str) -> Result<i64, String> {
    let spec = &pod.spec.shared;
    let own = spec.resources.requests.get(resource).filter(|_| is_pod_level(resource)).copied();
    let overhead = spec.overhead.get(resource).copied();
    let request = match (own.or_else(|| at_most(pod, resource)), overhead) {
        (None, None) => return Err(format!("missing pod-level request for {resource} in Pod {}", pod.meta().name)),
        (request, overhead) => request.unwrap_or_default() + overhead.unwrap_or_default(),
    };
    Ok(request.milli_value())
}

/// Returns what the containers of a pod need at most: the containers and sidecars together, or an init container and the
/// sidecars before it.
fn at_most(pod: &PodView, resource: &str) -> Option<Quantity> {
    let of = |container: &Container| container.resources.requests.get(resource).copied();
    let add = |sum: Option<Quantity>, more: Option<Quantity>| match (sum, more) {
        (Some(sum), Some(more)) => Some(sum + more),
        (sum, more) => sum.or(more),
    };
    let spec = &pod.spec.shared;
    let mut running = spec.containers.iter().map(of).fold(None, add);
    let mut sidecars = None;
    let mut starting = None;
    for container in &spec.init_containers {
        if is_sidecar(container) {
            sidecars = add(sidecars, of(container));
            running = add(running, of(container));
            starting = starting.max(sidecars);
        } else {
            starting = starting.max(add(sidecars, of(container)));
        }
    }
    running.max(starting)
}

/// Returns the sum over the containers and sidecars, all of which must have a request; or the request of one of them.
fn of_containers(pod: &PodView, only: Option<&str>, resource: &str) -> Result<i64, String> {
    let spec = &pod.spec.shared;
    let sidecars = spec.init_containers.iter().filter(|container| is_sidecar(container));
    let mut sum = 0_i64;
    for container in spec.containers.iter().chain(sidecars) {
        if only.is_some_and(|only| container.name != only) {
            continue;
        }
        let Some(request) = container.resources.requests.get(resource) else {
            let pod = &pod.meta().name;
            return Err(format!("missing request for {resource} in container {} of Pod {pod}", container.name));
        };
        sum = sum.saturating_add(request.milli_value());
        if only.is_some() {
            return Ok(sum);
        }
    }
    match only {
        Some(only) => Err(format!("container {only} not found in Pod {}", pod.meta().name)),
        None => Ok(sum),
    }
}
