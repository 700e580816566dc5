//! What a kubelet tells about a pod, in upstream's words: what `kubectl describe pod` shows below it.
//!
//! 1. Telling follows the write that makes it true, and never waits.
//! 2. What went well is told as long as the [`Budget`] of all nodes lasts: three events for each start of a container would
//!    otherwise be as many writes as all others of a large roll-out together. What happens to a pod at one time is told
//!    whole, or not at all. What went wrong is told always.
//!
//! Follows `pkg/kubelet/kuberuntime`, `images/image_manager.go`, `prober` and `active_deadline.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::MicroTime;
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

/// How many events may still be told: a bucket that fills at a constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    left: u64,
    /// Until when it was filled.
    filled: MicroTime,
}

/// As many as a hundred and sixty pods have when they start, so that all of what people do by hand is told; and a few
/// hundredths of the writes of two thousand pods.
const EVENTS_BURST: u64 = 500;
/// One more in this time: as upstream's kubelets, fifty a second.
const EVENT_EVERY: Duration = Duration::from_millis(20);

/// The reason of an event about an annotation that makes no sense: of our own, for such annotations are ours.
const MISREAD: &str = "InvalidAnnotation";

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

// === impl Budget ===

impl Budget {
    pub(crate) fn full(now: MicroTime) -> Self {
        Self { left: EVENTS_BURST, filled: now }
    }

    /// Takes so many out of it, if they are there.
    pub(crate) fn take(&mut self, count: usize, now: MicroTime) -> bool {
        let since = now.since(self.filled).as_micros() / EVENT_EVERY.as_micros();
        let more = u64::try_from(since).unwrap_or(EVENTS_BURST).min(EVENTS_BURST);
        if more > 0 {
            self.left = (self.left + more).min(EVENTS_BURST);
            self.filled = now;
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let is_there = count <= self.left;
        if is_there {
            self.left -= count;
        }
        is_there
    }
}
