//! Table tests of the pure functions.

mod counting;
mod ends;
mod gang;
mod pods;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::Time;
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::batch::{FailurePolicy, JobView, SuccessPolicy};
use steersman_model::core::PodView;

use super::backoff::{Record, ended_at, remaining};
use super::failure::{self, Meaning};
use super::indexes::Indexes;
use super::{map, success};
use crate::test_objects::{NOW, decode, merged, terminating};

/// Returns a Job of five completions, two at a time, that has been running for an hour.
fn job(more: Value) -> JobView {
    let labels = json!({ "job": "sums" });
    let spec = json!({
        "parallelism": 2, "completions": 5, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "restartPolicy": "Never", "containers": [{ "name": "main" }] } },
    });
    let metadata = json!({ "name": "sums", "namespace": "default", "uid": "job", "resourceVersion": "1" });
    let status = json!({ "startTime": "2026-11-15T11:00:00Z" });
    decode(merged(json!({ "metadata": metadata, "spec": spec, "status": status }), more))
}

/// Returns an indexed Job.
fn indexed(more: Value) -> JobView {
    job(merged(json!({ "spec": { "completionMode": "Indexed" } }), more))
}

/// Returns a running pod of the Job that is not counted yet.
fn pod(name: &str, more: Value) -> Arc<PodView> {
    let metadata = json!({
        "name": name, "namespace": "default", "uid": name, "labels": { "job": "sums" },
        "finalizers": ["batch.kubernetes.io/job-tracking"], "creationTimestamp": "2026-11-15T11:00:00Z",
    });
    let pod = json!({ "metadata": metadata, "spec": { "nodeName": "n" }, "status": { "phase": "Running" } });
    Arc::new(decode(merged(pod, more)))
}

fn phase(phase: &str) -> Value {
    json!({ "status": { "phase": phase } })
}

/// Returns the status of a pod whose one container ended then, with this code.
fn exited(code: i32, time: &str) -> Value {
    let state = json!({ "terminated": { "exitCode": code, "finishedAt": time } });
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    json!({ "status": { "phase": phase, "containerStatuses": [{ "name": "main", "state": state }] } })
}

fn of_index(index: i32) -> Value {
    json!({ "metadata": { "annotations": { "batch.kubernetes.io/job-completion-index": index.to_string() } } })
}

/// Returns the mark of a pod that is counted already.
fn counted() -> Value {
    json!({ "metadata": { "finalizers": [] } })
}

fn at(time: &str) -> Time {
    time.parse().unwrap()
}

#[test]
fn index_sets_are_read_and_written_in_the_form_of_the_api() {
    let check = |text: &str, completions: i32, want: &str, len: i32| {
        let indexes = Indexes::parse(text, completions);
        assert_eq!((indexes.to_string().as_str(), indexes.len()), (want, len), "{text} of {completions}");
    };
    check("", 5, "", 0);
    check("3", 5, "3", 1);
    check("3,4", 5, "3,4", 2);
    check("2-4", 5, "2-4", 3);
    check("1-3,5", 10, "1-3,5", 4);
    check("1,2,3", 10, "1-3", 3);
    check("0-2,3-5", 10, "0-5", 6);
    check("5,1-3", 10, "1-3,5", 4);
    check("1-3,2-6", 10, "1-6", 6);
    // What is not an index any more, or never was one, is left out.
    check("1-3,5,8-20", 10, "1-3,5,8,9", 6);
    check("3-20,30", 5, "3,4", 2);
    check("x,2,4-y,-1,7-5", 10, "2", 1);
    check("1-3", 0, "", 0);
    check("0-99999", 100_000, "0-99999", 100_000);
}

#[test]
fn index_sets_are_joined_and_compared_by_intervals() {
    let set = |text: &str| Indexes::parse(text, 1000);
    let joined = |one: &str, other: &str| set(one).union(&set(other)).to_string();
    assert_eq!(joined("", "1"), "1");
    assert_eq!(joined("1-3,7", "4-6"), "1-7");
    assert_eq!(joined("0-5", "2-3"), "0-5");
    assert_eq!(joined("1,5,9", "3,7"), "1,3,5,7,9");
    assert_eq!([3, 1, 2, 9].into_iter().collect::<Indexes>().to_string(), "1-3,9");
    let held: Vec<i32> = (0..12).filter(|index| set("1-3,5,9,10").contains(*index)).collect();
    assert_eq!(held, [1, 2, 3, 5, 9, 10]);
    assert_eq!(set("0-9").overlap(&set("3,5-6,9-20")), 4);
    assert_eq!(set("1,3,5").overlap(&set("2,4")), 0);
    assert_eq!(set("1-3,5").first_absent(4, 9), [0, 4, 6, 7]);
    assert_eq!(set("0-4").first_absent(9, 7), [5, 6]);
    assert_eq!(set("0-9").first_absent(3, 7), [0_i32; 0]);
    assert_eq!(set("").first_absent(2, 100_000), [0, 1]);
    // The annotation of a pod can be any number.
    assert_eq!([1, i32::MAX].into_iter().collect::<Indexes>().first_absent(9, 3), [0, 2]);
}

/// Work is bounded by the number of intervals and of indexes asked for, not of completions.
#[test]
fn an_index_set_of_very_many_completions_is_small() {
    let all = Indexes::parse("0-1999999998", i32::MAX);
    assert_eq!(all.first_absent(1, i32::MAX), [1_999_999_999]);
    assert_eq!(all.len(), 1_999_999_999);
    let odd: Indexes = (0..100_000).filter(|index| index % 2 == 1).collect();
    assert_eq!(odd.first_absent(3, 100_000), [0, 2, 4]);
    assert_eq!(odd.union(&(0..100_000).collect()).to_string(), "0-99999");
}

#[test]
fn each_failure_in_a_row_doubles_the_wait_up_to_ten_minutes() {
    let now = at(NOW);
    for (failures, want) in
        [(0, 0), (1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 600), (8, 600), (1_000_000, 600)]
    {
        assert_eq!(remaining(failures, Some(now), now), Duration::from_secs(want), "{failures}");
    }
    let check = |since: &str, want: u64| {
        assert_eq!(remaining(2, Some(at(since)), now), Duration::from_secs(want), "{since}");
    };
    check("2026-11-15T11:59:55Z", 15);
    check("2026-11-15T11:59:40Z", 0);
    check("2026-11-15T10:00:00Z", 0);
    // The clock of a node is ahead.
    check("2026-11-15T13:00:00Z", 20);
}

#[test]
fn a_success_ends_a_series_of_failures() {
    let times = |texts: &[&str]| texts.iter().map(|text| Some(at(text))).collect::<Vec<_>>();
    let before = Record { failures: 3, last_failure: Some(at("2026-11-15T11:00:00Z")) };
    let check = |succeeded: &[&str], failed: &[&str], failures: u32, last: Option<&str>| {
        let got = before.after(&times(succeeded), &times(failed));
        assert_eq!(got, Record { failures, last_failure: last.map(at) }, "{succeeded:?} {failed:?}");
    };
    let early = "2026-11-15T11:10:00Z";
    let middle = "2026-11-15T11:20:00Z";
    let late = "2026-11-15T11:30:00Z";
    check(&[], &[], 3, Some("2026-11-15T11:00:00Z"));
    check(&[], &[late, early], 5, Some(late));
    check(&[early], &[], 0, None);
    check(&[middle], &[early], 0, None);
    check(&[middle, early], &[early, late], 1, Some(late));
    check(&[middle], &[middle], 0, None);
}

#[test]
fn the_end_of_a_pod_follows_from_its_containers_else_by_what_there_is() {
    let check = |name: &str, more: Value, want: &str| {
        assert_eq!(ended_at(&pod("a", more)), Some(at(want)), "{name}");
    };
    let state = |time: &str| json!({ "terminated": { "exitCode": 1, "finishedAt": time } });
    let container = |name: &str, state: Value| json!({ "name": name, "state": state });
    let statuses = |list: Value| json!({ "status": { "containerStatuses": list } });
    let one = "2026-11-15T11:10:00Z";
    let two = "2026-11-15T11:20:00Z";
    check("the last container", statuses(json!([container("a", state(two)), container("b", state(one))])), two);
    let sidecar = json!({
        "spec": { "initContainers": [{ "name": "s", "restartPolicy": "Always" }, { "name": "i" }] },
        "status": { "initContainerStatuses": [container("s", state(two)), container("i", json!({}))] },
    });
    check("a sidecar ends after it", merged(statuses(json!([container("a", state(one))])), sidecar), two);
    let unready = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": two }]);
    let running = statuses(json!([container("a", state(one)), container("b", json!({ "running": {} }))]));
    let lost = merged(running.clone(), json!({ "status": { "conditions": unready } }));
    check("it is not ready any more", lost, two);
    let deleted =
        json!({ "metadata": { "deletionTimestamp": "2026-11-15T11:20:30Z", "deletionGracePeriodSeconds": 30 } });
    check("it was deleted", merged(running.clone(), deleted), two);
    check("nothing is known", running, "2026-11-15T11:00:00Z");
}

#[test]
fn the_first_rule_that_matches_a_failed_pod_applies() {
    let policy = |rules: Value| -> Option<FailurePolicy> {
        job(json!({ "spec": { "podFailurePolicy": { "rules": rules } } })).spec.pod_failure_policy
    };
    let codes = |action: &str, operator: &str, values: &[i32]| json!({ "action": action, "onExitCodes": { "operator": operator, "values": values } });
    let condition = |action: &str, type_: &str| json!({ "action": action, "onPodConditions": [{ "type": type_, "status": "True" }] });
    let check = |name: &str, rules: Value, pod: &PodView, want: Option<(Meaning, &str)>| {
        let got = failure::applied(policy(rules).as_ref(), pod).map(|applied| (applied.meaning, applied.message));
        assert_eq!(got, want.map(|(meaning, text)| (meaning, text.to_owned())), "{name}");
    };
    let failed = pod("a", exited(42, NOW));
    let text = "Container main for pod default/a failed with exit code 42 matching";
    let fail = format!("{text} FailJob rule at index 1");
    let rules = json!([codes("Ignore", "In", &[1, 2]), codes("FailJob", "In", &[40, 42])]);
    check("the second", rules, &failed, Some((Meaning::FailJob, &fail)));
    let ignored = format!("{text} Ignore rule at index 0");
    check("not in", json!([codes("Ignore", "NotIn", &[1])]), &failed, Some((Meaning::Ignore, &ignored)));
    check("in what is excluded", json!([codes("Ignore", "NotIn", &[42])]), &failed, None);
    check("an action that is newer", json!([codes("Retire", "In", &[42])]), &failed, None);
    let index = format!("{text} FailIndex rule at index 0");
    check("an index", json!([codes("FailIndex", "In", &[42])]), &failed, Some((Meaning::FailIndex, &index)));
    let of = |name: &str| json!([{ "action": "Count", "onExitCodes": { "containerName": name, "operator": "In", "values": [42] } }]);
    check("another container", of("other"), &failed, None);
    let count = format!("{text} Count rule at index 0");
    check("this container", of("main"), &failed, Some((Meaning::Count, &count)));
    check("success is no failure", json!([codes("FailJob", "NotIn", &[7])]), &pod("a", exited(0, NOW)), None);
    check("it still runs", json!([codes("FailJob", "NotIn", &[7])]), &pod("a", json!({})), None);

    let conditions = json!([{ "type": "DisruptionTarget", "status": "True" }]);
    let disrupted = pod("a", json!({ "status": { "phase": "Failed", "conditions": conditions } }));
    let rules = json!([condition("FailJob", "Other"), condition("Ignore", "DisruptionTarget")]);
    let text = "Pod default/a has condition DisruptionTarget matching Ignore rule at index 1";
    check("a condition", rules, &disrupted, Some((Meaning::Ignore, text)));
    check("no policy matches nothing", json!([]), &failed, None);
}

#[test]
fn a_terminating_pod_has_failed_unless_only_ended_ones_are_replaced() {
    let strict = job(json!({ "spec": { "podReplacementPolicy": "Failed" } }));
    let usual = job(json!({ "spec": { "podReplacementPolicy": "TerminatingOrFailed" } }));
    let check = |name: &str, more: Value, want: [bool; 2]| {
        let pod = pod("a", more);
        assert_eq!([&usual, &strict].map(|job| failure::is_failed(job, &pod)), want, "{name}");
    };
    check("running", json!({}), [false, false]);
    check("failed", phase("Failed"), [true, true]);
    check("terminating", terminating(), [true, false]);
    check("terminating and failed", merged(terminating(), phase("Failed")), [true, true]);
    check("terminating and succeeded", merged(terminating(), phase("Succeeded")), [false, false]);
}

#[test]
fn a_success_policy_is_met_by_its_first_fulfilled_rule() {
    let check = |rules: Value, succeeded: &str, want: Option<&str>| {
        let policy: Option<SuccessPolicy> =
            job(json!({ "spec": { "successPolicy": { "rules": rules } } })).spec.success_policy;
        let got = success::met(policy.as_ref(), 10, &Indexes::parse(succeeded, 10));
        assert_eq!(got.as_deref(), want, "{rules} {succeeded}");
    };
    let first = Some("Matched rules at index 0");
    let some = json!([{ "succeededIndexes": "0,2-4" }]);
    check(some.clone(), "0-4", first);
    check(some.clone(), "0,2-3", None);
    check(some, "", None);
    let two = json!([{ "succeededIndexes": "0,2-4", "succeededCount": 2 }]);
    check(two.clone(), "3,4,9", first);
    check(two, "1,4,9", None);
    check(json!([{ "succeededCount": 3 }]), "1,5,9", first);
    check(json!([{ "succeededCount": 3 }]), "1,5", None);
    check(json!([{ "succeededCount": 9 }, { "succeededIndexes": "5" }]), "5", Some("Matched rules at index 1"));
    check(json!([{ "succeededIndexes": "" }]), "5", None);
}

#[test]
fn only_changes_of_the_status_wait_for_others() {
    let of =
        |generation: i64, more: Value| Arc::new(job(merged(json!({ "metadata": { "generation": generation } }), more)));
    let finished = json!({ "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    let check = |name: &str, change: Change<JobView>, want: u64, abandons: bool| {
        assert_eq!(map::delay(&change), Duration::from_secs(want), "{name}");
        assert_eq!(map::abandons(&change), abandons, "{name}");
    };
    let updated = |old: Arc<JobView>, new: Arc<JobView>| Change::Updated { old, new };
    check("a new Job", Change::Added { new: of(1, json!({})), initial: false }, 0, false);
    check("a status", updated(of(1, json!({})), of(1, json!({}))), 1, false);
    check("a spec", updated(of(1, json!({})), of(2, json!({}))), 0, false);
    check("it has finished", updated(of(1, json!({})), of(1, finished)), 0, true);
    check("it is gone", Change::Deleted { last: of(1, json!({})), end: End::Observed }, 0, true);
}

#[test]
fn a_pod_that_no_job_will_count_is_an_orphan() {
    let running = || Some(Arc::new(job(json!({}))));
    let over = || {
        let conditions = json!([{ "type": "Failed", "status": "True" }]);
        Some(Arc::new(job(json!({ "status": { "conditions": conditions } }))))
    };
    let owner = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "sums", "uid": "job", "controller": true }]);
    let owned = |more: Value| merged(json!({ "metadata": { "ownerReferences": owner } }), more);
    let check = |name: &str, more: Value, job: Option<Arc<JobView>>, want: bool| {
        let change = Change::Added { new: pod("a", more), initial: false };
        assert_eq!(map::orphan(&change, |_| job.clone()).is_some(), want, "{name}");
    };
    check("no owner", json!({}), None, true);
    check("no owner and no finalizer", counted(), None, false);
    check("a running Job", owned(json!({})), running(), false);
    check("a running Job, terminating", owned(terminating()), running(), false);
    check("a finished Job", owned(json!({})), over(), true);
    check("no Job yet", owned(json!({})), None, false);
    check("no Job any more", owned(terminating()), None, true);
    let gone = Change::Deleted { last: pod("a", json!({})), end: End::Observed };
    assert_eq!(map::orphan(&gone, |_| running()), None);
}

#[test]
fn ended_pods_with_the_finalizer_are_counted_in_and_out() {
    let check = |old: Option<Value>, new: Option<Value>, want: Option<&str>| {
        let view = |more: &Value| pod("a", more.clone());
        let change = match (&old, &new) {
            (Some(old), Some(new)) => Change::Updated { old: view(old), new: view(new) },
            (None, Some(new)) => Change::Added { new: view(new), initial: false },
            (Some(last), None) => Change::Deleted { last: view(last), end: End::Observed },
            (None, None) => unreachable!("a change has an object"),
        };
        assert_eq!(map::tracked_end(&change), want, "{old:?} {new:?}");
    };
    let ended = || Some(phase("Failed"));
    check(None, ended(), Some("add"));
    check(Some(json!({})), ended(), Some("add"));
    check(ended(), ended(), None);
    check(ended(), Some(merged(phase("Failed"), counted())), Some("delete"));
    check(ended(), None, Some("delete"));
    check(Some(json!({})), None, None);
}
