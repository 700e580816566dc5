//! What a real server stores although nobody should send it.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::DeleteParams;
use serde_json::Value;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, expect_eq};

use crate::scenarios::garbage_collector::{config_map, delete, owner, until_known_edges};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};

const CONTROLLERS: &[Controller] = &[controllers::REPLICA_SET, controllers::GARBAGE_COLLECTOR, controllers::ENDPOINTS];

/// A field of a protobuf message that holds bytes, text or a message. All are short.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    assert!(length < 1 << 14, "two bytes hold the length");
    let mut field = vec![number << 3 | 2, (length & 0x7f) as u8 | 0x80, (length >> 7) as u8];
    field.extend_from_slice(bytes);
    field
}

/// A pod whose owner has a name that is no text, and that carries a note that is none.
fn pod(name: &str) -> Vec<u8> {
    let owner =
        [field(1, b"ConfigMap"), field(3, b"\xff"), field(4, b"00000000-0000-0000-0000-000000000099"), field(5, b"v1")];
    let metadata = [
        field(1, name.as_bytes()),
        field(12, &[field(1, b"example.com/note"), field(2, b"a\xfe\xffb")].concat()),
        field(13, &owner.concat()),
    ];
    let spec = field(2, &[field(1, b"web"), field(2, b"web:1")].concat());
    let pod = [field(1, &metadata.concat()), field(2, &spec)].concat();
    let kind = [field(1, b"v1"), field(2, b"Pod")].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, &pod)].concat()
}

/// A server takes such text by protobuf, stores it and sends it to everybody who reads protobuf.
#[tokio::test]
async fn text_that_is_not_utf_8_holds_back_no_other_object() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start_on_rig().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    until_known_edges(&cluster, 1).await?;
    let request = Request::post(format!("/api/v1/namespaces/{}/pods", cluster.namespace()))
        .header("content-type", "application/vnd.kubernetes.protobuf")
        .header("accept", "application/json")
        .body(pod("hostile"))
        .map_err(kube::Error::HttpError)?;
    let stored = cluster.client().request::<Value>(request).await?;
    let note = stored.pointer("/metadata/annotations/example.com~1note").and_then(Value::as_str);
    expect_eq("what the server stored, as it shows it in JSON", &note, &Some("a\u{fffd}\u{fffd}b"))?;

    // Everything else goes on, whether it is watched or listed anew.
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    cluster.pods_of(&set).until_count(2).await?;
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.until_gone::<ConfigMap>("child").await?;
    // Its owner is not there: it is garbage like any other.
    cluster.until_gone::<Pod>("hostile").await?;
    cluster.expect_quiet(Duration::from_secs(2)).await?;
    cluster.stop().await
}

/// The same for a manager that starts when the object is there already.
#[tokio::test]
async fn text_that_is_not_utf_8_is_listed_like_any_other() -> Result<(), Failure> {
    let before = TestCluster::builder().start_on_rig().await?;
    let request = Request::post(format!("/api/v1/namespaces/{}/pods", before.namespace()))
        .header("content-type", "application/vnd.kubernetes.protobuf")
        .header("accept", "application/json")
        .body(pod("hostile"))
        .map_err(kube::Error::HttpError)?;
    before.client().request::<Value>(request).await?;
    let manager = Beside::start_within(&before, before.client(), CONTROLLERS)?;
    let set = before.create(objects::replica_set("web").replicas(2)).await?;
    before.pods_of(&set).until_count(2).await?;
    before.until_gone::<Pod>("hostile").await?;
    manager.stop().await?;
    before.stop().await
}
