//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey, ResourceVersion};
use steersman_informer::{Change, End};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::StorageClassView;

use super::matching::{self, Wanted};
use super::plan::{self, ClaimStep, Note, Reclaim, Unnamed, VolumeStep};
use super::plugin::{self, Deleter, Provisioner};
use super::recycle::{self, Recycler, Step};
use super::shelf::Shelf;
use super::{Options, class, edit, map};
use crate::test_objects::{NOW, decode, merged, pod};

const COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

fn claim_json(more: Value) -> Value {
    let base = json!({
        "metadata": { "name": "data", "namespace": "default", "uid": "c", "resourceVersion": "5" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        "status": { "phase": "Pending" },
    });
    merged(base, more)
}

fn claim(more: Value) -> PersistentVolumeClaimView {
    decode(claim_json(more))
}

fn volume_json(name: &str, size: &str, more: Value) -> Value {
    let base = json!({
        "metadata": { "name": name, "uid": name, "resourceVersion": "10" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": size },
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": "/a" },
        },
        "status": { "phase": "Available" },
    });
    merged(base, more)
}

fn volume(name: &str, size: &str, more: Value) -> Arc<PersistentVolumeView> {
    Arc::new(decode(volume_json(name, size, more)))
}

/// A volume that refers to the claim `data` with this uid.
fn referring(uid: &str, more: Value) -> Arc<PersistentVolumeView> {
    let claim = json!({ "namespace": "default", "name": "data", "uid": uid });
    volume("disk", "1Gi", merged(json!({ "spec": { "claimRef": claim } }), more))
}

fn storage_class(name: &str, more: Value) -> StorageClassView {
    let base =
        json!({ "metadata": { "name": name }, "provisioner": "example.com/disk", "volumeBindingMode": "Immediate" });
    decode(merged(base, more))
}

fn find(volumes: &[Arc<PersistentVolumeView>], claim: &PersistentVolumeClaimView) -> Option<String> {
    let mut shelf = Shelf::default();
    for volume in volumes {
        shelf.note(volume);
    }
    let found = shelf.find(&Wanted::by(claim).unwrap(), |_| true);
    found.map(|volume| volume.metadata.name.to_string())
}

#[test]
fn the_smallest_volume_with_the_fewest_modes_suits_best() {
    let modes = |modes: &[&str]| json!({ "spec": { "accessModes": modes } });
    let volumes = [
        volume("large", "10Gi", json!({})),
        volume("small", "512Mi", json!({})),
        volume("b", "2Gi", json!({})),
        volume("a", "2Gi", json!({})),
        volume("shared", "1Gi", modes(&["ReadWriteMany", "ReadWriteOnce"])),
        volume("gold", "1Gi", json!({ "spec": { "storageClassName": "gold" } })),
        volume(
            "beta",
            "1Gi",
            json!({ "metadata": { "annotations": {
            "volume.beta.kubernetes.io/storage-class": "silver",
        } } }),
        ),
        volume("block", "1Gi", json!({ "spec": { "volumeMode": "Block" } })),
        volume("fast", "1Gi", json!({ "spec": { "volumeAttributesClassName": "fast" } })),
        volume("taken", "1Gi", json!({ "spec": { "claimRef": { "name": "x", "namespace": "y" } } })),
        volume("new", "1Gi", json!({ "status": { "phase": "Pending" } })),
        volume("leaving", "1Gi", json!({ "metadata": { "deletionTimestamp": NOW } })),
        volume("labelled", "3Gi", json!({ "metadata": { "labels": { "tier": "db" } } })),
    ];
    let check = |more: Value, want: Option<&str>| {
        assert_eq!(find(&volumes, &claim(json!({ "spec": more.clone() }))).as_deref(), want, "{more}");
    };
    check(json!({}), Some("a"));
    check(json!({ "resources": { "requests": { "storage": "4Gi" } } }), Some("large"));
    check(json!({ "resources": { "requests": { "storage": "40Gi" } } }), None);
    check(json!({ "accessModes": ["ReadWriteMany"] }), Some("shared"));
    check(json!({ "accessModes": ["ReadWriteMany", "ReadWriteOnce"] }), Some("shared"));
    check(json!({ "accessModes": ["ReadOnlyMany"] }), None);
    check(json!({ "storageClassName": "gold" }), Some("gold"));
    check(json!({ "storageClassName": "" }), Some("a"));
    check(json!({ "storageClassName": "silver" }), Some("beta"));
    check(json!({ "storageClassName": "bronze" }), None);
    check(json!({ "volumeMode": "Block" }), Some("block"));
    check(json!({ "volumeMode": "Filesystem" }), Some("a"));
    check(json!({ "volumeAttributesClassName": "fast" }), Some("fast"));
    check(json!({ "selector": { "matchLabels": { "tier": "db" } } }), Some("labelled"));
    check(json!({ "selector": { "matchLabels": { "tier": "web" } } }), None);
}

#[test]
fn a_volume_that_was_given_away_is_not_offered_from_a_stale_cache() {
    let free = |version: &str| volume("disk", "1Gi", json!({ "metadata": { "resourceVersion": version } }));
    let wanted = Wanted::by(&claim(json!({}))).unwrap();
    let mut shelf = Shelf::default();
    assert!(shelf.note(&free("10")));
    assert!(!shelf.note(&free("11")), "it was there before");
    shelf.give(&"disk".into(), ResourceVersion::new("15"));
    assert!(shelf.find(&wanted, |_| true).is_none());
    shelf.note(&free("14"));
    assert!(shelf.find(&wanted, |_| true).is_none(), "older than the write");
    shelf.note(&free("16"));
    assert!(shelf.find(&wanted, |_| true).is_some(), "it is free again");
    assert!(shelf.find(&wanted, |_| false).is_none(), "it is another claim's");
    shelf.forget(&"disk".into());
    assert!(shelf.find(&wanted, |_| true).is_none());
}

#[test]
fn a_free_volume_wakes_the_largest_claim_that_it_suits() {
    let sized = |name: &str, size: &str, more: Value| {
        let base =
            json!({ "metadata": { "name": name }, "spec": { "resources": { "requests": { "storage": size } } } });
        Arc::new(claim(merged(base, more)))
    };
    let claims = [
        sized("small", "1Gi", json!({})),
        sized("middle", "2Gi", json!({})),
        sized("picky", "3Gi", json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } })),
        sized("shared", "3Gi", json!({ "spec": { "accessModes": ["ReadWriteMany"] } })),
        sized("large", "9Gi", json!({})),
        sized("gold", "1Gi", json!({ "spec": { "storageClassName": "gold" } })),
    ];
    let key = |claim: &PersistentVolumeClaimView| claim.metadata.key();
    let by_key = |wanted: &ObjectKey| claims.iter().find(|claim| key(claim) == *wanted).cloned();
    let mut shelf = Shelf::default();
    claims.iter().for_each(|claim| shelf.wait(&key(claim), &Wanted::by(claim).unwrap()));
    let mut wake = |size: &str| shelf.wake(&volume("disk", size, json!({})), by_key).map(|key| key.name.to_string());
    assert_eq!(wake("4Gi").as_deref(), Some("middle"));
    assert_eq!(wake("4Gi").as_deref(), Some("small"), "one that is awake is not waked again");
    assert_eq!(wake("4Gi"), None);
    assert_eq!(wake("9Gi").as_deref(), Some("large"));
    shelf.wait(&key(&claims[0]), &Wanted::by(&claims[0]).unwrap());
    shelf.leave(&key(&claims[0]));
    assert_eq!(shelf.wake(&volume("disk", "1Gi", json!({})), by_key), None);
}

#[test]
fn a_claim_without_a_volume_waits_or_asks_for_one() {
    let late = storage_class("late", json!({ "volumeBindingMode": "WaitForFirstConsumer" }));
    let now = storage_class("now", json!({}));
    let default = storage_class("default", json!({}));
    let check = |name: &str, more: Value, class: Option<&StorageClassView>, unscheduled: &[&str], want: ClaimStep| {
        let claim = claim(more);
        let unscheduled: Vec<_> = unscheduled.iter().map(|pod| (*pod).into()).collect();
        let observed =
            |found| Unnamed { claim: &claim, found, class, default: Some(&default), unscheduled: &unscheduled };
        assert_eq!(plan::unnamed_claim(observed(None)), want, "{name}");
        let found = volume("disk", "1Gi", json!({}));
        assert_eq!(plan::unnamed_claim(observed(Some(found.clone()))), ClaimStep::Bind(found), "{name}, with a volume");
    };
    let of = |class: &str| json!({ "spec": { "storageClassName": class } });
    let wait = |reason, text: &str| ClaimStep::Wait(Some(Note::normal(reason, text)));
    let first = "waiting for first consumer to be created before binding";
    check("no class", json!({}), None, &[], ClaimStep::Assign("default".into()));
    let none = "no persistent volumes available for this claim and no storage class is set";
    check("asks for no class", of(""), None, &[], wait("FailedBinding", none));
    check("a class", of("now"), Some(&now), &[], ClaimStep::Provision);
    check("a class that does not exist", of("other"), None, &[], ClaimStep::Provision);
    check("no pod yet", of("late"), Some(&late), &[], wait("WaitForFirstConsumer", first));
    let one = "waiting for pod web to be scheduled";
    check("a pod", of("late"), Some(&late), &["web"], wait("WaitForPodScheduled", one));
    let two = "waiting for pods a,b to be scheduled";
    check("two pods", of("late"), Some(&late), &["a", "b"], wait("WaitForPodScheduled", two));
    let selected = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "node-1" } } });
    check("a node is chosen", merged(of("late"), selected), Some(&late), &[], ClaimStep::Provision);
    let beta = json!({ "metadata": { "annotations": { "volume.beta.kubernetes.io/storage-class": "" } } });
    check("asks for no class, as of old", beta, None, &[], wait("FailedBinding", none));
    let bare = claim(json!({}));
    let alone = Unnamed { claim: &bare, found: None, class: None, default: None, unscheduled: &[] };
    assert_eq!(plan::unnamed_claim(alone), wait("FailedBinding", none), "there is no default class");
}

#[test]
fn a_claim_that_names_a_volume_gets_it_if_it_suits() {
    let named = |more: Value| claim(merged(json!({ "spec": { "volumeName": "disk" } }), more));
    let check = |name: &str, claim: &PersistentVolumeClaimView, volume: &Arc<PersistentVolumeView>, want: &str| {
        let got = match plan::named_claim(claim, Some(volume), false) {
            ClaimStep::Bind(_) => "bind".to_owned(),
            ClaimStep::Wait(Some(note)) if note.is_warning => format!("{}: {}", note.reason, note.text),
            ClaimStep::Refuse(note, error) => format!("{}: {error}", note.reason),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(got, want, "{name}");
    };
    let free = |size: &str, more: Value| volume("disk", size, more);
    let refused = |why: &str| format!("VolumeMismatch: Cannot bind to requested volume \"disk\": {why}");
    check("free", &named(json!({})), &free("1Gi", json!({})), "bind");
    check("too small", &named(json!({})), &free("1Mi", json!({})), &refused("requested PV is too small"));
    let gold = json!({ "spec": { "storageClassName": "gold" } });
    check("class", &named(json!({})), &free("1Gi", gold), &refused("storageClassName does not match"));
    let fast = json!({ "spec": { "volumeAttributesClassName": "fast" } });
    let other_attributes = refused("volumeAttributesClassName does not match");
    check("attributes", &named(fast.clone()), &free("1Gi", json!({})), &other_attributes);
    check(
        "no attributes are empty ones",
        &named(json!({})),
        &free(
            "1Gi",
            json!({ "spec": {
        "volumeAttributesClassName": "",
    } }),
        ),
        "bind",
    );
    let block = json!({ "spec": { "volumeMode": "Block" } });
    check("mode", &named(json!({})), &free("1Gi", block), &refused("incompatible volumeMode"));
    let shared = json!({ "spec": { "accessModes": ["ReadWriteMany"] } });
    check("access", &named(shared), &free("1Gi", json!({})), &refused("incompatible accessMode"));
    let leaving = json!({ "metadata": { "deletionTimestamp": NOW } });
    let marked = refused("the volume is marked for deletion \"disk\"");
    check("terminating", &named(json!({})), &free("1Gi", leaving), &marked);
    check("reserved for it", &named(json!({})), &referring("", json!({})), "bind");
    check("begun", &named(json!({})), &referring("c", json!({})), "bind");
    let taken = "FailedBinding: volume \"disk\" already bound to a different claim.";
    check("of an earlier claim of its name", &named(json!({})), &referring("old", json!({})), taken);
    let by_controller = json!({ "metadata": { "annotations": { BY_CONTROLLER: "yes" } } });
    let invalid = "FailedBinding: invalid binding of claim \"default/data\" to volume \"disk\": volume already claimed by \
                   \"default/data\"";
    check("bound by a controller", &named(by_controller), &referring("old", json!({})), invalid);
    assert_eq!(plan::named_claim(&named(json!({})), None, false), ClaimStep::Wait(None), "it may come");
    let freed = plan::named_claim(&named(json!({})), Some(&free("1Gi", json!({}))), true);
    let text = "volume \"disk\" already bound to a different claim.".to_owned();
    let note = Note::warning("FailedBinding", text);
    assert_eq!(freed, ClaimStep::Wait(Some(note)), "its reference was removed by hand");
}

#[test]
fn a_bound_claim_keeps_its_volume_or_loses_it() {
    let completed = |more: Value| {
        let base = json!({ "metadata": { "annotations": { COMPLETED: "yes" } }, "spec": { "volumeName": "disk" } });
        claim(merged(base, more))
    };
    let check =
        |name: &str, claim: &PersistentVolumeClaimView, volume: Option<Arc<PersistentVolumeView>>, want: &str| {
            let got = match plan::bound_claim(claim, volume.as_ref()) {
                ClaimStep::Bind(_) => "bind",
                ClaimStep::Lost(note) => note.reason,
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(got, want, "{name}");
        };
    check("its own", &completed(json!({})), Some(referring("c", json!({}))), "bind");
    check("no reference", &completed(json!({})), Some(volume("disk", "1Gi", json!({}))), "bind");
    check("of an earlier claim", &completed(json!({})), Some(referring("old", json!({}))), "ClaimMisbound");
    let reserved = volume("disk", "1Gi", json!({ "spec": { "claimRef": { "namespace": "default", "name": "data" } } }));
    check("without its uid", &completed(json!({})), Some(reserved), "ClaimMisbound");
    check("gone", &completed(json!({})), None, "ClaimLost");
    check("no name", &completed(json!({ "spec": { "volumeName": "" } })), None, "ClaimLost");
}

#[test]
fn only_a_volume_that_is_free_or_the_claims_own_may_be_bound() {
    let check = |name: &str, of_claim: Value, of_volume: &Arc<PersistentVolumeView>, want: bool| {
        assert_eq!(plan::may_bind(of_volume, &claim(of_claim)), want, "{name}");
    };
    let named = || json!({ "spec": { "volumeName": "disk" } });
    let completed = || merged(named(), json!({ "metadata": { "annotations": { COMPLETED: "yes" } } }));
    let released = json!({ "status": { "phase": "Released" } });
    check("free", json!({}), &volume("disk", "1Gi", json!({})), true);
    check("not free", json!({}), &volume("disk", "1Gi", released.clone()), false);
    check("too small", json!({}), &volume("disk", "1Mi", json!({})), false);
    check(
        "other labels",
        json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } }),
        &volume("disk", "1Gi", json!({})),
        false,
    );
    check("names another", json!({ "spec": { "volumeName": "other" } }), &volume("disk", "1Gi", json!({})), false);
    check("names it", named(), &volume("disk", "1Gi", json!({})), true);
    check("reserved", json!({}), &referring("", json!({})), true);
    check("its own", json!({}), &referring("c", json!({})), true);
    check("of an earlier claim of the name", json!({}), &referring("old", released), false);
    check("of an earlier claim, named", named(), &referring("old", json!({})), false);
    check("complete", completed(), &referring("c", json!({})), true);
    check("complete, and reserved for the name", completed(), &referring("", json!({})), false);
    check("complete, without reference", completed(), &volume("disk", "1Gi", json!({})), true);
}

#[test]
fn a_volume_follows_its_claim() {
    let bound_to = |name: &str| claim(json!({ "spec": { "volumeName": name } }));
    let dynamic = json!({
        "metadata": { "annotations": { PROVISIONED_BY: "example.com/disk" } },
        "spec": { "persistentVolumeReclaimPolicy": "Delete" },
    });
    let check =
        |name: &str, volume: &PersistentVolumeView, claim: Option<&PersistentVolumeClaimView>, want: VolumeStep| {
            assert_eq!(plan::volume(volume, claim), want, "{name}");
        };
    check("free", &volume("disk", "1Gi", json!({})), None, VolumeStep::Phase("Available"));
    check("reserved", &referring("", json!({})), None, VolumeStep::Phase("Available"));
    check("its claim is gone", &referring("c", json!({})), None, VolumeStep::Release);
    check("bound", &referring("c", json!({})), Some(&bound_to("disk")), VolumeStep::Phase("Bound"));
    check("half bound", &referring("c", json!({})), Some(&claim(json!({}))), VolumeStep::Nothing);
    check("its claim has another", &referring("c", json!({})), Some(&bound_to("other")), VolumeStep::Unbind);
    check("and it was provisioned", &referring("c", dynamic), Some(&bound_to("other")), VolumeStep::Release);
    let block = referring("c", json!({ "spec": { "volumeMode": "Block" } }));
    let VolumeStep::Mismatch(of_volume, of_claim) = plan::volume(&block, Some(&claim(json!({})))) else { panic!() };
    assert_eq!(
        [of_volume.text, of_claim.text],
        [
            "Cannot bind PersistentVolume to requested PersistentVolumeClaim \"data\" due to incompatible volumeMode.",
            "Cannot bind PersistentVolume \"disk\" to requested PersistentVolumeClaim due to incompatible volumeMode.",
        ]
    );
}

#[test]
fn a_released_volume_is_kept_recycled_deleted_or_failed() {
    let check = |name: &str, policy: &str, more: Value, want: &str| {
        let base = json!({ "spec": { "persistentVolumeReclaimPolicy": policy } });
        let got = match plan::reclaim(&referring("c", merged(base, more))) {
            Reclaim::Nothing => "nothing".to_owned(),
            Reclaim::Recycle => "recycle".to_owned(),
            Reclaim::DeleteHostPath => "delete host path".to_owned(),
            Reclaim::Fail(note) => format!("{}: {}", note.reason, note.text),
        };
        assert_eq!(got, want, "{name}");
    };
    let source = |source: Value| merged(json!({ "spec": { "hostPath": null } }), json!({ "spec": source }));
    let by = |name: &str| json!({ "metadata": { "annotations": { PROVISIONED_BY: name } } });
    check("retained", "Retain", json!({}), "nothing");
    check("host path", "Recycle", json!({}), "recycle");
    check("NFS", "Recycle", source(json!({ "nfs": { "server": "s", "path": "/" } })), "recycle");
    let no_recycler = "VolumeFailedRecycle: No recycler plugin found for the volume!";
    check("CSI", "Recycle", source(json!({ "csi": { "driver": "d" } })), no_recycler);
    check("external", "Delete", by("example.com/disk"), "nothing");
    check("CSI, static", "Delete", source(json!({ "csi": { "driver": "d" } })), "nothing");
    check("host path", "Delete", json!({}), "delete host path");
    let failed = "VolumeFailedDelete: error getting deleter volume plugin for volume \"disk\": ";
    let nfs = source(json!({ "nfs": { "server": "s", "path": "/" } }));
    check("NFS", "Delete", nfs, &format!("{failed}no deletable volume plugin matched"));
    let local = source(json!({ "local": { "path": "/a" } }));
    check("local", "Delete", local, &format!("{failed}no volume plugin matched"));
    let unknown = "VolumeFailedDelete: no volume plugin matched name: kubernetes.io/quobyte";
    check("of a plug-in that is gone", "Delete", by("kubernetes.io/quobyte"), unknown);
    let migrated = json!({ "metadata": { "annotations": { "pv.kubernetes.io/migrated-to": "d" } } });
    check("migrated", "Delete", migrated, "nothing");
    let strange = "VolumeUnknownReclaimPolicy: Volume has unrecognized PersistentVolumeReclaimPolicy";
    check("strange", "Burn", json!({}), strange);
}

#[test]
fn plugins_are_found_by_name_and_by_source() {
    let of = |provisioner: &str| plugin::provisioner(&storage_class("a", json!({ "provisioner": provisioner })));
    let external = |name: &str| Ok(Provisioner::External(name.to_owned()));
    assert_eq!(of("example.com/disk"), external("example.com/disk"));
    assert_eq!(of("kubernetes.io/gce-pd"), external("pd.csi.storage.gke.io"));
    assert_eq!(of("kubernetes.io/host-path"), Ok(Provisioner::HostPath));
    assert_eq!(of("kubernetes.io/nfs"), Err("no provisionable volume plugin matched".to_owned()));
    let none = "no volume plugin matched name: kubernetes.io/no-provisioner";
    assert_eq!(of("kubernetes.io/no-provisioner"), Err(none.to_owned()));
    let by = |name: &str| referring("c", json!({ "metadata": { "annotations": { PROVISIONED_BY: name } } }));
    assert_eq!(plugin::deleter(&by("kubernetes.io/host-path")), Ok(Deleter::HostPath));
    let gce = storage_class("a", json!({ "provisioner": "kubernetes.io/gce-pd" }));
    assert_eq!(plugin::measured_name(&by("x"), Some(&gce)), "pd.csi.storage.gke.io");
    assert_eq!(plugin::measured_name(&by("x"), None), "N/A");
}

#[test]
fn the_finalizers_say_who_deletes() {
    const IN_TREE: &str = "kubernetes.io/pv-controller";
    const EXTERNAL: &str = "external-provisioner.volume.kubernetes.io/finalizer";
    let check = |by: Option<&str>, policy: &str, held: &[&str], want: Option<&[&str]>| {
        let annotations = by.map_or(json!({}), |by| json!({ PROVISIONED_BY: by }));
        let volume = volume(
            "disk",
            "1Gi",
            json!({
                "metadata": { "annotations": annotations, "finalizers": held },
                "spec": { "persistentVolumeReclaimPolicy": policy },
            }),
        );
        let got = plan::finalizers(&volume);
        let got = got.as_ref().map(|all| all.iter().map(Istr::as_str).collect::<Vec<_>>());
        assert_eq!(got.as_deref(), want, "{by:?} {policy} {held:?}");
    };
    check(None, "Delete", &[], None);
    check(Some("example.com/disk"), "Delete", &[EXTERNAL], None);
    check(Some("kubernetes.io/gce-pd"), "Delete", &["a", IN_TREE, EXTERNAL], Some(&["a", EXTERNAL]));
    check(Some("kubernetes.io/host-path"), "Delete", &["a"], Some(&["a", IN_TREE]));
    check(Some("kubernetes.io/host-path"), "Delete", &[IN_TREE], None);
    check(Some("kubernetes.io/host-path"), "Retain", &[IN_TREE, "a"], Some(&["a"]));
    check(Some("kubernetes.io/host-path"), "Delete", &[EXTERNAL, IN_TREE], Some(&[IN_TREE]));
}

#[test]
fn a_binding_changes_only_what_it_must() {
    let of_claim = claim(json!({}));
    let mut free = volume_json("disk", "1Gi", json!({ "spec": { "unknown": 1 } }));
    assert!(edit::refer_to_claim(&mut free, &of_claim));
    assert_eq!(free["spec"]["unknown"], 1);
    assert_eq!(free["metadata"]["annotations"][BY_CONTROLLER], "yes");
    let reference = json!({
        "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "c", "apiVersion": "v1",
        "resourceVersion": "5",
    });
    assert_eq!(free["spec"]["claimRef"], reference);
    assert!(!edit::refer_to_claim(&mut free, &of_claim), "once");
    let mut reserved =
        volume_json("disk", "1Gi", json!({ "spec": { "claimRef": { "namespace": "default", "name": "data" } } }));
    assert!(edit::refer_to_claim(&mut reserved, &of_claim));
    assert!(reserved["metadata"]["annotations"].is_null(), "a user reserved it");

    assert!(edit::set_phase(&mut free, "Bound", ""));
    assert!(!edit::set_phase(&mut free, "Bound", ""));
    let mut whole = claim_json(json!({}));
    assert!(edit::refer_to_volume(&mut whole, "disk"));
    assert_eq!(whole["metadata"]["annotations"], json!({ BY_CONTROLLER: "yes", COMPLETED: "yes" }));
    assert!(!edit::refer_to_volume(&mut whole, "disk"));
    let mut named = claim_json(json!({ "spec": { "volumeName": "disk" } }));
    assert!(edit::refer_to_volume(&mut named, "disk"));
    assert_eq!(named["metadata"]["annotations"], json!({ COMPLETED: "yes" }), "a user chose the volume");

    assert!(edit::unbind(&mut free));
    assert!(free["spec"]["claimRef"].is_null() && free["metadata"]["annotations"].is_null());
    assert!(edit::unbind(&mut reserved));
    assert_eq!(reserved["spec"]["claimRef"]["name"], "data");
    assert!(reserved["spec"]["claimRef"]["uid"].is_null());
    assert!(!edit::unbind(&mut volume_json("disk", "1Gi", json!({}))));
}

#[test]
fn the_status_of_a_claim_says_what_its_volume_has() {
    let bound = |more: Value, of_volume: Value| {
        let mut whole = claim_json(more);
        let changed = edit::report_bound(&mut whole, &volume("disk", "2Gi", of_volume));
        (whole["status"].clone(), changed)
    };
    let (status, changed) = bound(json!({}), json!({ "spec": { "volumeAttributesClassName": "fast" } }));
    assert_eq!(changed, Ok(true));
    assert_eq!(
        status,
        json!({
            "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "2Gi" },
            "currentVolumeAttributesClassName": "fast",
        })
    );
    assert_eq!(
        bound(json!({ "status": status.clone() }), json!({})).1,
        Ok(false),
        "a resizer reports what comes later"
    );
    let grown = json!({ "metadata": { "annotations": { "volume.alpha.kubernetes.io/pre-resize-capacity": "1Gi" } } });
    assert_eq!(bound(json!({}), grown).0["capacity"]["storage"], "1Gi");
    let unreadable =
        json!({ "metadata": { "annotations": { "volume.alpha.kubernetes.io/pre-resize-capacity": "a lot" } } });
    assert_eq!(bound(json!({}), unreadable).0["capacity"]["storage"], "2Gi");
    let error = bound(json!({}), json!({ "spec": { "capacity": null } })).1.unwrap_err();
    assert_eq!(error.to_string(), "PersistentVolume \"disk\" is without a storage capacity");

    let mut lost = claim_json(json!({ "status": merged(status, json!({ "conditions": [{ "type": "Unused" }] })) }));
    assert!(edit::report_unbound(&mut lost, "Lost"));
    assert_eq!(lost["status"], json!({ "phase": "Lost", "conditions": [{ "type": "Unused" }] }));
    assert!(!edit::report_unbound(&mut lost, "Lost"));
    assert!(edit::is_reported_unbound(&claim(json!({})), "Pending"));
    assert!(!edit::is_reported_unbound(&claim(json!({ "status": { "capacity": { "storage": "1Gi" } } })), "Pending"));
}

#[test]
fn a_provisioner_is_asked_once_and_a_class_is_given_once() {
    let mut whole = claim_json(json!({ "metadata": { "annotations": { "pv.kubernetes.io/migrated-to": "old" } } }));
    assert!(edit::ask_provisioner(&mut whole, "example.com/disk"));
    assert_eq!(
        whole["metadata"]["annotations"],
        json!({
            "volume.kubernetes.io/storage-provisioner": "example.com/disk",
            "volume.beta.kubernetes.io/storage-provisioner": "example.com/disk",
        })
    );
    assert!(!edit::ask_provisioner(&mut whole, "example.com/disk"));
    assert!(edit::assign_class(&mut whole, "gold"));
    assert!(!edit::assign_class(&mut whole, "silver"));
    assert_eq!(whole["spec"]["storageClassName"], "gold");
    let beta = json!({ "metadata": { "annotations": { "volume.beta.kubernetes.io/storage-class": "" } } });
    assert!(!edit::assign_class(&mut claim_json(beta), "gold"));

    let marked = |name: &str, at: &str, value: &str| {
        Arc::new(storage_class(
            name,
            json!({ "metadata": {
            "creationTimestamp": at, "annotations": { "storageclass.kubernetes.io/is-default-class": value },
        } }),
        ))
    };
    let classes = [
        marked("old", "2026-01-01T00:00:00Z", "true"),
        marked("b", "2026-02-01T00:00:00Z", "true"),
        marked("a", "2026-02-01T00:00:00Z", "true"),
        marked("newest", "2026-03-01T00:00:00Z", "false"),
    ];
    assert_eq!(class::default_of(&classes).map(|class| class.metadata.name.as_str()), Some("a"));
    assert_eq!(class::default_of(&classes[3..]).map(|class| class.metadata.name.as_str()), None);
}

#[test]
fn only_the_recycler_that_this_process_created_is_believed() {
    let recycler = |phase: &str| pod("recycler-for-disk", json!({ "status": { "phase": phase } }));
    let mine = "recycler-for-disk".into();
    let other = "other".into();
    let check = |pod: Option<Arc<PodView>>, created: Option<&steersman_base::Uid>, want: Step| {
        assert_eq!(recycle::step(pod.as_deref(), created), want, "{created:?}");
    };
    check(None, None, Step::Create);
    check(None, Some(&mine), Step::Gone);
    check(Some(recycler("Running")), Some(&mine), Step::Wait);
    check(Some(recycler("Succeeded")), Some(&mine), Step::Succeeded);
    check(Some(recycler("Failed")), Some(&mine), Step::Failed);
    check(Some(recycler("Succeeded")), Some(&other), Step::Foreign);
    check(Some(recycler("Succeeded")), None, Step::Foreign);
    let ended = |phase: &str| map::recycled_volume(&Change::Added { new: recycler(phase), initial: false });
    assert_eq!(ended("Succeeded"), Some(ObjectKey::cluster("disk")));
    assert_eq!(ended("Running"), None);
    let gone = Change::Deleted { last: recycler("Running"), end: End::Observed };
    assert_eq!(map::recycled_volume(&gone), Some(ObjectKey::cluster("disk")));
    assert_eq!(map::recycled_volume(&Change::Deleted { last: pod("web", json!({})), end: End::Observed }), None);
}

#[test]
fn a_volume_is_recycled_only_if_it_is_released_on_the_server_too() {
    let recycled = |uid: &str, more: Value| {
        let base = json!({ "spec": { "persistentVolumeReclaimPolicy": "Recycle" }, "status": { "phase": "Released" } });
        referring(uid, merged(base, more))
    };
    let cached = recycled("c", json!({}));
    let check = |name: &str, live: &PersistentVolumeView, want: bool| {
        assert_eq!(plan::is_still_to_recycle(&cached, live), want, "{name}");
    };
    check("the same", &recycled("c", json!({})), true);
    check("failed before", &recycled("c", json!({ "status": { "phase": "Failed" } })), true);
    check("given to another claim", &recycled("new", json!({ "status": { "phase": "Bound" } })), false);
    check("given to another claim just now", &recycled("new", json!({})), false);
    check("reserved", &recycled("", json!({})), false);
    check("free", &recycled("c", json!({ "spec": { "claimRef": null } })), false);
    check("bound again", &recycled("c", json!({ "status": { "phase": "Bound" } })), false);
    check("to be kept", &recycled("c", json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } })), false);
}

#[test]
fn a_recycler_has_the_volume_and_time_for_its_size() {
    let options = Options::default();
    let made = |volume: &PersistentVolumeView| {
        let recycler: &Recycler = recycle::of_volume(volume, &options.host_path, &options.nfs).expect("there is one");
        recycle::pod(recycler, recycle::namespace(recycler), volume, matching::size_of_volume(volume).value())
    };
    let small = made(&volume("disk", "1Gi", json!({})));
    assert_eq!(small["metadata"], json!({ "name": "recycler-for-disk", "namespace": "default" }));
    assert_eq!(small["spec"]["volumes"], json!([{ "name": "vol", "hostPath": { "path": "/a" } }]));
    assert_eq!(small["spec"]["activeDeadlineSeconds"], 60);
    assert_eq!(made(&volume("disk", "10Gi", json!({})))["spec"]["activeDeadlineSeconds"], 300);
    let nfs = json!({ "spec": { "hostPath": null, "nfs": { "server": "s", "path": "/b" } } });
    let large = made(&volume("disk", "1Gi", nfs));
    assert_eq!(large["spec"]["volumes"][0]["nfs"], json!({ "server": "s", "path": "/b" }));
    assert_eq!(large["spec"]["activeDeadlineSeconds"], 300);
    let csi = volume("disk", "1Gi", json!({ "spec": { "hostPath": null, "csi": { "driver": "d" } } }));
    assert_eq!(recycle::of_volume(&csi, &options.host_path, &options.nfs), None);
}

#[test]
fn a_template_without_a_volume_is_refused() {
    let read = |text: &str| {
        let file = steersman_runtime::__internal::descriptor::FlagFile { path: "pod.yaml".into(), text: text.into() };
        super::template(&file)
    };
    assert!(read("spec:\n  volumes:\n  - name: vol\n").is_ok());
    assert_eq!(read("spec: {}").unwrap_err(), "pod specification (pod.yaml): does not contain any volume(s)");
    assert!(read("a: b: c").unwrap_err().starts_with("pod.yaml: "));
}

#[test]
fn a_change_concerns_both_sides() {
    let free = volume("disk", "1Gi", json!({}));
    let bound = referring("c", json!({}));
    let claims = |change: &Change<PersistentVolumeView>| {
        map::claims_of_volume(change, |_| Vec::new()).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(claims(&Change::Updated { old: bound.clone(), new: free.clone() }), ["default/data"]);
    assert_eq!(claims(&Change::Deleted { last: bound, end: End::Observed }), ["default/data"]);
    // Its reference to the claim that is bound to it was removed, and the watch shows only that it is gone.
    let is_bound = |volume: &Istr| match volume.as_str() {
        "disk" => vec![Arc::new(claim(json!({ "metadata": { "name": "bound" } })))],
        _ => Vec::new(),
    };
    let gone = Change::Deleted { last: free.clone(), end: End::Observed };
    assert_eq!(map::claims_of_volume(&gone, is_bound), [ObjectKey::new("default", "bound")]);
    let there = Change::Added { new: free.clone(), initial: true };
    assert_eq!(map::claims_of_volume(&there, is_bound), []);
    assert_eq!(claims(&Change::Added { new: free, initial: true }), [""; 0]);
    let named = claim(json!({ "spec": { "volumeName": "disk" } }));
    assert_eq!(map::volume_of_claim(&named), Some(ObjectKey::cluster("disk")));
    assert_eq!(map::volume_of_claim(&claim(json!({}))), None);
    let gold = storage_class("gold", json!({}));
    let marked = json!({ "metadata": { "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } } });
    assert!(map::waits_for(&claim(json!({ "spec": { "storageClassName": "gold" } })), &gold));
    assert!(!map::waits_for(&claim(json!({})), &gold));
    assert!(map::waits_for(&claim(json!({})), &storage_class("gold", marked)));
    assert!(!map::waits_for(&named, &gold));
    assert!(map::is_unsettled_claim(&named) && !map::is_unsettled_volume(&volume("disk", "1Gi", json!({}))));
}
