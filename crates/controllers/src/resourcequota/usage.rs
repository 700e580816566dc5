//! Pure: what the objects of a namespace use.
//!
//! Pods of one template in the same state are counted together: their usage is computed once.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use steersman_base::quota::claims::{
    ClaimMeta, DeviceClaimSpec, DeviceKind, DeviceRequest, Devices, ModifyVolumeStatus, Requests, VolumeClaimSpec,
    VolumeClaimStatus,
};
use steersman_base::quota::pod::{Container, ContainerStatus, PodMeta, PodSpec, PodStatus, Resources};
use steersman_base::quota::service::{ServicePort, ServiceSpec};
use steersman_base::quota::{Amounts, DeviceClaim, Facts, Pod, Requirement, Service, Subject, VolumeClaim, amounts};
use steersman_base::{Istr, Meta, Time};
use steersman_model::View;
use steersman_model::core::pod::{
    Container as ContainerView, ContainerStatus as StatusView, Resources as ResourcesView,
};
use steersman_model::core::{PersistentVolumeClaimView, PodView, ResourceQuotaView, ServiceView};
use steersman_model::resource::{DeviceSubRequest, ExactDeviceRequest, ResourceClaimView};
use steersman_model::wire::Quantities;

/// The facts that a pod's usage depends on: pods that have this in common use the same. Shared parts are compared by
/// their place in memory.
#[derive(PartialEq, Eq, Hash)]
struct Kind<'a> {
    spec: usize,
    statuses: usize,
    init_statuses: usize,
    qos: &'a Istr,
    is_charged: bool,
    is_infeasible: bool,
}

/// Returns what pods use together, of those that are in all scopes.
#[doc(hidden)]
#[must_use]
pub fn of_pods(pods: &[Arc<PodView>], scopes: &[Requirement], pod_level: bool, now: Time) -> Amounts {
    let mut places: HashMap<Kind<'_>, usize, RandomState> = HashMap::default();
    let mut kinds: Vec<(&PodView, i64)> = Vec::new();
    for pod in pods {
        let at = *places.entry(kind(pod, now)).or_insert(kinds.len());
        match kinds.get_mut(at) {
            Some((_, count)) => *count += 1,
            None => kinds.push((pod, 1)),
        }
    }
    let mut used = Amounts::new();
    for (view, count) in kinds {
        let pod = pod(view, pod_level);
        if scopes.iter().all(|scope| pod.is_in(scope)) {
            let all = pod.usage(now).into_iter().map(|(name, quantity)| (name, quantity * count)).collect();
            amounts::add(&mut used, &all);
        }
    }
    used
}

fn kind(pod: &PodView, now: Time) -> Kind<'_> {
    let has_ended = matches!(&*pod.status.phase, "Failed" | "Succeeded");
    Kind {
        spec: std::ptr::from_ref(&*pod.spec.shared).addr(),
        statuses: pod.status.container_statuses.as_ptr().addr(),
        init_statuses: pod.status.init_container_statuses.as_ptr().addr(),
        qos: &pod.status.qos_class,
        is_charged: !has_ended && pod_meta(pod).charged_until().is_none_or(|end| now <= end),
        is_infeasible: is_infeasible(pod),
    }
}

/// Returns what objects use together, of those that are in all scopes.
pub(super) fn of(subjects: impl Iterator<Item = Subject>, scopes: &[Requirement], facts: Facts<'_>) -> Amounts {
    let mut used = Amounts::new();
    for subject in subjects.filter(|subject| scopes.iter().all(|scope| subject.is_in(scope))) {
        amounts::add(&mut used, &subject.usage(facts));
    }
    used
}

/// Returns the scopes of a quota.
pub(super) fn scopes(quota: &ResourceQuotaView) -> Vec<Requirement> {
    let named = quota.spec.scopes.iter().map(Requirement::exists);
    let selector = quota.spec.scope_selector.iter().flat_map(|selector| &selector.match_expressions);
    let selected = selector.map(|requirement| Requirement {
        scope_name: requirement.scope_name.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.to_vec(),
    });
    named.chain(selected).collect()
}

/// Returns quantities by name.
pub(super) fn amounts_of(quantities: &Quantities) -> Amounts {
    quantities.iter().map(|(name, quantity)| (name.clone(), *quantity)).collect()
}

pub(super) fn pod_meta(pod: &PodView) -> PodMeta {
    PodMeta {
        deletion_timestamp: pod.meta().deletion_timestamp(),
        deletion_grace_period_seconds: pod.meta().deletion_grace_period_seconds(),
    }
}

fn is_infeasible(pod: &PodView) -> bool {
    let pending = pod.status.conditions.get("PodResizePending");
    pending.is_some_and(|condition| *condition.reason == "Infeasible")
}

/// Returns the part of a pod that quotas read; without its resources at pod level, if they do not count.
pub(super) fn pod(view: &PodView, pod_level: bool) -> Pod {
    let spec = &*view.spec.shared;
    Pod {
        metadata: pod_meta(view),
        spec: PodSpec {
            containers: spec.containers.iter().map(container).collect(),
            init_containers: spec.init_containers.iter().map(container).collect(),
            overhead: amounts_of(&spec.overhead),
            resources: if pod_level { resources(&spec.resources) } else { Resources::default() },
            active_deadline_seconds: spec.has_active_deadline.then_some(0),
            priority_class_name: spec.priority_class_name.clone(),
            has_cross_namespace_affinity: spec.has_cross_namespace_affinity,
        },
        status: PodStatus {
            phase: view.status.phase.clone(),
            qos_class: view.status.qos_class.clone(),
            container_statuses: view.status.container_statuses.iter().map(status).collect(),
            init_container_statuses: view.status.init_container_statuses.iter().map(status).collect(),
            is_resize_infeasible: is_infeasible(view),
        },
    }
}

fn container(view: &ContainerView) -> Container {
    Container {
        name: view.name.clone(),
        restart_policy: view.restart_policy.clone(),
        resources: resources(&view.resources),
    }
}

fn resources(view: &ResourcesView) -> Resources {
    Resources { requests: amounts_of(&view.requests), limits: amounts_of(&view.limits) }
}

fn status(view: &StatusView) -> ContainerStatus {
    ContainerStatus {
        name: view.name.clone(),
        allocated_resources: amounts_of(&view.allocated_resources),
        resources: view.resources.as_deref().map(resources),
    }
}

pub(super) fn service(view: &ServiceView) -> Service {
    let port = |port: &steersman_model::core::ServicePort| ServicePort { node_port: port.node_port };
    Service {
        spec: ServiceSpec {
            type_: view.spec.type_.clone(),
            allocate_load_balancer_node_ports: view.spec.allocate_load_balancer_node_ports,
            ports: view.spec.ports.iter().map(port).collect(),
        },
    }
}

pub(super) fn volume_claim(view: &PersistentVolumeClaimView) -> VolumeClaim {
    let status = &view.status;
    VolumeClaim {
        metadata: claim_meta(view.meta()),
        spec: VolumeClaimSpec {
            resources: Requests { requests: amounts_of(&view.spec.resources.requests) },
            storage_class_name: view.spec.storage_class_name.clone(),
            volume_attributes_class_name: view.spec.volume_attributes_class_name.clone(),
        },
        status: VolumeClaimStatus {
            allocated_resources: amounts_of(&status.allocated_resources),
            current_volume_attributes_class_name: status.current_volume_attributes_class_name.clone(),
            modify_volume_status: ModifyVolumeStatus {
                target_volume_attributes_class_name: status
                    .modify_volume_status
                    .target_volume_attributes_class_name
                    .clone(),
            },
        },
    }
}

fn claim_meta(meta: &Meta) -> ClaimMeta {
    ClaimMeta {
        name: meta.name.clone(),
        annotations: meta.annotations.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        owner_references: meta.owner_references.to_vec(),
        creation_timestamp: meta.creation_timestamp,
    }
}

pub(super) fn device_claim(view: &ResourceClaimView) -> DeviceClaim {
    let exactly = |kind: &ExactDeviceRequest| DeviceKind {
        device_class_name: kind.device_class_name.clone(),
        allocation_mode: kind.allocation_mode.clone(),
        count: kind.count,
    };
    let one_of = |kind: &DeviceSubRequest| DeviceKind {
        device_class_name: kind.device_class_name.clone(),
        allocation_mode: kind.allocation_mode.clone(),
        count: kind.count,
    };
    let requests = view.spec.devices.requests.iter().map(|request| DeviceRequest {
        exactly: request.exactly.as_ref().map(exactly),
        first_available: request.first_available.iter().map(one_of).collect(),
    });
    DeviceClaim {
        metadata: claim_meta(view.meta()),
        spec: DeviceClaimSpec { devices: Devices { requests: requests.collect() } },
    }
}

/// Returns the claims of a namespace, each with the usage of the pod that is charged for it, if one is.
pub(super) fn device_claims(
    views: &[Arc<ResourceClaimView>],
    pod_named: impl Fn(&str) -> Option<Arc<PodView>>,
    now: Time,
) -> Vec<Subject> {
    let claims: Vec<DeviceClaim> = views.iter().map(|view| device_claim(view)).collect();
    let charged = |claim: &DeviceClaim| -> Amounts {
        let Some(owner) = claim.pod() else { return Amounts::new() };
        let Some(owner) = pod_named(&owner.name).filter(|pod| pod.meta().uid == owner.uid) else {
            return Amounts::new();
        };
        let named = owner.status.rare.as_ref().map(|rare| &*rare.extended_resource_claim_name);
        let is_covered = claim.is_covered(named.filter(|name| !name.is_empty()), &claims);
        if is_covered { pod(&owner, true).usage(now) } else { Amounts::new() }
    };
    claims.iter().map(|claim| Subject::DeviceClaim(Box::new(claim.clone()), charged(claim))).collect()
}
