//! What happens to a pod until now, and when to check again: the stages, applied.
//!
//! 1. All that is due happens in one step, so that a pod whose stages take no time is ready with one write.
//! 2. A step depends only on the pod, the stages and the time: a new kubelet continues where the last one stopped.
//! 3. What has ended stays ended.

use std::time::Duration;

use steersman_base::{Istr, MicroTime, Time};

use super::command::Program;
use super::events::Occurrence;
use super::life::{ContainerLife, CutShort, EXPIRED, EXPIRED_MESSAGE, KILLED, Life, Role, State, due};
use super::stages::{On, Stages, Subject, Then};
use super::{backoff, duration_text};
use crate::view::{Container, SimPodView};

/// The result of a step.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) life: Life<'a>,
    /// The time until the next step happens by itself.
    pub(super) wake: Option<Duration>,
    /// Whether nothing of it is left, so that the object can be deleted.
    pub(super) remove: bool,
    /// The occurrences, for events, in order.
    pub(super) occurred: Vec<Occurrence>,
}

/// Something that happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Accept,
    Expire,
    Start(usize),
    End(usize, i32),
    Ready(usize),
    Stop(Option<i32>),
    Remove,
}

/// The input of a step.
struct Stepping<'a, 's> {
    life: Life<'a>,
    stages: &'s Stages,
    /// Whether a fault keeps the pod from being ready.
    unready: bool,
    now: MicroTime,
    occurred: Vec<Occurrence>,
}

/// The maximum number of events in a step: stages without delays could form a cycle; the rest follows in the next step.
const EVENTS_MAX: usize = 1_000;
/// The maximum time until the next step.
const AFTER_EVENTS_MAX: Duration = Duration::from_secs(1);

/// Computes what happens to the pod until `now`.
pub(super) fn step<'a>(pod: &'a SimPodView, stages: &Stages, unready: bool, now: MicroTime) -> Step<'a> {
    let mut stepping = Stepping { life: Life::read(pod), stages, unready, now, occurred: Vec::new() };
    let mut wake = Some(AFTER_EVENTS_MAX);
    let mut remove = false;
    for _ in 0..EVENTS_MAX {
        stepping.settle();
        match stepping.next() {
            Some((due, event)) if due <= now => {
                stepping.happen(event);
                if event == Event::Remove {
                    (wake, remove) = (None, true);
                    break;
                }
            }
            next => {
                wake = next.map(|(due, _)| due.since(now));
                break;
            }
        }
    }
    Step { life: stepping.life, wake, remove, occurred: stepping.occurred }
}

/// Returns what a container's command does.
pub(crate) fn program(container: &Container) -> Program {
    // Without a command the image determines what runs; the entry points of most images run their arguments, as with
    // `kubectl run x --image=busybox -- echo hello`. Arguments that are no supported command run forever.
    Program::of(container.command.iter().chain(&container.args).map(Istr::as_str))
}

// === impl Stepping ===

impl<'a> Stepping<'a, '_> {
    fn now(&self) -> Time {
        self.now.to_seconds()
    }

    fn is_terminating(&self) -> bool {
        self.life.pod.metadata.is_terminating()
    }

    fn subject<'b>(&'b self, container: Option<&'b ContainerLife<'a>>) -> Subject<'b> {
        let container = container.map(|container| (container.spec.name.as_str(), container.role));
        Subject { pod: &self.life.pod.metadata, container }
    }

    /// Applies what follows at once.
    fn settle(&mut self) {
        let now = self.now();
        if self.life.is_through() {
            // Sidecars end with the main containers.
            self.kill_all(|_| 0, now);
            return;
        }
        if self.unready {
            for (index, container) in self.life.containers.iter_mut().enumerate() {
                if container.ready && matches!(container.state, State::Running { .. }) {
                    container.ready = false;
                    self.occurred.push(Occurrence::Unready(index));
                }
            }
        }
        if self.is_terminating() {
            return;
        }
        for index in 0..self.life.containers.len() {
            self.hold_back(index);
        }
    }

    /// Makes a container that ended wait for its restart.
    fn hold_back(&mut self, index: usize) {
        let container = &self.life.containers[index];
        let State::Ended(ending) = &container.state else { return };
        if !self.life.restarts_after(container, ending.code) {
            return;
        }
        let wait = backoff::wait(container.restarts, ending.ran());
        if MicroTime::from(ending.finished) + wait <= self.now {
            return;
        }
        let name = &container.spec.name;
        let wait = duration_text(wait);
        let pod = self.life.full_name();
        let message = format!("back-off {wait} restarting failed container={name} pod={pod}");
        self.life.containers[index].back_off(&message);
        self.occurred.push(Occurrence::BackedOff(index));
    }

    /// Ends all running containers, with this code.
    fn kill_all(&mut self, code: impl Fn(&ContainerLife<'_>) -> i32, now: Time) {
        for (index, container) in self.life.containers.iter().enumerate() {
            if matches!(container.state, State::Running { .. }) {
                self.occurred.push(Occurrence::Killed(index));
            }
        }
        self.life.end_all(code, now);
    }

    fn start(&mut self, index: usize, now: Time) {
        self.life.containers[index].start(now);
        self.occurred.push(Occurrence::Started(index));
        let container = &self.life.containers[index];
        let next = self.stages.next(On::Unready, self.subject(Some(container)));
        let is_never_ready = next.is_some_and(|stage| stage.then == Then::Stay);
        if container.role != Role::Init && container.spec.readiness_probe.is_some() && is_never_ready {
            self.occurred.push(Occurrence::Unready(index));
        }
    }

    /// Returns what happens next by itself, and when.
    fn next(&self) -> Option<(MicroTime, Event)> {
        if self.life.accepted.is_none() && !self.is_terminating() {
            return if self.life.over.is_some() { None } else { self.next_accept() };
        }
        let containers = (0..self.life.containers.len()).filter_map(|index| self.next_of(index));
        let pod = if self.is_terminating() { self.next_end() } else { self.next_expiry() };
        // Among things due at the same time, those of the pod come first.
        pod.into_iter().chain(containers).min_by_key(|(due, _)| *due)
    }

    fn next_accept(&self) -> Option<(MicroTime, Event)> {
        let pod = self.life.pod;
        let subject = self.subject(None);
        let stage = self.stages.next(On::Bound, subject).filter(|stage| stage.then == Then::Accept)?;
        let bound = pod.status.condition("PodScheduled").and_then(|condition| condition.last_transition_time);
        let since = bound.or(pod.metadata.creation_timestamp).unwrap_or(self.now());
        Some((due(since, stage.delay(subject), self.now), Event::Accept))
    }

    fn next_expiry(&self) -> Option<(MicroTime, Event)> {
        let deadline = self.life.pod.spec.active_deadline_seconds.filter(|_| !self.life.is_through())?;
        let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
        Some((MicroTime::from(self.life.accepted?) + deadline, Event::Expire))
    }

    /// Returns what happens next to a terminating pod.
    fn next_end(&self) -> Option<(MicroTime, Event)> {
        let meta = &self.life.pod.metadata;
        let subject = self.subject(None);
        if !self.life.is_anything_running() {
            // The server knows that no grace period is left, and waits for finalizers: once the status says how the pod ended,
            // another delete would change nothing. Without finalizers the object should be deleted: a forced delete was
            // interrupted, and the kubelet completes it.
            let is_recorded = self.life.over.is_some();
            let is_held =
                is_recorded && meta.deletion_grace_period_seconds() == Some(0) && !meta.finalizers().is_empty();
            self.stages.next(On::Stopped, subject).filter(|stage| stage.then == Then::Remove && !is_held)?;
            return Some((self.now, Event::Remove));
        }
        let stage = self.stages.next(On::Terminating, subject).filter(|stage| stage.then == Then::Stop)?;
        let last = meta.deletion_timestamp()?;
        let asked = last.plus_seconds(-meta.deletion_grace_period_seconds().unwrap_or(0));
        let due = due(asked, stage.delay(subject), self.now).min(last.into());
        Some((due, Event::Stop(stage.code(subject))))
    }

    fn next_of(&self, index: usize) -> Option<(MicroTime, Event)> {
        let container = &self.life.containers[index];
        let may_begin = !self.is_terminating() && !self.life.is_through();
        let subject = self.subject(Some(container));
        let (last_end, on) = match &container.state {
            State::Running { since } => {
                let end = self.end_of(container, *since, subject).map(|(due, code)| (due, Event::End(index, code)));
                let ready = self.ready_at(container, *since, subject).map(|due| (due, Event::Ready(index)));
                return end.into_iter().chain(ready.filter(|_| may_begin)).min_by_key(|(due, _)| *due);
            }
            _ if !may_begin || !self.life.may_start(index) => return None,
            State::Ended(end) if !self.life.restarts_after(container, end.code) => return None,
            State::Ended(end) => (Some(end), On::Ended),
            State::Waiting { .. } => match &container.last {
                Some(end) => (Some(end), On::Ended),
                None => (None, On::Waiting),
            },
        };
        let stage = self.stages.next(on, subject).filter(|stage| stage.then != Then::Stay)?;
        let delay = stage.delay(subject);
        let due = match last_end {
            Some(end) => {
                let may = MicroTime::from(end.finished) + backoff::wait(container.restarts, end.ran());
                may.max(due(end.finished, delay, self.now))
            }
            None => due(self.life.turn_came(index)?, delay, self.now),
        };
        Some((due, Event::Start(index)))
    }

    /// Returns when a running container ends by itself, and how.
    fn end_of(&self, container: &ContainerLife<'_>, since: Time, subject: Subject<'_>) -> Option<(MicroTime, i32)> {
        let stage = self.stages.next(On::Running, subject)?;
        match stage.then {
            Then::Exit => Some((due(since, stage.delay(subject), self.now), stage.code(subject).unwrap_or(0))),
            Then::Obey => {
                let (after, code) = program(container.spec).end?;
                Some((due(since, after, self.now), code))
            }
            _ => None,
        }
    }

    fn ready_at(&self, container: &ContainerLife<'_>, since: Time, subject: Subject<'_>) -> Option<MicroTime> {
        if container.ready || container.role == Role::Init || self.unready {
            return None;
        }
        let stage = self.stages.next(On::Unready, subject).filter(|stage| stage.then == Then::Ready)?;
        let probe = container.spec.readiness_probe.as_ref().map_or(0, |probe| probe.initial_delay_seconds);
        let probe = Duration::from_secs(u64::try_from(probe).unwrap_or(0));
        Some(due(since, stage.delay(subject) + probe, self.now))
    }

    fn happen(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Accept => {
                self.life.accepted = Some(now);
                let complaints = self.stages.complaints(&self.life.pod.metadata);
                self.occurred.extend(complaints.into_iter().map(Occurrence::Misread));
            }
            Event::Start(index) => self.start(index, now),
            Event::End(index, code) => self.life.containers[index].end(code, now),
            Event::Ready(index) => self.life.containers[index].ready = true,
            Event::Stop(code) => {
                // A server ends successfully on SIGTERM; `sleep` ignores it, and is killed.
                let usual = |container: &ContainerLife<'_>| match program(container.spec).end {
                    Some(_) => KILLED,
                    None => 0,
                };
                self.kill_all(|container| code.unwrap_or_else(|| usual(container)), now);
            }
            Event::Expire => {
                self.occurred.push(Occurrence::Expired);
                self.kill_all(|_| KILLED, now);
                self.life.cut_short =
                    Some(CutShort { reason: Istr::interned(EXPIRED), message: Istr::interned(EXPIRED_MESSAGE) });
            }
            Event::Remove => {
                // While finalizers keep the object, the status shows how it ended, even if it never started.
                self.life.accepted.get_or_insert(now);
                self.life.give_up_unstarted(now);
            }
        }
    }
}
