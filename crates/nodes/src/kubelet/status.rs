//! The status of a pod, as a kubelet reports it. Follows `pkg/kubelet/status/generate.go` and `kubelet_pods.go` of
//! Kubernetes 1.37.1.

use serde_json::{Map, Value, json};
use steersman_base::{ConditionStatus, Time};
use steersman_model::core::pod::Resources;

use super::ids::{container_id, image_id};
use super::life::{ContainerLife, Ending, Life, Phase, Role, State};
use crate::view::SimPodView;

/// The addresses of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodAddresses {
    /// The address of its node.
    pub(super) host_ip: String,
    /// The address of the pod; empty if it has none.
    pub(super) pod_ip: String,
}

/// A condition that the pod should have.
#[derive(Debug, PartialEq, Eq)]
struct WantedCondition {
    type_: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

/// Returns the patch that updates the status; `None` if it is up to date.
pub(super) fn patch(life: &Life<'_>, addresses: &PodAddresses, now: Time) -> Option<Value> {
    let accepted = life.accepted?;
    let pod = life.pod;
    let old = &pod.status;
    let phase = life.phase();
    let conditions = conditions(life, phase);
    let is_same = *life == Life::read(pod)
        && old.phase == phase.as_str()
        && old.pod_ip == addresses.pod_ip.as_str()
        && old.host_ip == addresses.host_ip.as_str()
        && old.observed_generation == pod.metadata.generation
        && old.container_statuses.len() == pod.spec.containers.len()
        && old.init_container_statuses.len() == pod.spec.init_containers.len()
        && conditions.iter().all(|said| said.stands_in(pod));
    if is_same {
        return None;
    }
    let (inits, mains): (Vec<_>, Vec<_>) = life.containers.iter().partition(|container| container.role != Role::Main);
    let statuses = |containers: &[&ContainerLife<'_>]| -> Vec<Value> {
        containers.iter().map(|container| container_status(pod, container)).collect()
    };
    let mut status = json!({
        "phase": phase.as_str(),
        "conditions": conditions.iter().map(|said| said.condition(pod, now)).collect::<Vec<_>>(),
        "startTime": accepted,
        "hostIP": addresses.host_ip,
        "hostIPs": [{ "ip": addresses.host_ip }],
        "containerStatuses": statuses(&mains),
        "observedGeneration": pod.metadata.generation,
    });
    // One that ended before it had an address has none: the server refuses an empty one.
    if !addresses.pod_ip.is_empty() {
        status["podIP"] = addresses.pod_ip.as_str().into();
        status["podIPs"] = json!([{ "ip": addresses.pod_ip }]);
    }
    if !inits.is_empty() {
        status["initContainerStatuses"] = statuses(&inits).into();
    }
    if let Some(why) = &life.cut_short {
        status["reason"] = why.reason.as_str().into();
        status["message"] = why.message.as_str().into();
    }
    // The status is derived from this version of the pod, and from no other.
    let meta = json!({ "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version });
    Some(json!({ "metadata": meta, "status": status }))
}

fn container_status(pod: &SimPodView, container: &ContainerLife<'_>) -> Value {
    let uid = &pod.metadata.uid;
    let spec = container.spec;
    let restarts = container.restarts;
    let id = container_id(uid, &spec.name, restarts);
    let has_started = container.last.is_some() || !matches!(container.state, State::Waiting { .. });
    let mut status = json!({
        "name": spec.name,
        "image": spec.image,
        "imageID": if has_started { image_id(&spec.image) } else { String::new() },
        "restartCount": restarts,
        "ready": container.ready,
        "started": matches!(container.state, State::Running { .. }),
        "state": state(&container.state, &id),
        "lastState": {},
        "resources": resources(&spec.resources),
    });
    if !spec.resources.requests.is_empty() {
        // Requested resources are always available: a resize takes no time.
        status["allocatedResources"] = json!(spec.resources.requests);
    }
    if has_started {
        status["containerID"] = id.clone().into();
    }
    if let Some(last) = &container.last {
        // While it waits to be restarted, its last end is still reported as the current state.
        let waits = matches!(container.state, State::Waiting { .. });
        let id = if waits { id } else { container_id(uid, &spec.name, restarts - 1) };
        status["lastState"] = json!({ "terminated": terminated(last, &id) });
    }
    status
}

fn resources(resources: &Resources) -> Value {
    let lists = [("limits", &resources.limits), ("requests", &resources.requests)].into_iter();
    lists.filter(|(_, list)| !list.is_empty()).map(|(name, list)| (name.to_owned(), json!(list))).collect()
}

fn state(state: &State, id: &str) -> Value {
    match state {
        State::Waiting { reason, message } => {
            let mut waiting = Map::from_iter([("reason".to_owned(), reason.as_str().into())]);
            if !message.is_empty() {
                waiting.insert("message".into(), message.as_str().into());
            }
            json!({ "waiting": waiting })
        }
        State::Running { since } => json!({ "running": { "startedAt": since } }),
        State::Ended(ending) => json!({ "terminated": terminated(ending, id) }),
    }
}

fn terminated(ending: &Ending, id: &str) -> Value {
    json!({
        "exitCode": ending.code,
        "reason": ending.reason,
        "startedAt": ending.started,
        "finishedAt": ending.finished,
        "containerID": id,
    })
}

/// Returns the conditions of the pod, in upstream's order.
fn conditions(life: &Life<'_>, phase: Phase) -> Vec<WantedCondition> {
    let is_over = matches!(phase, Phase::Succeeded | Phase::Failed);
    let sandbox = match is_over {
        false => WantedCondition::yes("PodReadyToStartContainers"),
        true => WantedCondition::no("PodReadyToStartContainers", "PodSandboxNotReady", String::new()),
    };
    let containers_ready = containers_ready(life, phase);
    let ready = match containers_ready.holds {
        true => gated(life.pod),
        false => WantedCondition { type_: "Ready", message: containers_ready.message.clone(), ..containers_ready },
    };
    vec![sandbox, initialized(life, phase), ready, containers_ready, WantedCondition::yes("PodScheduled")]
}

fn initialized(life: &Life<'_>, phase: Phase) -> WantedCondition {
    const TYPE: &str = "Initialized";
    if phase == Phase::Succeeded {
        return WantedCondition { reason: "PodCompleted", ..WantedCondition::yes(TYPE) };
    }
    let has_started = |container: &&ContainerLife<'_>| {
        container.role == Role::Main && (container.last.is_some() || !matches!(container.state, State::Waiting { .. }))
    };
    let incomplete = life.containers.iter().filter(|container| match container.role {
        Role::Init => !container.has_succeeded(),
        Role::Sidecar => !matches!(container.state, State::Running { .. }),
        Role::Main => false,
    });
    let names: Vec<_> = incomplete.map(|container| container.spec.name.as_str()).collect();
    if names.is_empty() || life.containers.iter().any(|container| has_started(&container)) {
        return WantedCondition::yes(TYPE);
    }
    let message = format!("containers with incomplete status: [{}]", names.join(" "));
    WantedCondition::no(TYPE, "ContainersNotInitialized", message)
}

fn containers_ready(life: &Life<'_>, phase: Phase) -> WantedCondition {
    const TYPE: &str = "ContainersReady";
    match phase {
        Phase::Succeeded => return WantedCondition::no(TYPE, "PodCompleted", String::new()),
        Phase::Failed => return WantedCondition::no(TYPE, "PodFailed", String::new()),
        Phase::Pending | Phase::Running => {}
    }
    let unready = life.containers.iter().filter(|container| container.role != Role::Init && !container.ready);
    let names: Vec<_> = unready.map(|container| container.spec.name.as_str()).collect();
    if names.is_empty() {
        return WantedCondition::yes(TYPE);
    }
    WantedCondition::no(TYPE, "ContainersNotReady", format!("containers with unready status: [{}]", names.join(" ")))
}

/// Whether a pod whose containers are ready is ready itself: readiness gates may prevent it.
fn gated(pod: &SimPodView) -> WantedCondition {
    let closed = pod.spec.readiness_gates.iter().filter_map(|gate| {
        let type_ = &gate.condition_type;
        match pod.status.condition(type_) {
            None => Some(format!("corresponding condition of pod readiness gate \"{type_}\" does not exist.")),
            Some(condition) if condition.status == ConditionStatus::True => None,
            Some(condition) => {
                let status = condition.status.as_str();
                Some(format!("the status of pod readiness gate \"{type_}\" is not \"True\", but {status}"))
            }
        }
    });
    let messages: Vec<_> = closed.collect();
    match messages.is_empty() {
        true => WantedCondition::yes("Ready"),
        false => WantedCondition::no("Ready", "ReadinessGatesNotReady", messages.join(", ")),
    }
}

// === impl Phase ===

impl Phase {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

// === impl WantedCondition ===

impl WantedCondition {
    fn yes(type_: &'static str) -> Self {
        Self { type_, holds: true, reason: "", message: String::new() }
    }

    fn no(type_: &'static str, reason: &'static str, message: String) -> Self {
        Self { type_, holds: false, reason, message }
    }

    fn status(&self) -> ConditionStatus {
        if self.holds { ConditionStatus::True } else { ConditionStatus::False }
    }

    /// Whether the pod's status has this condition already.
    fn stands_in(&self, pod: &SimPodView) -> bool {
        pod.status.condition(self.type_).is_some_and(|held| {
            held.status == self.status() && held.reason == self.reason && held.message == self.message.as_str()
        })
    }

    fn condition(&self, pod: &SimPodView, now: Time) -> Value {
        let held = pod.status.condition(self.type_).filter(|held| held.status == self.status());
        let since = held.and_then(|held| held.last_transition_time).unwrap_or(now);
        let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        json!({
            "type": self.type_,
            "status": self.status().as_str(),
            "lastProbeTime": null,
            "lastTransitionTime": since,
            "reason": text(self.reason),
            "message": text(&self.message),
            "observedGeneration": pod.metadata.generation,
        })
    }
}
