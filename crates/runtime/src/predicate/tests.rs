use std::sync::Arc;

use steersman_base::meta::RareMeta;
use steersman_base::{StringMap, Time};
use steersman_informer::End;

use super::*;

fn meta(generation: i64, label: &str, annotation: &str) -> Meta {
    Meta {
        generation,
        labels: StringMap::from([("l", label)]),
        annotations: StringMap::from([("a", annotation)]),
        ..Meta::default()
    }
}

fn admits_update(predicate: &dyn Predicate, old: &Meta, new: &Meta) -> bool {
    predicate.admits(&Change::Updated { old: Arc::new(old.clone()), new: Arc::new(new.clone()) })
}

/// Whether `predicate` admits a creation, a deletion, and updates of generation, labels, annotations, and of nothing.
fn verdicts(predicate: &dyn Predicate) -> [bool; 6] {
    let old = meta(1, "x", "x");
    let update = |new: &Meta| admits_update(predicate, &old, new);
    [
        predicate.admits(&Change::Added { new: Arc::new(old.clone()), initial: true }),
        predicate.admits(&Change::Deleted { last: Arc::new(old.clone()), end: End::Observed }),
        update(&meta(2, "x", "x")),
        update(&meta(1, "y", "x")),
        update(&meta(1, "x", "y")),
        update(&old),
    ]
}

#[test]
fn updates_are_let_through_if_what_is_asked_for_changed() {
    let yes = true;
    let no = false;
    let check = |name: &str, predicate: &dyn Predicate, want: [bool; 6]| {
        assert_eq!(verdicts(predicate), want, "{name}");
    };
    check("generation", &generation_changed(), [yes, yes, yes, no, no, no]);
    check("labels", &labels_changed(), [yes, yes, no, yes, no, no]);
    check("annotations", &annotations_changed(), [yes, yes, no, no, yes, no]);
    check("either", &generation_changed().or(labels_changed()), [yes, yes, yes, yes, no, no]);
    check("both", &generation_changed().and(labels_changed()), [yes, yes, no, no, no, no]);
    check("not", &generation_changed().not(), [no, no, no, yes, yes, yes]);
    check("own", &|change: &Change<dyn HasMeta>| matches!(change, Change::Deleted { .. }), [no, yes, no, no, no, no]);
}

#[test]
fn a_resync_has_no_new_version() {
    let old = Meta { resource_version: "1".into(), ..Meta::default() };
    let new = Meta { resource_version: "2".into(), ..Meta::default() };
    assert!(admits_update(&resource_version_changed(), &old, &new));
    assert!(!admits_update(&resource_version_changed(), &old, &old));
}

#[test]
fn finalizers_and_the_beginning_of_the_end_are_changes() {
    let meta = |finalizers: &[&str], deletion_timestamp: Option<Time>| {
        let finalizers = finalizers.iter().map(|&name| name.into()).collect();
        let rare = Some(Box::new(RareMeta { finalizers, deletion_timestamp, ..RareMeta::default() }));
        Meta { rare, ..meta(1, "x", "x") }
    };
    let bare = meta(&[], None);
    let held = meta(&["example.com/x"], None);
    let going = meta(&["example.com/x"], Some(Time::from_unix(1)));
    let admits = |old: &Meta, new: &Meta| admits_update(&finalizers_changed(), old, new);
    assert!(admits(&bare, &held) && admits(&held, &bare) && admits(&held, &going));
    assert!(!admits(&bare, &bare) && !admits(&held, &held) && !admits(&going, &going));
}

#[test]
fn a_selector_admits_what_it_selects_and_what_leaves_its_selection() {
    let selected = labels_match("l=x".parse().unwrap());
    let x = meta(1, "x", "");
    let y = meta(1, "y", "");
    let added = |object: &Meta| selected.admits(&Change::Added { new: Arc::new(object.clone()), initial: false });
    assert_eq!((added(&x), added(&y)), (true, false));
    let deleted = Change::Deleted { last: Arc::new(y.clone()), end: End::Missed };
    assert!(!selected.admits(&(deleted as Change<Meta>).metadata()));
    let updates = [(&x, &x, true), (&y, &x, true), (&x, &y, true), (&y, &y, false)];
    for (old, new, want) in updates {
        assert_eq!(admits_update(&selected, old, new), want);
    }
    assert!(!admits_update(&labels_match("!l".parse().unwrap()), &x, &y));
}
