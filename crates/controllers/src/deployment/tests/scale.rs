//! Proportional scaling: upstream's table of `TestScale`.

use serde_json::{Value, json};

use super::super::scale::{is_scaled, resize};
use super::super::sets::Sets;
use super::{deployment, noted, set};
use crate::test_objects::merged;

/// Each row: replicas and surge before and now, the new ReplicaSet and the old ones oldest first, and the expected
/// sizes.
#[test]
fn every_replica_set_keeps_its_part() {
    type Row = (&'static str, (i32, i32), (i32, i32), (Option<i32>, &'static [i32]), (Option<i32>, &'static [i32]));
    let rows: &[Row] = &[
        ("the only one grows", (10, 0), (12, 0), (Some(10), &[]), (Some(12), &[])),
        ("the only one shrinks", (10, 0), (5, 0), (Some(10), &[]), (Some(5), &[])),
        ("5 -> 10", (5, 0), (10, 0), (Some(2), &[3]), (Some(4), &[6])),
        ("5 -> 3", (5, 0), (3, 0), (Some(2), &[3]), (Some(1), &[2])),
        ("9 -> 4", (9, 0), (4, 0), (Some(8), &[1]), (Some(4), &[0])),
        ("7 -> 10", (7, 0), (10, 0), (Some(2), &[2, 3]), (Some(3), &[3, 4])),
        ("13 -> 8", (13, 0), (8, 0), (Some(2), &[3, 8]), (Some(1), &[2, 5])),
        ("the newest gets what is left", (3, 0), (4, 0), (Some(1), &[1, 1]), (Some(2), &[1, 1])),
        ("the oldest gives what is left", (3, 0), (2, 0), (Some(1), &[1, 1]), (Some(1), &[0, 1])),
        ("a share is limited by what is left", (9, 0), (14, 0), (Some(3), &[3, 3]), (Some(5), &[4, 5])),
        ("without a new one", (4, 0), (5, 0), (None, &[2, 2]), (None, &[2, 3])),
        ("to nothing", (6, 0), (0, 0), (Some(3), &[1, 2]), (Some(0), &[0, 0])),
        ("from nothing", (6, 0), (6, 0), (Some(0), &[0, 0]), (Some(6), &[0, 0])),
        ("with surge", (10, 2), (20, 2), (Some(6), &[6]), (Some(11), &[11])),
        ("surge and size", (10, 3), (50, 6), (Some(5), &[8]), (Some(22), &[34])),
        ("size and template", (10, 0), (14, 0), (None, &[3, 7]), (None, &[4, 10])),
        ("has them all, but broken", (2, 1), (2, 1), (Some(2), &[1]), (Some(2), &[1])),
    ];
    for (name, (was, surge_was), (replicas, surge), (new, old), want) in rows {
        let noted = || noted(1, *was, was + surge_was);
        let rolling = json!({ "maxSurge": surge, "maxUnavailable": 0 });
        let spec = json!({ "spec": { "replicas": replicas, "strategy": { "rollingUpdate": rolling } } });
        let deployment = deployment(spec);
        let old: Vec<_> =
            old.iter().enumerate().map(|(n, size)| set(&format!("v{n}"), "web:1", *size, noted())).collect();
        let sets = Sets { new: new.map(|size| set("v9", "web:2", size, noted())), old };
        let resized = resize(&deployment, &sets);
        let size = |set: &std::sync::Arc<_>| {
            let found = resized.iter().find(|resize| std::sync::Arc::ptr_eq(&resize.set, set));
            found.map_or(super::super::sets::wanted(set), |resize| resize.to)
        };
        let got = (sets.new.as_ref().map(size), sets.old.iter().map(size).collect::<Vec<_>>());
        assert_eq!((got.0, &*got.1), (want.0, want.1), "{name}");
    }
}

/// Each row: the limits before and now, the wanted sizes of old and new, and how many of them are available.
#[test]
fn rounding_costs_no_available_pod() {
    let mut corrected = 0;
    for (was, desired) in (1..=12).flat_map(|was| (1..=was).map(move |desired| (was, desired))) {
        for (surge, unavailable, old) in (0..=3)
            .flat_map(|surge| (0..=3).flat_map(move |missing| (0..=was + surge).map(move |old| (surge, missing, old))))
        {
            if surge == 0 && unavailable == 0 {
                continue;
            }
            let new = was + surge - old;
            let size = |name: &str, image: &str, size: i32, ready: i32| {
                set(name, image, size, merged(noted(1, was, was + surge), super::available(ready)))
            };
            let sets = Sets { new: Some(size("v9", "web:2", new, 0)), old: vec![size("v1", "web:1", old, old)] };
            let rolling = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
            let spec = json!({ "replicas": desired, "strategy": { "rollingUpdate": rolling } });
            let deployment = deployment(json!({ "spec": spec }));
            let limits = super::super::rolling::Limits::of(&deployment.spec);
            let resized = resize(&deployment, &sets);
            if resized.len() != 2 {
                continue;
            }
            let to = |name: &str| resized.iter().find(|resize| resize.set.metadata.name == *name).unwrap().to;
            let kept = to("v1");
            let made = to("v9");
            let case = format!("{was} -> {desired}, {rolling}: {old} and {new} become {kept} and {made}");
            assert!(kept >= 0 && made >= 0 && kept + made <= limits.total_max().max(old + new), "{case}");
            assert!(kept >= old.min(limits.available_min()), "{case}");
            corrected += 1;
        }
    }
    assert!(corrected > 1_000, "{corrected} cases");
}

#[test]
fn a_saturated_new_one_takes_over_from_what_was_adopted() {
    let new = set("v9", "web:2", 3, merged(noted(2, 3, 4), super::available(3)));
    let sets = Sets { new: Some(new), old: vec![set("v1", "web:1", 2, json!({}))] };
    let resized = resize(&deployment(json!({})), &sets);
    assert_eq!(resized.iter().map(|resize| resize.to).collect::<Vec<_>>(), [0]);
}

#[test]
fn the_only_one_is_written_if_its_number_or_what_it_was_sized_for_is_not_right() {
    let check = |name: &str, size: i32, annotated: Value, want: &[i32]| {
        let deployment = deployment(json!({ "spec": { "replicas": 3 } }));
        let sets = Sets { new: Some(set("v9", "web:2", size, annotated)), old: Vec::new() };
        assert_eq!(resize(&deployment, &sets).iter().map(|resize| resize.to).collect::<Vec<_>>(), want, "{name}");
    };
    check("sized for another surge", 3, noted(1, 3, 99), &[]);
    check("never sized", 3, json!({}), &[]);
    check("scaled by hand to the right number", 3, noted(1, 5, 6), &[3]);
    check("another number", 2, noted(1, 3, 4), &[3]);
}

#[test]
fn a_lost_annotation_is_made_up_for_by_what_is_seen() {
    // As upstream's TestGetReplicaSetFraction.
    let check = |name: &str, replicas: i32, seen: i32, noted: Value, want: [i32; 2]| {
        let rolling = json!({ "maxSurge": 0, "maxUnavailable": 1 });
        let more = json!({
            "spec": { "replicas": replicas, "strategy": { "rollingUpdate": rolling } }, "status": { "replicas": seen },
        });
        let annotated = || json!({ "metadata": { "annotations": noted } });
        let sets =
            Sets { new: Some(set("v9", "web:2", 50, annotated())), old: vec![set("v1", "web:1", 50, annotated())] };
        let got: Vec<_> = resize(&deployment(more), &sets).iter().map(|resize| resize.to).collect();
        assert_eq!(got, want, "{name}");
    };
    let max = "deployment.kubernetes.io/max-replicas";
    check("it is missing", 120, 100, json!({}), [60, 60]);
    check("it is zero", 120, 100, json!({ max: "0" }), [60, 60]);
    check("it is no number", 120, 100, json!({ max: "+100" }), [60, 60]);
    check("it is there", 120, 0, json!({ max: "100" }), [60, 60]);
    check("nobody knows: what there is stays, and the largest gets the rest", 120, 0, json!({}), [70, 50]);
}

#[test]
fn a_change_of_replicas_is_recognised_by_the_annotation_of_those_that_have_pods() {
    let check = |name: &str, sizes: [i32; 2], sized_for: [i32; 2], want: bool| {
        let set = |n: usize| set(&format!("v{n}"), "web:1", sizes[n], noted(1, sized_for[n], 9));
        assert_eq!(is_scaled(3, &Sets { new: None, old: vec![set(0), set(1)] }), want, "{name}");
    };
    check("sized for the same", [1, 2], [3, 3], false);
    check("one was not", [1, 2], [3, 4], true);
    check("one was not, but has none", [3, 0], [3, 4], false);
    let unmarked = Sets { new: None, old: vec![set("v1", "web:1", 2, json!({}))] };
    assert!(!is_scaled(3, &unmarked), "who says nothing was not scaled");
}
