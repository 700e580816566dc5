//! Real kubectl against `steersman up`: usage, autoscaling, and claims.

use serde_json::Value;
use steersman_testing::Failure;

use crate::up::Up;

/// The words of the line that begins with this one.
fn line<'a>(table: &'a str, first: &str) -> Vec<&'a str> {
    let words = |line: &'a str| line.split_whitespace().collect::<Vec<_>>();
    let found = table.lines().map(words).find(|words| words.first().is_some_and(|word| word.starts_with(first)));
    found.unwrap_or_else(|| panic!("no line {first} in:\n{table}"))
}

#[tokio::test]
async fn top_shows_what_annotations_and_requests_say() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let services = up.kubectl("get apiservices --no-headers").await?;
    for name in ["v1beta1.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"] {
        assert_eq!(line(&services, name)[1..3], ["kube-system/metrics-server", "True"], "{services}");
    }
    let resources = up.kubectl("api-resources --api-group=metrics.k8s.io --no-headers").await?;
    assert!(resources.contains("PodMetrics") && resources.contains("NodeMetrics"), "{resources}");

    up.kubectl("create deployment web --image=example/web").await?;
    up.kubectl("set resources deployment web --requests=cpu=200m,memory=64Mi").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.wait("pods --all --for=condition=Ready").await?;
    let pods = up.kubectl("top pods").await?;
    assert_eq!(line(&pods, "web-")[1..], ["100m", "32Mi"], "half of the requests: {pods}");
    up.kubectl("annotate pods -l app=web nodes.steersman.dev/cpu-usage=1500m").await?;
    let pods = up.kubectl("top pods -A -l app=web --containers").await?;
    assert!(pods.contains("1500m"), "{pods}");
    let pod = up.json("get pods -l app=web").await?;
    let node = pod["items"][0]["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
    let nodes = up.kubectl("top nodes").await?;
    assert_eq!(line(&nodes, &node)[1..3], ["1500m", "18%"], "of eight processors: {nodes}");
    assert_eq!(nodes.lines().count(), 4, "{nodes}");
    let none = up.try_kubectl("top pods -l app=none", "").await?;
    assert!(none.is_ok_and(|said| said.is_empty()), "nothing is selected");
    up.down().await
}

#[tokio::test]
async fn autoscale_follows_the_usage_and_the_config_map() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web").await?;
    up.kubectl("set resources deployment web --requests=cpu=100m").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.kubectl("annotate pods -l app=web nodes.steersman.dev/cpu-usage=300m").await?;
    up.kubectl("autoscale deployment web --min=1 --max=4 --cpu=100%").await?;
    up.wait("deployment/web --for=jsonpath={.spec.replicas}=3").await?;
    let described = up.kubectl("describe hpa web").await?;
    assert!(described.contains("SuccessfulRescale"), "{described}");

    up.kubectl_with("apply -f -", QUEUE).await?;
    let raw = up.kubectl("get --raw /apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue-depth").await?;
    let found: Value = serde_json::from_str(&raw)?;
    assert_eq!(found["items"][0]["value"], "42");
    let custom =
        up.kubectl("get --raw /apis/custom.metrics.k8s.io/v1beta2/namespaces/default/services/web/hits").await?;
    assert!(custom.contains("\"2k\""), "{custom}");
    up.down().await
}

const QUEUE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: simulated-metrics }
data:
  metrics: |
    - { external: queue-depth, value: 42 }
    - { object: services/web, metric: hits, value: 2k }
";

const SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  serviceName: db
  replicas: 3
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: main, image: example/db }] }
  volumeClaimTemplates:
  - metadata: { name: data }
    spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
";

#[tokio::test]
async fn claims_are_bound_and_their_volumes_go_with_them() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let classes = up.kubectl("get storageclasses").await?;
    assert_eq!(line(&classes, "standard")[1], "(default)", "{classes}");
    up.kubectl_with("create -f -", SET).await?;
    up.kubectl("rollout status statefulset/db --timeout=40s").await?;
    up.wait("pvc --all --for=jsonpath={.status.phase}=Bound").await?;
    let claims = up.json("get pvc").await?;
    let claims = claims["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(claims.len(), 3);
    assert!(claims.iter().all(|claim| claim["spec"]["storageClassName"] == "standard"), "{claims:?}");
    let volumes = up.json("get pv").await?;
    let volumes = volumes["items"].as_array().cloned().unwrap_or_default();
    assert!(volumes.len() == 3 && volumes.iter().all(|volume| volume["status"]["phase"] == "Bound"), "{volumes:?}");

    up.kubectl("delete pvc data-db-2 --wait=false").await?;
    assert!(up.kubectl("get pvc data-db-2").await?.contains("Terminating"), "its pod has it");
    up.kubectl("scale statefulset db --replicas=2").await?;
    up.wait("pvc/data-db-2 --for=delete").await?;
    let volume = claims.iter().find(|claim| claim["metadata"]["name"] == "data-db-2");
    let volume = volume.and_then(|claim| claim["spec"]["volumeName"].as_str()).unwrap_or_default();
    up.wait(&format!("pv/{volume} --for=delete")).await?;
    up.down().await
}
