//! The events of a kubelet about a pod, in upstream's words, as shown by `kubectl describe pod`.
//!
//! 1. An event is sent after the write that makes it true, and never blocks.
//! 2. Normal events are sent as long as the [`budget`] of all nodes lasts: three events for each start of a container
//!    would otherwise be as many writes as all others of a large rollout together. The events of one step are sent
//!    together, or not at all. Warnings are always sent.
//!
//! Follows `pkg/kubelet/kuberuntime`, `images/image_manager.go`, `prober` and `active_deadline.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::{Bucket, MicroTime};
use steersman_runtime::events::EventType;

use super::life::{EXPIRED, EXPIRED_MESSAGE, Life, Role};

/// Something that happened to a pod, for an event. Containers are numbered as in [`Life`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// A container started.
    Started(usize),
    /// A running container was asked to stop.
    Killed(usize),
    /// A container waits for its next restart.
    BackedOff(usize),
    /// A container runs, and its readiness probe fails.
    Unready(usize),
    /// The pod exceeded its active deadline.
    Expired,
    /// An annotation is invalid, for this reason.
    Misread(String),
}

/// An event about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodEvent {
    pub(super) type_: EventType,
    pub(super) reason: &'static str,
    pub(super) note: String,
    /// The container; empty for the whole pod.
    pub(super) field_path: String,
}

/// Enough for the start of 160 pods, so that all events of manual changes are sent; and a few percent of the writes of
/// two thousand pods.
const EVENTS_BURST: u32 = 500;
/// One more event per this period: fifty a second, as upstream's kubelets.
const EVENT_EVERY: Duration = Duration::from_millis(20);

/// The reason of an event about an invalid annotation: our own, because the annotations are ours.
const INVALID_ANNOTATION: &str = "InvalidAnnotation";

/// Returns the budget of events.
pub(crate) fn budget(now: MicroTime) -> Bucket {
    Bucket::full(EVENTS_BURST, EVENT_EVERY, now.since_epoch())
}

/// Returns the events for what happened to a pod.
pub(super) fn events(life: &Life<'_>, occurred: &[Occurrence]) -> Vec<PodEvent> {
    occurred.iter().flat_map(|occurred| of(life, occurred)).collect()
}

fn of(life: &Life<'_>, occurred: &Occurrence) -> Vec<PodEvent> {
    let of_pod =
        |type_, reason, note: &str| PodEvent { type_, reason, note: note.to_owned(), field_path: String::new() };
    let index = match occurred {
        Occurrence::Expired => return vec![of_pod(EventType::Normal, EXPIRED, EXPIRED_MESSAGE)],
        Occurrence::Misread(problem) => return vec![of_pod(EventType::Warning, INVALID_ANNOTATION, problem)],
        Occurrence::Started(index)
        | Occurrence::Killed(index)
        | Occurrence::BackedOff(index)
        | Occurrence::Unready(index) => *index,
    };
    let container = &life.containers[index];
    let name = &container.spec.name;
    let image = &container.spec.image;
    let list = if container.role == Role::Main { "containers" } else { "initContainers" };
    let event =
        |type_, reason, note: String| PodEvent { type_, reason, note, field_path: format!("spec.{list}{{{name}}}") };
    let normal = |reason, note: String| event(EventType::Normal, reason, note);
    match occurred {
        Occurrence::Started(_) => vec![
            // Images are present at once.
            normal(
                "Pulled",
                format!("Container image {image:?} already present on machine and can be accessed by the pod"),
            ),
            normal("Created", "Container created".to_owned()),
            normal("Started", "Container started".to_owned()),
        ],
        Occurrence::Killed(_) => vec![normal("Killing", format!("Stopping container {name}"))],
        Occurrence::BackedOff(_) => {
            let note = format!("Back-off restarting failed container {name} in pod {}", life.full_name());
            vec![event(EventType::Warning, "BackOff", note)]
        }
        Occurrence::Unready(_) => {
            let note = "Readiness probe failed: the node was told to let it fail".to_owned();
            vec![event(EventType::Warning, "Unhealthy", note)]
        }
        Occurrence::Expired | Occurrence::Misread(_) => Vec::new(),
    }
}
