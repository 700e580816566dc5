//! The usage of pods, and the scopes they are in.

mod resources;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};

use super::{Amounts, Requirement, one};
use crate::null::as_default;
use crate::validation::qualified_name;
use crate::{Istr, Quantity, Time};

/// The part of a pod that quotas and limits read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// The metadata.
    #[serde(deserialize_with = "as_default")]
    pub metadata: PodMeta,
    /// The spec.
    #[serde(deserialize_with = "as_default")]
    pub spec: PodSpec,
    /// The status.
    #[serde(deserialize_with = "as_default")]
    pub status: PodStatus,
}

/// The metadata of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMeta {
    /// The time at which it is to be deleted.
    pub deletion_timestamp: Option<Time>,
    /// The grace period.
    pub deletion_grace_period_seconds: Option<i64>,
}

/// The spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The containers.
    #[serde(deserialize_with = "as_default")]
    pub containers: Vec<Container>,
    /// The init containers, with the sidecars.
    #[serde(deserialize_with = "as_default")]
    pub init_containers: Vec<Container>,
    /// The overhead beside its containers.
    #[serde(deserialize_with = "as_default")]
    pub overhead: Amounts,
    /// The resources at pod level.
    #[serde(deserialize_with = "as_default")]
    pub resources: Resources,
    /// The number of seconds for which it may be active.
    pub active_deadline_seconds: Option<i64>,
    /// The priority class; empty if it has none.
    #[serde(deserialize_with = "as_default")]
    pub priority_class_name: Istr,
    /// Whether a term of its pod affinity or anti-affinity names namespaces, by list or by selector.
    #[serde(rename = "affinity", deserialize_with = "is_cross_namespace")]
    pub has_cross_namespace_affinity: bool,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// The name.
    #[serde(deserialize_with = "as_default")]
    pub name: Istr,
    /// `Always` for a sidecar.
    #[serde(deserialize_with = "as_default")]
    pub restart_policy: Istr,
    /// The requests and limits.
    #[serde(deserialize_with = "as_default")]
    pub resources: Resources,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The requests.
    #[serde(deserialize_with = "as_default")]
    pub requests: Amounts,
    /// The limits.
    #[serde(deserialize_with = "as_default")]
    pub limits: Amounts,
}

/// The status of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// The phase.
    #[serde(deserialize_with = "as_default")]
    pub phase: Istr,
    /// The quality of service; empty if it is not known yet.
    #[serde(deserialize_with = "as_default")]
    pub qos_class: Istr,
    /// The statuses of the containers.
    #[serde(deserialize_with = "as_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// The statuses of the init containers.
    #[serde(deserialize_with = "as_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Whether its node cannot grant a change of resources.
    #[serde(rename = "conditions", deserialize_with = "is_resize_infeasible")]
    pub is_resize_infeasible: bool,
}

/// The status of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The name.
    #[serde(deserialize_with = "as_default")]
    pub name: Istr,
    /// The requests that the node has granted; empty if it did not report them.
    #[serde(deserialize_with = "as_default")]
    pub allocated_resources: Amounts,
    /// The requests and limits that are in effect; absent if the node did not report them.
    pub resources: Option<Resources>,
}

pub(super) const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE_PAGES: &str = "hugepages-";
const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const OF_DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
const PODS: &str = "pods";
const COUNT_PODS: &str = "count/pods";
/// Resources with a limit of their own in quotas.
const COMPUTE: [&str; 3] = [CPU, MEMORY, "ephemeral-storage"];
/// Every container must specify these if a quota counts them.
const SPECIFIED: [&str; 6] = [CPU, MEMORY, "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Whether pods count for this name.
pub(super) fn is_tracked(name: &str) -> bool {
    let bare = name.strip_prefix(REQUESTS).or_else(|| name.strip_prefix(LIMITS)).unwrap_or(name);
    COMPUTE.contains(&bare)
        || matches!(name, PODS | COUNT_PODS)
        || name.strip_prefix(REQUESTS).unwrap_or(name).starts_with(HUGE_PAGES)
        || is_extended_in_quota(name)
}

/// Whether this is the name of an extended resource in a quota: `requests.example.com/gpu`.
pub(super) fn is_extended_in_quota(name: &str) -> bool {
    let of_class = name.strip_prefix(REQUESTS).is_some_and(|bare| bare.starts_with(OF_DEVICE_CLASS));
    name.starts_with(REQUESTS) && (of_class || !is_native(name))
}

/// Whether a resource is Kubernetes' own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether pods may request this as an extended resource.
fn is_extended(name: &str) -> bool {
    let is_plain =
        || !is_native(name) && !name.starts_with(REQUESTS) && qualified_name(&format!("{REQUESTS}{name}")).is_empty();
    name.starts_with(OF_DEVICE_CLASS) || is_plain()
}

/// Whether a request of this resource can be made for a whole pod.
fn is_pod_level(name: &str) -> bool {
    matches!(name, CPU | MEMORY) || name.starts_with(HUGE_PAGES)
}

/// Returns requests and limits under the names that quotas have for them.
fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([(PODS.into(), one())]);
    for (name, quantity) in requests {
        let is_compute = COMPUTE.contains(&&**name);
        let is_huge = name.starts_with(HUGE_PAGES);
        if is_compute || is_huge {
            usage.insert(name.clone(), *quantity);
        }
        if is_compute || is_huge || is_extended(name) {
            usage.insert(Istr::from(format!("{REQUESTS}{name}")), *quantity);
        }
    }
    for name in COMPUTE {
        if let Some(quantity) = limits.get(name) {
            usage.insert(Istr::from(format!("{LIMITS}{name}")), *quantity);
        }
    }
    usage
}

// === impl Pod ===

impl Pod {
    /// Returns what the pod uses. One that has ended, or should be gone by now, is an object and nothing else.
    #[must_use]
    pub fn usage(&self, now: Time) -> Amounts {
        let mut usage = Amounts::new();
        if self.is_charged(now) {
            usage = compute_usage(&self.requests(), &self.limits());
        }
        usage.insert(COUNT_PODS.into(), one());
        usage
    }

    /// Whether the pod counts, and not just as an object.
    #[must_use]
    pub fn is_charged(&self, now: Time) -> bool {
        let has_ended = matches!(&*self.status.phase, "Failed" | "Succeeded");
        !has_ended && self.metadata.charged_until().is_none_or(|end| now <= end)
    }

    /// Whether the pod ends by itself: `activeDeadlineSeconds` is set.
    #[must_use]
    pub fn has_deadline(&self) -> bool {
        self.spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0)
    }

    /// Whether the pod is in a scope.
    #[must_use]
    pub fn is_in(&self, scope: &Requirement) -> bool {
        match &*scope.scope_name {
            "Terminating" => self.has_deadline(),
            "NotTerminating" => !self.has_deadline(),
            "BestEffort" => self.is_best_effort(),
            "NotBestEffort" => !self.is_best_effort(),
            "PriorityClass" => {
                let class = &self.spec.priority_class_name;
                scope.admits((!class.is_empty()).then_some(&**class))
            }
            "CrossNamespacePodAffinity" => self.spec.has_cross_namespace_affinity,
            _ => false,
        }
    }

    fn is_best_effort(&self) -> bool {
        if !self.status.qos_class.is_empty() {
            return self.status.qos_class == "BestEffort";
        }
        let of_pod = &self.spec.resources;
        let says_nothing = |resources: &Resources| {
            let is_zero = |amounts: &Amounts, name| amounts.get(name).is_none_or(|quantity| quantity.is_zero());
            [CPU, MEMORY].into_iter().all(|name| is_zero(&resources.requests, name) && is_zero(&resources.limits, name))
        };
        if self.has_pod_level_resources() {
            return says_nothing(of_pod);
        }
        self.all_containers().all(|container| says_nothing(&container.resources))
    }

    fn has_pod_level_resources(&self) -> bool {
        let Resources { requests, limits } = &self.spec.resources;
        requests.keys().chain(limits.keys()).any(|name| is_pod_level(name))
    }

    fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.spec.containers.iter().chain(&self.spec.init_containers)
    }

    /// Whether all containers specify the cpu and memory that quotas count.
    ///
    /// # Errors
    /// The message of upstream: `must specify limits.cpu for: a,b; …`.
    pub fn check_specified<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
        if self.has_pod_level_resources() {
            return Ok(());
        }
        let required: BTreeSet<&str> = names.filter(|name| SPECIFIED.contains(name)).collect();
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for container in self.all_containers() {
            let usage = compute_usage(&container.resources.requests, &container.resources.limits);
            for name in required.iter().filter(|name| !usage.contains_key(**name)) {
                missing.entry(name).or_default().insert(&container.name);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let of = |(name, containers): (&str, BTreeSet<&str>)| {
            format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
        };
        Err(format!("must specify {}", missing.into_iter().map(of).collect::<Vec<_>>().join("; ")))
    }
}

// === impl PodMeta ===

impl PodMeta {
    /// Returns the time until which a terminating pod counts: its grace period counts twice, as upstream.
    #[must_use]
    pub fn charged_until(&self) -> Option<Time> {
        Some(self.deletion_timestamp?.plus_seconds(self.deletion_grace_period_seconds?))
    }
}

/// Reads whether a pod refers to pods of other namespaces.
fn is_cross_namespace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Affinity {
        #[serde(deserialize_with = "as_default")]
        pod_affinity: Terms,
        #[serde(deserialize_with = "as_default")]
        pod_anti_affinity: Terms,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Terms {
        #[serde(deserialize_with = "as_default")]
        required_during_scheduling_ignored_during_execution: Vec<Term>,
        #[serde(deserialize_with = "as_default")]
        preferred_during_scheduling_ignored_during_execution: Vec<Weighted>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Weighted {
        #[serde(deserialize_with = "as_default")]
        pod_affinity_term: Term,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Term {
        #[serde(deserialize_with = "as_default")]
        namespaces: Vec<Istr>,
        namespace_selector: Option<serde::de::IgnoredAny>,
    }
    let affinity: Affinity = as_default(deserializer)?;
    let has_other = |terms: &Terms| {
        let preferred = terms.preferred_during_scheduling_ignored_during_execution.iter();
        let required = terms.required_during_scheduling_ignored_during_execution.iter();
        required
            .chain(preferred.map(|weighted| &weighted.pod_affinity_term))
            .any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
    };
    Ok(has_other(&affinity.pod_affinity) || has_other(&affinity.pod_anti_affinity))
}

/// Reads whether the node cannot grant a change of resources.
fn is_resize_infeasible<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Condition {
        #[serde(rename = "type", deserialize_with = "as_default")]
        type_: Istr,
        #[serde(deserialize_with = "as_default")]
        reason: Istr,
    }
    let conditions: Vec<Condition> = as_default(deserializer)?;
    let pending = conditions.iter().find(|condition| condition.type_ == "PodResizePending");
    Ok(pending.is_some_and(|condition| condition.reason == "Infeasible"))
}

/// Returns the quantity of a name; zero if there is none.
pub(super) fn of(amounts: &Amounts, name: &str) -> Quantity {
    amounts.get(name).copied().unwrap_or_default()
}
