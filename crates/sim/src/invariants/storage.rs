//! Claims, volumes and attachments.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Uid};

use super::replicas::stays;
use super::{ATTACH_DETACH, CLASS_PROTECTION, Case, Findings, Rest, VOLUME_BINDER, Verdict};
use crate::world::{Claim, Object, Phase};

pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const VOLUMES: &str = "persistentvolumes";
const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";
const CLASSES: &str = "volumeattributesclasses.storage.k8s.io";
const PROTECTION: &str = "kubernetes.io/pvc-protection";
const PROTECTION_OF_VOLUMES: &str = "kubernetes.io/pv-protection";
const PROTECTION_OF_CLASSES: &str = "kubernetes.io/vac-protection";
const CLAIM_PROTECTION: &str = "persistentvolumeclaim-protection-controller";
const VOLUME_PROTECTION: &str = "persistentvolume-protection-controller";

/// "A PVC to PV binding is a one-to-one mapping, using a ClaimRef which is a bi-directional binding between the PersistentVolume
/// and the PersistentVolumeClaim." (website: Persistent Volumes)
///
/// Asked when the binder calls a claim bound: its volume is there and refers to this claim, by uid. Judged against the store
/// alone: the binder asks the server first.
pub(super) fn a_bound_claim_has_a_volume_of_its_own(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.is(CLAIMS) && case.by(&[VOLUME_BINDER])) else {
        return Verdict::NotMine;
    };
    let Some(is) = after.claim().filter(|is| is.is_bound()) else { return Verdict::NotMine };
    if before.claim().is_none_or(Claim::is_bound) {
        return Verdict::NotMine;
    }
    let history = case.world.history(VOLUMES, &ObjectKey::cluster(&is.volume));
    let refers = |volume: &Object| volume.volume().is_some_and(|volume| volume.claim_uid() == Some(&after.uid));
    let at_store = history.and_then(|history| history.now()).is_some_and(|volume| refers(volume));
    // A user may take the reference away between two writes of the binder.
    let as_shown = || history.is_some_and(|history| case.window().all_of(VOLUMES, history).ever(refers));
    Verdict::judge(at_store, as_shown, || format!("{after} is bound to {:?}, which is not its own", is.volume.as_str()))
}

/// "The Retain reclaim policy allows for manual reclamation of the resource. When the PersistentVolumeClaim is deleted, the
/// PersistentVolume still exists and the volume is considered "released". But it is not yet available for another claim because
/// the previous claimant's data remains on the volume." (website: Persistent Volumes)
///
/// Asked when the binder gives a volume to a claim: no other claim had it since it was last reclaimed, by recycling or by a user
/// who took the reference away; and no other claim that is there is bound to it. Judged against the store alone.
pub(super) fn a_volume_with_data_is_not_given_to_another_claim(case: &Case<'_>) -> Verdict {
    let Some(after) = case.step.after.as_ref().filter(|_| case.is(VOLUMES) && case.by(&[VOLUME_BINDER])) else {
        return Verdict::NotMine;
    };
    let uid_of = |object: &Object| object.volume().and_then(|volume| volume.claim_uid().cloned());
    let before = case.step.before.as_ref().and_then(|before| uid_of(before));
    let Some(given) = uid_of(after).filter(|given| before.as_ref() != Some(given)) else { return Verdict::NotMine };
    let is_of_another = |uid: &Uid| *uid != given;
    if let Some(before) = before.filter(is_of_another) {
        return Verdict::Violated(format!("{after} was given to the claim {before}, and is given to {given}"));
    }
    let had = case.memory.holders.get(&after.uid).filter(|held| is_of_another(held));
    if let Some(held) = had {
        return Verdict::Violated(format!("{after} has the data of the claim {held}, and is given to {given}"));
    }
    // A user who reserves a volume by name wants it so.
    let reserved = case.step.before.as_ref().and_then(|before| before.volume()?.claim.clone());
    if reserved.is_some_and(|(_, uid)| uid.is_none()) {
        return Verdict::Holds;
    }
    let is_bound = |claim: &&Arc<Object>| {
        claim.uid != given && claim.claim().is_some_and(|claim| claim.is_bound() && claim.volume == after.key.name)
    };
    // A volume that was made anew under a name is not the one that the claim lost.
    let is_same = |claim: &Object| case.memory.bound_to.get(&claim.uid).is_some_and(|volume| *volume == after.uid);
    let other = case.world.all(CLAIMS).filter(is_bound).find(|claim| is_same(claim));
    Verdict::at_store(other.is_none(), || match other {
        Some(other) => format!("{after} is given to {given}, and {other} is bound to it"),
        None => String::new(),
    })
}

/// "If a user deletes a PVC in active use by a Pod, the PVC is not removed immediately. PVC removal is postponed until the PVC is no
/// longer actively used by any Pods." (website: Persistent Volumes)
///
/// Asked when the protection controller takes its finalizer off: no pod on a node that has not ended uses the claim. Judged
/// against the store; staleness excuses pods that were not so at some time by what was shown.
pub(super) fn a_claim_in_use_stays(case: &Case<'_>) -> Verdict {
    let Some(before) = case.step.before.as_ref().filter(|_| case.is(CLAIMS) && case.by(&[CLAIM_PROTECTION])) else {
        return Verdict::NotMine;
    };
    let is_kept = case.step.after.as_ref().is_some_and(|after| after.has_finalizer(PROTECTION));
    if is_kept || !before.has_finalizer(PROTECTION) {
        return Verdict::NotMine;
    }
    let uses = |pod: &Object| {
        pod.key.namespace == before.key.namespace
            && pod.pod().is_some_and(|pod| {
                !pod.node.is_empty() && pod.phase != Phase::Ended && pod.claims.contains(&before.key.name)
            })
    };
    let window = case.window();
    let always_uses =
        |pod: &&Arc<Object>| window.of_key("pods", &pod.key).is_some_and(|versions| versions.always(uses));
    let users = || case.world.content(&before.key.namespace).filter(|pod| uses(pod));
    let found = users().find(always_uses);
    Verdict::judge(
        users().next().is_none(),
        || found.is_none(),
        || match found {
            Some(pod) => format!("{before} is let go, and {pod} uses it"),
            None => String::new(),
        },
    )
}

/// "PVC removal is postponed until the PVC is no longer actively used by any Pods. Also, if an admin deletes a PV that is bound to a
/// PVC, the PV is not removed immediately. PV removal is postponed until the PV is no longer bound to a PVC." (website: Persistent
/// Volumes)
///
/// At rest: a claim that is terminating and still protected is used by a pod on a node, and such a volume is bound.
pub(super) fn only_what_is_in_use_is_kept(rest: &Rest<'_>, found: &mut Findings) {
    let is_kept = |object: &Object, finalizer| object.is_terminating() && object.has_finalizer(finalizer);
    let claims = rest.world.all(CLAIMS).filter(|_| rest.options.runs(CLAIM_PROTECTION));
    for claim in claims.filter(|claim| is_kept(claim, PROTECTION)) {
        let uses = |pod: &&Arc<Object>| {
            pod.pod().is_some_and(|pod| {
                !pod.node.is_empty() && pod.phase != Phase::Ended && pod.claims.contains(&claim.key.name)
            })
        };
        let is_used = rest.world.content(&claim.key.namespace).any(|pod| uses(&pod));
        found.expect(is_used, || format!("{claim} is terminating and kept, and no pod uses it"));
    }
    let volumes = rest.world.all(VOLUMES).filter(|_| rest.options.runs(VOLUME_PROTECTION));
    for volume in volumes.filter(|volume| is_kept(volume, PROTECTION_OF_VOLUMES)) {
        let is_bound = volume.volume().is_some_and(|volume| volume.phase == "Bound");
        found.expect(is_bound, || format!("{volume} is terminating and kept, and not bound"));
    }
}

fn names_class(claim: &Object, class: &Istr) -> bool {
    claim.claim().is_some_and(|claim| claim.attributes == *class)
}

/// "Controller is controller that adds and removes VACProtectionFinalizer from VACs that are not used by any PV or PVC."
/// (upstream's `vac_protection_controller.go`)
///
/// Asked when the controller takes its finalizer off a class of volume attributes: no claim names it. Judged against the store;
/// staleness excuses claims that did not at some time by what was shown.
pub(super) fn a_class_in_use_stays(case: &Case<'_>) -> Verdict {
    let Some(before) = case.step.before.as_ref().filter(|_| case.is(CLASSES) && case.by(&[CLASS_PROTECTION])) else {
        return Verdict::NotMine;
    };
    let is_kept = case.step.after.as_ref().is_some_and(|after| after.has_finalizer(PROTECTION_OF_CLASSES));
    if is_kept || !before.has_finalizer(PROTECTION_OF_CLASSES) {
        return Verdict::NotMine;
    }
    let class = &before.key.name;
    let window = case.window();
    let always_names = |claim: &&Arc<Object>| {
        window.of_key(CLAIMS, &claim.key).is_some_and(|versions| versions.always(|claim| names_class(claim, class)))
    };
    let users = || case.world.all(CLAIMS).filter(|claim| names_class(claim, class));
    let found = users().find(always_names);
    Verdict::judge(
        users().next().is_none(),
        || found.is_none(),
        || match found {
            Some(claim) => format!("{before} is let go, and {claim} names it"),
            None => String::new(),
        },
    )
}

/// The sentence of [`a_class_in_use_stays`].
///
/// At rest: a class that stays has the finalizer, and a claim or a volume names one that is terminating.
pub(super) fn classes_are_protected_or_gone(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(CLASS_PROTECTION) {
        return;
    }
    for class in rest.world.all(CLASSES) {
        let is_right = if class.is_terminating() {
            let is_named = |volume: &Arc<Object>| {
                let raw = rest.world.raw(VOLUMES, &volume.key);
                raw.is_some_and(|raw| raw["spec"]["volumeAttributesClassName"] == *class.key.name)
            };
            rest.world.all(CLAIMS).any(|claim| names_class(claim, &class.key.name))
                || rest.world.all(VOLUMES).any(is_named)
        } else {
            class.has_finalizer(PROTECTION_OF_CLASSES)
        };
        found.expect(is_right, || {
            let is = if class.is_terminating() { "terminating, and nothing names it" } else { "not protected" };
            format!("{class} is {is}")
        });
    }
}

/// "ReadWriteOnce: the volume can be mounted as read-write by a single node." (website: Persistent Volumes)
///
/// Asked when the attach/detach controller attaches a volume of one writer: no attachment to another node is there and stays.
/// Judged against the store; staleness excuses attachments that were not there at some time by what was shown.
pub(super) fn a_volume_of_one_writer_is_attached_once(case: &Case<'_>) -> Verdict {
    let Some(created) = case.created().filter(|_| case.is(ATTACHMENTS) && case.by(&[ATTACH_DETACH])) else {
        return Verdict::NotMine;
    };
    let Some(is) = created.attachment() else { return Verdict::NotMine };
    let volume = case.world.get(VOLUMES, &ObjectKey::cluster(&is.volume)).and_then(|volume| volume.volume());
    if !volume.is_some_and(|volume| volume.has_one_writer) {
        return Verdict::NotMine;
    }
    let is_elsewhere = |other: &Object| {
        other.attachment().is_some_and(|other| other.volume == is.volume && other.node != is.node)
            && !other.is_terminating()
    };
    let other = case.world.all(ATTACHMENTS).find(|other| is_elsewhere(other));
    let window = case.window();
    let as_shown = || {
        let histories = case.world.all_histories(ATTACHMENTS);
        let mut there = histories.filter(|history| window.all_of(ATTACHMENTS, history).always(is_elsewhere));
        there.next().is_none()
    };
    Verdict::judge(other.is_none(), as_shown, || match other {
        Some(other) => format!("{created} attaches {} to {}, and {other} is there", is.volume, is.node),
        None => String::new(),
    })
}

/// The sentence of [`a_bound_claim_has_a_volume_of_its_own`].
///
/// At rest: a bound claim and its volume refer to each other, and no two claims have one volume. Where pods wait for their volumes, a
/// claim that a pod on a node uses is bound.
pub(super) fn claims_and_volumes_fit_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(VOLUME_BINDER) {
        return;
    }
    for object in rest.world.all(CLAIMS).filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(claim) = object.claim() else { continue };
        if !claim.is_bound() {
            if !rest.options.provisions {
                continue;
            }
            let uses = |pod: &Object| {
                pod.pod().is_some_and(|pod| !pod.node.is_empty() && pod.claims.contains(&object.key.name))
                    && pod.is_active_pod()
            };
            let is_used = rest.world.content(&object.key.namespace).any(|pod| uses(pod));
            found.expect(!is_used || claim.phase == "Lost", || {
                format!("{object} is used, and {:?}", claim.phase.as_str())
            });
            continue;
        }
        let volume = rest.world.get(VOLUMES, &ObjectKey::cluster(&claim.volume));
        let is_its = volume.and_then(|volume| volume.volume()).is_some_and(|it| it.claim_uid() == Some(&object.uid));
        found.expect(is_its, || format!("{object} is bound to {:?}, which is not its own", claim.volume.as_str()));
    }
    for object in rest.world.all(VOLUMES).filter(|object| !object.is_terminating()) {
        let Some(volume) = object.volume() else { continue };
        let Some((key, Some(uid))) = &volume.claim else { continue };
        let claim = rest.world.get(CLAIMS, key).filter(|claim| claim.uid == *uid);
        let is_told = match claim {
            Some(_) => volume.phase == "Bound",
            None => matches!(&*volume.phase, "Released" | "Failed"),
        };
        found.expect(is_told, || {
            let there = if claim.is_some() { "there" } else { "gone" };
            format!("{object} is {:?}, and its claim {key} is {there}", volume.phase.as_str())
        });
    }
}

fn names(claim: &Object, volume: &str) -> bool {
    claim.claim().is_some_and(|claim| claim.volume == volume)
}

/// "VolumeAttachment captures the intent to attach or detach the specified volume to/from the specified node."
/// (VolumeAttachment)
///
/// At rest: every attachment has a pod on its node that uses the volume and has not ended. A claim that is lost, because its volume
/// was pointed elsewhere by hand, still counts: the pod has the volume mounted, its node says so (`volumesInUse`), and a volume in use
/// is not detached.
pub(super) fn no_attachment_is_left_without_a_pod(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(ATTACH_DETACH) {
        return;
    }
    for object in rest.world.all(ATTACHMENTS) {
        let Some(attachment) = object.attachment() else { continue };
        let volume = rest.world.get(VOLUMES, &ObjectKey::cluster(&attachment.volume));
        // A manager that starts when the volume is gone cannot know what is attached, as upstream. A real attacher keeps the
        // volume by a finalizer; the simulated one does not.
        let Some(volume) = volume else { continue };
        let given_to = volume.volume().and_then(|volume| volume.claim.as_ref().map(|(key, _)| key.clone()));
        let is_of_volume = |claim: &ObjectKey| {
            given_to.as_ref() == Some(claim)
                || rest.world.get(CLAIMS, claim).is_some_and(|claim| names(claim, &attachment.volume))
        };
        let uses = |object: &Object| {
            let key = |name: &Istr| ObjectKey { namespace: object.key.namespace.clone(), name: name.clone() };
            object.pod().is_some_and(|pod| {
                pod.node == attachment.node
                    && pod.phase != Phase::Ended
                    && pod.claims.iter().any(|claim| is_of_volume(&key(claim)))
            })
        };
        let is_used = rest.world.all("pods").any(|pod| uses(pod));
        found.expect(is_used, || format!("{object} is left, and no pod on its node uses the volume"));
    }
}
