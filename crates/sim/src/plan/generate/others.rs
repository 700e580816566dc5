//! What autoscalers, requests for certificates, claims, volumes and the pods that use them are like, and how users change
//! them.

use fastrand::Rng;

use super::{OWNERS, OwnerKind};
use crate::certificates::ASKED;
use crate::plan::Edit;

/// What a new owner is like.
pub(super) fn shape(random: &mut Rng, owner: usize) -> Vec<Edit> {
    match OWNERS[owner].kind {
        OwnerKind::Autoscaler => {
            vec![bounds(random), Edit::ByLoad(random.bool()), adds_at_most(random), Edit::Demand(random.u32(..90))]
        }
        // Most are asked for by those who get them.
        OwnerKind::Request => vec![Edit::Asks([0, 0, 1, 1, 2, 3, 4, 5][random.usize(..ASKED.len() + 2)])],
        OwnerKind::Claim => {
            let is_static = random.u8(..3) > 0;
            let mut shape = vec![Edit::Static(is_static)];
            if is_static && random.u8(..3) == 0 {
                shape.push(Edit::Names(some(random, OwnerKind::Volume, None)));
            }
            shape
        }
        OwnerKind::Volume if random.u8(..3) == 0 => {
            vec![Edit::Reserved(Some(some(random, OwnerKind::Claim, None)))]
        }
        OwnerKind::ClaimUser => vec![Edit::Uses(some(random, OwnerKind::Claim, Some(OWNERS[owner].namespace)))],
        _ => Vec::new(),
    }
}

/// One change.
pub(super) fn edit(random: &mut Rng, owner: usize) -> Edit {
    match OWNERS[owner].kind {
        OwnerKind::Autoscaler => match random.u32(..100) {
            0..25 => bounds(random),
            25..70 => Edit::Demand(random.u32(..90)),
            70..80 => Edit::ByLoad(random.bool()),
            80..90 => adds_at_most(random),
            _ => {
                let namespace = Some(OWNERS[owner].namespace);
                let kind = if random.bool() { OwnerKind::Deployment } else { OwnerKind::StatefulSet };
                Edit::Scales(some(random, kind, namespace))
            }
        },
        OwnerKind::Request => Edit::Approved(random.u8(..4) > 0),
        OwnerKind::Volume => match random.u32(..3) {
            0 => Edit::Reserved(Some(some(random, OwnerKind::Claim, None))),
            _ => Edit::Reserved(None),
        },
        _ => Edit::Size(random.u32(1..4)),
    }
}

/// An owner of a kind, in a namespace if one is given.
pub(super) fn some(random: &mut Rng, kind: OwnerKind, namespace: Option<usize>) -> usize {
    let is_one = |owner: &usize| {
        OWNERS[*owner].kind == kind && namespace.is_none_or(|namespace| OWNERS[*owner].namespace == namespace)
    };
    let all: Vec<usize> = (0..OWNERS.len()).filter(is_one).collect();
    all[random.usize(..all.len())]
}

/// In thousandths of a CPU: less, as much and more than autoscalers want.
pub(super) fn load(random: &mut Rng) -> u32 {
    [20, 60, 100, 105, 150, 300][random.usize(..6)]
}

fn bounds(random: &mut Rng) -> Edit {
    let min = random.u32(..4);
    Edit::Bounds { min, max: min.max(1) + random.u32(..6) }
}

fn adds_at_most(random: &mut Rng) -> Edit {
    Edit::AddsAtMost((random.u8(..3) == 0).then(|| random.u32(1..3)))
}
