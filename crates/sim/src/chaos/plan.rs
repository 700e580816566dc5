//! What happens in a real cluster, and when: made from a seed, for a time that people wait for.

use fastrand::Rng;

use crate::plan::{Edit, FULL, Fault, Millis, Operation, Size, Step, Target, Verb, Window, generate};

/// Everything that happens, on a clock that begins with the storm.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What users do.
    pub operations: Vec<Step>,
    /// What happens to processes, one after the other.
    pub blows: Vec<(Millis, Blow)>,
    /// The faults between managers and the API server.
    pub windows: Vec<Window>,
    /// When the storm is over.
    pub ends: Millis,
}

/// A fault of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The leading manager is killed; another process is started.
    LeaderKilled,
    /// The leading manager is stopped until another one has taken its lease, and a while longer.
    LeaderFrozen,
    /// The API server is killed and started again.
    ServerRestarted,
    /// The store is stopped for this time.
    StoreStopped(Millis),
}

/// How many operations there are per minute.
const OPERATIONS_PER_MINUTE: u64 = 120;
/// Longer ones would only be waited for.
const READY_DELAY_MAX: u32 = 5;
const MIN_READY_MAX: u32 = 3;
/// How long pods of Jobs run, and Jobs may: less than the time without a change after which a cluster counts as healed.
const RUN_TIME_MAX: u32 = 5;
const LIFETIME_MAX: u32 = 8;
/// The back-off after each failed pod of a Job is twice that of the one before, from ten seconds on.
const FAILURES_MAX: u32 = 1;
/// A process fault is followed by a time without one.
const BLOW_EVERY: Millis = 14_000;
/// The first owners are there, and at work.
const CALM: Millis = 5_000;
/// The time between the middle of a network fault and the start of the next: managers must make progress, too.
const PAUSE: Millis = 1_500;
const STORE_STOPPED: Millis = 8_000;

/// What watches may be late, beside those of pods.
const WATCHED: [&str; 10] = [
    "replicasets.apps",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "controllerrevisions.apps",
    "jobs.batch",
    "persistentvolumeclaims",
    "nodes",
    "endpointslices.discovery.k8s.io",
    "services",
];

// === impl Blow ===

impl Blow {
    /// The name under which it is counted.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeaderKilled => "leader killed",
            Self::LeaderFrozen => "leader frozen past its lease",
            Self::ServerRestarted => "API server restarted",
            Self::StoreStopped(_) => "etcd stopped",
        }
    }
}

/// Returns the plan of a seed, for a storm of this many milliseconds.
#[must_use]
pub fn plan(seed: u64, ends: Millis) -> Plan {
    let mut random = Rng::with_seed(seed ^ 0x5eed_c4a0);
    let blows = blows(&mut random, ends);
    Plan { operations: operations(seed, ends), windows: windows(&mut random, ends), blows, ends }
}

/// The operations of the simulator's world with this seed, as many as there is time for.
fn operations(seed: u64, ends: Millis) -> Vec<Step> {
    // Quotas and devices need what the worlds of the simulator are furnished with.
    let size = Size { later: false, ..FULL };
    let world = generate(seed, size);
    let count = usize::try_from(OPERATIONS_PER_MINUTE * ends / 60_000).unwrap_or(usize::MAX);
    let mut steps = world.operations;
    // More time than one world fills is filled by the next ones.
    let mut more = seed;
    while steps.len() < count {
        more = more.wrapping_add(1);
        let shift = steps.last().map_or(0, |step| step.at);
        let next = generate(more, size).operations;
        steps.extend(next.into_iter().map(|step| Step { at: step.at + shift, ..step }));
    }
    steps.truncate(count);
    let last = steps.last().map_or(1, |step| step.at).max(1);
    for step in &mut steps {
        step.at = step.at * ends / (last + 1);
        shorten(&mut step.operation);
    }
    steps
}

fn shorten(operation: &mut Operation) {
    let (Operation::Create { changes, .. } | Operation::Edit { changes, .. } | Operation::Recreate { changes, .. }) =
        operation
    else {
        return;
    };
    for change in changes {
        match change {
            Edit::ReadyDelay(seconds) => *seconds = (*seconds).min(READY_DELAY_MAX),
            Edit::MinReady(seconds) => *seconds = (*seconds).min(MIN_READY_MAX),
            Edit::Ends { seconds, .. } => *seconds = (*seconds).min(RUN_TIME_MAX),
            Edit::Lifetime(seconds) => *seconds = (*seconds).min(LIFETIME_MAX),
            Edit::FailuresMax(count) | Edit::IndexFailuresMax(count) => *count = (*count).min(FAILURES_MAX),
            _ => {}
        }
    }
}

/// The leader first, in both ways; then all process faults repeatedly, in random order.
fn blows(random: &mut Rng, ends: Millis) -> Vec<(Millis, Blow)> {
    let mut blows = Vec::new();
    let mut at = CALM;
    let mut left = vec![Blow::LeaderFrozen, Blow::LeaderKilled];
    while at + BLOW_EVERY <= ends {
        if left.is_empty() {
            left =
                vec![Blow::LeaderKilled, Blow::LeaderFrozen, Blow::ServerRestarted, Blow::StoreStopped(STORE_STOPPED)];
            random.shuffle(&mut left);
        }
        blows.extend(left.pop().map(|blow| (at, blow)));
        at += BLOW_EVERY;
    }
    blows
}

/// Network faults in random order: each kind as soon as there is time for it.
fn windows(random: &mut Rng, ends: Millis) -> Vec<Window> {
    let on = |resource: &str| Target { resource: Some(resource.to_owned()), ..Target::default() };
    let creates = || Target { verb: Some(Verb::Create), ..on("pods") };
    let mut windows = Vec::new();
    let mut at = CALM;
    let mut left: Vec<(Millis, Target, Fault)> = Vec::new();
    loop {
        if left.is_empty() {
            let some = WATCHED[random.usize(..WATCHED.len())];
            left = vec![
                (8_000, on("pods"), Fault::WatchLate(random.u64(500..4_000))),
                (8_000, on(some), Fault::WatchLate(random.u64(500..4_000))),
                (random.u64(8_000..45_000), on("pods"), Fault::WatchStill),
                (random.u64(8_000..20_000), on(some), Fault::WatchStill),
                (1_000, Target::default(), Fault::WatchCut),
                (10_000, creates(), Fault::DoneThen([500, 502, 503, 504][random.usize(..4)], 2)),
                (8_000, Target::default(), Fault::DoneThen([500, 503][random.usize(..2)], 4)),
                (10_000, creates(), Fault::RepliesLost(2)),
                (8_000, Target::default(), Fault::RepliesLost(4)),
                (random.u64(3_000..9_000), Target::default(), Fault::ServerSilent),
                (2_000, Target::default(), Fault::ServerAway),
            ];
            random.shuffle(&mut left);
        }
        let Some((length, on, fault)) = left.pop() else { break };
        if at >= ends {
            break;
        }
        windows.push(Window { from: at, to: (at + length).min(ends), on, fault });
        // They overlap: half of each is over when the next begins.
        at += length / 2 + PAUSE;
    }
    windows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_one_plan_within_its_time_with_every_blow_and_fault_in_two_minutes() {
        let ends = 120_000;
        let one = plan(7, ends);
        let same = plan(7, ends);
        let other = plan(8, ends);
        assert_eq!((&one.operations, &one.windows, &one.blows), (&same.operations, &same.windows, &same.blows));
        assert_ne!(one.operations, other.operations);
        assert_eq!(one.operations.len(), 240);
        assert!(one.operations.iter().all(|step| step.at < ends));
        assert!(one.operations.is_sorted_by_key(|step| step.at));
        assert!(one.windows.iter().all(|window| window.from < window.to && window.to <= ends));
        let blows: BTreeSet<_> = one.blows.iter().map(|(_, blow)| blow.name()).collect();
        assert_eq!(blows.len(), 4);
        let faults: BTreeSet<_> = one.windows.iter().map(|window| window.fault.name()).collect();
        assert_eq!(faults.len(), 7, "{faults:?}");
    }
}
