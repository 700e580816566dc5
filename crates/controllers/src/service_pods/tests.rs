//! Table tests of the pure functions, and objects for the tests of endpoints.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey, Time};
use steersman_informer::__internal::sink::Sink as _;
use steersman_informer::{Change, End, SharedInformer, Target};
use steersman_model::core::{PodView, ServiceView};
use steersman_model::{Kind as _, View};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use tokio_util::sync::CancellationToken;

use super::address::{self, Family};
use super::memory::TriggerTimes;
use super::{
    LABELS_INDEXED_MAX, LabelHash, SelectedPods, ServicePods, hostname, is_published, ports, selector_hashes,
    services_of,
};
pub(crate) use crate::test_objects::{NOW, decode, merged, terminating, view};

const LATER: &str = "2026-11-15T12:00:05Z";

/// Returns a running, ready pod on `node-1` with an address.
pub(crate) fn pod_json(number: usize, more: Value) -> Value {
    let ip = format!("10.0.{}.{}", number / 250, number % 250 + 1);
    let pod = objects::pod(&format!("pod-{number:04}")).app("web").in_namespace("default");
    let pod = pod.uid(&format!("uid-{number:04}")).on_node("node-1").ready_since(NOW).addresses(&[&ip]);
    let pod = serde_json::to_value(pod.with(json!({ "metadata": { "resourceVersion": "1" } }))).unwrap();
    merged(pod, more)
}

pub(crate) fn pod(number: usize, more: Value) -> Arc<PodView> {
    Arc::new(decode(pod_json(number, more)))
}

/// Returns a service with one port, for pods labelled `app=web`.
pub(crate) fn service(more: Value) -> ServiceView {
    let web = objects::service("web").in_namespace("default").uid("svc").created("2026-11-01T00:00:00Z");
    let defaults = json!({ "spec": {
        "type": "ClusterIP", "clusterIP": "10.96.0.7", "ipFamilies": ["IPv4"],
        "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
    } });
    view(&web, merged(defaults, more))
}

pub(crate) fn not_ready() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": NOW }] } })
}

pub(crate) fn with_ips(ips: &[&str]) -> Value {
    let all: Vec<_> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    json!({ "status": { "podIP": ips.first().unwrap_or(&""), "podIPs": all } })
}

#[test]
fn an_address_is_read_as_go_reads_it_and_written_as_it_should_be() {
    let check = |text: &str, want: Option<&str>| {
        assert_eq!(address::parse(text).map(|address| address.to_string()).as_deref(), want, "{text}");
    };
    check("10.0.0.1", Some("10.0.0.1"));
    check("010.000.0.01", Some("10.0.0.1"));
    check("::ffff:10.0.0.1", Some("10.0.0.1"));
    check("2001:DB8::0:1", Some("2001:db8::1"));
    check("", None);
    check("10.0.0", None);
    check("10.0.0.1.2", None);
    check("10.0.0.256", None);
    check("10.0.0.+1", None);
    check("10.0..1", None);
    check("pod-1", None);
    check("10.0.0.1/24", None);
}

#[test]
fn a_pods_addresses_are_separated_by_family_and_invalid_ones_are_left_out() {
    let check = |name: &str, ips: &[&str], v4: &[&str], v6: &[&str], invalid: Option<&str>| {
        let pod = pod(1, with_ips(ips));
        let of = |family| address::of_pod(&pod, family).map(|address| address.to_string()).collect::<Vec<_>>();
        assert_eq!((of(Family::V4), of(Family::V6)), (texts(v4), texts(v6)), "{name}");
        assert_eq!(address::invalid(&pod).map(ToString::to_string), invalid.map(str::to_owned), "{name}");
    };
    check("one family", &["10.0.0.1"], &["10.0.0.1"], &[], None);
    check("both", &["10.0.0.1", "fd00::1"], &["10.0.0.1"], &["fd00::1"], None);
    check("written oddly", &["010.0.0.1", "FD00::0:1"], &["10.0.0.1"], &["fd00::1"], None);
    check("one is none", &["10.0.0.1", "nonsense"], &["10.0.0.1"], &[], Some("nonsense"));
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_target_port_is_a_number_or_found_by_name_and_protocol() {
    let ports = json!({ "spec": {
        "containers": [
            { "name": "a", "ports": [{ "name": "http", "containerPort": 8080 }] },
            { "name": "b", "ports": [{ "name": "dns", "containerPort": 53, "protocol": "UDP" }] },
        ],
        "initContainers": [
            { "name": "once", "ports": [{ "name": "setup", "containerPort": 1 }] },
            { "name": "beside", "restartPolicy": "Always", "ports": [{ "name": "proxy", "containerPort": 15001 }] },
        ],
    } });
    let pod = pod(1, ports);
    let check = |target: Value, protocol: &str, want: Option<i32>| {
        let port = json!([{ "name": "x", "protocol": protocol, "port": 80, "targetPort": target }]);
        let service = service(json!({ "spec": { "ports": port } }));
        assert_eq!(ports::find(&pod, &service.spec.ports[0]), want, "{target} {protocol}");
    };
    check(json!(1234), "TCP", Some(1234));
    check(json!("http"), "TCP", Some(8080));
    check(json!("http"), "", Some(8080));
    check(json!("http"), "UDP", None);
    check(json!("dns"), "UDP", Some(53));
    check(json!("proxy"), "TCP", Some(15001));
    check(json!("setup"), "TCP", None);
    check(json!("other"), "TCP", None);
}

#[test]
fn a_pod_is_published_while_it_has_an_address_and_has_not_ended() {
    let check = |name: &str, more: Value, want: (bool, bool)| {
        let pod = pod(1, more);
        assert_eq!((is_published(&pod, false), is_published(&pod, true)), want, "{name}");
    };
    check("running", json!({}), (true, true));
    check("not ready", not_ready(), (true, true));
    check("about to go", terminating(), (false, true));
    check("without address", json!({ "status": { "podIP": "", "podIPs": null } }), (false, false));
    check("succeeded", json!({ "status": { "phase": "Succeeded" } }), (false, false));
    check("failed", json!({ "status": { "phase": "Failed" } }), (false, false));
}

#[test]
fn a_host_name_counts_in_the_domain_of_its_service() {
    let check = |spec: Value, want: Option<&str>| {
        let pod = pod(1, json!({ "spec": spec }));
        assert_eq!(hostname(&pod, &service(json!({}))).map(Istr::as_str), want, "{spec}");
    };
    check(json!({ "hostname": "a", "subdomain": "web" }), Some("a"));
    check(json!({ "hostname": "a", "subdomain": "other" }), None);
    check(json!({ "hostname": "a" }), None);
    check(json!({ "subdomain": "web" }), None);
}

#[test]
fn a_pods_change_concerns_the_services_whose_endpoints_it_changes() {
    let named = |name: &str, selector: Value| {
        Arc::new(service(json!({ "metadata": { "name": name }, "spec": { "selector": selector } })))
    };
    let services = [
        named("web", json!({ "app": "web" })),
        named("front", json!({ "app": "web", "tier": "front" })),
        named("api", json!({ "app": "api" })),
        Arc::new(service(json!({ "metadata": { "name": "elsewhere", "namespace": "other" } }))),
        Arc::new(service(json!({ "metadata": { "name": "nobody" }, "spec": { "selector": null } }))),
        Arc::new(service(json!({ "metadata": { "name": "external" }, "spec": { "type": "ExternalName" } }))),
    ];
    let under =
        |hash: &LabelHash| services.iter().filter(|service| selector_hashes(service).contains(hash)).cloned().collect();
    let check = |name: &str, change: Change<PodView>, want: &[&str]| {
        let mut got: Vec<_> = services_of(&change, under).iter().map(|key: &ObjectKey| key.name.to_string()).collect();
        got.sort();
        assert_eq!(got, texts(want), "{name}");
    };
    let labelled = |labels: Value| json!({ "metadata": { "labels": labels, "resourceVersion": "2" } });
    let plain = pod(1, json!({}));
    let bare = pod(1, json!({ "status": { "podIP": "", "podIPs": null } }));
    let front = pod(1, labelled(json!({ "app": "web", "tier": "front" })));
    let api = pod(1, labelled(json!({ "app": "api" })));

    check("the state it began with", Change::Added { new: plain.clone(), initial: true }, &[]);
    check("new", Change::Added { new: plain.clone(), initial: false }, &["web"]);
    check("new, found by two", Change::Added { new: front.clone(), initial: false }, &["front", "web"]);
    check("new, without address", Change::Added { new: bare.clone(), initial: false }, &[]);
    check("gone", Change::Deleted { last: front.clone(), end: End::Observed }, &["front", "web"]);
    check("gone, never published", Change::Deleted { last: bare.clone(), end: End::Missed }, &[]);

    let update = |name: &str, old: &Arc<PodView>, new: Value, want: &[&str]| {
        check(name, Change::Updated { old: old.clone(), new: pod(1, new) }, want);
    };
    update("nothing", &plain, json!({}), &[]);
    update("what is not published", &plain, json!({ "metadata": { "annotations": { "a": "b" } } }), &[]);
    update("it has an address now", &bare, json!({}), &["web"]);
    update("another address", &plain, with_ips(&["10.9.9.9"]), &["web"]);
    update("a second address", &plain, with_ips(&["10.0.0.2", "fd00::2"]), &["web"]);
    update("not ready", &plain, not_ready(), &["web"]);
    update("about to go", &plain, terminating(), &["web"]);
    let ended = || merged(not_ready(), json!({ "status": { "phase": "Failed" } }));
    update("it ended", &plain, ended(), &["web"]);
    update("it ended and was not ready before", &pod(1, not_ready()), ended(), &["web"]);
    update("one more service", &plain, labelled(json!({ "app": "web", "tier": "front" })), &["front"]);
    update("another service", &plain, labelled(json!({ "app": "api" })), &["api", "web"]);
    update("back again", &api, json!({}), &["api", "web"]);
    let both = merged(labelled(json!({ "app": "web", "tier": "front" })), not_ready());
    update("one more service, and not ready", &plain, both, &["front", "web"]);
    let never = merged(labelled(json!({ "app": "api" })), json!({ "status": { "podIP": "", "podIPs": null } }));
    update("relabelled before it had an address", &bare, never, &[]);
}

/// The cost of a pod with very many labels is bounded, and it is found like any other.
#[tokio::test]
async fn a_pod_with_very_many_labels_is_found_by_its_namespace() {
    let labels = |count: usize| {
        let mut labels: serde_json::Map<_, _> = (1..count).map(|at| (format!("l{at:05}"), json!("x"))).collect();
        labels.insert("app".to_owned(), json!("web"));
        json!({ "metadata": { "labels": labels } })
    };
    let services = [
        Arc::new(service(json!({}))),
        Arc::new(service(json!({ "metadata": { "name": "other" }, "spec": { "selector": { "app": "other" } } }))),
        Arc::new(service(json!({ "metadata": { "name": "far", "namespace": "far" } }))),
    ];
    let under = |hash: &LabelHash| {
        services.iter().filter(|service| selector_hashes(service).contains(hash)).cloned().collect::<Vec<_>>()
    };
    for count in [1, LABELS_INDEXED_MAX, LABELS_INDEXED_MAX + 1, 50_000] {
        let pod = pod(1, labels(count));
        let hashes = super::label_hashes(pod.meta());
        assert_eq!(hashes.len(), if count > LABELS_INDEXED_MAX { 1 } else { count });
        let asked = std::cell::Cell::new(0);
        let concerned = services_of(&Change::Added { new: pod.clone(), initial: false }, |hash| {
            asked.set(asked.get() + 1);
            under(hash)
        });
        assert_eq!(concerned, [services[0].meta().key()], "{count} labels");
        assert!(asked.get() <= LABELS_INDEXED_MAX, "{count} labels: {} look-ups", asked.get());

        let informer = SharedInformer::new(Target::all(PodView::RESOURCE), CancellationToken::new());
        let none = SharedInformer::new(Target::all(ServiceView::RESOURCE), CancellationToken::new());
        let found_by = ServicePods::new(&none, &informer);
        let selected = SelectedPods::new(&informer);
        informer.sink().replace(vec![Arc::clone(&pod)], "5".into());
        let stop = CancellationToken::new();
        let filled = async {
            informer.store().until(|store| (!store.is_empty()).then_some(())).await;
            stop.cancel();
        };
        tokio::join!(informer.run(&stop), filled);
        let names = |service: &ServiceView| found_by.of(service).len();
        assert_eq!(services.iter().map(|service| names(service)).collect::<Vec<_>>(), [1, 0, 0], "{count} labels");
        for (namespace, selector, want) in [
            ("default", "app=web", 1),
            ("default", "app in (web),other!=1", 1),
            ("default", "app in (web,other)", 1),
            ("default", "!absent", 1),
            ("default", "app=web,absent", 0),
            ("default", "app=other", 0),
            ("far", "app=web", 0),
            ("far", "app", 0),
        ] {
            let selected = selected.of(namespace, &selector.parse().unwrap());
            assert_eq!(selected.len(), want, "{count} labels, {namespace} {selector}");
        }
    }
}

#[test]
fn the_trigger_time_is_the_earliest_news_since_the_last_pass() {
    let times = TriggerTimes::default();
    let service = service(json!({}));
    let key = service.meta().key();
    let at = |time: &str| Some(time.parse::<Time>().unwrap());
    let ready_at = |number: usize, time: &str| {
        let condition = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": time }]);
        pod(number, json!({ "status": { "conditions": condition } }))
    };
    let pods = [ready_at(1, NOW), ready_at(2, NOW)];

    let (time, _) = times.observe(&service, &pods);
    assert_eq!(time, service.meta().creation_timestamp, "a service that is new");
    let (time, seen) = times.observe(&service, &pods);
    assert_eq!(time, service.meta().creation_timestamp, "and is still new, for nothing was written");
    times.keep(&key, seen);
    assert_eq!(times.observe(&service, &pods).0, None, "nothing is news");

    let pods = [ready_at(1, NOW), ready_at(2, LATER), ready_at(3, NOW), ready_at(4, LATER)];
    let (time, seen) = times.observe(&service, &pods);
    assert_eq!(time, at(NOW), "the earliest of those that are news");
    times.keep(&key, seen);
    assert_eq!(times.observe(&service, &pods[..2]).0, None, "a pod that is gone has no time");
    assert_eq!(times.observe(&service, &[ready_at(2, NOW)]).0, None, "nobody goes back in time");

    let changed = |number: usize, more: Value| {
        let condition = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": LATER }]);
        pod(number, merged(json!({ "status": { "conditions": condition } }), more))
    };
    let check = |name: &str, pod: Arc<PodView>, want: Option<Time>| {
        assert_eq!(times.observe(&service, &[pod]).0, want, "{name}");
    };
    let ended = || json!({ "status": { "phase": "Failed" } });
    check("not ready any more", changed(1, json!({})), at(LATER));
    check("ended", changed(1, ended()), at(LATER));
    check("new, and not ready", changed(9, json!({})), at(LATER));
    check("new, and ended already", changed(9, ended()), None);
    check("new, without an address", pod(9, json!({ "status": { "podIP": "", "podIPs": null } })), None);

    times.forget(&key);
    assert_eq!(times.observe(&service, &pods).0, service.meta().creation_timestamp, "a new service of that name");
}

#[test]
fn what_is_said_once_is_not_said_again() {
    let once = super::memory::Once::default();
    let uid = |number: usize| steersman_base::Uid::new(&format!("uid-{number}"));
    assert!(once.is_first(&uid(0)));
    assert!(!once.is_first(&uid(0)));
    assert!((1..5000).all(|number| once.is_first(&uid(number))), "others are reported");
    assert!(once.is_first(&uid(0)), "after very many others, it is said again");
}
