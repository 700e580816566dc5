//! Faults from seeds.

use fastrand::Rng;

use super::LAST;
use crate::plan::{Fault, Millis, Options, Target, Verb, Window, minutes, seconds};

/// What watches may be late, with how often it is chosen.
const WATCHED: [(&str, u32); 25] = [
    ("pods", 30),
    ("replicasets.apps", 20),
    ("deployments.apps", 12),
    ("replicationcontrollers", 5),
    ("services", 4),
    ("endpointslices.discovery.k8s.io", 5),
    ("endpoints", 4),
    ("nodes", 6),
    ("namespaces", 4),
    ("configmaps", 5),
    ("secrets", 3),
    ("serviceaccounts", 3),
    ("cakes.garbage.example.com", 2),
    ("statefulsets.apps", 6),
    ("daemonsets.apps", 5),
    ("controllerrevisions.apps", 4),
    ("persistentvolumeclaims", 3),
    ("jobs.batch", 10),
    ("cronjobs.batch", 4),
    ("poddisruptionbudgets.policy", 4),
    ("horizontalpodautoscalers.autoscaling", 4),
    ("persistentvolumes", 4),
    ("volumeattachments.storage.k8s.io", 3),
    ("certificatesigningrequests.certificates.k8s.io", 2),
    ("leases.coordination.k8s.io", 2),
];

/// What is written, and by whom.
const WRITTEN: [(&str, &str); 23] = [
    ("replicaset-controller", "pods"),
    ("replicaset-controller", "replicasets.apps"),
    ("deployment-controller", "replicasets.apps"),
    ("deployment-controller", "deployments.apps"),
    ("replicationcontroller-controller", "pods"),
    ("endpointslice-controller", "endpointslices.discovery.k8s.io"),
    ("endpoints-controller", "endpoints"),
    ("garbage-collector-controller", "configmaps"),
    ("namespace-controller", "namespaces"),
    ("statefulset-controller", "pods"),
    ("statefulset-controller", "statefulsets.apps"),
    ("daemonset-controller", "pods"),
    ("daemonset-controller", "daemonsets.apps"),
    ("job-controller", "pods"),
    ("job-controller", "jobs.batch"),
    ("cronjob-controller", "jobs.batch"),
    ("cronjob-controller", "cronjobs.batch"),
    ("disruption-controller", "poddisruptionbudgets.policy"),
    ("horizontal-pod-autoscaler-controller", "deployments.apps"),
    ("persistentvolume-binder-controller", "persistentvolumes"),
    ("persistentvolume-binder-controller", "persistentvolumeclaims"),
    ("persistentvolume-attach-detach-controller", "volumeattachments.storage.k8s.io"),
    ("node-lifecycle-controller", "nodes"),
];

/// What else watches may be late, of what came to the worlds later.
const WATCHED_FURTHER: [(&str, u32); 17] = [
    ("resourceclaims.resource.k8s.io", 6),
    ("resourceclaimtemplates.resource.k8s.io", 1),
    ("resourceslices.resource.k8s.io", 2),
    ("devicetaintrules.resource.k8s.io", 3),
    ("resourcequotas", 4),
    ("servicecidrs.networking.k8s.io", 4),
    ("ipaddresses.networking.k8s.io", 4),
    ("secrets", 4),
    ("configmaps", 3),
    ("serviceaccounts", 2),
    ("persistentvolumeclaims", 5),
    ("persistentvolumes", 3),
    ("pods", 6),
    ("jobs.batch", 2),
    ("clusterroles.rbac.authorization.k8s.io", 3),
    ("volumeattributesclasses.storage.k8s.io", 3),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", 2),
];

/// What else is written, and by whom.
const WRITTEN_FURTHER: [(&str, &str); 25] = [
    ("resourceclaim-controller", "resourceclaims.resource.k8s.io"),
    ("resourceclaim-controller", "pods"),
    ("resourcequota-controller", "resourcequotas"),
    ("ttl-after-finished-controller", "jobs.batch"),
    ("taint-eviction-controller", "pods"),
    ("device-taint-eviction-controller", "pods"),
    ("device-taint-eviction-controller", "devicetaintrules.resource.k8s.io"),
    ("pod-garbage-collector-controller", "pods"),
    ("ephemeral-volume-controller", "persistentvolumeclaims"),
    ("persistentvolumeclaim-protection-controller", "persistentvolumeclaims"),
    ("persistentvolume-protection-controller", "persistentvolumes"),
    ("persistentvolume-expander-controller", "persistentvolumeclaims"),
    ("volumeattributesclass-protection-controller", "volumeattributesclasses.storage.k8s.io"),
    ("service-cidr-controller", "servicecidrs.networking.k8s.io"),
    ("serviceaccount-controller", "serviceaccounts"),
    ("serviceaccount-token-controller", "secrets"),
    ("root-ca-certificate-publisher-controller", "configmaps"),
    ("bootstrap-signer-controller", "configmaps"),
    ("token-cleaner-controller", "secrets"),
    ("endpointslice-mirroring-controller", "endpointslices.discovery.k8s.io"),
    ("clusterrole-aggregation-controller", "clusterroles.rbac.authorization.k8s.io"),
    ("certificatesigningrequest-signing-controller", "certificatesigningrequests.certificates.k8s.io"),
    ("node-ipam-controller", "nodes"),
    ("ttl-controller", "nodes"),
    ("validatingadmissionpolicy-status-controller", "validatingadmissionpolicies.admissionregistration.k8s.io"),
];

/// How many of both, from the first, there are in worlds that are not furnished.
const WATCHED_ANYWAY: usize = 20;
const WRITTEN_ANYWAY: usize = 18;

/// The controllers whose statuses may be held back.
const WITH_STATUS: [&str; 8] = [
    "replicaset-controller",
    "deployment-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "disruption-controller",
];

/// Returns faults in the order of their time.
pub(super) fn faults(random: &mut Rng, options: &Options, count_max: usize) -> Vec<Window> {
    let mut windows = Vec::new();
    // One world in eight is calm: there, nothing is excused.
    let count = if random.u8(..8) == 0 { 0 } else { random.usize(3..count_max) };
    for _ in 0..count {
        let from = random.u64(..options.ends - LAST - minutes(1));
        let (length, on, fault) = fault(random, options);
        windows.push(Window { from, to: (from + length).min(options.ends - LAST), on, fault });
    }
    windows.sort_by_key(|window| (window.from, window.to));
    windows
}

/// Returns the faults that came later than the others, from a chance of their own: a seed means the same operations and the
/// same other faults as before. Two worlds in three have some.
pub(super) fn later_ones(seed: u64, options: &Options) -> Vec<Window> {
    let mut random = Rng::with_seed(seed ^ LATER_ONES);
    let count = random.usize(..3);
    let window = |_| {
        let manager = (random.u8(..3) > 0).then(|| random.usize(..options.managers));
        let targets = Targets { manager, options };
        let from = random.u64(..options.ends - LAST - minutes(1));
        let length = random.u64(seconds(5)..minutes(2));
        let one_in = 1 + random.u32(..5);
        let (on, fault) = if random.bool() {
            let code = [500, 502, 503, 504][random.usize(..4)];
            // Half of them within the wait for the next try.
            let after = if random.bool() { random.u64(2..500) } else { random.u64(500..seconds(10)) };
            (targets.some_write(&mut random), Fault::AnsweredThenDone(code, after, one_in))
        } else {
            let target = if random.bool() { targets.some_write(&mut random) } else { targets.everything() };
            (target, Fault::NeverAnswered(one_in + 1))
        };
        Window { from, to: (from + length).min(options.ends - LAST), on, fault }
    };
    (0..count).map(window).collect()
}

/// Returns faults of the watches and writes of the controllers that came to the worlds later, from a chance of their own.
pub(super) fn further_ones(seed: u64, options: &Options) -> Vec<Window> {
    let mut random = Rng::with_seed(seed ^ FURTHER_ONES);
    let count = random.usize(..5);
    let window = |_| {
        let manager = (random.u8(..3) > 0).then(|| random.usize(..options.managers));
        let from = random.u64(..options.ends - LAST - minutes(1));
        let (length, on, fault) =
            if random.bool() { further_watch(&mut random, manager) } else { further_write(&mut random, manager) };
        Window { from, to: (from + length).min(options.ends - LAST), on, fault }
    };
    (0..count).map(window).collect()
}

fn further_watch(random: &mut Rng, manager: Option<usize>) -> (Millis, Target, Fault) {
    let resource = Some(weighted(random, &WATCHED_FURTHER).to_owned());
    let on = Target { manager, resource, ..Target::default() };
    let (length, fault) = match random.u32(..12) {
        0..4 => (random.u64(minutes(1)..minutes(10)), Fault::WatchLate(lateness(random))),
        4..7 => (random.u64(seconds(10)..minutes(10)), Fault::WatchStill),
        7..8 => (random.u64(minutes(1)..minutes(5)), Fault::WatchRepeats),
        8..11 => (random.u64(seconds(5)..minutes(4)), Fault::WatchHides),
        _ => {
            let past = random.u64(seconds(1)..minutes(5));
            (random.u64(seconds(5)..seconds(45)), Fault::ListsFromThePast(past))
        }
    };
    (length, on, fault)
}

fn further_write(random: &mut Rng, manager: Option<usize>) -> (Millis, Target, Fault) {
    let (controller, resource) = WRITTEN_FURTHER[random.usize(..WRITTEN_FURTHER.len())];
    let controller = Some(controller.to_owned());
    // What it reads round the caches, too, sometimes.
    let resource = (random.u8(..3) > 0).then(|| resource.to_owned());
    let on = Target { manager, controller, resource, ..Target::default() };
    let one_in = 1 + random.u32(..4);
    let code = [500, 502, 503, 504][random.usize(..4)];
    let fault = match random.u32(..8) {
        0..2 => Fault::RepliesLost(one_in),
        2 => Fault::RequestsLost(one_in),
        3 => Fault::DoneThen(code, one_in),
        4 => Fault::RequestsLate(random.u64(100..seconds(10))),
        5 => Fault::AnsweredThenDone(code, random.u64(2..seconds(10)), one_in),
        6 => Fault::NeverAnswered(one_in + 1),
        _ => Fault::WebhookRefuses(one_in),
    };
    (random.u64(seconds(30)..minutes(5)), on, fault)
}

/// Tells the chance of the later faults from that of the others.
const LATER_ONES: u64 = 0x6c61_7465;
const FURTHER_ONES: u64 = 0x6675_7274;

/// Chooses what a fault is about, which concerns one manager or all.
struct Targets<'o> {
    manager: Option<usize>,
    options: &'o Options,
}

// === impl Targets ===

impl Targets<'_> {
    fn everything(&self) -> Target {
        Target { manager: self.manager, ..Target::default() }
    }

    fn some_watch(&self, random: &mut Rng) -> Target {
        let watched = if self.options.furnished { &WATCHED[..] } else { &WATCHED[..WATCHED_ANYWAY] };
        let resource = Some(weighted(random, watched).to_owned());
        Target { resource, ..self.everything() }
    }

    fn some_write(&self, random: &mut Rng) -> Target {
        let written = if self.options.furnished { WRITTEN.len() } else { WRITTEN_ANYWAY };
        let (controller, resource) = WRITTEN[random.usize(..written)];
        let verb = [Verb::Create, Verb::Update, Verb::Patch, Verb::Status, Verb::Delete][random.usize(..5)];
        match random.u32(..4) {
            0 => self.everything(),
            1 => Target { verb: Some(Verb::Create), resource: Some("pods".to_owned()), ..self.everything() },
            2 => Target { verb: Some(verb), ..self.everything() },
            _ => {
                let controller = Some(controller.to_owned());
                let resource = Some(resource.to_owned());
                Target { controller, resource, ..self.everything() }
            }
        }
    }

    fn some_manager(&self, random: &mut Rng) -> Target {
        Target { manager: Some(random.usize(..self.options.managers)), ..Target::default() }
    }

    fn some_status(random: &mut Rng) -> Target {
        let controller = Some(WITH_STATUS[random.usize(..WITH_STATUS.len())].to_owned());
        Target { controller, ..Target::default() }
    }
}

fn fault(random: &mut Rng, options: &Options) -> (Millis, Target, Fault) {
    // One in three is about all managers.
    let manager = (random.u8(..3) > 0).then(|| random.usize(..options.managers));
    let targets = Targets { manager, options };
    let one_in = 1 + random.u32(..5);
    let short = random.u64(seconds(5)..minutes(2));
    match random.u32(..100) {
        0..14 => (random.u64(minutes(1)..minutes(10)), targets.some_watch(random), Fault::WatchLate(lateness(random))),
        14..24 => (random.u64(seconds(10)..minutes(10)), targets.some_watch(random), Fault::WatchStill),
        24..28 => (seconds(1), targets.some_watch(random), Fault::WatchCut),
        28..33 => (random.u64(minutes(1)..minutes(5)), targets.some_watch(random), Fault::WatchRepeats),
        33..41 => (random.u64(seconds(5)..minutes(4)), targets.some_watch(random), Fault::WatchHides),
        // API servers are behind each other by seconds; for longer, it would be a store that was restored.
        41..46 => (
            random.u64(seconds(5)..seconds(45)),
            targets.some_watch(random),
            Fault::ListsFromThePast(random.u64(seconds(1)..minutes(5))),
        ),
        46..52 => (short, targets.some_write(random), Fault::RepliesLost(one_in)),
        52..56 => (short, targets.some_write(random), Fault::RequestsLost(one_in)),
        56..62 => (short, targets.some_write(random), Fault::DoneThen([500, 502, 503, 504][random.usize(..4)], one_in)),
        62..66 => (short, targets.some_write(random), Fault::RequestsLate(random.u64(100..seconds(10)))),
        66..69 => (random.u64(seconds(1)..minutes(2)), targets.everything(), Fault::ServerAway),
        69..71 => (random.u64(seconds(1)..minutes(2)), targets.everything(), Fault::ServerSilent),
        71..79 => {
            let fault = Fault::Killed { writes: random.u32(1..40), away: random.u64(seconds(1)..minutes(1)) };
            let target = targets.some_manager(random);
            (random.u64(seconds(30)..minutes(3)), target, fault)
        }
        79..84 => {
            let target = targets.some_manager(random);
            (random.u64(seconds(5)..seconds(90)), target, Fault::Frozen)
        }
        84..87 => (short, targets.everything(), Fault::Throttled(one_in)),
        87..90 => (random.u64(seconds(10)..minutes(4)), Target::default(), Fault::QuotaRefuses),
        90..93 => (short, targets.some_write(random), Fault::WebhookRefuses(one_in)),
        93..97 => {
            let target = Targets::some_status(random);
            (random.u64(seconds(10)..minutes(5)), target, Fault::StatusHeld)
        }
        _ => (
            random.u64(seconds(30)..minutes(5)),
            Target::default(),
            Fault::SlowKubelets(random.u64(seconds(1)..minutes(1))),
        ),
    }
}

/// From a tenth of a second to ten minutes, each order of magnitude as often as the others.
fn lateness(random: &mut Rng) -> Millis {
    const POWERS: [Millis; 4] = [100, seconds(1), seconds(10), seconds(100)];
    (POWERS[random.usize(..4)] * random.u64(1..=10)).min(minutes(10))
}

fn weighted(random: &mut Rng, choices: &[(&'static str, u32)]) -> &'static str {
    let total: u32 = choices.iter().map(|(_, weight)| weight).sum();
    let mut left = random.u32(..total);
    for (choice, weight) in choices {
        if left < *weight {
            return choice;
        }
        left -= weight;
    }
    choices[0].0
}
