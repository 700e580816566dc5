use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::{Value, json};
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::{InformerFactory, Typed};
use steersman_model::core::NamespaceView;
use steersman_model::{Encoded, Kind, View as _};

use super::{Delete, Naming, Outcome, Patch, WriteError, Writer};
use crate::test_server::TestServer;

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

crate::reasons! {
    enum Why {
        Test => "it is a test",
    }
}

fn writer(server: &TestServer) -> Writer {
    let client = server.client();
    let book = Book::new(&InformerFactory::new(client.clone()));
    Writer::new(client, book)
}

fn owner(uid: &str) -> Meta {
    Meta { namespace: "ns".into(), name: "web".into(), uid: uid.into(), ..Meta::default() }
}

fn terminating() -> Value {
    json!({ "reason": "Forbidden", "details": { "causes": [{ "reason": "NamespaceTerminating" }] } })
}

fn written() -> Value {
    json!({ "kind": "PartialObjectMetadata", "metadata": { "name": "a", "namespace": "ns", "uid": "a", "resourceVersion": "7" } })
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_a_terminating_namespace_asks_once() {
    let server = TestServer::answering(403, &terminating());
    let writer = writer(&server);
    let refused = owner("refused");
    let write = writer.on_behalf_of(&refused);
    let create = async || write.create(&PODS, b"{}".to_vec(), &Why::Test).await;
    assert!(matches!(create().await, Err(WriteError::NamespaceTerminating)));
    assert_eq!(server.requests().len(), 1);
    // Even if the server would say otherwise by now.
    server.answer(201, &written());
    assert!(matches!(create().await, Err(WriteError::NamespaceTerminating)));
    let naming = Naming { prefix: "web-", purpose: "", is_seen: &|_| false };
    let named = write.create_named(&PODS, naming, |_| b"{}".to_vec(), &Why::Test).await;
    assert!(matches!(named, Err(WriteError::NamespaceTerminating)), "{named:?}");
    assert_eq!(server.requests(), [""; 0]);

    let patch = json!({});
    let patched = write.patch(&PODS, &ObjectKey::new("ns", "a"), Patch::Merge(&patch), &Why::Test).await;
    assert!(patched.is_ok(), "what exists can be changed: {patched:?}");
    let another = owner("another one of that name");
    assert!(writer.on_behalf_of(&another).create(&PODS, b"{}".to_vec(), &Why::Test).await.is_ok());
    assert!(writer.unowned().create_in(Some("ns"), &PODS, b"{}".to_vec(), &Why::Test).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_objects_in_several_namespaces_loses_none_but_the_terminating_one() {
    let server = TestServer::answering(403, &terminating());
    let writer = writer(&server);
    let cluster_scoped = Meta { name: "tenant".into(), uid: "tenant".into(), ..Meta::default() };
    let elsewhere = owner("elsewhere");
    for owner in [&cluster_scoped, &elsewhere] {
        let write = writer.on_behalf_of(owner);
        let create = async |namespace| write.create_in(Some(namespace), &PODS, b"{}".to_vec(), &Why::Test).await;
        server.answer(403, &terminating());
        assert!(matches!(create("going").await, Err(WriteError::NamespaceTerminating)));
        server.answer(201, &written());
        assert!(create("ns").await.is_ok(), "another namespace");
        assert!(create("going").await.is_ok(), "a new namespace of that name");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_something_in_between_is_no_reason_to_give_up() {
    let server = TestServer::answering(200, &Value::Null);
    server.answer_text(200, "<html>please log in</html>");
    let mut config = ConfigMap::default();
    config.metadata.namespace = Some("ns".into());
    config.metadata.name = Some("a".into());
    let error = writer(&server).unowned().create_or_patch(&config, &Why::Test).await.unwrap_err();
    let error = crate::Error::from(error);
    // It is retried with back-off: that the server answers other requests says nothing about this one.
    assert!(!error.is_terminal() && !error.is_unreachable(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_another_reason_is_not_remembered() {
    let server = TestServer::answering(403, &json!({ "reason": "Forbidden", "message": "exceeded quota" }));
    let writer = writer(&server);
    let refused = owner("refused");
    let create = async || writer.on_behalf_of(&refused).create(&PODS, b"{}".to_vec(), &Why::Test).await;
    assert!(matches!(create().await, Err(WriteError::Rejected(_))));
    server.answer(503, &json!({}));
    assert!(matches!(create().await, Err(WriteError::Unknown(_))));
    server.answer(201, &written());
    assert!(create().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_no_request_can_be_made_of_is_invalid_and_says_nothing_of_the_server() {
    let server = TestServer::answering(200, &written());
    let writer = writer(&server);
    let key = ObjectKey::new("ns", "no name");
    let patch = json!({});
    let invalid = writer.unowned().patch(&PODS, &key, Patch::Merge(&patch), &Why::Test).await.unwrap_err();
    assert!(matches!(invalid, WriteError::Invalid(_)), "{invalid:?}");
    assert_eq!(server.requests(), [""; 0]);
    let error = crate::Error::from(invalid);
    assert!(error.is_terminal() && !error.is_unreachable() && error.throttled().is_none());
    for other in [WriteError::Unreachable("nobody there".into()), WriteError::unknown("no answer")] {
        let error = crate::Error::from(other);
        assert!(error.is_unreachable() && !error.is_terminal());
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_if_it_differs() {
    let server = TestServer::answering(200, &written());
    let writer = writer(&server);
    let meta = Meta { name: "shop".into(), uid: "u".into(), ..Meta::default() };
    let write = writer.on_behalf_of(&meta);
    let held = json!({ "phase": "Active" });
    let put =
        async |wanted: Value| write.put_status_if_changed::<NamespaceView, _>(&meta, &held, &wanted, &Why::Test).await;
    assert_eq!(put(held.clone()).await.unwrap(), None);
    assert_eq!(server.requests(), [""; 0]);
    assert!(put(json!({ "phase": "Terminating" })).await.unwrap().is_some());
    assert_eq!(server.requests(), ["PUT /api/v1/namespaces/shop/status"]);
    assert_eq!(NamespaceView::RESOURCE.plural, "namespaces");

    server.answer(404, &json!({ "reason": "NotFound" }));
    assert!(put(json!({})).await.ok_if_gone().is_ok());
    server.answer(500, &json!({}));
    let unknown = put(json!({})).await.ok_if_gone().ok_if_replaced();
    assert!(matches!(unknown, Err(WriteError::Unknown(_))), "an unknown outcome is never fine: {unknown:?}");
}

/// A ConfigMap that a lister returned.
fn cached(name: &str) -> Typed<ConfigMap> {
    let body = json!({ "metadata": { "name": name, "namespace": "ns", "uid": "u", "resourceVersion": "3" } });
    Typed::decode(Encoded::Json(body.to_string().as_bytes())).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_typed_status_is_replaced_if_it_differs_and_under_the_version_that_was_read() {
    let server = TestServer::answering(200, &written());
    let writer = writer(&server);
    let status = json!({ "phase": "Active", "message": "soon" });
    let body = json!({
        "metadata": { "name": "shop", "uid": "u", "resourceVersion": "3" }, "status": { "phase": "Active", "message": "soon" },
    });
    let shop: Typed<Namespace> = Typed::decode(Encoded::Json(
        json!({ "metadata": body["metadata"], "status": { "phase": "Active" } }).to_string().as_bytes(),
    ))
    .unwrap();
    let write = writer.on_behalf_of(&shop);
    let held = json!({ "phase": "Active" });
    assert_eq!(write.update_status(&shop, &held, Why::Test).await.unwrap(), None);
    assert_eq!(server.requests(), [""; 0]);
    assert!(write.update_status(&shop, &status, Why::Test).await.unwrap().is_some());
    let (request, sent) = server.bodies().remove(0);
    assert_eq!(request, "PUT /api/v1/namespaces/shop/status");
    let mut wanted = body.clone();
    wanted["apiVersion"] = "v1".into();
    wanted["kind"] = "Namespace".into();
    assert_eq!(sent, wanted);
    // A field that is left out goes, which a merge patch would not do.
    assert!(write.update_status(&shop, &json!({}), Why::Test).await.unwrap().is_some());
    assert_eq!(server.bodies().remove(0).1["status"], json!({}));
    server.answer(409, &json!({ "reason": "Conflict" }));
    let stale = write.update_status(&shop, &json!({}), Why::Test).await;
    assert!(matches!(stale, Err(WriteError::Conflict)), "{stale:?}");
}

#[tokio::test(start_paused = true)]
async fn a_typed_object_is_replaced_under_its_version_and_deleted_under_its_uid() {
    let server = TestServer::answering(200, &written());
    let writer = writer(&server);
    let menu = cached("menu");
    let write = writer.on_behalf_of(&menu);
    let mut changed = menu.object().clone();
    changed.data = Some([("soup".to_owned(), "tomato".to_owned())].into());
    write.update_object(&changed, "a text").await.unwrap();
    let (request, sent) = server.bodies().remove(0);
    assert_eq!(request, "PUT /api/v1/namespaces/ns/configmaps/menu");
    assert_eq!((&sent["metadata"]["resourceVersion"], &sent["data"]["soup"]), (&json!("3"), &json!("tomato")));
    write.delete_object(&menu, Delete::default(), "a text").await.unwrap();
    let (request, sent) = server.bodies().remove(0);
    assert_eq!(request, "DELETE /api/v1/namespaces/ns/configmaps/menu");
    assert_eq!(sent["preconditions"]["uid"], "u");
}
