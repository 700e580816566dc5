//! Real kubectl against `steersman up`: Deployments from creation to deletion, as people run them.

use serde_json::Value;
use steersman_testing::Failure;

use crate::up::Up;

/// The images that pods run, each once.
fn images(pods: &Value) -> Vec<&str> {
    let pods = pods["items"].as_array().into_iter().flatten();
    let mut images: Vec<_> = pods.filter_map(|pod| pod["spec"]["containers"][0]["image"].as_str()).collect();
    images.sort_unstable();
    images.dedup();
    images
}

/// Waits until all pods run this image: those of before may still be leaving when a roll-out is complete.
async fn images_are(up: &Up, image: &str) -> Result<(), Failure> {
    up.until("get pods -l app=web", image, |pods| (images(pods) == [image]).then_some(())).await
}

/// How the README's lines begin that are run; what is printed beside `#` is for people.
fn session() -> Vec<String> {
    let readme = include_str!("../../../../README.md");
    let lines = readme.lines().filter(|line| line.starts_with("kubectl "));
    lines.map(|line| line.split('#').next().unwrap_or(line).trim().trim_start_matches("kubectl ").to_owned()).collect()
}

#[tokio::test]
async fn the_session_of_the_readme_works_as_printed() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let session = session();
    assert!(session.len() >= 11, "the README's session was not found: {session:?}");
    for line in &session {
        let said = up.kubectl(line).await?;
        match line.split_whitespace().take(2).collect::<Vec<_>>()[..] {
            ["create", "deployment"] => up.wait("deployment/web --for=condition=Available").await.map(drop)?,
            ["get", "deployments,pods"] => {
                assert_eq!(said.matches("Running").count(), 3, "{said}");
                for node in ["node-0", "node-1", "node-2"] {
                    assert!(said.contains(node), "three pods on three nodes: {said}");
                }
            }
            ["expose", _] => slices_are(&up, 3).await?,
            ["scale", _] => slices_are(&up, 5).await?,
            ["get", "endpointslices"] => {
                let line = said.lines().find(|line| line.starts_with("web-")).unwrap_or_default();
                assert!(line.contains("10.128."), "with the pods' addresses: {said}");
            }
            ["rollout", "status"] => {
                images_are(&up, "example/web:2").await?;
            }
            ["rollout", "undo"] => assert!(said.contains("rolled back"), "{said}"),
            ["run", _] => up.wait("pod/hello --for=jsonpath={.status.phase}=Succeeded").await.map(drop)?,
            ["logs", _] => assert_eq!(said, "hello\n"),
            ["delete", "deployment"] => {
                up.until_count("rs,pods -l app=web", 0).await?;
                assert_eq!(up.names("pods").await?, ["pod/hello"], "what it did not own stays");
            }
            _ => {}
        }
    }
    up.down().await
}

/// Waits until the slices of the Service `web` have so many addresses, all ready.
async fn slices_are(up: &Up, count: usize) -> Result<(), Failure> {
    let what = format!("{count} addresses");
    up.until("get endpointslices -l kubernetes.io/service-name=web", &what, |slices| {
        let ends =
            slices["items"].as_array()?.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        (ends.filter(|end| end["conditions"]["ready"] == true).count() == count).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_roll_out_has_a_history_and_is_undone_restarted_paused_and_resumed() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let done = "rollout status deployment/web --timeout=40s";
    up.kubectl("create deployment web --image=example/web:1 --replicas=4").await?;
    assert!(up.kubectl(done).await?.contains("successfully rolled out"));
    up.kubectl("set image deployment/web web=example/web:2").await?;
    up.kubectl("annotate deployment/web kubernetes.io/change-cause=second").await?;
    up.kubectl(done).await?;
    let history = up.kubectl("rollout history deployment/web").await?;
    let rows: Vec<_> = history.lines().skip(2).filter(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 2, "{history}");
    assert!(rows[1].starts_with('2') && rows[1].contains("second"), "{history}");
    assert!(up.kubectl("rollout history deployment/web --revision=1").await?.contains("example/web:1"));

    up.kubectl("rollout undo deployment/web --to-revision=1").await?;
    up.kubectl(done).await?;
    images_are(&up, "example/web:1").await?;
    let web = up.json("get deployment web").await?;
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(up.names("rs").await?.len(), 2, "the old ReplicaSet is used again");

    let before = up.names("pods -l app=web").await?;
    up.kubectl("rollout restart deployment/web").await?;
    up.kubectl(done).await?;
    up.until_count("pods -l app=web", 4).await?;
    let after = up.names("pods -l app=web").await?;
    assert!(after.iter().all(|pod| !before.contains(pod)), "every pod is a new one: {before:?} {after:?}");

    up.kubectl("rollout pause deployment/web").await?;
    up.kubectl("set image deployment/web web=example/web:3").await?;
    let seen = "deployment/web --for=jsonpath={.status.observedGeneration}=";
    let generation = up.json("get deployment web").await?["metadata"]["generation"].to_string();
    up.wait(&format!("{seen}{generation}")).await?;
    assert_eq!(images(&up.json("get pods -l app=web").await?), ["example/web:1"], "nothing moves while it is paused");
    up.kubectl("scale deployment web --replicas=6").await?;
    up.wait("deployment/web --for=jsonpath={.status.availableReplicas}=6").await?;
    assert_eq!(images(&up.json("get pods -l app=web").await?), ["example/web:1"], "but it is scaled");
    assert!(up.refused("rollout undo deployment/web").await?.contains("paused"));
    up.kubectl("rollout resume deployment/web").await?;
    up.kubectl(done).await?;
    images_are(&up, "example/web:3").await?;
    up.down().await
}

#[tokio::test]
async fn scaling_deleting_and_watching_a_deployment() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let mut watch = up.watch("get deployment -w --no-headers")?;
    up.kubectl("create deployment web --image=example/web --replicas=2").await?;
    watch.until("2/2").await?;
    up.kubectl("scale deployment web --replicas=5 --current-replicas=2").await?;
    watch.until("5/5").await?;
    assert!(up.refused("scale deployment web --replicas=1 --current-replicas=2").await?.contains("2"));
    up.kubectl("scale deployment web --replicas=1").await?;
    watch.until("1/1").await?;
    up.until_count("pods -l app=web", 1).await?;

    let before = up.names("pods -l app=web").await?;
    up.kubectl(&format!("delete {}", before[0])).await?;
    up.wait("deployment/web --for=condition=Available").await?;
    up.until("get pods -l app=web", "a pod in its place", |pods| {
        let names: Vec<_> = pods["items"].as_array()?.iter().map(|pod| &pod["metadata"]["name"]).collect();
        (names.len() == 1 && !before[0].ends_with(names[0].as_str()?)).then_some(())
    })
    .await?;
    assert!(up.kubectl("describe deployment web").await?.contains("1 desired | 1 updated | 1 total | 1 available"));

    up.kubectl("scale deployment web --replicas=0").await?;
    up.until_count("pods -l app=web", 0).await?;
    up.kubectl("delete deployment web --wait=true --timeout=40s").await?;
    up.wait("rs -l app=web --for=delete").await?;
    up.down().await
}

#[tokio::test]
async fn recreate_stops_all_pods_before_it_starts_one() -> Result<(), Failure> {
    let up = Up::whole().await?;
    let web = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  strategy: { type: Recreate }
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: main, image: 'example/web:1' }] }
";
    up.kubectl_with("apply -f -", web).await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.kubectl_with("apply -f -", &web.replace("web:1", "web:2")).await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    images_are(&up, "example/web:2").await?;
    let events = up.json("get events --field-selector=reason=ScalingReplicaSet").await?;
    let said: Vec<_> =
        events["items"].as_array().into_iter().flatten().filter_map(|event| event["message"].as_str()).collect();
    assert!(
        said.iter().any(|text| text.starts_with("Scaled down replica set web-") && text.ends_with("from 2 to 0")),
        "{said:?}"
    );
    up.down().await
}

#[tokio::test]
async fn a_roll_out_that_cannot_go_on_is_reported_and_the_old_pods_serve_on() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web:1 --replicas=3").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    let bad = r#"{"spec":{"progressDeadlineSeconds":1,"template":{"metadata":{"annotations":{"nodes.steersman.dev/never-ready":"yes"}}}}}"#;
    up.kubectl(&format!("patch deployment web -p {bad}")).await?;
    let said = up.refused("rollout status deployment/web --timeout=40s").await?;
    assert!(said.contains("exceeded its progress deadline"), "{said}");
    let web = up.json("get deployment web").await?;
    assert_eq!(web["status"]["availableReplicas"], 3);
    up.kubectl("rollout undo deployment/web").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.down().await
}
