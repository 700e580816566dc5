use steersman_base::meta::RareMeta;
use steersman_base::{StringMap, Time};

use super::*;

fn meta(generation: i64, label: &str, annotation: &str) -> Meta {
    Meta {
        generation,
        labels: StringMap::from([("l", label)]),
        annotations: StringMap::from([("a", annotation)]),
        ..Meta::default()
    }
}

/// What `predicate` says of creation, deletion and a generic event, and of updates of generation, labels, annotations, and of none.
fn verdicts(predicate: &dyn Predicate) -> [bool; 7] {
    let old = meta(1, "x", "x");
    let update = |new: &Meta| predicate.admits(&MetaEvent::Updated { old: &old, new });
    [
        predicate.admits(&MetaEvent::Created { new: &old, initial: true }),
        predicate.admits(&MetaEvent::Deleted { last: &old }),
        predicate.admits(&MetaEvent::Generic { object: &old }),
        update(&meta(2, "x", "x")),
        update(&meta(1, "y", "x")),
        update(&meta(1, "x", "y")),
        update(&old),
    ]
}

#[test]
fn updates_are_let_through_if_what_is_asked_for_changed() {
    let (yes, no) = (true, false);
    let check = |name: &str, predicate: &dyn Predicate, want: [bool; 7]| {
        assert_eq!(verdicts(predicate), want, "{name}");
    };
    check("generation", &generation_changed(), [yes, yes, yes, yes, no, no, no]);
    check("labels", &labels_changed(), [yes, yes, yes, no, yes, no, no]);
    check("annotations", &annotations_changed(), [yes, yes, yes, no, no, yes, no]);
    check("either", &generation_changed().or(labels_changed()), [yes, yes, yes, yes, yes, no, no]);
    check("both", &generation_changed().and(labels_changed()), [yes, yes, yes, no, no, no, no]);
    check("not", &generation_changed().not(), [no, no, no, no, yes, yes, yes]);
    check("own", &|event: &MetaEvent<'_>| matches!(event, MetaEvent::Deleted { .. }), [no, yes, no, no, no, no, no]);
}

#[test]
fn a_resync_has_no_new_version() {
    let (old, new) = (
        Meta { resource_version: "1".into(), ..Meta::default() },
        Meta { resource_version: "2".into(), ..Meta::default() },
    );
    assert!(resource_version_changed().admits(&MetaEvent::Updated { old: &old, new: &new }));
    assert!(!resource_version_changed().admits(&MetaEvent::Updated { old: &old, new: &old }));
}

#[test]
fn finalizers_and_the_beginning_of_the_end_are_changes() {
    let meta = |finalizers: &[&str], deletion_timestamp: Option<Time>| {
        let finalizers = finalizers.iter().map(|&name| name.into()).collect();
        let rare = Some(Box::new(RareMeta { finalizers, deletion_timestamp, ..RareMeta::default() }));
        Meta { rare, ..meta(1, "x", "x") }
    };
    let (bare, held) = (meta(&[], None), meta(&["example.com/x"], None));
    let going = meta(&["example.com/x"], Some(Time::from_unix(1)));
    let admits = |old: &Meta, new: &Meta| finalizers_changed().admits(&MetaEvent::Updated { old, new });
    assert!(admits(&bare, &held) && admits(&held, &bare) && admits(&held, &going));
    assert!(!admits(&bare, &bare) && !admits(&held, &held) && !admits(&going, &going));
}
