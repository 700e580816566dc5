//! Table tests of the pure functions.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Istr, MicroTime, Time};
use steersman_model::core::NodeView;
use steersman_model::{Encoded, View};

use super::object::{self, host_address, pod_range};
use super::schedule::Schedule;
use super::{LEASE_EVERY, STATUS_EVERY};
use crate::fleet::Machine;
use crate::options::{COUNT_MAX, NodesError, NodesOptions};

const NOW: Time = Time::from_unix(1_800_000_000);

fn read(object: &Value) -> NodeView {
    NodeView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

#[test]
fn heartbeats_of_many_nodes_lie_side_by_side() {
    let now = MicroTime::from(NOW);
    let mut nexts: Vec<_> =
        (0..1000).map(|index| Schedule::new(LEASE_EVERY, index, 1000).next(now).as_millis()).collect();
    nexts.sort_unstable();
    assert_eq!((nexts[0], nexts[999]), (10, 10_000));
    assert!(nexts.windows(2).all(|pair| pair[1] - pair[0] == 10), "each hundredth of a second one");
}

#[test]
fn a_heartbeat_is_due_once_in_each_period() {
    let beat = Schedule::new(LEASE_EVERY, 3, 10);
    let mut now = MicroTime::from(NOW);
    assert!(beat.is_due(None, now));
    for _ in 0..5 {
        let last = now;
        assert!(!beat.is_due(Some(last), now));
        let next = beat.next(now);
        assert!(next <= LEASE_EVERY && !next.is_zero(), "{next:?}");
        assert!(!beat.is_due(Some(last), now + (next - Duration::from_micros(1))));
        now = now + next;
        assert!(beat.is_due(Some(last), now));
    }
    assert!(STATUS_EVERY > LEASE_EVERY);
}

#[test]
fn addresses_of_nodes_do_not_overlap() {
    let last = COUNT_MAX - 1;
    assert_eq!(host_address(0).to_string(), "172.16.0.10");
    assert_eq!((pod_range(0).to_string(), pod_range(1).to_string()), ("10.128.0.0/22".into(), "10.128.4.0/22".into()));
    assert_eq!(pod_range(last).to_string(), "10.255.252.0/22");
    assert!(host_address(last).is_private());
}

#[test]
fn a_node_that_is_created_needs_no_word_more() {
    let options = NodesOptions { zones: vec!["a".into(), "b".into()], ..NodesOptions::default() };
    let object = object::node("node-1", &Machine::new(1), &options, NOW);
    let node = read(&object);
    assert!(!object::is_wrong(&node, &options));
    assert_eq!(object::last_heartbeat(&node), Some(NOW));
    assert_eq!(node.metadata.labels.get("topology.kubernetes.io/zone").map(Istr::as_str), Some("b"));
    assert_eq!(node.metadata.labels.get("kubernetes.io/hostname").map(Istr::as_str), Some("node-1"));
}

#[test]
fn a_node_without_a_range_of_its_own_is_given_one_by_the_cluster() {
    let range = |pod_ranges| {
        let options = NodesOptions { pod_ranges, ..NodesOptions::default() };
        object::node("node-1", &Machine::new(1), &options, NOW)["spec"]["podCIDRs"].clone()
    };
    assert_eq!(range(true), json!(["10.128.4.0/22"]));
    assert_eq!(range(false), Value::Null);
}

#[test]
fn a_node_reports_the_version_that_it_was_upgraded_to() {
    let options = NodesOptions::default();
    let mut machine = Machine::new(1);
    let reports = |machine: &Machine| object::status("node-1", machine, &options, None, NOW)["nodeInfo"].clone();
    assert_eq!(reports(&machine)["kubeletVersion"], object::VERSION);
    machine.version = Istr::interned("v1.38.0");
    assert_eq!(reports(&machine)["kubeletVersion"], "v1.38.0");
}

#[test]
fn a_wrong_idea_of_a_node_is_noticed_and_the_rest_keeps_its_times() {
    let options = NodesOptions::default();
    let mut object = object::node("node-1", &Machine::new(1), &options, NOW);
    object["status"]["conditions"][3]["status"] = "Unknown".into();
    let node = read(&object);
    assert!(object::is_wrong(&node, &options));
    let later = NOW.plus_seconds(60);
    let status = object::status("node-1", &Machine::new(1), &options, Some(&node), later);
    let since = |index: usize| status["conditions"][index]["lastTransitionTime"].clone();
    assert_eq!((since(0), since(3)), (json!(NOW), json!(later)));
    let larger = NodesOptions { capacity: [("cpu".to_owned(), "9".to_owned())].into(), ..NodesOptions::default() };
    assert!(object::is_wrong(&read(&object::node("node-1", &Machine::new(1), &options, NOW)), &larger));
}

#[test]
fn only_the_taint_of_new_nodes_goes_and_only_when_they_are_ready() {
    let options = NodesOptions::default();
    let not_ready = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let evicting = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" });
    let own = json!({ "key": "dedicated", "effect": "NoSchedule" });
    let kept = |taints: Value, ready: &str| {
        let mut object = object::node("node-1", &Machine::new(1), &options, NOW);
        object["spec"]["taints"] = taints;
        object["status"]["conditions"][3]["status"] = ready.into();
        object::kept_taints(&read(&object)).map(|kept| json!(kept))
    };
    assert_eq!(kept(json!([not_ready, own]), "True"), Some(json!([own])));
    assert_eq!(kept(json!([not_ready]), "True"), Some(json!([])));
    assert_eq!(kept(json!([not_ready, own]), "False"), None);
    assert_eq!(kept(json!([own, evicting]), "True"), None);
}

#[test]
fn impossible_nodes_are_refused_with_the_reason() {
    let check = |options: NodesOptions| options.check().unwrap_err();
    assert_eq!(check(NodesOptions::count(COUNT_MAX + 1)), NodesError::TooMany { asked: COUNT_MAX + 1 });
    let error = check(NodesOptions { first: usize::MAX, ..NodesOptions::default() });
    assert!(matches!(error, NodesError::TooMany { .. }));
    let error = check(NodesOptions { capacity: [("cpu".into(), "much".into())].into(), ..NodesOptions::default() });
    assert!(error.to_string().contains("\"much\" of \"cpu\""), "{error}");
    let error = check(NodesOptions { prefix: "Node_".into(), ..NodesOptions::default() });
    assert!(error.to_string().contains("\"Node_-0\""), "{error}");
    let asked = Duration::from_millis(999);
    assert_eq!(
        check(NodesOptions { lease_duration: asked, ..NodesOptions::default() }),
        NodesError::LeaseDuration { asked }
    );
    assert_eq!(NodesOptions::count(COUNT_MAX).check(), Ok(()));
}
