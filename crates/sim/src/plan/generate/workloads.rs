//! What StatefulSets, DaemonSets, Jobs, CronJobs, budgets and roles are like, and how users change them.

use fastrand::Rng;

use super::{OWNERS, OwnerKind, ready_delay, selected};
use crate::plan::{Concurrency, Edit, Share};

/// What a new owner is like.
pub(super) fn shape(random: &mut Rng, owner: usize) -> Vec<Edit> {
    match OWNERS[owner].kind {
        OwnerKind::StatefulSet => stateful_set(random),
        OwnerKind::DaemonSet => {
            let mut shape = vec![Edit::ReadyDelay(ready_delay(random)), strategy(random)];
            if random.u8(..3) == 0 {
                shape.push(Edit::MinReady(random.u32(..15)));
            }
            shape
        }
        OwnerKind::Job => job(random),
        OwnerKind::CronJob => vec![
            Edit::EveryMinutes(random.u32(1..=4)),
            concurrency(random),
            ends(random, 100),
            Edit::Kept { succeeded: random.u32(..3), failed: random.u32(..2) },
        ],
        OwnerKind::Budget => vec![Edit::Selects(selected(random, owner)), budget(random)],
        OwnerKind::External => vec![Edit::Addresses(random.u32(..5))],
        _ => Vec::new(),
    }
}

/// One change.
pub(super) fn edit(random: &mut Rng, owner: usize) -> Edit {
    match OWNERS[owner].kind {
        OwnerKind::StatefulSet => match random.u32(..100) {
            0..35 => Edit::Replicas(ordinals(random)),
            35..60 => Edit::Image(random.u32(..5)),
            60..66 => Edit::Env(random.u32(..5)),
            66..70 => Edit::ReadyDelay(ready_delay(random)),
            70..73 => Edit::NeverReady(random.bool()),
            73..81 => Edit::Partition(random.u32(..4)),
            81..85 => Edit::OnDelete(random.bool()),
            85..89 => Edit::FirstOrdinal(random.u32(..3)),
            89..93 => Edit::Retention { deleted: random.bool(), scaled: random.bool() },
            93..95 => Edit::MinReady(random.u32(..15)),
            95..97 => Edit::History(random.u32(..4)),
            _ => unavailable(random),
        },
        OwnerKind::DaemonSet => match random.u32(..100) {
            0..45 => Edit::Image(random.u32(..5)),
            45..55 => Edit::Env(random.u32(..5)),
            55..67 => Edit::NodeSelector([None, Some(true), Some(false)][random.usize(..3)]),
            67..72 => Edit::ReadyDelay(ready_delay(random)),
            72..75 => Edit::NeverReady(random.bool()),
            75..88 => strategy(random),
            88..92 => Edit::OnDelete(random.bool()),
            92..96 => Edit::MinReady(random.u32(..15)),
            _ => Edit::History(random.u32(..4)),
        },
        OwnerKind::Job => match random.u32(..10) {
            0..4 => Edit::Parallelism(random.u32(..5)),
            4..6 => Edit::Completions(random.u32(1..6)),
            6..7 => Edit::Lifetime(random.u32(60..400)),
            _ => Edit::Suspended(random.u8(..3) == 0),
        },
        OwnerKind::CronJob => match random.u32(..10) {
            0..2 => Edit::EveryMinutes(random.u32(1..=4)),
            2..4 => concurrency(random),
            4..6 => Edit::Suspended(random.u8(..3) == 0),
            6..8 => Edit::Kept { succeeded: random.u32(..3), failed: random.u32(..2) },
            _ => ends(random, 100),
        },
        OwnerKind::Budget => match random.u32(..3) {
            0 => Edit::Selects(selected(random, owner)),
            _ => budget(random),
        },
        OwnerKind::External => Edit::Addresses(random.u32(..5)),
        _ => Edit::Rules(random.u32(..8)),
    }
}

fn stateful_set(random: &mut Rng) -> Vec<Edit> {
    let mut shape = vec![Edit::Replicas(ordinals(random)), Edit::ReadyDelay(ready_delay(random))];
    if random.u8(..3) == 0 {
        shape.push(Edit::Parallel);
    }
    if random.bool() {
        shape.push(Edit::Claims);
        shape.push(Edit::Retention { deleted: random.bool(), scaled: random.bool() });
    }
    if random.u8(..3) == 0 {
        shape.push(Edit::Partition(random.u32(..3)));
    }
    if random.u8(..3) == 0 {
        shape.push(unavailable(random));
    }
    if random.u8(..3) == 0 {
        shape.push(Edit::MinReady(random.u32(..15)));
    }
    shape
}

fn job(random: &mut Rng) -> Vec<Edit> {
    let mut shape = vec![Edit::Parallelism(random.u32(1..4)), ends(random, 60), Edit::FailuresMax(random.u32(..4))];
    let is_indexed = random.bool();
    if is_indexed {
        shape.push(Edit::Indexed);
    }
    if is_indexed || random.u8(..4) > 0 {
        shape.push(Edit::Completions(random.u32(1..6)));
    }
    if is_indexed && random.bool() {
        shape.push(Edit::IndexFailuresMax(random.u32(..3)));
    }
    if random.u8(..3) == 0 {
        shape.push(Edit::FailurePolicy);
    }
    if random.u8(..6) == 0 {
        shape.push(Edit::Suspended(true));
    }
    shape
}

/// How pods end: most succeed, some fail, some never end.
fn ends(random: &mut Rng, seconds_max: u32) -> Edit {
    let code = [0, 0, 0, 0, 1, 42][random.usize(..6)];
    Edit::Ends { seconds: random.u32(1..seconds_max), code }
}

fn ordinals(random: &mut Rng) -> u32 {
    if random.u8(..10) == 0 { 0 } else { random.u32(1..6) }
}

fn unavailable(random: &mut Rng) -> Edit {
    let unavailable = match random.u32(..2) {
        0 => Share::Count(random.u32(1..4)),
        _ => Share::Percent([25, 50, 100][random.usize(..3)]),
    };
    Edit::Strategy { recreate: false, surge: Share::Count(0), unavailable }
}

/// A DaemonSet has either a surge or pods that may be missing.
fn strategy(random: &mut Rng) -> Edit {
    if random.bool() {
        return unavailable(random);
    }
    let surge = match random.u32(..2) {
        0 => Share::Count(random.u32(1..3)),
        _ => Share::Percent([25, 50, 100][random.usize(..3)]),
    };
    Edit::Strategy { recreate: false, surge, unavailable: Share::Count(0) }
}

fn concurrency(random: &mut Rng) -> Edit {
    Edit::Concurrency([Concurrency::Allow, Concurrency::Forbid, Concurrency::Replace][random.usize(..3)])
}

fn budget(random: &mut Rng) -> Edit {
    let share = match random.u32(..3) {
        0..2 => Share::Count(random.u32(..5)),
        _ => Share::Percent([0, 25, 50, 100][random.usize(..4)]),
    };
    if random.bool() { Edit::AvailableMin(share) } else { Edit::UnavailableMax(share) }
}
