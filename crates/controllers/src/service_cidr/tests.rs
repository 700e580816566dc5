//! Tables of the decisions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Condition, ConditionStatus};
use steersman_informer::{Change, End};
use steersman_model::networking::{IpAddressView, ServiceCidrView};

use super::plan::{DELETION_GRACE_PERIOD, Plan, applied, finalizer_patch, plan};
use super::{map, ranges};
use crate::test_objects::{NOW, decode, merged, now};

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const BLOCKED: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

fn range(name: &str, cidrs: &[&str], more: Value) -> Arc<ServiceCidrView> {
    let object = json!({
        "metadata": { "name": name, "uid": name, "finalizers": [FINALIZER] }, "spec": { "cidrs": cidrs },
    });
    Arc::new(decode(merged(object, more)))
}

fn terminating() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-11-15T11:59:00Z" } })
}

fn address(ip: &str) -> Arc<IpAddressView> {
    managed_address(ip, "ipallocator.k8s.io")
}

fn managed_address(ip: &str, manager: &str) -> Arc<IpAddressView> {
    let labels = json!({ "ipaddress.kubernetes.io/managed-by": manager });
    Arc::new(decode(json!({ "metadata": { "name": ip, "labels": labels } })))
}

fn ready(message: &str) -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "message": message, "reason": "" }] } })
}

#[test]
fn a_range_in_use_is_protected_and_ready() {
    let check = |more: Value, want_protect: bool, want: Option<&str>| {
        let object = range("a", &["10.0.0.0/24"], more.clone());
        let Plan::Serve { protect, condition } = plan(&object, std::slice::from_ref(&object), &[], now()) else {
            panic!("it is in use: {more}");
        };
        assert_eq!(protect, want_protect, "{more}");
        assert_eq!(condition.as_ref().map(|it| &*it.message), want, "{more}");
        assert!(condition.is_none_or(|it| it.status == ConditionStatus::True && it.reason.is_empty()), "{more}");
    };
    let message = "Kubernetes Service CIDR is ready";
    check(json!({}), false, Some(message));
    check(json!({ "metadata": { "finalizers": null } }), true, Some(message));
    check(json!({ "metadata": { "finalizers": ["other"] } }), true, Some(message));
    check(ready(message), false, None);
    // The API server's own controller has other words, which this one replaces, as upstream.
    check(ready("Kubernetes default Service CIDR is ready"), false, Some(message));
}

#[test]
fn a_terminating_range_stays_while_an_address_is_in_no_other() {
    let going = range("going", &["10.0.0.0/24", "fd00::/112"], terminating());
    let check = |others: &[Arc<ServiceCidrView>], addresses: &[&str], want: &str| {
        let all: Vec<_> = others.iter().cloned().chain([Arc::clone(&going)]).collect();
        let addresses: Vec<_> = addresses.iter().map(|ip| address(ip)).collect();
        let got = match plan(&going, &all, &addresses, now()) {
            Plan::Block(Some(condition)) => {
                assert_eq!((condition.status, &*condition.reason), (ConditionStatus::False, "Terminating"));
                assert_eq!(&*condition.message, BLOCKED);
                "blocked"
            }
            Plan::Release => "released",
            other => panic!("{other:?}"),
        };
        assert_eq!(got, want, "{others:?} {addresses:?}");
    };
    check(&[], &[], "released");
    check(&[], &["10.0.0.7"], "blocked");
    check(&[], &["fd00::7"], "blocked");
    // In another network, the network's own address, that of all hosts: none of them was allocated from this range.
    check(&[], &["10.0.1.7", "10.0.0.0", "10.0.0.255", "fd00::"], "released");
    check(&[], &["fd00::ffff"], "blocked");
    let larger = |cidrs: &[&str], more: Value| vec![range("larger", cidrs, more)];
    check(&larger(&["10.0.0.0/16", "fd00::/108"], json!({})), &["10.0.0.7", "fd00::7"], "released");
    // The address itself is in another range, although that does not contain the whole.
    check(&larger(&["10.0.0.0/28"], json!({})), &["10.0.0.7"], "released");
    check(&larger(&["10.0.0.0/28"], json!({})), &["10.0.0.77"], "blocked");
    check(&larger(&["10.0.0.0/28"], json!({})), &["10.0.0.15"], "blocked");
    check(&larger(&["10.0.0.0/16"], json!({})), &["10.0.0.7", "fd00::7"], "blocked");
    check(&larger(&["10.0.0.0/24", "fd00::/112"], terminating()), &["10.0.0.7"], "blocked");
    check(&larger(&["10.0.0.0/24", "fd00::/112"], json!({})), &["10.0.0.7"], "released");
}

#[test]
fn addresses_of_others_keep_no_range() {
    let going = range("going", &["10.0.0.0/24"], terminating());
    let foreign = [managed_address("10.0.0.7", "example.com"), managed_address("no-address", "ipallocator.k8s.io")];
    assert_eq!(plan(&going, std::slice::from_ref(&going), &foreign, now()), Plan::Release);
}

#[test]
fn a_range_is_released_after_the_allocators_know() {
    let check = |deleted: &str, finalizers: Value, want: Plan| {
        let more = json!({ "metadata": { "deletionTimestamp": deleted, "finalizers": finalizers } });
        let going = range("going", &["10.0.0.0/24"], more);
        assert_eq!(plan(&going, std::slice::from_ref(&going), &[], now()), want, "{deleted}");
    };
    check(NOW, json!([FINALIZER]), Plan::Wait(DELETION_GRACE_PERIOD));
    check("2026-11-15T11:59:52Z", json!([FINALIZER]), Plan::Wait(Duration::from_secs(2)));
    check("2026-11-15T11:59:50Z", json!([FINALIZER]), Plan::Release);
    check("2026-11-15T11:59:50Z", json!(["other"]), Plan::Nothing);
    // A server whose clock is ahead.
    check("2026-11-15T12:00:05Z", json!([FINALIZER]), Plan::Wait(DELETION_GRACE_PERIOD));
}

#[test]
fn a_condition_is_written_once() {
    let reported = json!({ "type": "Ready", "status": "False", "reason": "Terminating", "message": BLOCKED });
    let going =
        range("going", &["10.0.0.0/24"], merged(terminating(), json!({ "status": { "conditions": [reported] } })));
    let taken = [address("10.0.0.7")];
    assert_eq!(plan(&going, std::slice::from_ref(&going), &taken, now()), Plan::Block(None));
}

#[test]
fn writes_name_the_range_by_its_uid() {
    let object = range("a", &["10.0.0.0/24"], json!({}));
    let condition = Condition::new("Ready", ConditionStatus::True).because("", "fine");
    let status = applied(&object, &condition, now());
    assert_eq!(status["metadata"], json!({ "name": "a", "uid": "a" }));
    let want = json!({ "type": "Ready", "status": "True", "reason": "", "message": "fine", "lastTransitionTime": NOW });
    assert_eq!(status["status"]["conditions"], json!([want]));
    assert_eq!(finalizer_patch(&object, true), json!({ "metadata": { "uid": "a", "finalizers": [FINALIZER] } }));
    let removed = json!({ "metadata": { "uid": "a", "$deleteFromPrimitiveList/finalizers": [FINALIZER] } });
    assert_eq!(finalizer_patch(&object, false), removed);
}

#[test]
fn changes_enqueue_the_terminating_ranges_that_they_concern() {
    let going = range("going", &["10.0.0.0/24"], terminating());
    let elsewhere = range("elsewhere", &["10.9.0.0/24"], terminating());
    let waiting = [going, elsewhere];
    let names = |keys: Vec<steersman_base::ObjectKey>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    let new = range("new", &["10.0.0.0/16"], json!({}));
    let added = Change::Added { new: Arc::clone(&new), initial: false };
    assert_eq!(names(map::ranges_to_check(&added, &waiting)), ["new", "going"]);
    let updated = Change::Updated { old: Arc::clone(&new), new: Arc::clone(&new) };
    assert_eq!(names(map::ranges_to_check(&updated, &waiting)), ["new"]);
    let taken = Change::Added { new: address("10.0.0.9"), initial: false };
    assert_eq!(names(map::ranges_of_address(&taken, &waiting)), ["going"]);
    let freed = Change::Deleted { last: address("10.9.0.9"), end: End::Missed };
    assert_eq!(names(map::ranges_of_address(&freed, &waiting)), ["elsewhere"]);
    let foreign = Change::Deleted { last: managed_address("10.9.0.9", "other"), end: End::Observed };
    assert!(map::ranges_of_address(&foreign, &waiting).is_empty());
}

#[test]
fn what_is_no_range_is_skipped() {
    let odd = range("odd", &["10.0.0.0/33", "", "fd00::/112"], json!({}));
    assert_eq!(ranges::of(&odd).count(), 1);
}
