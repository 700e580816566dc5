//! From the bytes of a list to an indexed store, through reflector, delta FIFO and store as a controller manager uses them:
//! `cargo bench -p steersman-informer --bench informer`, with a part of a name to run only some.
//!
//! Every scenario runs in a process of its own, so that pools are cold and memory is its own. Speeds stand beside
//! `k8s_openapi`'s in the same process; compare the ratios, not the seconds. One line of JSON per figure.

mod bodies;
mod measure;
mod serve;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::List;
use k8s_openapi::api::core::v1::Pod;
use steersman_base::meta::Owners;
use steersman_base::{Meta, OwnerRef, Resource, Uid};
use steersman_informer::__internal::reflector::Lists;
use steersman_informer::__internal::sink::{Sink, WatchEvent};
use steersman_informer::{Change, Selection, SharedInformer, Target};
use steersman_informer::{FactoryOptions, InformerFactory};
use steersman_model::{Kind, PodView, ReplicaSetView, View};
use tokio_util::sync::CancellationToken;

use bodies::{Encoding, ListBody};
use measure::{Memory, processor_time, report};
use serve::Server;

const PODS: usize = 30_000;
const RELISTED: usize = 100_000;
const INDEXED: usize = 500_000;
/// The peer is slow and its figure steady, so it decodes fewer.
const PEER_PODS: usize = 6_000;
/// Each speed is the best of some rounds: the least disturbed one.
const ROUNDS: usize = 5;

type Scenario = (&'static str, fn());

const SCENARIOS: [Scenario; 8] = [
    ("pods_json", || pods("pods_json", Encoding::Json, 3.5)),
    ("pods_protobuf", || pods("pods_protobuf", Encoding::Protobuf, 9.0)),
    ("metadata_protobuf", metadata),
    ("replica_sets_json", replica_sets),
    ("relist_pods", || relist::<PodView>("relist_pods", ListBody::pods)),
    ("relist_metadata", || relist::<Meta>("relist_metadata", ListBody::pod_metadata)),
    ("lookup", lookup),
    ("events", events),
];

/// Which scenario a child process is to run.
const CHILD: &str = "STEERSMAN_BENCH_SCENARIO";

fn main() {
    if let Ok(name) = std::env::var(CHILD) {
        let scenario = SCENARIOS.iter().find(|(other, _)| *other == name).expect("a scenario of that name");
        return (scenario.1)();
    }
    // `cargo bench` passes `--bench`; `cargo test --all-targets` comes by without, and wants no figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let this = std::env::current_exe().expect("the path of this program");
    for (name, _) in SCENARIOS.iter().filter(|(name, _)| name.contains(&only)) {
        let status = Command::new(&this).env(CHILD, name).status().expect("a child process");
        assert!(status.success(), "{name} failed: {status}");
    }
}

/// One informer, filled from a list.
struct Filled<V> {
    factory: InformerFactory,
    informer: SharedInformer<V>,
    took: Duration,
}

/// Starts an informer with the usual indexes and waits until its store is filled.
async fn fill<V: View>(server: &Server, resource: Resource, indexes: fn(&SharedInformer<V>)) -> Filled<V> {
    let mut options = FactoryOptions::default();
    options.reflector.lists = Lists::Paged;
    let factory = InformerFactory::with_options(server.client(), options);
    let informer = factory.informer_for::<V>(resource, Selection::everything());
    indexes(&informer);
    let start = processor_time();
    factory.start();
    factory.synced().await.expect("the list is served");
    Filled { factory, informer, took: processor_time() - start }
}

fn usual_indexes<V: View>(informer: &SharedInformer<V>) {
    drop(informer.index(|object| Some(object.meta().namespace.clone())));
    drop(informer.index(|object| object.meta().controller().map(|owner| owner.uid.clone())));
}

fn pod_indexes(informer: &SharedInformer<PodView>) {
    usual_indexes(informer);
    drop(informer.index(|pod: &PodView| Some(pod.spec.node_name.clone())));
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// What a filled store keeps per object and how high memory goes on the way; then how fast it is filled, in objects per
/// second.
fn fill_and_measure<V: View>(
    name: &str,
    resource: &Resource,
    body: &ListBody,
    kept_max: f64,
    indexes: fn(&SharedInformer<V>),
) -> f64 {
    run(async {
        let server = Server::new(body);
        let memory = Memory::now();
        let filled = fill::<V>(&server, resource.clone(), indexes).await;
        assert_eq!(filled.informer.lister().len(), body.count);
        let (kept, peak, rss) = memory.since();
        drop(memory);
        filled.factory.stop().await;
        drop(filled);
        let count = body.count as f64;
        report(&format!("{name}/kept"), kept / count, "bytes/object", Some(kept_max));
        report(&format!("{name}/kept_rss"), rss / count, "bytes/object", None);
        report(&format!("{name}/peak"), peak / kept, "× the end", Some(1.2));
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let filled = fill::<V>(&server, resource.clone(), indexes).await;
            best = best.min(filled.took);
            filled.factory.stop().await;
        }
        count / best.as_secs_f64()
    })
}

fn pods(name: &str, encoding: Encoding, times_peer: f64) {
    let body = ListBody::pods(PODS, encoding);
    let rate = fill_and_measure(name, &PodView::RESOURCE, &body, 1300.0, pod_indexes);
    drop(body);
    let peer = peer();
    report(&format!("{name}/speed"), rate, "pods/s", None);
    report(&format!("{name}/speed_k8s_openapi"), peer, "pods/s", None);
    report(&format!("{name}/times_k8s_openapi"), rate / peer, "×", Some(times_peer));
}

fn metadata() {
    let body = ListBody::pod_metadata(PODS, Encoding::Protobuf);
    let rate = fill_and_measure::<Meta>("metadata_protobuf", &PodView::RESOURCE, &body, 500.0, usual_indexes);
    report("metadata_protobuf/speed", rate, "objects/s", None);
}

fn replica_sets() {
    let body = ListBody::replica_sets(PODS);
    let rate = fill_and_measure::<ReplicaSetView>(
        "replica_sets_json",
        &ReplicaSetView::RESOURCE,
        &body,
        1500.0,
        usual_indexes,
    );
    report("replica_sets_json/speed", rate, "objects/s", None);
}

/// The peer: a list of `k8s_openapi` pods with `serde_json`, in pods per second.
fn peer() -> f64 {
    let body = ListBody::pods(PEER_PODS, Encoding::Json);
    let rounds = (0..ROUNDS).map(|_| {
        let start = processor_time();
        let list: List<Pod> = serde_json::from_slice(&body.bytes).expect("a list of pods");
        let took = processor_time() - start;
        assert_eq!(list.items.len(), PEER_PODS);
        took
    });
    PEER_PODS as f64 / rounds.min().unwrap_or_default().as_secs_f64()
}

/// How much a relist of unchanged objects adds to what is held anyway.
fn relist<V: View>(name: &str, make: fn(usize, Encoding) -> ListBody) {
    let body = make(RELISTED, Encoding::Protobuf);
    run(async {
        let server = Server::new(&body);
        let before = Memory::now();
        let filled = fill::<V>(&server, PodView::RESOURCE, usual_indexes).await;
        let (kept, ..) = before.since();
        let lists = server.lists();
        let memory = Memory::now();
        let start = processor_time();
        server.expire();
        while server.lists() == lists || server.watches_after_last_list() == 0 {
            tokio::task::yield_now().await;
        }
        let took = processor_time() - start;
        let (grown, peak, _) = memory.since();
        assert_eq!(filled.informer.lister().len(), RELISTED);
        report(&format!("{name}/peak"), (kept + peak) / kept, "× before", Some(1.1));
        report(&format!("{name}/after"), (kept + grown) / kept, "× before", Some(1.02));
        report(&format!("{name}/speed"), RELISTED as f64 / took.as_secs_f64(), "objects/s", None);
    });
}

/// An object of an owner that has five.
fn owned(number: usize, version: usize) -> Meta {
    let owner = OwnerRef { uid: owner_uid(number), controller: Some(true), ..OwnerRef::default() };
    Meta {
        namespace: format!("ns-{}", number % 1000).as_str().into(),
        name: steersman_base::Istr::new(&format!("object-{number}")),
        uid: Uid::from_bytes((number as u128).to_be_bytes()),
        resource_version: version.to_string().as_str().into(),
        owner_references: Owners::new(vec![owner]),
        ..Meta::default()
    }
}

fn owner_uid(number: usize) -> Uid {
    Uid::from_bytes((u128::MAX - number as u128 / 5).to_be_bytes())
}

/// An informer that is fed by hand.
fn by_hand(count: usize) -> (SharedInformer<Meta>, CancellationToken) {
    let stop = CancellationToken::new();
    let target = Target::all(PodView::RESOURCE);
    let informer = SharedInformer::new(target, stop.clone());
    let running = (informer.clone(), stop.clone());
    tokio::spawn(async move { running.0.run(&running.1).await });
    informer.sink().replace((0..count).map(|number| Arc::new(owned(number, 1))).collect(), "1".into());
    (informer, stop)
}

fn lookup() {
    const LOOKUPS: usize = 1_000_000;
    run(async {
        let (informer, _stop) = by_hand(INDEXED);
        let by_owner = informer.index(|object| object.meta().controller().map(|owner| owner.uid.clone()));
        informer.synced().await;
        // Far from one to the next, so that caches do not help.
        let numbers = || (0..LOOKUPS).map(|step| (step * 7_919_993) % INDEXED);
        let wanted: Vec<_> = numbers().map(owner_uid).collect();
        let start = processor_time();
        let found: usize = wanted.iter().map(|uid| by_owner.get(uid).len()).sum();
        let took = processor_time() - start;
        assert_eq!(found, LOOKUPS * 5);
        report("lookup/index", took.as_nanos() as f64 / LOOKUPS as f64, "ns", Some(1000.0));
        let keys: Vec<_> = numbers().map(|number| owned(number, 1).key()).collect();
        let lister = informer.lister();
        let start = processor_time();
        let found = keys.iter().filter(|key| lister.get(key).is_some()).count();
        let took = processor_time() - start;
        assert_eq!(found, LOOKUPS);
        report("lookup/key", took.as_nanos() as f64 / LOOKUPS as f64, "ns", None);
    });
}

/// What one watch event costs from the sink to a subscriber's handler, one at a time and many at once.
fn events() {
    const EVENTS: usize = 200_000;
    const OBJECTS: usize = 30_000;
    run(async {
        let (informer, _stop) = by_hand(OBJECTS);
        usual_indexes(&informer);
        let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let subscription = informer.subscribe({
            let seen = Arc::clone(&seen);
            move |_: &Change<Meta>| {
                seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
        subscription.synced().await;
        for (name, at_once) in [("events/one_by_one", 1), ("events/in_bursts", 100)] {
            let version = informer.reached().and_then(|version| version.as_str().parse().ok()).unwrap_or(0);
            let changed: Vec<_> =
                (0..EVENTS).map(|step| Arc::new(owned((step * 7919) % OBJECTS, version + step + 1))).collect();
            let mut sink = informer.sink();
            let before = seen.load(std::sync::atomic::Ordering::Relaxed);
            let start = processor_time();
            let mut sent = 0;
            for object in changed {
                sink.apply(WatchEvent::Modified(object));
                sent += 1;
                while sent % at_once == 0 && seen.load(std::sync::atomic::Ordering::Relaxed) < before + sent {
                    tokio::task::yield_now().await;
                }
            }
            let took = processor_time() - start;
            report(name, took.as_nanos() as f64 / EVENTS as f64, "ns", None);
        }
    });
}
