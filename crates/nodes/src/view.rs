//! The view of a pod for the scheduler and the kubelets: one view for both, so that they share one watch.
//!
//! A kubelet remembers nothing: what it must know of a pod's past is in the status that it wrote. So the view holds
//! everything of the status that a kubelet writes. Containers are stored once for all pods of a template.

use steersman_base::{Istr, Meta, StringMap};
use steersman_model::view;

mod spec;
mod status;

pub use spec::{Affinity, Container, ContainerPort, NodeAffinity, NodeSelector, NodeSelectorRequirement};
pub use spec::{NodeSelectorTerm, PodClaim, Probe, ReadinessGate, SchedulingGate, SimPodSpec};
pub use status::{ContainerState, ContainerStatus, PodCondition, Running, SimPodStatus, Terminated, Waiting};

view! {
    /// The parts of a pod that the scheduler and the kubelets read.
    pub struct SimPodView for namespaced("", "v1", "pods", "Pod") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: SimPodSpec = 2,
        /// The status.
        status: SimPodStatus = 3,
    }
}

/// The prefix of the annotations that script a pod.
pub const PREFIX: &str = "nodes.steersman.dev/";

// === impl SimPodView ===

impl SimPodView {
    /// Whether the pod has ended: it succeeded or failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Drops the annotations that are not read here: some are as large as the rest of the pod.
    pub(crate) fn keep_own_annotations(&mut self) {
        let kept = |key: &str| key.starts_with(PREFIX);
        let annotations = &self.metadata.annotations;
        if annotations.iter().all(|(key, _)| kept(key)) {
            return;
        }
        let pairs: Vec<(Istr, Istr)> = annotations.iter().filter(|(key, _)| kept(key)).map(clone_pair).collect();
        self.metadata.annotations = StringMap::new(pairs);
    }
}

fn clone_pair((key, value): (&Istr, &Istr)) -> (Istr, Istr) {
    (key.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use steersman_model::corpus::{every_field, protobuf};
    use steersman_model::{Encoded, View};

    use super::*;

    #[test]
    fn both_encodings_give_the_same_view_and_no_field_is_missed() {
        let pod = every_field("core.v1.Pod");
        let json = SimPodView::decode(Encoded::Json(pod.to_string().as_bytes())).unwrap();
        assert_eq!(SimPodView::decode(Encoded::Protobuf(&protobuf::encode("core.v1.Pod", &pod))).unwrap(), json);
        let spec = &json.spec;
        let status = &json.status;
        let nothing = SimPodView::default();
        assert_ne!(spec.restart_policy, nothing.spec.restart_policy);
        assert!(spec.required_node_affinity().is_some_and(|required| {
            let term = &required.node_selector_terms[0];
            !term.match_expressions[0].operator.is_empty() && !term.match_fields[0].values.is_empty()
        }));
        assert!(spec.host_network && spec.priority.is_some() && spec.active_deadline_seconds.is_some());
        assert!(!spec.node_selector.is_empty() && !spec.scheduler_name.is_empty());
        assert!(!spec.readiness_gates[0].condition_type.is_empty() && !spec.scheduling_gates[0].name.is_empty());
        assert!(!spec.claims.is_empty());
        assert!(!spec.overhead.is_empty() && !spec.resources.requests.is_empty() && !spec.tolerations.is_empty());
        let container = &spec.init_containers[0];
        assert!(container.readiness_probe.as_ref().is_some_and(|probe| probe.initial_delay_seconds != 0));
        assert!(!spec.preemption_policy.is_empty());
        assert!(!container.resources.limits.is_empty() && !container.resources.requests.is_empty());
        assert!(container.ports[0].host_port != 0 && !container.ports[0].host_ip.is_empty());
        assert!(!container.ports[0].protocol.is_empty());
        assert!(!container.command.is_empty() && !container.args.is_empty() && !container.restart_policy.is_empty());
        assert!(!status.message.is_empty() && !status.reason.is_empty() && !status.host_ip.is_empty());
        assert!(status.observed_generation != 0 && status.start_time.is_some() && !status.pod_ip.is_empty());
        let states: Vec<_> = status.container_statuses.iter().map(|status| &status.state).collect();
        assert!(states.iter().any(|state| state.waiting.as_ref().is_some_and(|waiting| !waiting.message.is_empty())));
        assert!(states.iter().any(|state| state.running.is_some_and(|running| running.started_at.is_some())));
        assert!(states.iter().any(|state| {
            let ended = state.terminated.as_ref();
            ended.is_some_and(|ended| ended.exit_code != 0 && ended.started_at.is_some() && ended.finished_at.is_some())
        }));
    }

    #[test]
    fn only_our_annotations_are_kept() {
        let body = br#"{"metadata":{"annotations":{"nodes.steersman.dev/run-time":"5s","other":"large"}}}"#;
        let mut pod = SimPodView::decode(Encoded::Json(body)).unwrap();
        pod.keep_own_annotations();
        let kept: Vec<_> = pod.metadata.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(kept, [("nodes.steersman.dev/run-time", "5s")]);
    }
}
