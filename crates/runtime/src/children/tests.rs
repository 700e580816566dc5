use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Clock, Meta, ObjectKey};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::__internal::sink::Sink as _;
use steersman_informer::{InformerFactory, SharedInformer, Target};
use steersman_model::core::PodView;
use steersman_model::{Encoded, Kind, View};
use tokio_util::sync::CancellationToken;

use super::Children;
use crate::events::Recorder;
use crate::found::Found;
use crate::reconcile::Freshness;
use crate::test_server::TestServer;
use crate::{Context, Writer};

fn pod(name: &str, owner: Option<&str>) -> Value {
    let owners: Vec<Value> = owner
        .map(
            |uid| json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": true }),
        )
        .into_iter()
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": "3",
            "labels": { "of": owner.unwrap_or("nobody") }, "ownerReferences": owners,
        },
    })
}

fn decoded(object: &Value) -> Arc<PodView> {
    Arc::new(PodView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap())
}

/// An informer whose cache shows these objects.
async fn cached(objects: &[Value]) -> SharedInformer<PodView> {
    let informer = SharedInformer::new(Target::all(PodView::RESOURCE), CancellationToken::new());
    informer.sink().replace(objects.iter().map(decoded).collect(), "5".into());
    let stop = CancellationToken::new();
    let filled = async {
        informer.synced().await;
        stop.cancel();
    };
    tokio::join!(informer.run(&stop), filled);
    informer
}

/// A server that lists these objects.
fn listing(objects: &[Value]) -> TestServer {
    let list =
        json!({ "apiVersion": "v1", "kind": "PodList", "metadata": { "resourceVersion": "9" }, "items": objects });
    TestServer::answering(200, &list)
}

fn context(server: &TestServer, freshness: Freshness) -> Context {
    let client = server.client();
    let book = Book::new(&InformerFactory::new(client.clone()));
    let cx = Context::new(Writer::new(client, book), Clock::system(), Recorder::nowhere());
    cx.of_pass(freshness, cx.writer.clone())
}

fn owner(uid: &str) -> Meta {
    Meta { namespace: "ns".into(), name: uid.into(), uid: uid.into(), ..Meta::default() }
}

fn names(mut pods: Vec<Arc<PodView>>) -> Vec<String> {
    pods.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
    pods.iter().map(|pod| pod.meta().name.to_string()).collect()
}

/// The cache shows a pod that the server has deleted, and does not show one that was just created.
fn disagreeing() -> (Vec<Value>, TestServer) {
    let held = vec![pod("own", Some("web")), pod("gone", Some("web")), pod("free", None), pod("other", Some("api"))];
    let server = [pod("own", Some("web")), pod("new", Some("web")), pod("free", None), pod("other", Some("api"))];
    (held, listing(&server))
}

#[tokio::test(start_paused = true)]
async fn children_are_those_of_the_cache_and_the_server_is_not_asked() {
    let (held, server) = disagreeing();
    let pods = Children::new(&cached(&held).await);
    let cx = context(&server, Freshness::CaughtUp);
    assert_eq!(names(pods.own_and_orphaned(&cx, &owner("web")).await.unwrap()), ["free", "gone", "own"]);
    let both = [&owner("web"), &owner("api")];
    assert_eq!(names(pods.of_any(&cx, "ns", &both).await.unwrap()), ["gone", "other", "own"]);
    assert_eq!(server.requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn children_of_a_cache_that_lags_are_those_of_the_server() {
    let (held, server) = disagreeing();
    let pods = Children::new(&cached(&held).await);
    let cx = context(&server, Freshness::ReadLive);
    assert_eq!(names(pods.own_and_orphaned(&cx, &owner("web")).await.unwrap()), ["free", "new", "own"]);
    let both = [&owner("web"), &owner("api")];
    assert_eq!(names(pods.of_any(&cx, "ns", &both).await.unwrap()), ["new", "other", "own"]);
    assert_eq!(server.requests(), ["GET /api/v1/namespaces/ns/pods"; 2]);
    assert_eq!(names(pods.cached(&owner("web"))), ["gone", "own"], "hints are of the cache");
}

#[tokio::test(start_paused = true)]
async fn a_live_read_that_fails_is_an_error_and_not_an_empty_list() {
    let (held, _) = disagreeing();
    let pods = Children::new(&cached(&held).await);
    let refused = TestServer::answering(403, &json!({ "kind": "Status", "reason": "Forbidden", "code": 403 }));
    let cx = context(&refused, Freshness::ReadLive);
    assert!(pods.own_and_orphaned(&cx, &owner("web")).await.is_err());
    assert!(pods.of_any(&cx, "ns", &[&owner("web")]).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_found_by_a_key_is_the_same_from_the_cache_and_from_the_server() {
    let (held, server) = disagreeing();
    let informer = cached(&held).await;
    let of = |pod: &PodView| pod.meta().labels.get("of").map(ToString::to_string);
    // The server lists more than the key asks for.
    let found = Found::new(&informer, of, |_| steersman_informer::Selection::namespace("ns"));
    let web = "web".to_owned();
    let cx = context(&server, Freshness::CaughtUp);
    assert_eq!(names(found.get(&cx, &web).await.unwrap()), ["gone", "own"]);
    let cx = context(&server, Freshness::ReadLive);
    assert_eq!(names(found.get(&cx, &web).await.unwrap()), ["new", "own"]);
}

#[tokio::test(start_paused = true)]
async fn a_main_object_that_is_another_one_by_now_is_none() {
    let informer = cached(&[pod("a", None)]).await;
    let key = ObjectKey::new("ns", "a");
    let mut changed = pod("a", None);
    changed["metadata"]["resourceVersion"] = json!("8");
    let server = TestServer::answering(200, &changed);
    let version = |found: Option<Arc<PodView>>| found.map(|pod| pod.meta().resource_version.to_string());

    let caught_up = context(&server, Freshness::CaughtUp);
    assert_eq!(version(caught_up.main(&informer.lister(), &key).await.unwrap()).as_deref(), Some("3"));
    assert_eq!(server.requests(), [""; 0]);

    let live = context(&server, Freshness::ReadLive);
    assert_eq!(version(live.main(&informer.lister(), &key).await.unwrap()).as_deref(), Some("8"));
    assert_eq!(version(live.get(&informer.lister(), &key).await.unwrap()).as_deref(), Some("8"));
    let unseen = ObjectKey::new("ns", "unseen");
    server.requests();
    assert!(live.main(&informer.lister(), &unseen).await.unwrap().is_none());
    assert_eq!(server.requests(), [""; 0], "one that the cache never showed comes with an event");

    changed["metadata"]["uid"] = json!("another");
    server.answer(200, &changed);
    assert!(live.main(&informer.lister(), &key).await.unwrap().is_none());
    assert!(live.get(&informer.lister(), &key).await.unwrap().is_some(), "a name is a name");
    server.answer(404, &json!({ "kind": "Status", "reason": "NotFound", "code": 404 }));
    assert!(live.main(&informer.lister(), &key).await.unwrap().is_none());
    server.answer(500, &json!({ "kind": "Status", "code": 500 }));
    assert!(live.main(&informer.lister(), &key).await.is_err(), "nobody knows, so nothing is decided");
}
