//! Tables of the decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use steersman_base::{Istr, MicroTime};
use steersman_model::View;
use steersman_model::core::NodeView;

use super::memory::Memory;
use super::plan::{DRIVER_MAX, Forced, Plan, Rules, Step, UNMOUNT_MAX, plan};
use super::state::{Attachment, Doing, Failure, NodeFacts, OnNode, Volume};
use super::{messages, object};
use crate::test_objects::{decode, pod};

const RULES: Rules = Rules { forces: true, verifies: true };
const NOW: MicroTime = MicroTime::from_unix_micros(1_000_000_000_000);

fn csi() -> Volume {
    Volume { is_csi: true, driver: "d.io".into(), handle: "h".into(), is_exclusive: true }
}

fn shared() -> Volume {
    Volume { is_exclusive: false, ..csi() }
}

fn wanted() -> OnNode {
    OnNode { is_wanted: true, facts: well(), ..OnNode::default() }
}

fn well() -> NodeFacts {
    NodeFacts { is_ready: true, ..NodeFacts::default() }
}

fn pending() -> Option<Attachment> {
    Some(Attachment::default())
}

fn attached() -> Option<Attachment> {
    Some(Attachment { is_attached: true, ..Attachment::default() })
}

fn deleted(error: Option<&str>) -> Option<Attachment> {
    let detach_error = error.map(ToOwned::to_owned);
    Some(Attachment { is_attached: true, is_terminating: true, detach_error, attach_error: None })
}

fn ago(time: Duration) -> MicroTime {
    let micros = i64::try_from(time.as_micros()).expect("it is short");
    MicroTime::from_unix_micros(NOW.unix_micros() - micros)
}

fn on(nodes: &[(&str, OnNode)]) -> BTreeMap<Istr, OnNode> {
    nodes.iter().map(|(name, on)| (Istr::new(name), on.clone())).collect()
}

fn steps(volume: &Volume, nodes: &[(&str, OnNode)], rules: Rules) -> Plan {
    plan(volume, &on(nodes), rules, NOW)
}

#[track_caller]
fn check(volume: &Volume, nodes: &[(&str, OnNode)], want: &[(&str, Step)]) -> Plan {
    let planned = steps(volume, nodes, RULES);
    let want: Vec<(Istr, Step)> = want.iter().map(|(node, step)| (Istr::new(node), step.clone())).collect();
    assert_eq!(planned.steps, want, "{nodes:?}");
    planned
}

#[test]
fn a_volume_that_a_pod_needs_is_asked_for_once_and_waited_for() {
    let begun = |attachment, at| OnNode { attachment, doing: Some((Doing::Attach, at)), ..wanted() };
    let second = ago(Duration::from_secs(1));
    let planned = check(&csi(), &[("a", wanted())], &[("a", Step::Create)]);
    assert_eq!(planned.wake, Some(NOW + DRIVER_MAX));
    check(&csi(), &[("a", begun(None, second))], &[]);
    let planned = check(&csi(), &[("a", begun(pending(), second))], &[]);
    assert_eq!(planned.wake, Some(second + DRIVER_MAX));
    check(&csi(), &[("a", begun(attached(), second))], &[("a", Step::Report)]);
    // A restart between the request and the answer: it goes on to wait.
    check(&csi(), &[("a", OnNode { attachment: pending(), ..wanted() })], &[("a", Step::Await(Doing::Attach))]);
    // The list has it, and nothing is left to do.
    let done = OnNode { attachment: attached(), is_reported: true, is_listed: true, ..wanted() };
    check(&csi(), &[("a", done.clone())], &[]);
    // A pod came back before the volume was detached.
    let back = OnNode { requested: Some(second), ..done };
    check(&csi(), &[("a", back)], &[("a", Step::Report)]);
}

#[test]
fn a_driver_that_fails_or_does_not_answer_is_reported_and_tried_again() {
    let late = ago(DRIVER_MAX);
    let message = "timed out waiting for external-attacher of d.io CSI driver to attach volume h";
    let slow = OnNode { attachment: pending(), doing: Some((Doing::Attach, late)), ..wanted() };
    check(&csi(), &[("a", slow)], &[("a", Step::FailAttach(message.into()))]);
    let failed = Some(Attachment { attach_error: Some("no".into()), ..Attachment::default() });
    let bad = OnNode { attachment: failed.clone(), ..wanted() };
    check(&csi(), &[("a", bad.clone())], &[("a", Step::FailAttach("no".into()))]);
    let failure = Failure::after(None, Doing::Attach, NOW);
    let waits = OnNode { failure: Some(failure), ..bad.clone() };
    let planned = check(&csi(), &[("a", waits.clone())], &[]);
    assert_eq!(planned.wake, Some(NOW + Duration::from_millis(500)));
    // It was attached meanwhile.
    check(&csi(), &[("a", OnNode { attachment: attached(), ..waits })], &[("a", Step::Report)]);
    let going = OnNode { attachment: deleted(None), ..wanted() };
    check(&csi(), &[("a", going)], &[("a", Step::FailAttach("volume attachment is being deleted".into()))]);
    let mut failure = failure;
    let mut delays = Vec::new();
    for _ in 0..10 {
        failure = Failure::after(Some(failure), Doing::Attach, NOW);
        delays.push(failure.delay.as_millis());
    }
    assert_eq!(delays, [1000, 2000, 4000, 8000, 16000, 32000, 64000, 122_000, 122_000, 122_000]);
    assert_eq!(Failure::after(Some(failure), Doing::Detach, NOW).delay, Duration::from_millis(500));
}

#[test]
fn a_volume_for_one_node_is_not_attached_to_a_second_one() {
    let here = OnNode { attachment: attached(), is_reported: true, is_listed: true, ..wanted() };
    let refuse = |others: &[&str]| Step::Refuse { others: others.iter().copied().map(Istr::new).collect() };
    check(&csi(), &[("a", here.clone()), ("b", wanted())], &[("b", refuse(&["a"]))]);
    let reported = OnNode { is_refusal_reported: true, ..wanted() };
    check(&csi(), &[("a", here.clone()), ("b", reported)], &[]);
    check(&shared(), &[("a", here.clone()), ("b", wanted())], &[("b", Step::Create)]);
    // Two at once: one of them, and the other waits for the outcome.
    check(&csi(), &[("a", wanted()), ("b", wanted())], &[("a", Step::Create)]);
    let begun = OnNode { doing: Some((Doing::Attach, NOW)), ..wanted() };
    check(&csi(), &[("a", wanted()), ("b", begun)], &[]);
    // While it is mounted elsewhere, the pod gets an event; while it is being detached, it just waits.
    let mounted = NodeFacts { is_mounted: true, ..well() };
    let used = OnNode { is_wanted: false, facts: mounted, requested: Some(NOW), ..here.clone() };
    check(&csi(), &[("a", used), ("b", wanted())], &[("b", refuse(&["a"]))]);
    let leaving = OnNode { is_wanted: false, requested: Some(NOW), ..here };
    check(&csi(), &[("a", leaving), ("b", wanted())], &[("a", Step::Withdraw)]);
    // It is gone from the first node: the second one gets it in the same pass.
    let gone = OnNode { doing: Some((Doing::Detach, NOW)), ..OnNode::default() };
    check(&csi(), &[("a", gone), ("b", wanted())], &[("a", Step::Forget), ("b", Step::Create)]);
    // Its driver could not detach it: nobody knows, and the driver of the other node has to refuse.
    let lost = OnNode {
        attachment: deleted(Some("no")),
        failure: Some(Failure::after(None, Doing::Detach, NOW)),
        is_uncertain: true,
        requested: Some(NOW),
        facts: well(),
        ..OnNode::default()
    };
    check(&csi(), &[("a", lost), ("b", wanted())], &[("b", Step::Create)]);
}

#[test]
fn a_volume_is_detached_step_by_step_when_nobody_needs_it() {
    let listed =
        OnNode { attachment: attached(), is_reported: true, is_listed: true, facts: well(), ..OnNode::default() };
    check(&csi(), &[("a", listed.clone())], &[("a", Step::Request), ("a", Step::Withdraw)]);
    let asked = OnNode { requested: Some(NOW), ..listed.clone() };
    let unwritten = OnNode { is_reported: false, ..asked.clone() };
    check(&csi(), &[("a", unwritten.clone())], &[("a", Step::Withdraw)]);
    let withdrawn = OnNode { is_listed: false, ..unwritten };
    let detach = Step::Detach { verify: true, forced: None };
    check(&csi(), &[("a", withdrawn.clone())], &[("a", detach.clone())]);
    let begun = |attachment| OnNode { attachment, doing: Some((Doing::Detach, NOW)), ..withdrawn.clone() };
    check(&csi(), &[("a", begun(deleted(None)))], &[]);
    check(&csi(), &[("a", begun(deleted(Some("busy"))))], &[("a", Step::FailDetach("busy".into()))]);
    check(&csi(), &[("a", begun(None))], &[("a", Step::Forget)]);
    // A pod that comes back meanwhile waits for the end.
    let back = OnNode { is_wanted: true, ..begun(deleted(None)) };
    check(&csi(), &[("a", back)], &[]);
    // A restart after the deletion.
    let restarted = OnNode { attachment: deleted(None), ..withdrawn.clone() };
    check(&csi(), &[("a", restarted)], &[("a", Step::Await(Doing::Detach))]);
    // A pending one that nobody needs any more.
    let dangling = OnNode { attachment: pending(), ..withdrawn.clone() };
    check(&csi(), &[("a", dangling)], &[("a", detach.clone())]);
    // It was created a moment ago, and the cache does not show it: its deletion waits for that.
    let unseen = OnNode { attachment: None, doing: Some((Doing::Attach, NOW)), ..withdrawn.clone() };
    check(&csi(), &[("a", unseen.clone()), ("b", wanted())], &[]);
    check(&csi(), &[("a", OnNode { doing: None, ..unseen })], &[("a", Step::Forget)]);
    // Volumes without a driver are only recorded.
    let local = Volume { is_exclusive: true, ..Volume::default() };
    check(&local, &[("a", wanted())], &[("a", Step::Report)]);
    check(&local, &[("a", OnNode { is_reported: true, is_listed: true, ..wanted() })], &[]);
    check(&local, &[("a", OnNode { attachment: None, is_listed: true, ..withdrawn })], &[("a", Step::Withdraw)]);
}

#[test]
fn a_volume_in_use_is_detached_by_force_only() {
    let used = |is_ready, is_out_of_service, since| OnNode {
        attachment: attached(),
        facts: NodeFacts { is_ready, is_out_of_service, is_mounted: true },
        requested: Some(since),
        ..OnNode::default()
    };
    let early = ago(UNMOUNT_MAX);
    let late = ago(UNMOUNT_MAX + Duration::from_secs(1));
    let forced = |why| Step::Detach { verify: false, forced: Some(why) };
    let planned = check(&csi(), &[("a", used(false, false, early))], &[]);
    assert_eq!(planned.wake, Some(NOW + Duration::from_micros(1)));
    check(&csi(), &[("a", used(true, false, late))], &[]);
    check(&csi(), &[("a", used(false, false, late))], &[("a", forced(Forced::Timeout))]);
    check(&csi(), &[("a", used(false, true, NOW))], &[("a", forced(Forced::OutOfService))]);
    let never = steps(&csi(), &[("a", used(false, false, late))], Rules { forces: false, ..RULES });
    assert_eq!(never, Plan::default());
    // A healthy node that is done after six minutes is asked, as any other.
    let done = OnNode { facts: well(), ..used(true, false, late) };
    check(&csi(), &[("a", done)], &[("a", Step::Detach { verify: true, forced: None })]);
}

#[test]
fn an_attachment_that_is_gone_is_noticed_unless_that_is_switched_off() {
    let gone = OnNode { attachment: None, is_reported: true, is_listed: true, ..wanted() };
    check(&csi(), &[("a", gone.clone())], &[("a", Step::Withdraw), ("a", Step::Create)]);
    let off = Rules { verifies: false, ..RULES };
    assert_eq!(steps(&csi(), &[("a", gone.clone())], off).steps, []);
    let refused = steps(&csi(), &[("a", gone), ("b", wanted())], off).steps;
    assert_eq!(refused, [("b".into(), Step::Refuse { others: vec!["a".into()] })]);
}

fn node(list: &[&str]) -> NodeView {
    let list: Vec<_> = list.iter().map(|name| json!({ "name": name, "devicePath": "/dev/x" })).collect();
    decode(json!({ "metadata": { "name": "n", "uid": "u" }, "status": { "volumesAttached": list } }))
}

#[test]
fn the_list_of_a_node_begins_with_what_it_has_and_is_written_before_a_volume_is_detached() {
    let memory = Memory::default();
    let [old, new, name] = ["old", "new", "n"].map(Istr::new);
    assert_eq!(memory.is_on(&old, Some(&node(&["old"]))), (true, true));
    assert_eq!(memory.is_on(&new, Some(&node(&["old"]))), (false, false));
    assert_eq!(memory.stale_list(&node(&["old"])), None);
    memory.report(&new, &name);
    memory.withdraw(&old, &name);
    let list = memory.stale_list(&node(&["old"])).expect("it is to be written");
    assert_eq!(list.keys().collect::<Vec<_>>(), [&new]);
    // Until the answer, both may be there.
    assert_eq!(memory.is_on(&old, Some(&node(&["old"]))), (false, true));
    assert!(memory.waiting_volumes.take().is_empty());
    assert!(!memory.wrote(&name, &list), "nothing has changed meanwhile");
    assert_eq!(memory.waiting_volumes.take().iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["old"]);
    assert_eq!(memory.is_on(&old, Some(&node(&["new"]))), (false, false));
    // Somebody has overwritten it.
    assert!(memory.stale_list(&node(&[])).is_some());
    memory.report(&old, &name);
    assert!(memory.wrote(&name, &list), "the other one came meanwhile");
    // A node that is gone has no list, and is remembered only if something is attached.
    memory.lost(&node(&["new"]), true);
    assert_eq!(memory.is_on(&new, None), (false, false));
    assert!(!memory.is_used_on_lost(&new, &name));
    memory.forget_lost(|_| false);
    assert!(memory.is_used_on_lost(&new, &name), "nobody knows");
}

#[test]
fn requests_and_lists_are_upstreams() {
    // printf 'handledriver.ionode-1' | sha256sum
    let key = object::attachment_key("handle", "driver.io", "node-1");
    assert_eq!(key.name, "csi-232fa791c2118d464ba58de624d0943baf1173870b23e57442bc2b9ba8e45b7b");
    let list = [("b", ""), ("a", "/dev/x")].map(|(name, path)| (Istr::new(name), Istr::new(path)));
    let node = node(&[]);
    assert_eq!(
        object::list(node.meta(), &list.into_iter().collect())["status"]["volumesAttached"],
        json!([{ "name": "a", "devicePath": "/dev/x" }, { "name": "b", "devicePath": "" }]),
    );
    let empty = object::list(node.meta(), &BTreeMap::new());
    assert_eq!(empty, json!({ "metadata": { "uid": "u" }, "status": { "volumesAttached": null } }));
}

#[test]
fn pods_get_events_about_who_uses_their_volume_and_nothing_of_other_namespaces() {
    let ours = pod("web-0", json!({}));
    let other = pod("web-1", json!({}));
    let foreign = pod("secret", json!({ "metadata": { "namespace": "other" } }));
    let check = |others: &[&steersman_base::Meta], want: &str| {
        let want = format!("Waiting for detach for volume \"v\" Volume is already {want}");
        assert_eq!(messages::refused("v", ours.meta(), others), want);
    };
    check(&[], "exclusively attached to one node, waiting on detach before it can be attached to another node");
    check(&[other.meta()], "used by pod(s) web-1");
    check(&[other.meta(), foreign.meta()], "used by pod(s) web-1 and 1 pod(s) in different namespaces");
    check(&[foreign.meta()], "used by 1 pod(s) in different namespaces");
    assert_eq!(messages::attached("v"), "AttachVolume.Attach succeeded for volume \"v\" ");
    assert_eq!(messages::failed("v", "no"), "AttachVolume.Attach failed for volume \"v\" : no");
}
