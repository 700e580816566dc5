//! Table tests of the pure functions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steersman_base::names::finalizers::{FOREGROUND_DELETION, ORPHAN};
use steersman_base::{Condition, ConditionStatus, Istr, Meta, Resource, Time};
use steersman_informer::{Change, End};
use steersman_model::core::NamespaceView;
use steersman_model::{Encoded, View};
use steersman_runtime::mapper::Failure;

use super::content::{Outcome, is_asked_for};
use super::map::is_relevant;
use super::memory::LastPods;
use super::plan::{discovery_failure, finalized, hides_pods};
use super::pods::{EndingPod, seconds_to_end};
use super::status::{Findings, conditions};

const NOW: Time = Time::from_unix(1_800_000_000);
const MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
const LAMPS: Resource = Resource::namespaced("example.dev", "v2", "lamps", "Lamp");

fn namespace(value: &serde_json::Value) -> NamespaceView {
    NamespaceView::decode(Encoded::Json(value.to_string().as_bytes())).unwrap()
}

fn object(terminating: bool, finalizers: &[&str]) -> Arc<Meta> {
    let mut metadata = json!({ "name": "a", "namespace": "ns", "finalizers": finalizers });
    if terminating {
        metadata["deletionTimestamp"] = json!(NOW);
    }
    Arc::new(Meta::decode(Encoded::Json(json!({ "metadata": metadata }).to_string().as_bytes())).unwrap())
}

fn pod(grace: Option<i64>, phase: &str) -> Arc<EndingPod> {
    let pod = json!({ "spec": { "terminationGracePeriodSeconds": grace }, "status": { "phase": phase } });
    Arc::new(EndingPod::decode(Encoded::Json(pod.to_string().as_bytes())).unwrap())
}

#[test]
fn a_change_is_relevant_unless_we_made_it() {
    let deleted = json!({ "name": "a", "deletionTimestamp": NOW });
    let active = namespace(&json!({ "metadata": { "name": "a" }, "status": { "phase": "Active" } }));
    let going = namespace(&json!({ "metadata": deleted, "spec": { "finalizers": ["kubernetes", "x.dev/y"] } }));
    let reported = NamespaceView { status: active.status.clone(), ..going.clone() };
    let fewer = namespace(&json!({ "metadata": deleted, "spec": { "finalizers": ["kubernetes"] } }));
    for (name, before, now, want) in [
        ("an active one", None, &active, false),
        ("a deleted one, seen for the first time", None, &going, true),
        ("deleted just now", Some(&active), &going, true),
        ("only its status changed", Some(&going), &reported, false),
        ("somebody has finished", Some(&going), &fewer, true),
        ("everything is looked at again", Some(&going), &going, true),
    ] {
        assert_eq!(is_relevant(before, now), want, "{name}");
    }
}

#[test]
fn the_longest_grace_period_of_those_that_run_is_waited_for_once() {
    let seconds = Duration::from_secs;
    for (name, pods, since, want) in [
        ("no pods", vec![], seconds(0), 0),
        ("the longest counts", vec![pod(Some(30), "Running"), pod(Some(90), "Pending")], seconds(0), 90),
        ("who has ended does not", vec![pod(Some(30), "Running"), pod(Some(90), "Failed")], seconds(0), 30),
        ("succeeded has ended, too", vec![pod(Some(90), "Succeeded")], seconds(0), 0),
        ("time is left", vec![pod(Some(30), "Running")], seconds(29), 30),
        ("time is over", vec![pod(Some(30), "Running")], seconds(30), 0),
        ("none is said", vec![pod(None, "Running")], seconds(0), 0),
        ("nonsense", vec![pod(Some(-1), "Running")], seconds(0), 0),
    ] {
        assert_eq!(seconds_to_end(&pods, since), want, "{name}");
    }
}

#[test]
fn the_last_pod_of_a_namespace_is_reported_to_who_waits_for_it() {
    let pods = LastPods::default();
    let of = |namespace: &str| Arc::new(Meta { namespace: namespace.into(), ..Meta::default() });
    let a = of("a");
    let b = of("b");
    let added = |meta: &Arc<Meta>| pods.note(&Change::Added { new: meta.clone(), initial: true });
    let deleted = |meta: &Arc<Meta>| pods.note(&Change::Deleted { last: meta.clone(), end: End::Observed });
    assert_eq!([added(&a), added(&a), added(&b)], [None, None, None]);
    pods.await_in(&a.namespace);
    assert_eq!(pods.note(&Change::Updated { old: a.clone(), new: a.clone() }), None);
    assert_eq!(deleted(&b), None, "nobody waits there");
    assert_eq!(deleted(&a), None, "one is left");
    assert_eq!(deleted(&a).as_deref(), Some("a"));
    assert_eq!(deleted(&a), None, "nobody can be less than none");
    assert_eq!([added(&a), deleted(&a)], [None, None], "it was reported");
    pods.await_in(&a.namespace);
    pods.forget(&a.namespace);
    assert_eq!([added(&a), deleted(&a)], [None, None], "it does not wait any more");
}

#[test]
fn nothing_is_asked_for_twice() {
    let ending = |seconds: i64| {
        let metadata = json!({ "name": "a", "deletionTimestamp": NOW, "deletionGracePeriodSeconds": seconds });
        Arc::new(Meta::decode(Encoded::Json(json!({ "metadata": metadata }).to_string().as_bytes())).unwrap())
    };
    for (name, objects, want) in [
        ("nothing is there", vec![], true),
        ("all are going", vec![object(true, &["x.dev/y"]), object(true, &["x.dev/y"])], true),
        ("it has time to end", vec![ending(30)], true),
        ("nothing keeps it, and it exists", vec![object(true, &["x.dev/y"]), ending(0)], false),
        ("nothing ever kept it", vec![object(true, &[])], false),
        ("one is not", vec![object(true, &["x.dev/y"]), object(false, &[])], false),
        ("the collector would keep dependents", vec![object(true, &[ORPHAN])], false),
        ("the collector would wait for dependents", vec![object(true, &[FOREGROUND_DELETION])], false),
    ] {
        assert_eq!(is_asked_for(&objects), want, "{name}");
    }
}

#[test]
fn what_is_left_means_time_or_trouble() {
    let left = |objects: &[Arc<Meta>], seconds| Outcome::of_left(objects, &LAMPS, "ns", seconds);
    assert_eq!(left(&[], 30), Outcome::default(), "nothing is left: there is nothing to wait for");
    let plain = [object(true, &[]), object(true, &[])];
    assert_eq!(left(&plain, 30), Outcome { count: 2, seconds: 30, ..Outcome::default() }, "they have time");
    let held = [object(true, &["b.dev/b", "a.dev/a"]), object(true, &["b.dev/b"]), object(true, &[])];
    let finalizers = [("a.dev/a".into(), 1), ("b.dev/b".into(), 2)].into();
    assert_eq!(left(&held, 0), Outcome { count: 3, finalizers, seconds: 15, failure: None }, "somebody finishes");
    let failure = "unexpected items still remain in namespace: ns for gvr: example.dev/v2, Resource=lamps";
    assert_eq!(left(&plain, 0), Outcome { count: 2, failure: Some(failure.into()), ..Outcome::default() });
}

#[test]
fn conditions_report_what_is_left_in_upstreams_words() {
    let mut findings = Findings::default();
    let outcome = |count, names: &[(&str, usize)], failure: Option<&str>| Outcome {
        count,
        finalizers: names.iter().map(|(name, count)| ((*name).into(), *count)).collect(),
        failure: failure.map(str::to_owned),
        seconds: 0,
    };
    findings.add(&MAPS, outcome(2, &[("b.dev/b", 2), ("a.dev/a", 1)], None));
    findings.add(&LAMPS, outcome(1, &[("a.dev/a", 1)], Some("z: it failed")));
    findings.add(&LAMPS, outcome(0, &[], Some("a: it failed, too")));
    findings.discovery = discovery_failure(&[Failure::new("z.dev/v1", "away"), Failure::new("a.dev/v1", "away, too")]);
    let reported = conditions(&[], &findings, NOW).unwrap();
    let reported: Vec<_> = reported.iter().map(|it| (it.status, it.reason.as_str(), it.message.as_str())).collect();
    let yes = ConditionStatus::True;
    let no = ConditionStatus::False;
    let want = [
        (
            yes,
            "DiscoveryFailed",
            "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: \
             a.dev/v1: away, too, z.dev/v1: away",
        ),
        (no, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        (
            yes,
            "ContentDeletionFailed",
            "Failed to delete all resource types, 2 remaining: a: it failed, too, z: it failed",
        ),
        (
            yes,
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances, lamps.example.dev has 1 resource \
             instances",
        ),
        (
            yes,
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: a.dev/a in 2 resource instances, b.dev/b in 2 \
             resource instances",
        ),
    ];
    assert_eq!(reported, want);
}

#[test]
fn conditions_change_their_time_with_their_status_and_are_written_when_they_say_something_else() {
    let mut findings = Findings::default();
    findings.add(&MAPS, Outcome { count: 2, ..Outcome::default() });
    let foreign = Condition::new("SomebodyElses", ConditionStatus::Unknown);
    let first = conditions(std::slice::from_ref(&foreign), &findings, NOW).unwrap();
    assert_eq!((first.len(), &first[0]), (6, &foreign), "what is not ours stays");
    assert_eq!(conditions(&first, &findings, NOW.plus_seconds(9)), None, "they say it already");

    findings.left.insert("configmaps.".into(), 1);
    let fewer = conditions(&first, &findings, NOW.plus_seconds(9)).unwrap();
    let content = |all: &[Condition]| all.iter().find(|it| it.type_ == "NamespaceContentRemaining").cloned().unwrap();
    assert!(content(&fewer).message.contains("has 1 "));
    assert_eq!(content(&fewer).last_transition_time, Some(NOW));

    let none = conditions(&fewer, &Findings::default(), NOW.plus_seconds(9)).unwrap();
    assert_eq!((&*content(&none).reason, content(&none).status), ("ContentRemoved", ConditionStatus::False));
    assert_eq!(content(&none).last_transition_time, Some(NOW.plus_seconds(9)));
}

#[test]
fn what_could_not_be_counted_is_not_said_to_be_gone() {
    let failed = || Outcome::failed("the server is busy".into(), 0);
    let said = |held: &[Condition], findings: &Findings| {
        let all = conditions(held, findings, NOW).unwrap_or_else(|| held.into());
        let content = all.iter().find(|it| it.type_ == "NamespaceContentRemaining");
        content.map(|it| it.reason.to_string())
    };
    let mut unknown = Findings::default();
    unknown.add(&LAMPS, failed());
    assert_eq!(said(&[], &unknown), None, "nothing is known");
    let mut some = Findings::default();
    some.add(&MAPS, Outcome { count: 2, ..Outcome::default() });
    let before = conditions(&[], &some, NOW).unwrap();
    assert_eq!(said(&before, &unknown).as_deref(), Some("SomeResourcesRemain"), "what was said stays");
    some.add(&LAMPS, failed());
    assert_eq!(said(&[], &some).as_deref(), Some("SomeResourcesRemain"), "something is left in any case");
    assert_eq!(said(&before, &Findings::default()).as_deref(), Some("ContentRemoved"));
}

#[test]
fn only_our_finalizer_is_taken_off() {
    let check = |held: &[&str], want: Option<&[&str]>| {
        let namespace = namespace(&json!({ "metadata": { "name": "a" }, "spec": { "finalizers": held } }));
        let got = finalized(&namespace).map(|it| it.spec.finalizers);
        let got: Option<Vec<&str>> = got.as_ref().map(|names| names.iter().map(Istr::as_str).collect());
        assert_eq!(got.as_deref(), want, "{held:?}");
    };
    check(&["kubernetes"], Some(&[]));
    check(&["z.dev/z", "kubernetes", "a.dev/a"], Some(&["a.dev/a", "z.dev/z"]));
    check(&["z.dev/z"], None);
    check(&[], None);
}

#[test]
fn discovery_that_did_not_fail_is_not_told() {
    assert_eq!(discovery_failure(&[]), None);
}

#[test]
fn pods_may_exist_when_the_core_group_could_not_be_discovered() {
    for (name, failures, want) in [
        ("everything is known", vec![], false),
        ("another group is away", vec!["metrics.k8s.io/v1beta1"], false),
        ("no group but the core one is known", vec!["/apis"], false),
        ("the core group is away", vec!["/api"], true),
        ("its version is away", vec!["a.dev/v1", "v1"], true),
    ] {
        let failures: Vec<_> = failures.into_iter().map(|what| Failure::new(what, "away")).collect();
        assert_eq!(hides_pods(&failures), want, "{name}");
    }
}
