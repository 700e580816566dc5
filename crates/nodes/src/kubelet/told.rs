//! What a kubelet tells about a pod, in upstream's words: what `kubectl describe pod` shows below it.
//!
//! 1. Telling follows the write that makes it true, and never waits.
//! 2. What went well is told as long as the [`budget`] of all nodes lasts: three events for each start of a container would
//!    otherwise be as many writes as all others of a large roll-out together. What happens to a pod at one time is told
//!    whole, or not at all. What went wrong is told always.
//!
//! Follows `pkg/kubelet/kuberuntime`, `images/image_manager.go`, `prober` and `active_deadline.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::{Bucket, MicroTime};
use steersman_runtime::events::EventType;

use super::life::{EXPIRED, EXPIRED_MESSAGE, Life, Role};

/// Something that happened to a pod, and that its kubelet tells. Containers are numbered as in [`Life`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A container started.
    Started(usize),
    /// A container that ran was told to end.
    Killed(usize),
    /// A container has begun to wait for its next start.
    BackedOff(usize),
    /// A container runs, and its probe says that it is not ready.
    Unready(usize),
    /// The pod was on its node for too long.
    Expired,
    /// An annotation makes no sense, for this reason.
    Misread(String),
}

/// An event about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodEvent {
    pub(super) type_: EventType,
    pub(super) reason: &'static str,
    pub(super) note: String,
    /// Which container; empty for the pod as a whole.
    pub(super) field_path: String,
}

/// As many as a hundred and sixty pods have when they start, so that all of what people do by hand is told; and a few
/// hundredths of the writes of two thousand pods.
const EVENTS_BURST: u32 = 500;
/// One more in this time: as upstream's kubelets, fifty a second.
const EVENT_EVERY: Duration = Duration::from_millis(20);

/// The reason of an event about an annotation that makes no sense: of our own, for such annotations are ours.
const MISREAD: &str = "InvalidAnnotation";

/// How many events may be told.
pub(crate) fn budget(now: MicroTime) -> Bucket {
    Bucket::full(EVENTS_BURST, EVENT_EVERY, now.since_epoch())
}

/// The events about what happened to a pod.
pub(super) fn events(life: &Life<'_>, told: &[Told]) -> Vec<PodEvent> {
    told.iter().flat_map(|told| of(life, told)).collect()
}

fn of(life: &Life<'_>, told: &Told) -> Vec<PodEvent> {
    let of_pod =
        |type_, reason, note: &str| PodEvent { type_, reason, note: note.to_owned(), field_path: String::new() };
    let index = match told {
        Told::Expired => return vec![of_pod(EventType::Normal, EXPIRED, EXPIRED_MESSAGE)],
        Told::Misread(problem) => return vec![of_pod(EventType::Warning, MISREAD, problem)],
        Told::Started(index) | Told::Killed(index) | Told::BackedOff(index) | Told::Unready(index) => *index,
    };
    let container = &life.containers[index];
    let (name, image) = (&container.spec.name, &container.spec.image);
    let list = if container.role == Role::Main { "containers" } else { "initContainers" };
    let event =
        |type_, reason, note: String| PodEvent { type_, reason, note, field_path: format!("spec.{list}{{{name}}}") };
    let normal = |reason, note: String| event(EventType::Normal, reason, note);
    match told {
        Told::Started(_) => vec![
            // Images are there at once.
            normal(
                "Pulled",
                format!("Container image {image:?} already present on machine and can be accessed by the pod"),
            ),
            normal("Created", "Container created".to_owned()),
            normal("Started", "Container started".to_owned()),
        ],
        Told::Killed(_) => vec![normal("Killing", format!("Stopping container {name}"))],
        Told::BackedOff(_) => {
            let note = format!("Back-off restarting failed container {name} in pod {}", life.full_name());
            vec![event(EventType::Warning, "BackOff", note)]
        }
        Told::Unready(_) => {
            let note = "Readiness probe failed: the node was told to let it fail".to_owned();
            vec![event(EventType::Warning, "Unhealthy", note)]
        }
        Told::Expired | Told::Misread(_) => Vec::new(),
    }
}
