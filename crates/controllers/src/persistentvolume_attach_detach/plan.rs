//! Pure: what to do about one volume on all nodes that it concerns.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman_base::{Istr, MicroTime};

use super::state::{Doing, OnNode, Volume};

/// The actions on a volume.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<(Istr, Step)>,
    /// The time of the next pass, if nothing changes.
    pub(super) wake: Option<MicroTime>,
}

/// The action on a volume on one node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// It is attached: the node's list shall have it.
    Report,
    /// It is to be detached: the node's list shall not have it any more.
    Withdraw,
    /// Ask the CSI driver to attach it.
    Create,
    /// The driver was asked: begin to wait.
    Await(Doing),
    /// It could not be attached.
    FailAttach(String),
    /// It could not be detached.
    FailDetach(String),
    /// Detach it.
    Detach { verify: bool, forced: Option<Forced> },
    /// Note that it shall be detached.
    Request,
    /// It is detached, or never was attached.
    Forget,
    /// It is attached to another node.
    Refuse { others: Vec<Istr> },
}

/// Why a volume is detached that may be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    Timeout,
    OutOfService,
}

/// The rules by which the controller decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether volumes are detached from unhealthy nodes after [`UNMOUNT_MAX`].
    pub(super) forces: bool,
    /// Whether attachments that are gone are noticed.
    pub(super) verifies: bool,
}

/// The time that a node has to unmount a volume.
pub(super) const UNMOUNT_MAX: Duration = Duration::from_mins(6);
/// The time that a CSI driver has to attach or detach.
pub(super) const DRIVER_MAX: Duration = Duration::from_mins(2);

struct Planner<'a> {
    volume: &'a Volume,
    rules: Rules,
    now: MicroTime,
    /// Whether something is under way that must end before the volume is attached elsewhere.
    is_busy: bool,
    plan: Plan,
}

/// Returns what to do about a volume: first it is detached from nodes that do not need it, then attached to those that do.
pub(super) fn plan(volume: &Volume, nodes: &BTreeMap<Istr, OnNode>, rules: Rules, now: MicroTime) -> Plan {
    let mut planner = Planner { volume, rules, now, is_busy: false, plan: Plan::default() };
    let is_free = |on: &OnNode| !on.is_wanted || !on.is_doing(Doing::Detach);
    // A pod that comes back waits for the end of what was begun.
    for (name, on) in nodes.iter().filter(|(_, on)| !is_free(on)) {
        planner.settle_detach(name, on);
    }
    for (name, on) in nodes.iter().filter(|(_, on)| !on.is_wanted) {
        planner.detach(name, on);
    }
    // What was begun is looked at first: another node waits for its end.
    let wanted = || nodes.iter().filter(|(_, on)| on.is_wanted && is_free(on));
    for (name, on) in wanted().filter(|(_, on)| on.is_doing(Doing::Attach)) {
        planner.attach(name, on, nodes);
    }
    for (name, on) in wanted().filter(|(_, on)| !on.is_doing(Doing::Attach)) {
        planner.attach(name, on, nodes);
    }
    planner.plan
}

// === impl Planner ===

impl Planner<'_> {
    fn add(&mut self, node: &Istr, step: Step) {
        self.plan.steps.push((node.clone(), step));
    }

    fn wake_at(&mut self, time: MicroTime) {
        self.plan.wake = Some(self.plan.wake.map_or(time, |wake| wake.min(time)));
    }

    /// Whether a detach that was begun is under way. What has become of it otherwise is a step.
    fn settle_detach(&mut self, node: &Istr, on: &OnNode) {
        let Some(begun) = on.begun(Doing::Detach) else { return };
        match &on.attachment {
            None => self.add(node, Step::Forget),
            Some(attachment) if attachment.detach_error.is_some() => {
                self.add(node, Step::FailDetach(attachment.detach_error.clone().unwrap_or_default()));
            }
            Some(_) if self.now >= begun + DRIVER_MAX => {
                // Upstream does not know the driver here.
                let message = self.volume.timed_out("unknown", "detach");
                self.add(node, Step::FailDetach(message));
            }
            Some(_) => {
                self.is_busy = true;
                self.wake_at(begun + DRIVER_MAX);
            }
        }
    }

    fn detach(&mut self, node: &Istr, on: &OnNode) {
        if on.is_doing(Doing::Detach) {
            return self.settle_detach(node, on);
        }
        if on.attachment.is_none() && !on.is_listed && !on.is_reported {
            return match on.begun(Doing::Attach) {
                // It was created, and the cache does not show it yet.
                Some(begun) if self.now < begun + DRIVER_MAX => {
                    self.is_busy = true;
                    self.wake_at(begun + DRIVER_MAX);
                }
                _ => self.add(node, Step::Forget),
            };
        }
        if let Some(until) = on.waits_to(Doing::Detach, self.now) {
            return self.wake_at(until);
        }
        if on.requested.is_none() {
            self.add(node, Step::Request);
        }
        let ends = on.requested.unwrap_or(self.now) + UNMOUNT_MAX;
        let is_forced = self.rules.forces && self.now > ends && !on.facts.is_ready;
        if on.facts.is_mounted && !is_forced && !on.facts.is_out_of_service {
            if self.rules.forces && self.now <= ends {
                self.wake_at(ends + Duration::from_micros(1));
            }
            return;
        }
        self.is_busy = true;
        if on.is_listed || on.is_reported {
            return self.add(node, Step::Withdraw);
        }
        match &on.attachment {
            Some(attachment) if attachment.is_terminating => match &attachment.detach_error {
                Some(error) => self.add(node, Step::FailDetach(error.clone())),
                None => {
                    self.wake_at(self.now + DRIVER_MAX);
                    self.add(node, Step::Await(Doing::Detach));
                }
            },
            _ => {
                self.wake_at(self.now + DRIVER_MAX);
                let forced = match on.facts.is_out_of_service {
                    _ if is_forced => Some(Forced::Timeout),
                    true => Some(Forced::OutOfService),
                    false => None,
                };
                self.add(node, Step::Detach { verify: forced.is_none(), forced });
            }
        }
    }

    fn attach(&mut self, node: &Istr, on: &OnNode, nodes: &BTreeMap<Istr, OnNode>) {
        if on.is_attached(self.volume.is_csi, self.rules.verifies) {
            if !on.is_reported || !on.is_settled() {
                self.add(node, Step::Report);
            }
            return;
        }
        if on.is_reported {
            // It was attached, and is not any more.
            self.add(node, Step::Withdraw);
        }
        if self.volume.is_exclusive {
            if self.is_busy {
                return;
            }
            let is_other = |(name, other): &(&Istr, &OnNode)| {
                *name != node && other.is_confirmed(self.volume.is_csi, self.rules.verifies)
            };
            let others: Vec<Istr> = nodes.iter().filter(is_other).map(|(name, _)| name.clone()).collect();
            if !others.is_empty() {
                if !on.is_refusal_reported {
                    self.add(node, Step::Refuse { others });
                }
                return;
            }
        }
        if let Some(until) = on.waits_to(Doing::Attach, self.now) {
            return self.wake_at(until);
        }
        if !self.volume.is_csi {
            self.is_busy = true;
            return self.add(node, Step::Report);
        }
        let begun = on.begun(Doing::Attach);
        match &on.attachment {
            Some(attachment) if attachment.is_terminating => {
                self.add(node, Step::FailAttach("volume attachment is being deleted".to_owned()));
            }
            Some(attachment) if attachment.attach_error.is_some() => {
                self.add(node, Step::FailAttach(attachment.attach_error.clone().unwrap_or_default()));
            }
            _ if begun.is_some_and(|begun| self.now >= begun + DRIVER_MAX) => {
                let message = self.volume.timed_out(&self.volume.driver, "attach");
                self.add(node, Step::FailAttach(message));
            }
            attachment => {
                self.is_busy = true;
                self.wake_at(begun.unwrap_or(self.now) + DRIVER_MAX);
                match (attachment, begun) {
                    (_, Some(_)) => {}
                    (Some(_), None) => self.add(node, Step::Await(Doing::Attach)),
                    (None, None) => self.add(node, Step::Create),
                }
            }
        }
    }
}
