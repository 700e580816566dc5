//! Plans from seeds.

mod faults;
mod further;
mod later;
mod others;
mod workloads;

use fastrand::Rng;

use super::{
    Edit, Fault, Millis, Operation, Options, Plan, Propagation, Share, Step, Target, Window, minutes, seconds,
};

pub(crate) use further::{RULE, RULES};

/// Something that users make and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// What it is.
    pub kind: OwnerKind,
    /// The number of its namespace.
    pub namespace: usize,
    /// Its name.
    pub name: &'static str,
}

/// What kind of owner it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// A Deployment.
    Deployment,
    /// A ReplicaSet without owner.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// A Service.
    Service,
    /// A ServiceAccount with a secret for its token.
    Account,
    /// A ConfigMap that owns others, which own others.
    Tree,
    /// A custom object that owns ConfigMaps.
    Custom,
    /// A StatefulSet.
    StatefulSet,
    /// A DaemonSet.
    DaemonSet,
    /// A Job.
    Job,
    /// A CronJob.
    CronJob,
    /// A PodDisruptionBudget.
    Budget,
    /// A Service without selector, with Endpoints that users write.
    External,
    /// A ClusterRole that is the sum of others.
    Role,
    /// A HorizontalPodAutoscaler.
    Autoscaler,
    /// A CertificateSigningRequest.
    Request,
    /// A PersistentVolumeClaim.
    Claim,
    /// A PersistentVolume.
    Volume,
    /// A pod without owner that uses a claim.
    ClaimUser,
    /// A ResourceQuota.
    Quota,
    /// A ReplicaSet whose pods each have a claim of a device, by a template.
    DeviceSet,
    /// A ResourceClaim that pods share.
    DeviceClaim,
    /// A pod without owner that shares a claim of a device, and ends by itself.
    DeviceUser,
}

// === impl OwnerKind ===

impl OwnerKind {
    /// Whether only furnished worlds have it.
    #[must_use]
    pub const fn is_furnished(self) -> bool {
        matches!(
            self,
            Self::Autoscaler
                | Self::Request
                | Self::Claim
                | Self::Volume
                | Self::ClaimUser
                | Self::Quota
                | Self::DeviceSet
                | Self::DeviceClaim
                | Self::DeviceUser
        )
    }
}

const fn owner(kind: OwnerKind, namespace: usize, name: &'static str) -> Owner {
    Owner { kind, namespace, name }
}

/// The owners that there can be in a world.
pub const OWNERS: [Owner; 54] = [
    owner(OwnerKind::Deployment, 0, "web"),
    owner(OwnerKind::Deployment, 0, "api"),
    owner(OwnerKind::Deployment, 0, "shop"),
    owner(OwnerKind::Deployment, 1, "mail"),
    owner(OwnerKind::Deployment, 1, "feed"),
    owner(OwnerKind::Deployment, 2, "cart"),
    owner(OwnerKind::Deployment, 2, "blog"),
    owner(OwnerKind::ReplicaSet, 0, "cache"),
    owner(OwnerKind::ReplicaSet, 1, "proxy"),
    owner(OwnerKind::ReplicaSet, 2, "queue"),
    owner(OwnerKind::ReplicationController, 0, "old"),
    owner(OwnerKind::ReplicationController, 1, "older"),
    owner(OwnerKind::Service, 0, "web-svc"),
    owner(OwnerKind::Service, 0, "api-svc"),
    owner(OwnerKind::Service, 1, "mail-svc"),
    owner(OwnerKind::Account, 0, "robot"),
    owner(OwnerKind::Account, 1, "bot"),
    owner(OwnerKind::Tree, 0, "oak"),
    owner(OwnerKind::Tree, 1, "elm"),
    owner(OwnerKind::Custom, 0, "cake"),
    owner(OwnerKind::StatefulSet, 0, "db"),
    owner(OwnerKind::StatefulSet, 1, "ring"),
    owner(OwnerKind::DaemonSet, 0, "agent"),
    owner(OwnerKind::DaemonSet, 2, "probe"),
    owner(OwnerKind::Job, 0, "sums"),
    owner(OwnerKind::Job, 1, "etl"),
    owner(OwnerKind::Job, 2, "render"),
    owner(OwnerKind::CronJob, 0, "tick"),
    owner(OwnerKind::CronJob, 1, "tock"),
    owner(OwnerKind::Budget, 0, "floor"),
    owner(OwnerKind::Budget, 1, "base"),
    owner(OwnerKind::External, 0, "outside"),
    owner(OwnerKind::Role, 0, "sum-of-roles"),
    owner(OwnerKind::Autoscaler, 0, "web-scaler"),
    owner(OwnerKind::Autoscaler, 0, "db-scaler"),
    owner(OwnerKind::Autoscaler, 1, "mail-scaler"),
    owner(OwnerKind::Request, 0, "kubelet-request"),
    owner(OwnerKind::Request, 0, "client-request"),
    owner(OwnerKind::Claim, 0, "disk"),
    owner(OwnerKind::Claim, 0, "spare"),
    owner(OwnerKind::Claim, 1, "tape"),
    owner(OwnerKind::Volume, 0, "volume-a"),
    owner(OwnerKind::Volume, 0, "volume-b"),
    owner(OwnerKind::Volume, 0, "volume-c"),
    owner(OwnerKind::ClaimUser, 0, "reader"),
    owner(OwnerKind::ClaimUser, 0, "writer"),
    owner(OwnerKind::ClaimUser, 1, "copier"),
    owner(OwnerKind::Quota, 0, "cap"),
    owner(OwnerKind::Quota, 1, "lid"),
    owner(OwnerKind::DeviceSet, 0, "trainer"),
    owner(OwnerKind::DeviceSet, 0, "tuner"),
    owner(OwnerKind::DeviceClaim, 0, "shared-device"),
    owner(OwnerKind::DeviceUser, 0, "sampler"),
    owner(OwnerKind::DeviceUser, 0, "counter"),
];

/// The autoscalers among the owners, each with the owner that it scales unless a user says otherwise.
const HOMES: [(usize, usize); 3] = [(33, 0), (34, 20), (35, 3)];

/// Returns the owner that an autoscaler scales unless a user says otherwise.
#[must_use]
pub fn home_of(autoscaler: usize) -> usize {
    HOMES.iter().find(|(scaler, _)| *scaler == autoscaler).map_or(0, |(_, home)| *home)
}

/// The first autoscaler among the owners: what comes from there on is changed less often.
const FIRST_OF_OTHERS: usize = 33;
/// The first owner that worlds have besides what their seeds gave before.
const FIRST_OF_LATER: usize = 47;
/// One in so many changes of an autoscaler is one of the load of what it scales.
const LOAD_ONE_IN: u8 = 4;
/// One in so many changes is about one of them.
const OTHERS_ONE_IN: u8 = 5;

/// The first StatefulSet among the owners, and the first budget: those between have pods, too.
const FIRST_STATEFUL: usize = 20;
const FIRST_BUDGET: usize = 29;

/// The owners that have pods.
const WITH_PODS: [usize; 21] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20, 21, 22, 23, 24, 25, 26, 27, 28];

/// The namespaces of the owners.
pub const NAMESPACES: [&str; 3] = ["alpha", "beta", "gamma"];

/// Resources of which one object may be unreadable.
const UNREADABLE: [&str; 3] = ["pods", "services", "configmaps"];
/// No world lasts so long.
const FOR_EVER: Millis = minutes(1_000_000);

/// How large a world is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How many operations there are.
    pub operations: usize,
    /// How many faults there are at most.
    pub faults_max: usize,
    /// How long users and faults are at work.
    pub ends: Millis,
    /// Whether nodes serve metrics, provision and attach volumes and have devices, and users use all that.
    pub furnished: bool,
    /// Whether there are quotas, claims of devices, times to live and what few controllers are about, too.
    pub later: bool,
}

/// An hour of virtual time, with healing.
pub const FULL: Size = Size { operations: 200, faults_max: 24, ends: minutes(30), furnished: true, later: true };
/// For the default suite, which compiles for debugging.
pub const SMALL: Size = Size { operations: 80, faults_max: 12, ends: minutes(10), furnished: false, later: false };

/// In this part of the storm owners are made first, and within this time.
const FIRST_PART: Millis = 10;
const FIRST_TIME: Millis = minutes(4);
/// How many operations and faults there are in an hour of a long world.
const OPERATIONS_PER_HOUR: usize = 60;
const FAULTS_PER_HOUR: usize = 4;
/// No operation before the server is ready.
const BEGINS: Millis = seconds(5);
/// How long users hold an owner with a finalizer at most.
const HELD_MAX: Millis = minutes(5);
/// Operations and faults leave the last minute of the storm alone, so that they are over when it is.
const LAST: Millis = seconds(60);

// === impl Size ===

impl Size {
    /// A long world: operations all the time, and a fault now and then.
    #[must_use]
    pub fn of_hours(hours: usize) -> Self {
        let hours = hours.max(1);
        let ends = minutes(60 * u64::try_from(hours).unwrap_or(1));
        let operations = OWNERS.len() + OPERATIONS_PER_HOUR * hours;
        Self { operations, faults_max: FAULTS_PER_HOUR * hours, ends, furnished: true, later: true }
    }
}

/// The most pods that a roll-out replaces one by one.
const STEPS_MAX: u64 = 20;

/// How much longer a roll-out may take because a clock is behind: a pod with `minReadySeconds` became ready in the future of
/// that clock, so each step waits for as long as the clock is behind. Upstream waits as well.
fn slow_rollout(options: &Options) -> Millis {
    let behind = options.skew_seconds.iter().map(|skew| skew.min(&0).unsigned_abs()).max().unwrap_or(0);
    seconds(behind * STEPS_MAX)
}

/// The world of a seed.
#[must_use]
pub fn generate(seed: u64, size: Size) -> Plan {
    let mut random = Rng::with_seed(seed);
    let managers = [1, 1, 2, 2, 3][random.usize(..5)];
    let skewed = random.u8(..4) == 0;
    let skew_seconds = (0..managers).map(|_| if skewed { random.i64(-300..=300) } else { 0 }).collect();
    let nodes = random.usize(3..=5);
    let furnished = size.furnished;
    let mut options = Options { managers, nodes, furnished, skew_seconds, ends: size.ends, ..Options::default() };
    options.heals_within += slow_rollout(&options);
    let mut operations = operations(&mut random, &options, size.operations);
    let mut faults = faults::faults(&mut random, &options, size.faults_max);
    // It stays when the storm is over.
    if random.u8(..4) == 0 {
        let resource = Some(UNREADABLE[random.usize(..UNREADABLE.len())].to_owned());
        let on = Target { resource, ..Target::default() };
        faults.push(Window { from: random.u64(..options.ends / 2), to: FOR_EVER, on, fault: Fault::Unreadable });
    }
    faults.extend(faults::later_ones(seed, &options));
    if size.later {
        faults.extend(faults::further_ones(seed, &options));
        operations.extend(later::operations(seed, &options, size.operations));
        operations.extend(further::operations(seed, &options, size.operations));
        operations.sort_by_key(|step| step.at);
    }
    Plan { seed, options, operations, faults }
}

fn operations(random: &mut Rng, options: &Options, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let owners = if options.furnished { FIRST_OF_LATER } else { FIRST_OF_OTHERS };
    for owner in 0..owners {
        let at = BEGINS + random.u64(..FIRST_TIME.min(options.ends / FIRST_PART));
        steps.push(Step { at, operation: Operation::Create { owner, changes: shape(random, owner) } });
    }
    while steps.len() < count {
        let at = random.u64(BEGINS + seconds(30)..options.ends - LAST);
        let operation = operation(random, options);
        // What a user does seldom comes alone: half of it is followed by more to the same owner within seconds.
        if let Operation::Edit { owner, .. } = operation
            && random.bool()
        {
            let at = (at + random.u64(..seconds(20))).min(options.ends - LAST);
            steps.push(Step { at, operation: Operation::Edit { owner, changes: edits(random, owner) } });
        }
        // Who sets a finalizer takes it off again: by chance, that would hardly ever be the same owner.
        if let Operation::Hold { owner } = operation {
            let at = (at + random.u64(..HELD_MAX)).min(options.ends - LAST);
            steps.push(Step { at, operation: Operation::Release { owner } });
        }
        steps.push(Step { at, operation });
    }
    steps.sort_by_key(|step| step.at);
    steps
}

/// An owner that something happens to; none of those that only a furnished world has, if it is another one.
fn some_owner(random: &mut Rng, options: &Options) -> usize {
    match options.furnished && random.u8(..OTHERS_ONE_IN) == 0 {
        true => random.usize(FIRST_OF_OTHERS..FIRST_OF_LATER),
        false => random.usize(..FIRST_OF_OTHERS),
    }
}

fn operation(random: &mut Rng, options: &Options) -> Operation {
    let owner = some_owner(random, options);
    if OWNERS[owner].kind == OwnerKind::Autoscaler && random.u8(..LOAD_ONE_IN) == 0 {
        return Operation::Edit { owner: home_of(owner), changes: vec![Edit::Load(others::load(random))] };
    }
    let node = random.usize(..options.nodes);
    let namespace = random.usize(1..NAMESPACES.len());
    let pick = random.usize(..16);
    match random.u32(..100) {
        0..45 => Operation::Edit { owner, changes: edits(random, owner) },
        45..49 => Operation::Undo { owner: random.usize(..7) },
        49..54 => Operation::Delete { owner, policy: policy(random) },
        54..60 => Operation::Recreate { owner, policy: policy(random), changes: shape(random, owner) },
        60..64 => Operation::Create { owner, changes: shape(random, owner) },
        64..69 => Operation::Relabel { owner: with_pods(random), pick },
        69..74 => Operation::Adopt { owner: with_pods(random), pick },
        74..79 => Operation::DeletePod { owner: with_pods(random), pick, now: random.u8(..4) == 0 },
        79..81 => Operation::Evict { owner: with_pods(random), pick },
        81..83 => Operation::FailPod { owner: random.usize(FIRST_STATEFUL..FIRST_BUDGET), pick },
        83..84 => Operation::LabelNode { node, slow: random.bool() },
        84..85 => Operation::TaintNode { node, ends_pods: [None, Some(false), Some(true)][random.usize(..3)] },
        85..87 => Operation::Hold { owner },
        87..88 => Operation::Release { owner },
        88..89 => Operation::DeleteNamespace { namespace },
        89..91 => Operation::CreateNamespace { namespace },
        91..93 => Operation::DeleteKept { namespace: random.usize(..NAMESPACES.len()), account: random.bool() },
        93..94 => Operation::RemoveNode { node },
        94..95 => Operation::SilenceNode { node },
        95..96 => Operation::Drain { node },
        96..98 => Operation::ResumeNode { node },
        98..99 => Operation::Uncordon { node },
        _ => Operation::RunPods { namespace, pick },
    }
}

fn with_pods(random: &mut Rng) -> usize {
    WITH_PODS[random.usize(..WITH_PODS.len())]
}

fn policy(random: &mut Rng) -> Propagation {
    [Propagation::Background, Propagation::Foreground, Propagation::Orphan][random.usize(..3)]
}

/// What a new owner is like.
fn shape(random: &mut Rng, owner: usize) -> Vec<Edit> {
    match OWNERS[owner].kind {
        OwnerKind::Deployment => {
            let mut shape =
                vec![Edit::Replicas(replicas(random)), Edit::ReadyDelay(ready_delay(random)), strategy(random)];
            if random.bool() {
                shape.push(Edit::MinReady(random.u32(..20)));
            }
            if random.u8(..3) == 0 {
                shape.push(Edit::History(random.u32(..4)));
            }
            if random.u8(..3) == 0 {
                shape.push(Edit::Deadline(random.u32(60..300)));
            }
            shape
        }
        OwnerKind::ReplicaSet | OwnerKind::ReplicationController => {
            vec![Edit::Replicas(replicas(random)), Edit::ReadyDelay(ready_delay(random))]
        }
        OwnerKind::Service => vec![Edit::Selects(selected(random, owner)), Edit::Port(random.u16(8000..8010))],
        OwnerKind::Account => Vec::new(),
        OwnerKind::Tree | OwnerKind::Custom => vec![Edit::Children(random.u32(1..4))],
        OwnerKind::StatefulSet
        | OwnerKind::DaemonSet
        | OwnerKind::Job
        | OwnerKind::CronJob
        | OwnerKind::Budget
        | OwnerKind::External
        | OwnerKind::Role => workloads::shape(random, owner),
        OwnerKind::Autoscaler | OwnerKind::Request | OwnerKind::Claim | OwnerKind::Volume | OwnerKind::ClaimUser => {
            others::shape(random, owner)
        }
        OwnerKind::Quota | OwnerKind::DeviceSet | OwnerKind::DeviceClaim | OwnerKind::DeviceUser => {
            later::shape(random, owner)
        }
    }
}

fn edits(random: &mut Rng, owner: usize) -> Vec<Edit> {
    let count = if random.u8(..3) == 0 { random.usize(2..=3) } else { 1 };
    (0..count).map(|_| edit(random, owner)).collect()
}

fn edit(random: &mut Rng, owner: usize) -> Edit {
    match OWNERS[owner].kind {
        OwnerKind::Deployment => match random.u32(..100) {
            0..30 => Edit::Replicas(replicas(random)),
            30..50 => Edit::Image(random.u32(..5)),
            50..58 => Edit::Env(random.u32(..5)),
            58..68 => Edit::NodeSelector([None, Some(true), Some(false)][random.usize(..3)]),
            68..72 => Edit::ReadyDelay(ready_delay(random)),
            72..75 => Edit::NeverReady(random.bool()),
            75..82 => strategy(random),
            82..91 => Edit::Paused(random.u8(..3) == 0),
            91..94 => Edit::MinReady(random.u32(..20)),
            94..97 => Edit::History(random.u32(..4)),
            _ => Edit::Deadline(random.u32(60..300)),
        },
        OwnerKind::ReplicaSet | OwnerKind::ReplicationController => match random.u32(..10) {
            0..7 => Edit::Replicas(replicas(random)),
            7..8 => Edit::MinReady(random.u32(..20)),
            8..9 => Edit::ReadyDelay(ready_delay(random)),
            _ => Edit::Image(random.u32(..5)),
        },
        OwnerKind::Service => match random.u32(..3) {
            0..2 => Edit::Selects(selected(random, owner)),
            _ => Edit::Port(random.u16(8000..8010)),
        },
        OwnerKind::Account => Edit::Children(1),
        OwnerKind::Tree | OwnerKind::Custom => match random.u32(..2) {
            0 => Edit::Children(random.u32(1..5)),
            _ => Edit::SharedWith([17, 18, 19][random.usize(..3)]),
        },
        OwnerKind::StatefulSet
        | OwnerKind::DaemonSet
        | OwnerKind::Job
        | OwnerKind::CronJob
        | OwnerKind::Budget
        | OwnerKind::External
        | OwnerKind::Role => workloads::edit(random, owner),
        OwnerKind::Autoscaler | OwnerKind::Request | OwnerKind::Claim | OwnerKind::Volume | OwnerKind::ClaimUser => {
            others::edit(random, owner)
        }
        OwnerKind::Quota | OwnerKind::DeviceSet | OwnerKind::DeviceClaim | OwnerKind::DeviceUser => {
            later::edit(random, owner)
        }
    }
}

/// A pod owner in the namespace of a Service.
fn selected(random: &mut Rng, service: usize) -> usize {
    let namespace = OWNERS[service].namespace;
    let candidates = (0..12).chain(FIRST_STATEFUL..FIRST_STATEFUL + 2);
    let candidates: Vec<usize> = candidates.filter(|owner| OWNERS[*owner].namespace == namespace).collect();
    candidates[random.usize(..candidates.len())]
}

fn replicas(random: &mut Rng) -> u32 {
    match random.u32(..20) {
        0..2 => 0,
        2..17 => random.u32(1..=8),
        _ => random.u32(9..=20),
    }
}

/// In seconds.
fn ready_delay(random: &mut Rng) -> u32 {
    match random.u32(..3) {
        0 => 0,
        1 => random.u32(1..10),
        _ => random.u32(10..40),
    }
}

fn strategy(random: &mut Rng) -> Edit {
    let share = |random: &mut Rng| match random.u32(..3) {
        0 => Share::Count(random.u32(0..4)),
        _ => Share::Percent([0, 10, 25, 25, 50, 100][random.usize(..6)]),
    };
    let surge = share(random);
    let mut unavailable = share(random);
    let is_zero = |share| matches!(share, Share::Count(0) | Share::Percent(0));
    if is_zero(surge) && is_zero(unavailable) {
        unavailable = Share::Count(1);
    }
    Edit::Strategy { recreate: random.u8(..8) == 0, surge, unavailable }
}
