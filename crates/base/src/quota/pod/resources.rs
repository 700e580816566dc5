//! The requests and limits of a whole pod.
//!
//! Containers and sidecars run together; an init container runs with the sidecars before it. A pod needs the most of these,
//! and its overhead. While a change of resources is under way, it is charged for the most of what it asks for and of what
//! its node reports.
//!
//! Follows `component-helpers/resource/helpers.go` of Kubernetes 1.37.1.

use super::{Amounts, Container, ContainerStatus, Pod, is_pod_level};
use crate::quota::amounts::{add, raise};

/// Returns the amounts of a container that are summed.
type Of<'a> = dyn Fn(&'a Container, Option<&'a ContainerStatus>) -> Option<&'a Amounts> + 'a;

// === impl Pod ===

impl Pod {
    /// Returns the requests of the pod, with its overhead.
    #[must_use]
    pub fn requests(&self) -> Amounts {
        let is_infeasible = self.status.is_resize_infeasible;
        let allocated = self.most(&|container, status| {
            let asked = (!is_infeasible).then_some(&container.resources.requests);
            granted(status).or(asked)
        });
        let actual = self.most(&|container, status| {
            let asked = (!is_infeasible).then_some(&container.resources.requests);
            let reported = status.and_then(|status| status.resources.as_ref()).map(|resources| &resources.requests);
            reported.filter(|amounts| !amounts.is_empty()).or_else(|| granted(status)).or(asked)
        });
        let mut requests = if is_infeasible { Amounts::new() } else { self.requested() };
        raise(&mut requests, &actual);
        raise(&mut requests, &allocated);
        apply_pod_level(&mut requests, &self.spec.resources.requests);
        add(&mut requests, &self.spec.overhead);
        requests
    }

    /// Returns the limits of the pod, with its overhead where there is a limit.
    #[must_use]
    pub fn limits(&self) -> Amounts {
        let is_infeasible = self.status.is_resize_infeasible;
        let actual = self.most(&|container, status| {
            let reported = status.and_then(|status| status.resources.as_ref()).map(|resources| &resources.limits);
            let asked = (!is_infeasible).then_some(&container.resources.limits);
            reported.filter(|amounts| !amounts.is_empty()).or(asked)
        });
        let mut limits = if is_infeasible { Amounts::new() } else { self.limited() };
        raise(&mut limits, &actual);
        apply_pod_level(&mut limits, &self.spec.resources.limits);
        for (name, overhead) in &self.spec.overhead {
            if let Some(limit) = limits.get_mut(name).filter(|limit| !limit.is_zero()) {
                *limit += *overhead;
            }
        }
        limits
    }

    /// Returns the requests of the pod as its spec has them, with its overhead: what a node must have for it.
    #[must_use]
    pub fn requests_of_spec(&self) -> Amounts {
        let mut requests = self.requested();
        apply_pod_level(&mut requests, &self.spec.resources.requests);
        add(&mut requests, &self.spec.overhead);
        requests
    }

    /// Returns the requests of the containers, as the spec has them.
    pub(in crate::quota) fn requested(&self) -> Amounts {
        self.most(&|container, _| Some(&container.resources.requests))
    }

    /// Returns the limits of the containers, as the spec has them.
    pub(in crate::quota) fn limited(&self) -> Amounts {
        self.most(&|container, _| Some(&container.resources.limits))
    }

    /// Returns the most that the containers need at a time.
    fn most<'a>(&'a self, of: &Of<'a>) -> Amounts {
        let amounts = |container: &'a Container| of(container, self.status_of(&container.name));
        let mut together = Amounts::new();
        for container in &self.spec.containers {
            amounts(container).into_iter().for_each(|more| add(&mut together, more));
        }
        let mut sidecars = Amounts::new();
        let mut starting = Amounts::new();
        for container in &self.spec.init_containers {
            let own = amounts(container);
            if container.is_sidecar() {
                if let Some(more) = own {
                    add(&mut together, more);
                    add(&mut sidecars, more);
                }
                raise(&mut starting, &sidecars);
            } else {
                let mut with_sidecars = own.cloned().unwrap_or_default();
                add(&mut with_sidecars, &sidecars);
                raise(&mut starting, &with_sidecars);
            }
        }
        raise(&mut together, &starting);
        together
    }

    fn status_of(&self, name: &str) -> Option<&ContainerStatus> {
        let mut statuses = self.status.container_statuses.iter().chain(&self.status.init_container_statuses);
        statuses.find(|status| status.name == *name)
    }
}

// === impl Container ===

impl Container {
    fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }
}

/// Returns the requests that the node has granted, if it reported them.
fn granted(status: Option<&ContainerStatus>) -> Option<&Amounts> {
    status.map(|status| &status.allocated_resources).filter(|amounts| !amounts.is_empty())
}

/// Replaces amounts by those of the whole pod.
fn apply_pod_level(amounts: &mut Amounts, of_pod: &Amounts) {
    for (name, quantity) in of_pod.iter().filter(|(name, _)| is_pod_level(name)) {
        amounts.insert(name.clone(), *quantity);
    }
}
