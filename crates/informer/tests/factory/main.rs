//! A factory against a server in memory: its guarantees, one by one.

mod server;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DynamicObject;
use parking_lot::Mutex;
use serde_json::json;
use server::Server;
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::__internal::consistency::{Book, Verdict};
use steersman_informer::__internal::reflector::Phase;
use steersman_informer::{Change, Metrics, Selection, SharedInformer, Typed};
use steersman_informer::{FactoryOptions, InformerFactory};
use steersman_informer::{MetaHandler, MetaSource};
use steersman_model::Projection;
use tokio::time::sleep;

const CONFIG_MAPS: &str = "/api/v1/configmaps";
const SECRETS: &str = "/api/v1/secrets";

type ConfigMaps = SharedInformer<Typed<ConfigMap>>;

fn config_maps() -> Resource {
    Resource::namespaced("", "v1", "configmaps", "ConfigMap")
}

fn secrets() -> Resource {
    Resource::namespaced("", "v1", "secrets", "Secret")
}

fn cluster() -> (Server, InformerFactory) {
    let server = Server::default();
    server.serve(CONFIG_MAPS, "v1", "ConfigMap");
    server.serve(SECRETS, "v1", "Secret");
    let factory = InformerFactory::new(server.client());
    (server, factory)
}

async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

fn names<V: steersman_model::View>(informer: &SharedInformer<V>) -> Vec<String> {
    let mut names: Vec<_> = informer.lister().list().iter().map(|object| object.meta().name.to_string()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn equal_requests_get_the_same_informer() {
    let (server, factory) = cluster();
    let one: ConfigMaps = factory.typed(Selection::everything());
    let two: ConfigMaps = factory.typed(Selection::everything());
    let scoped: ConfigMaps = factory.typed(Selection::everything().with_fields("metadata.name=kube-root-ca.crt"));
    factory.start();
    factory.synced().await.unwrap();
    assert_eq!(server.watches(CONFIG_MAPS), 2, "one for all, one for the part");
    server.put(CONFIG_MAPS, "a", &json!({}));
    settle().await;
    assert_eq!((names(&one), names(&two)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    assert!(Arc::ptr_eq(one.store(), two.store()));
    assert!(!Arc::ptr_eq(one.store(), scoped.store()));
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_before_start_and_what_is_declared_later_runs_after_the_next() {
    let (server, factory) = cluster();
    let first: ConfigMaps = factory.typed(Selection::everything());
    settle().await;
    assert!(server.asked().is_empty());
    let error = factory.synced().await.unwrap_err().to_string();
    assert_eq!(error, "these caches are not filled: configmaps: not started");
    factory.start();
    factory.start();
    factory.synced().await.unwrap();
    assert!(first.has_synced());
    let second: SharedInformer<Meta> = factory.informer_for(secrets(), Selection::everything());
    settle().await;
    assert!(!second.has_synced());
    factory.start();
    factory.synced().await.unwrap();
    assert!(second.has_synced());
    assert_eq!((server.watches(CONFIG_MAPS), server.watches(SECRETS)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_or_vanished_resource_never_stalls_the_others_and_is_named() {
    let (server, factory) = cluster();
    server.refuse(SECRETS, 403, "Forbidden");
    let maps: ConfigMaps = factory.typed(Selection::everything());
    let forbidden: SharedInformer<Meta> = factory.informer_for(secrets(), Selection::namespace("default"));
    let gone = Resource::namespaced("example.com", "v1", "cakes", "Cake");
    let _gone: SharedInformer<Meta> = factory.informer_for(gone, Selection::everything());
    factory.start();
    let error = factory.synced_within(Duration::from_secs(10)).await.unwrap_err();
    assert!(maps.has_synced());
    let text = error.to_string();
    assert_eq!(error.missing.len(), 2, "{text}");
    assert!(text.contains("secrets (namespace default): waiting"), "{text}");
    assert!(text.contains("this is Forbidden"), "{text}");
    assert!(text.contains("cakes.example.com: waiting") && text.contains("this is NotFound"), "{text}");
    server.serve(SECRETS, "v1", "Secret");
    server.put(SECRETS, "token", &json!({}));
    server.serve("/apis/example.com/v1/cakes", "example.com/v1", "Cake");
    factory.synced_within(Duration::from_secs(120)).await.unwrap();
    assert_eq!(names(&forbidden), ["token"], "once it is allowed, it goes on by itself");
}

/// What a consumer of metadata received.
fn note(into: &Arc<Mutex<Vec<String>>>) -> MetaHandler {
    let into = Arc::clone(into);
    Box::new(move |change| {
        into.lock().push(match change {
            Change::Added { new, .. } => format!("added {}", new.meta().name),
            Change::Updated { new, .. } => format!("updated {}", new.meta().name),
            Change::Deleted { last, .. } => format!("deleted {}", last.meta().name),
        });
    })
}

#[tokio::test(start_paused = true)]
async fn metadata_rides_on_a_full_watch_where_one_is_declared_before_the_start() {
    let (server, factory) = cluster();
    server.put(CONFIG_MAPS, "a", &json!({}));
    let notes = Arc::default();
    let metadata = factory.meta(&config_maps());
    let subscription = metadata.subscribe_meta(note(&notes));
    let _full: ConfigMaps = factory.typed(Selection::everything());
    factory.start();
    subscription.synced().await;
    assert_eq!(*notes.lock(), ["added a"]);
    server.put(CONFIG_MAPS, "a", &json!({}));
    settle().await;
    assert_eq!(*notes.lock(), ["added a", "updated a"]);
    assert_eq!(server.asked(), ["watch /api/v1/configmaps"], "one watch for both");
    let mut seen = None;
    metadata.with_meta(&ObjectKey::new("default", "a"), &mut |meta| seen = Some(meta.uid.clone()));
    assert_eq!(seen, Some("uid-a".into()));
    subscription.close().await;
    server.put(CONFIG_MAPS, "a", &json!({}));
    settle().await;
    assert_eq!(notes.lock().len(), 2, "a subscription from before the start ends like any other");
}

#[tokio::test(start_paused = true)]
async fn metadata_gets_a_watch_of_its_own_where_no_full_one_covers_the_resource() {
    let (server, factory) = cluster();
    server.put(SECRETS, "a", &json!({ "data": { "password": "aHVudGVyMg==" } }));
    let notes = Arc::default();
    let metadata = factory.meta(&secrets());
    let _part: SharedInformer<Typed<DynamicObject>> = factory
        .informer_for(secrets(), Selection::everything().with_fields("type=kubernetes.io/service-account-token"));
    factory.start();
    factory.synced().await.unwrap();
    let subscription = metadata.subscribe_meta(note(&notes));
    subscription.synced().await;
    assert_eq!(*notes.lock(), ["added a"]);
    assert!(metadata.has_synced());
    let mut asked = server.asked();
    asked.sort();
    assert_eq!(asked, ["watch /api/v1/secrets", "watch /api/v1/secrets as metadata"]);
}

#[tokio::test(start_paused = true)]
async fn typed_and_dynamic_objects_come_whole() {
    let (server, factory) = cluster();
    server.put(CONFIG_MAPS, "a", &json!({ "data": { "color": "blue" } }));
    let typed: ConfigMaps = factory.typed(Selection::everything());
    let dynamic: SharedInformer<Typed<DynamicObject>> = factory.informer_for(config_maps(), Selection::everything());
    factory.start();
    factory.synced().await.unwrap();
    let key = ObjectKey::new("default", "a");
    let map = typed.lister().get(&key).unwrap();
    assert_eq!(map.data.as_ref().unwrap()["color"], "blue");
    assert_eq!(dynamic.lister().get(&key).unwrap().data["data"]["color"], "blue");
}

#[tokio::test(start_paused = true)]
async fn it_lists_its_informers_with_their_state() {
    let (server, factory) = cluster();
    let version = server.put(CONFIG_MAPS, "a", &json!({}));
    let maps: ConfigMaps = factory.typed(Selection::everything());
    let _subscription = maps.subscribe(|_: &Change<_>| {});
    let _meta: SharedInformer<Meta> = factory.informer_for(secrets(), Selection::namespace("default"));
    assert!(factory.running().iter().all(|running| running.reflector.is_none()));
    factory.start();
    factory.synced().await.unwrap();
    settle().await;
    let running = factory.running();
    let [maps, secrets] = &running[..] else { panic!("{running:?}") };
    assert_eq!(maps.informer.target.to_string(), "configmaps");
    assert_eq!(maps.informer.reached, Some(version.to_string().as_str().into()));
    assert_eq!((maps.informer.objects, maps.informer.subscribers.len()), (1, 1));
    assert_eq!(maps.projection, Projection::Whole);
    assert_eq!(maps.reflector.as_ref().unwrap().phase, Phase::Watching);
    assert_eq!(secrets.informer.target.to_string(), "secrets (namespace default)");
    assert_eq!(secrets.projection, Projection::Metadata);
}

#[tokio::test(start_paused = true)]
async fn stop_returns_when_nothing_runs_any_more() {
    let (server, factory) = cluster();
    let maps: ConfigMaps = factory.typed(Selection::everything());
    let alive = Arc::new(());
    let handler_alive = Arc::clone(&alive);
    maps.subscribe(move |_: &Change<_>| drop(Arc::clone(&handler_alive))).detach();
    factory.start();
    factory.synced().await.unwrap();
    factory.stop().await;
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 1, "the handler is gone");
    assert_eq!(server.watches(CONFIG_MAPS), 0);
    assert_eq!(factory.running()[0].reflector.as_ref().unwrap().phase, Phase::Stopped);
    factory.start();
    settle().await;
    assert_eq!(server.watches(CONFIG_MAPS), 0, "a stopped factory does not start again");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_clone_ends_everything() {
    let (server, factory) = cluster();
    let maps: ConfigMaps = factory.typed(Selection::everything());
    factory.start();
    factory.synced().await.unwrap();
    let clone = factory.clone();
    drop(factory);
    settle().await;
    assert_eq!(server.watches(CONFIG_MAPS), 1);
    drop(clone);
    settle().await;
    assert_eq!(server.watches(CONFIG_MAPS), 0);
    assert!(maps.has_synced(), "what it knew can still be read");
}

#[tokio::test(start_paused = true)]
async fn a_resource_can_be_retired_and_come_back() {
    let (server, factory) = cluster();
    let before: SharedInformer<Meta> = factory.informer_for(secrets(), Selection::everything());
    let _maps: ConfigMaps = factory.typed(Selection::everything());
    factory.start();
    factory.synced().await.unwrap();
    factory.retire(&secrets()).await;
    settle().await;
    assert_eq!((server.watches(SECRETS), server.watches(CONFIG_MAPS)), (0, 1));
    let after: SharedInformer<Meta> = factory.informer_for(secrets(), Selection::everything());
    assert!(!Arc::ptr_eq(before.store(), after.store()));
    factory.start();
    factory.synced().await.unwrap();
    assert!(after.has_synced());
}

#[tokio::test(start_paused = true)]
async fn metrics_have_upstreams_names_and_a_registry_of_ones_own() {
    let server = Server::default();
    server.serve(CONFIG_MAPS, "v1", "ConfigMap");
    server.put(CONFIG_MAPS, "a", &json!({}));
    let registry = prometheus::Registry::new();
    let mut options = FactoryOptions::default();
    options.name = "shared".into();
    options.metrics = Some(Metrics::new(&registry).unwrap());
    let factory = InformerFactory::with_options(server.client(), options);
    let maps: ConfigMaps = factory.typed(Selection::everything());
    let subscription = maps.subscribe(|_: &Change<_>| panic!("on purpose"));
    factory.start();
    subscription.synced().await;
    let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let labels = r#"{group="",name="shared",resource="configmaps",version="v1"}"#;
    for line in [
        format!("informer_queued_items{labels} 0"),
        format!("informer_store_resource_version{labels} 1"),
        format!("informer_processing_latency_seconds_count{labels} 1"),
        format!("steersman_informer_handler_panics_total{labels} 1"),
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    assert!(Metrics::new(&registry).is_err(), "a registry has them once");
}

#[tokio::test(start_paused = true)]
async fn a_book_looks_into_the_stores_and_asks_the_server() {
    let (server, factory) = cluster();
    let _maps: ConfigMaps = factory.typed(Selection::everything());
    server.put(CONFIG_MAPS, "a", &json!({}));
    let book = Book::new(&factory);
    factory.start();
    factory.synced().await.unwrap();
    let woken = Arc::new(Mutex::new(0));
    let wake = || {
        let woken = Arc::clone(&woken);
        move || *woken.lock() += 1
    };
    let owner = "owner".into();
    book.wrote(&owner, &config_maps(), "2".into());
    assert_eq!(book.check(&owner, wake()), Verdict::Parked);
    assert_eq!(server.put(CONFIG_MAPS, "a", &json!({})), 2);
    settle().await;
    assert_eq!(*woken.lock(), 1);
    assert_eq!(book.check(&owner, wake()), Verdict::Clear);
    book.unknown(&owner, &config_maps(), &ObjectKey::new("default", "a"));
    assert_eq!(book.check(&owner, wake()), Verdict::Parked);
    settle().await;
    assert_eq!(*woken.lock(), 2, "the store shows what the server has");
    assert_eq!(server.asked().last().unwrap(), "list /api/v1/configmaps as metadata");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stands_still_is_opened_again_and_then_listed() {
    let (server, factory) = cluster();
    let maps: ConfigMaps = factory.typed(Selection::everything());
    server.put(CONFIG_MAPS, "before", &json!({}));
    let book = Book::new(&factory);
    factory.start();
    factory.synced().await.unwrap();
    server.stand_still();
    let made = server.put(CONFIG_MAPS, "a", &json!({}));
    let owner = "owner".into();
    let since = server.asked().len();
    book.wrote(&owner, &config_maps(), made.to_string().as_str().into());
    assert_eq!(book.check(&owner, || {}), Verdict::Parked);
    let asked = || server.asked().split_off(since);
    sleep(Duration::from_secs(29)).await;
    assert!(asked().is_empty(), "{:?}", asked());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(asked(), ["watch /api/v1/configmaps"], "from where it was");
    assert_eq!((server.watches(CONFIG_MAPS), book.len()), (1, 1));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(asked()[1..], ["list /api/v1/configmaps", "watch /api/v1/configmaps"], "in pages, not by another watch");
    assert!(book.is_empty() && maps.lister().len() == 2, "now it is shown");
    sleep(Duration::from_secs(250)).await;
    assert_eq!(asked().len(), 3, "and the watch is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_book_does_not_believe_a_store_that_shows_only_a_part() {
    let (server, factory) = cluster();
    server.put(SECRETS, "a", &json!({}));
    let selection = Selection::everything().with_labels("app=web");
    let _part: SharedInformer<Meta> = factory.informer_for(secrets(), selection);
    let book = Book::new(&factory);
    factory.start();
    factory.synced().await.unwrap();
    book.wrote(&"owner".into(), &secrets(), "99".into());
    assert_eq!(
        book.check(&"owner".into(), || {}),
        Verdict::Clear,
        "it may never show the write, so nobody waits for it"
    );
}
