//! Quotas, claims of devices and times to live: what worlds have besides what their seeds gave before.
//!
//! They have randomness of their own, so that the rest of a world stays that of its seed.

use fastrand::Rng;

use super::others::some;
use super::{BEGINS, FIRST_OF_LATER, FIRST_PART, FIRST_TIME, LAST, OWNERS, OwnerKind, policy};
use crate::plan::{Edit, Operation, Options, Step, minutes, seconds};

/// What is mixed into the seed.
const SALT: u64 = 0x1a7e_5eed;
/// One such operation for so many others.
const ONE_IN: usize = 8;
/// A namespace seldom has more pods.
const PODS_MANY: u32 = 60;

/// What users do with quotas, claims of devices and finished Jobs.
pub(super) fn operations(seed: u64, options: &Options, count: usize) -> Vec<Step> {
    let mut random = Rng::with_seed(seed ^ SALT);
    let mut steps = Vec::new();
    for owner in FIRST_OF_LATER..OWNERS.len() {
        let at = BEGINS + random.u64(..FIRST_TIME.min(options.ends / FIRST_PART));
        steps.push(Step { at, operation: Operation::Create { owner, changes: shape(&mut random, owner) } });
    }
    for _ in 0..count / ONE_IN {
        let at = random.u64(BEGINS + seconds(30)..options.ends - LAST);
        let operation = operation(&mut random);
        // A quota that is used up is raised before long.
        if let Operation::Edit { owner, .. } = operation
            && OWNERS[owner].kind == OwnerKind::Quota
        {
            let at = (at + random.u64(..minutes(5))).min(options.ends - LAST);
            let changes = vec![Edit::PodsMax(PODS_MANY)];
            steps.push(Step { at, operation: Operation::Edit { owner, changes } });
        }
        steps.push(Step { at, operation });
    }
    steps
}

fn operation(random: &mut Rng) -> Operation {
    let owner = random.usize(FIRST_OF_LATER..OWNERS.len());
    match random.u32(..100) {
        0..35 => Operation::Edit { owner, changes: vec![edit(random, owner)] },
        35..60 => Operation::Edit { owner: some(random, OwnerKind::Job, None), changes: vec![time_to_live(random)] },
        60..75 => Operation::Create { owner, changes: shape(random, owner) },
        75..82 => Operation::Delete { owner, policy: policy(random) },
        82..90 => Operation::Recreate { owner, policy: policy(random), changes: shape(random, owner) },
        _ => {
            let owner = some(random, OwnerKind::DeviceSet, None);
            Operation::DeletePod { owner, pick: random.usize(..16), now: random.u8(..4) == 0 }
        }
    }
}

/// What a new owner is like.
pub(super) fn shape(random: &mut Rng, owner: usize) -> Vec<Edit> {
    match OWNERS[owner].kind {
        OwnerKind::Quota => vec![Edit::PodsMax(if random.bool() { PODS_MANY } else { pods_max(random) })],
        OwnerKind::DeviceSet => vec![Edit::Replicas(random.u32(..5))],
        OwnerKind::DeviceUser => vec![Edit::Ends { seconds: random.u32(5..120), code: random.u8(..2) }],
        _ => Vec::new(),
    }
}

/// One change.
pub(super) fn edit(random: &mut Rng, owner: usize) -> Edit {
    match OWNERS[owner].kind {
        OwnerKind::Quota => Edit::PodsMax(pods_max(random)),
        _ => Edit::Replicas(random.u32(..6)),
    }
}

/// Fewer pods than there are, sometimes.
fn pods_max(random: &mut Rng) -> u32 {
    random.u32(5..40)
}

fn time_to_live(random: &mut Rng) -> Edit {
    Edit::TimeToLive((random.u8(..5) > 0).then(|| random.u32(..90)))
}
