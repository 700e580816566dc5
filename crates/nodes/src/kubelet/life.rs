//! A pod's state as its kubelet sees it: parsed from the status, advanced, written back.

use std::time::Duration;

use steersman_base::{Istr, MicroTime, Time};

use crate::view::{Container, ContainerState, ContainerStatus, SimPodView};

/// The state of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Life<'a> {
    pub(super) pod: &'a SimPodView,
    /// The time at which the kubelet accepted it; `None` if it has not yet.
    pub(super) accepted: Option<Time>,
    /// Init containers first, then the main ones.
    pub(super) containers: Vec<ContainerLife<'a>>,
    /// The end for another reason than the ends of its containers.
    pub(super) cut_short: Option<CutShort>,
    /// Its phase, if that is final: it is kept, whoever set it.
    pub(super) over: Option<Phase>,
}

/// The end of a pod for another reason than the ends of its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutShort {
    pub(super) reason: Istr,
    pub(super) message: Istr,
}

/// The state of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ContainerLife<'a> {
    pub(super) spec: &'a Container,
    pub(super) role: Role,
    pub(super) state: State,
    /// The end of its previous run.
    pub(super) last: Option<Ending>,
    pub(super) restarts: i32,
    pub(super) ready: bool,
}

/// The role of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An init container: it must succeed before the next one starts.
    Init,
    /// A sidecar: it starts before the next one does, and keeps running.
    Sidecar,
    /// A main container.
    Main,
}

/// The state of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting { reason: Istr, message: Istr },
    Running { since: Time },
    Ended(Ending),
}

/// The end of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) code: i32,
    pub(super) reason: Istr,
    pub(super) started: Option<Time>,
    pub(super) finished: Time,
}

/// The phases of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

/// The reason before anything was started.
pub(super) const CREATING: &str = "ContainerCreating";
/// The reason while it waits for the init containers.
pub(super) const INITIALIZING: &str = "PodInitializing";
/// The reason while it waits to be restarted.
pub(super) const BACK_OFF: &str = "CrashLoopBackOff";
/// The reason of a pod that exceeded its active deadline.
pub(super) const EXPIRED: &str = "DeadlineExceeded";
/// The message of a pod that exceeded its active deadline.
pub(super) const EXPIRED_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";
/// The exit code of a killed process.
pub(super) const KILLED: i32 = 137;

// === impl Life ===

impl<'a> Life<'a> {
    /// Parses the status. Containers that it does not mention have not started.
    pub(super) fn read(pod: &'a SimPodView) -> Self {
        let status = &pod.status;
        let has_inits = !pod.spec.init_containers.is_empty();
        let inits = pod.spec.init_containers.iter().map(|spec| {
            let role = if spec.is_sidecar() { Role::Sidecar } else { Role::Init };
            ContainerLife::read(spec, role, &status.init_container_statuses, has_inits)
        });
        let mains = pod.spec.containers.iter();
        let mains = mains.map(|spec| ContainerLife::read(spec, Role::Main, &status.container_statuses, has_inits));
        // A reason is set only if the pod was ended early.
        let cut_short = (pod.is_over() && !status.reason.is_empty())
            .then(|| CutShort { reason: status.reason.clone(), message: status.message.clone() });
        let over = match status.phase.as_str() {
            "Succeeded" => Some(Phase::Succeeded),
            "Failed" => Some(Phase::Failed),
            _ => None,
        };
        Self { pod, accepted: status.start_time, containers: inits.chain(mains).collect(), cut_short, over }
    }

    /// Returns name and uid of the pod, as kubelets print them.
    pub(super) fn full_name(&self) -> String {
        let meta = &self.pod.metadata;
        format!("{}_{}({})", meta.name, meta.namespace, meta.uid)
    }

    /// Whether the container may start: the init containers before it have succeeded, and sidecars run.
    pub(super) fn may_start(&self, index: usize) -> bool {
        self.containers[..index].iter().all(|before| match before.role {
            Role::Init => before.has_succeeded(),
            // One that ended once has started; the pod does not start over.
            Role::Sidecar => !matches!(before.state, State::Waiting { .. }) || before.last.is_some(),
            Role::Main => true,
        })
    }

    /// Returns when the container was allowed to start.
    pub(super) fn turn_came(&self, index: usize) -> Option<Time> {
        let ends = self.containers[..index].iter().filter_map(|before| match (&before.state, before.role) {
            (State::Ended(ending), Role::Init) => Some(ending.finished),
            (State::Running { since }, Role::Sidecar) => Some(*since),
            _ => None,
        });
        ends.chain(self.accepted).max()
    }

    /// Whether the container is restarted after such an end.
    pub(super) fn restarts_after(&self, container: &ContainerLife<'_>, code: i32) -> bool {
        let own = &container.spec.restart_policy;
        let policy = if own.is_empty() { &self.pod.spec.restart_policy } else { own };
        match (container.role, policy.as_str()) {
            (Role::Sidecar, _) => true,
            (_, "Never") => false,
            // An init container that succeeded is done, whatever the policy.
            (Role::Init, _) | (Role::Main, "OnFailure") => code != 0,
            (Role::Main, _) => true,
        }
    }

    /// Whether nothing of the pod will run any more.
    pub(super) fn is_through(&self) -> bool {
        if self.over.is_some() || self.cut_short.is_some() || self.init_failed() {
            return true;
        }
        let mut mains = self.containers.iter().filter(|container| container.role == Role::Main);
        mains.all(|main| matches!(&main.state, State::Ended(end) if !self.restarts_after(main, end.code)))
    }

    fn init_failed(&self) -> bool {
        self.containers.iter().any(|container| {
            container.role == Role::Init
                && matches!(&container.state, State::Ended(end)
                    if end.code != 0 && !self.restarts_after(container, end.code))
        })
    }

    pub(super) fn is_anything_running(&self) -> bool {
        self.containers.iter().any(|container| matches!(container.state, State::Running { .. }))
    }

    /// Ends all running containers, with this code.
    pub(super) fn end_all(&mut self, code: impl Fn(&ContainerLife<'_>) -> i32, now: Time) {
        for container in &mut self.containers {
            if matches!(container.state, State::Running { .. }) {
                let code = code(container);
                container.end(code, now);
            }
        }
    }

    /// Ends the containers that never started: their exit codes are unknown.
    pub(super) fn give_up_unstarted(&mut self, now: Time) {
        for container in &mut self.containers {
            if matches!(container.state, State::Waiting { .. }) && container.last.is_none() {
                let reason = Istr::interned("ContainerStatusUnknown");
                container.state = State::Ended(Ending { code: KILLED, reason, started: None, finished: now });
            }
        }
    }

    /// Returns the phase. Follows `getPhase` of `pkg/kubelet/kubelet_pods.go`.
    pub(super) fn phase(&self) -> Phase {
        if let Some(over) = self.over {
            return over;
        }
        if self.cut_short.is_some() || self.init_failed() {
            return Phase::Failed;
        }
        let of = |role: Role| self.containers.iter().filter(move |container| container.role == role);
        let started = |container: &ContainerLife<'_>| {
            container.last.is_some() || !matches!(container.state, State::Waiting { .. })
        };
        // Once the main containers have started, init containers do not affect the phase any more.
        let initialized = of(Role::Main).any(started);
        let is_through = |init: &ContainerLife<'_>| init.has_succeeded() || init.is_restarting();
        if !(initialized || of(Role::Init).all(is_through) && of(Role::Sidecar).all(started)) {
            return Phase::Pending;
        }
        if !of(Role::Main).all(started) {
            return Phase::Pending;
        }
        if self.is_anything_running() {
            return Phase::Running;
        }
        let is_final = self.pod.metadata.is_terminating() || self.is_through();
        match is_final {
            false => Phase::Running,
            true if of(Role::Main).all(ContainerLife::has_succeeded) => Phase::Succeeded,
            true => Phase::Failed,
        }
    }
}

// === impl ContainerLife ===

impl<'a> ContainerLife<'a> {
    fn read(spec: &'a Container, role: Role, statuses: &[ContainerStatus], has_inits: bool) -> Self {
        let status = statuses.iter().find(|status| status.name == spec.name);
        let reason = if role == Role::Main && !has_inits { CREATING } else { INITIALIZING };
        let unstarted = State::Waiting { reason: Istr::interned(reason), message: Istr::default() };
        let Some(status) = status else {
            return Self { spec, role, state: unstarted, last: None, restarts: 0, ready: false };
        };
        Self {
            spec,
            role,
            state: State::read(&status.state).unwrap_or(unstarted),
            last: status.last_state.terminated.as_deref().map(Ending::read),
            restarts: status.restart_count,
            ready: status.ready,
        }
    }

    pub(super) fn has_succeeded(&self) -> bool {
        matches!(&self.state, State::Ended(end) if end.code == 0)
    }

    /// Whether it has ended before, and waits to be restarted.
    pub(super) fn is_restarting(&self) -> bool {
        matches!(self.state, State::Waiting { .. }) && self.last.is_some()
    }

    pub(super) fn start(&mut self, now: Time) {
        if let State::Ended(ending) = &self.state {
            self.last = Some(ending.clone());
        }
        if self.last.is_some() {
            self.restarts += 1;
        }
        self.state = State::Running { since: now };
        self.ready = false;
    }

    pub(super) fn end(&mut self, code: i32, now: Time) {
        let started = match self.state {
            State::Running { since } => Some(since),
            _ => None,
        };
        let reason = Istr::interned(if code == 0 { "Completed" } else { "Error" });
        self.state = State::Ended(Ending { code, reason, started, finished: now });
        self.ready = self.role == Role::Init && code == 0;
    }

    /// Makes it wait to be restarted.
    pub(super) fn back_off(&mut self, message: &str) {
        if let State::Ended(ending) = &self.state {
            self.last = Some(ending.clone());
        }
        self.state = State::Waiting { reason: Istr::interned(BACK_OFF), message: Istr::new(message) };
        self.ready = false;
    }
}

// === impl State ===

impl State {
    fn read(state: &ContainerState) -> Option<Self> {
        if let Some(terminated) = &state.terminated {
            return Some(Self::Ended(Ending::read(terminated)));
        }
        if let Some(running) = &state.running {
            return Some(Self::Running { since: running.started_at.unwrap_or_default() });
        }
        let waiting = state.waiting.as_ref()?;
        Some(Self::Waiting { reason: waiting.reason.clone(), message: waiting.message.clone() })
    }
}

// === impl Ending ===

impl Ending {
    fn read(terminated: &crate::view::Terminated) -> Self {
        Self {
            code: terminated.exit_code,
            reason: terminated.reason.clone(),
            started: terminated.started_at,
            finished: terminated.finished_at.unwrap_or_default(),
        }
    }

    /// Returns how long it ran.
    pub(super) fn ran(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| self.finished.since(started))
    }
}

/// Returns when something is due that takes this long. A status has whole seconds only; what is not due at once is late
/// by up to a second, and never early. Kubelets poll once a second, too.
pub(super) fn due(since: Time, delay: Duration, now: MicroTime) -> MicroTime {
    if delay.is_zero() {
        return now;
    }
    MicroTime::from(since) + delay + Duration::from_secs(1)
}
