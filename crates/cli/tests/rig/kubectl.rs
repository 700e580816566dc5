//! Real kubectl against the API server of `steersman up`, over TLS: objects, discovery, watches.

use steersman_testing::Failure;

use crate::up::Up;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, labels: { app: web } }
data: { colour: blue }
";

const WEB: &str = include_str!("../../../../examples/web.yaml");

#[tokio::test]
async fn objects_are_made_read_changed_and_deleted() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0", "--controllers=none"]).await?;
    up.kubectl_with("create -f -", CONFIG).await?;
    let again = up.try_kubectl("create -f -", CONFIG).await?.unwrap_err();
    assert!(again.contains("AlreadyExists"), "{again}");

    up.kubectl_with("apply -f -", &CONFIG.replace("blue", "red")).await?;
    assert_eq!(up.json("get cm settings").await?["data"]["colour"], "red");
    up.kubectl("label cm settings tier=front").await?;
    up.kubectl("annotate cm settings note=hello").await?;
    up.kubectl(r#"patch cm settings --type=merge -p {"data":{"size":"big"}}"#).await?;
    up.kubectl(r#"patch cm settings --type=json -p [{"op":"remove","path":"/data/colour"}]"#).await?;
    let settings = up.json("get cm settings").await?;
    assert_eq!(settings["metadata"]["labels"]["tier"], "front");
    assert_eq!(settings["metadata"]["annotations"]["note"], "hello");
    assert_eq!(settings["data"], serde_json::json!({ "size": "big" }));

    let columns = up.kubectl("get cm -l app=web -o custom-columns=NAME:.metadata.name,SIZE:.data.size").await?;
    assert_eq!(
        columns.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["settings", "big"])
    );
    assert!(up.kubectl("get cm settings -o yaml").await?.contains("size: big"));
    assert!(up.kubectl("describe cm settings").await?.contains("big"));

    let bad = up.try_kubectl("create -f -", &CONFIG.replace("settings", "Not_A_Name")).await?.unwrap_err();
    assert!(bad.contains("metadata.name: Invalid value"), "{bad}");
    up.kubectl("delete cm settings").await?;
    let gone = up.try_kubectl("get cm settings", "").await?.unwrap_err();
    assert!(gone.contains("NotFound"), "{gone}");
    up.down().await
}

/// kubectl looks up a `List`, and a kind that it does not find elsewhere, in the protobuf form of OpenAPI version 2.
#[tokio::test]
async fn a_list_is_applied_and_an_unknown_kind_is_named() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0", "--controllers=none"]).await?;
    let item = |name| format!("- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item("one"), item("two"));
    let made = up.kubectl_with("apply -f -", &list).await?;
    assert_eq!(made, "configmap/one created\nconfigmap/two created\n");
    let unknown = "{apiVersion: bakery.example.com/v1, kind: Cake, metadata: {name: plum}}";
    let refused = up.try_kubectl("apply -f -", unknown).await?.unwrap_err();
    assert!(refused.contains("no matches for kind \"Cake\" in version \"bakery.example.com/v1\""), "{refused}");
    up.down().await
}

#[tokio::test]
async fn discovery_and_explain_show_the_api() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0", "--controllers=none"]).await?;
    let resources = up.kubectl("api-resources --no-headers").await?;
    for name in ["pods", "deployments", "endpointslices", "customresourcedefinitions"] {
        assert!(resources.lines().any(|line| line.starts_with(name)), "{name} is missing in:\n{resources}");
    }
    assert!(up.kubectl("api-versions").await?.lines().any(|line| line == "apps/v1"));
    let explained = up.kubectl("explain deployment.spec.strategy").await?;
    assert!(explained.contains("rollingUpdate") && explained.contains("KIND:       Deployment"), "{explained}");
    let namespaces = up.kubectl("get ns -o name").await?;
    assert_eq!(namespaces.lines().count(), 4, "{namespaces}");
    assert!(up.kubectl("version").await?.contains("Server Version: v1.37"));
    up.down().await
}

#[tokio::test]
async fn a_replica_set_is_scaled_waited_for_and_deleted_in_each_cascade_mode() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0", "--controllers=replicaset"]).await?;
    up.kubectl_with("apply -f -", WEB).await?;
    up.kubectl("wait rs/web --for=jsonpath={.status.replicas}=3 --timeout=30s").await?;
    up.kubectl("scale rs web --replicas=5").await?;
    up.kubectl("wait rs/web --for=jsonpath={.status.replicas}=5 --timeout=30s").await?;
    let wide = up.kubectl("get rs web -o wide").await?;
    assert!(wide.contains("example/web:1") && wide.contains("app=web"), "{wide}");
    assert!(up.kubectl("describe rs web").await?.contains("5 current / 5 desired"));

    up.kubectl("delete rs web --cascade=foreground --wait=false").await?;
    let set = up.json("get rs web").await?;
    assert_eq!(set["metadata"]["finalizers"], serde_json::json!(["foregroundDeletion"]), "it waits for its dependents");
    up.kubectl(r#"patch rs web --type=merge -p {"metadata":{"finalizers":null}}"#).await?;
    up.kubectl_with("create -f -", &WEB.replace("name: web", "name: other")).await?;
    up.kubectl("delete rs other --cascade=orphan --wait=false").await?;
    assert_eq!(up.json("get rs other").await?["metadata"]["finalizers"], serde_json::json!(["orphan"]));
    up.kubectl_with("create -f -", &WEB.replace("name: web", "name: third")).await?;
    up.kubectl("delete rs third --cascade=background").await?;
    assert!(up.try_kubectl("get rs third", "").await?.is_err());
    up.down().await
}

#[tokio::test]
async fn a_watch_shows_changes_as_they_happen() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0", "--controllers=none"]).await?;
    let mut watch = up.watch("get cm -w -o name")?;
    up.kubectl_with("create -f -", CONFIG).await?;
    watch.until("configmap/settings").await?;
    drop(watch);
    up.down().await
}
