//! The status of a pod: what its kubelet says of it. Follows `pkg/kubelet/status/generate.go` and `kubelet_pods.go` of
//! Kubernetes 1.37.1.

use serde_json::{Map, Value, json};
use steersman_base::{ConditionStatus, Time};
use steersman_model::core::pod::Resources;

use super::ids::{container_id, image_id};
use super::life::{ContainerLife, Ending, Life, Phase, Role, State};
use crate::view::SimPodView;

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    /// Its node's address.
    pub(super) host_ip: String,
    /// Its own.
    pub(super) pod_ip: String,
}

/// A condition as it should be.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    type_: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

/// The patch that makes the status what it should be; `None` if it is.
pub(super) fn patch(life: &Life<'_>, seat: &Seat, now: Time) -> Option<Value> {
    let accepted = life.accepted?;
    let pod = life.pod;
    let (old, phase) = (&pod.status, life.phase());
    let conditions = conditions(life, phase);
    let is_same = *life == Life::read(pod)
        && old.phase == phase.as_str()
        && old.pod_ip == seat.pod_ip.as_str()
        && old.host_ip == seat.host_ip.as_str()
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
        "hostIP": seat.host_ip,
        "hostIPs": [{ "ip": seat.host_ip }],
        "podIP": seat.pod_ip,
        "podIPs": [{ "ip": seat.pod_ip }],
        "containerStatuses": statuses(&mains),
        "observedGeneration": pod.metadata.generation,
    });
    if !inits.is_empty() {
        status["initContainerStatuses"] = statuses(&inits).into();
    }
    if let Some(why) = &life.cut_short {
        status["reason"] = why.reason.as_str().into();
        status["message"] = why.message.as_str().into();
    }
    // What is said follows from this version of the pod, and from no other.
    let meta = json!({ "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version });
    Some(json!({ "metadata": meta, "status": status }))
}

fn container_status(pod: &SimPodView, container: &ContainerLife<'_>) -> Value {
    let uid = &pod.metadata.uid;
    let (spec, restarts) = (container.spec, container.restarts);
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
        // What is asked for is there, also when it is asked for later: a resize takes no time.
        status["allocatedResources"] = json!(spec.resources.requests);
    }
    if has_started {
        status["containerID"] = id.clone().into();
    }
    if let Some(last) = &container.last {
        // While it waits to be started again, the last end is the one of the container that is still counted.
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

/// What is true of the pod, in upstream's order.
fn conditions(life: &Life<'_>, phase: Phase) -> Vec<Said> {
    let is_over = matches!(phase, Phase::Succeeded | Phase::Failed);
    let sandbox = match is_over {
        false => Said::yes("PodReadyToStartContainers"),
        true => Said::no("PodReadyToStartContainers", "PodSandboxNotReady", String::new()),
    };
    let containers_ready = containers_ready(life, phase);
    let ready = match containers_ready.holds {
        true => gated(life.pod),
        false => Said { type_: "Ready", message: containers_ready.message.clone(), ..containers_ready },
    };
    vec![sandbox, initialized(life, phase), ready, containers_ready, Said::yes("PodScheduled")]
}

fn initialized(life: &Life<'_>, phase: Phase) -> Said {
    const TYPE: &str = "Initialized";
    if phase == Phase::Succeeded {
        return Said { reason: "PodCompleted", ..Said::yes(TYPE) };
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
        return Said::yes(TYPE);
    }
    let message = format!("containers with incomplete status: [{}]", names.join(" "));
    Said::no(TYPE, "ContainersNotInitialized", message)
}

fn containers_ready(life: &Life<'_>, phase: Phase) -> Said {
    const TYPE: &str = "ContainersReady";
    match phase {
        Phase::Succeeded => return Said::no(TYPE, "PodCompleted", String::new()),
        Phase::Failed => return Said::no(TYPE, "PodFailed", String::new()),
        Phase::Pending | Phase::Running => {}
    }
    let unready = life.containers.iter().filter(|container| container.role != Role::Init && !container.ready);
    let names: Vec<_> = unready.map(|container| container.spec.name.as_str()).collect();
    if names.is_empty() {
        return Said::yes(TYPE);
    }
    Said::no(TYPE, "ContainersNotReady", format!("containers with unready status: [{}]", names.join(" ")))
}

/// Whether a pod whose containers are ready is ready itself: others may have a word in it.
fn gated(pod: &SimPodView) -> Said {
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
        true => Said::yes("Ready"),
        false => Said::no("Ready", "ReadinessGatesNotReady", messages.join(", ")),
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

// === impl Said ===

impl Said {
    fn yes(type_: &'static str) -> Self {
        Self { type_, holds: true, reason: "", message: String::new() }
    }

    fn no(type_: &'static str, reason: &'static str, message: String) -> Self {
        Self { type_, holds: false, reason, message }
    }

    fn status(&self) -> ConditionStatus {
        if self.holds { ConditionStatus::True } else { ConditionStatus::False }
    }

    /// Whether the pod's status says so already.
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
