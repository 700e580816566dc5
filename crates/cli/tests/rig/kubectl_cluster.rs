//! Real kubectl against `steersman up`: Services, accounts, tokens, events.

use serde_json::Value;
use steersman_testing::Failure;

use crate::up::Up;

fn addresses(slices: &Value) -> Vec<String> {
    let slices = slices["items"].as_array().into_iter().flatten();
    let ends = slices.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let mut all: Vec<_> = ends.filter_map(|end| end["addresses"][0].as_str().map(ToOwned::to_owned)).collect();
    all.sort();
    all
}

#[tokio::test]
async fn endpoints_follow_the_pods_of_a_service() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web --replicas=3 --port=8080").await?;
    up.kubectl("expose deployment web --port=80 --target-port=8080").await?;
    let slices = "get endpointslices -l kubernetes.io/service-name=web";
    for count in [3, 5, 1] {
        up.kubectl(&format!("scale deployment web --replicas={count}")).await?;
        up.until(slices, "addresses", |slices| (addresses(slices).len() == count).then_some(())).await?;
        up.until_count("pods -l app=web", count).await?;
        let pods = up.json("get pods -l app=web").await?;
        let mut ips: Vec<_> = pods["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|pod| pod["status"]["podIP"].as_str().unwrap_or_default().to_owned())
            .collect();
        ips.sort();
        assert_eq!(addresses(&up.json(slices).await?), ips);
    }
    let table = up.kubectl("get endpoints web --no-headers").await?;
    assert!(table.contains(":8080"), "{table}");
    assert!(up.kubectl("describe service web").await?.contains(":8080"));
    up.kubectl("delete service web").await?;
    up.until(slices, "no slices", |slices| addresses(slices).is_empty().then_some(())).await?;
    up.wait("endpoints/web --for=delete").await?;
    up.down().await
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_clusters_authority() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0"]).await?;
    up.kubectl("create namespace shop").await?;
    up.wait("serviceaccount/default -n shop --for=create").await?;
    up.wait("configmap/kube-root-ca.crt -n shop --for=create").await?;
    let map = up.json("-n shop get configmap kube-root-ca.crt").await?;
    let config = up.json("config view --raw").await?;
    let held = map["data"]["ca.crt"].as_str().unwrap_or_default();
    assert!(held.starts_with("-----BEGIN CERTIFICATE-----"), "{map}");
    assert!(config["clusters"][0]["cluster"]["certificate-authority-data"].is_string());

    up.kubectl("-n shop delete serviceaccount default").await?;
    up.kubectl("-n shop delete configmap kube-root-ca.crt").await?;
    up.wait("serviceaccount/default -n shop --for=create").await?;
    up.wait("configmap/kube-root-ca.crt -n shop --for=create").await?;
    assert_eq!(up.json("-n shop get configmap kube-root-ca.crt").await?["data"]["ca.crt"], held);
    up.down().await
}

#[tokio::test]
async fn a_token_in_a_secret_is_its_account_until_the_secret_goes() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=0"]).await?;
    up.kubectl("create serviceaccount robot").await?;
    let secret = "
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: { name: robot-token, annotations: { kubernetes.io/service-account.name: robot } }
";
    up.kubectl_with("create -f -", secret).await?;
    up.wait("secret/robot-token --for=jsonpath={.data.token}").await?;
    let token = up.kubectl("get secret robot-token -o go-template={{.data.token|base64decode}}").await?;
    // The kubeconfig's own certificate and token would win: this one has nothing but the server and its authority.
    let config = std::env::temp_dir().join(format!("steersman-robot-{}.kubeconfig", std::process::id()));
    let own = std::fs::read_to_string(&up.kubeconfig)?;
    let is_certificate = |line: &&str| line.trim_start().starts_with("client-");
    let lines = own.lines().filter(|line| !is_certificate(line)).map(|line| {
        if line.trim_start().starts_with("token:") { format!("    token: {token}") } else { line.to_owned() }
    });
    std::fs::write(&config, lines.collect::<Vec<_>>().join("\n"))?;
    let as_robot = format!("--kubeconfig={}", config.display());
    let who = up.json(&format!("{as_robot} auth whoami")).await?;
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    let refused = up.refused(&format!("{as_robot} get secrets")).await?;
    assert!(refused.contains("cannot list resource \"secrets\""), "roles count, and it has none: {refused}");
    up.kubectl("create rolebinding robot --clusterrole=admin --serviceaccount=default:robot").await?;
    up.kubectl(&format!("{as_robot} get secrets")).await?;

    up.kubectl("delete serviceaccount robot").await?;
    up.wait("secret/robot-token --for=delete").await?;
    let refused = up.refused(&format!("{as_robot} auth whoami")).await?;
    assert!(refused.contains("Unauthorized") || refused.contains("logged in"), "{refused}");
    std::fs::remove_file(&config)?;
    up.down().await
}

#[tokio::test]
async fn events_tell_what_happened_in_upstreams_words() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web --replicas=2").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.kubectl("scale deployment web --replicas=1").await?;
    up.until_count("pods", 1).await?;
    let reported = |events: &Value, kind: &str, reason: &str, from: &str, text: &str| {
        events["items"].as_array().into_iter().flatten().any(|event| {
            event["involvedObject"]["kind"] == kind
                && event["reason"] == reason
                && (event["source"]["component"] == from || event["reportingComponent"] == from)
                && event["message"].as_str().is_some_and(|message| message.starts_with(text))
        })
    };
    let all = [
        ("Deployment", "ScalingReplicaSet", "deployment-controller", "Scaled up replica set web-"),
        ("Deployment", "ScalingReplicaSet", "deployment-controller", "Scaled down replica set web-"),
        ("ReplicaSet", "SuccessfulCreate", "replicaset-controller", "Created pod: web-"),
        ("ReplicaSet", "SuccessfulDelete", "replicaset-controller", "Deleted pod: web-"),
        ("Pod", "Scheduled", "default-scheduler", "Successfully assigned default/web-"),
    ];
    for (kind, reason, from, text) in all {
        let what = format!("an event {reason} of a {kind}");
        up.until("get events", &what, |events| reported(events, kind, reason, from, text).then_some(())).await?;
    }
    let described = up.kubectl("describe deployment web").await?;
    assert!(described.contains("ScalingReplicaSet"), "{described}");
    up.down().await
}

#[tokio::test]
async fn logs_show_what_echo_printed() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("run hello --image=busybox --restart=Never -- echo hello from here").await?;
    up.wait("pod/hello --for=jsonpath={.status.phase}=Succeeded").await?;
    assert_eq!(up.kubectl("logs hello").await?, "hello from here\n");
    let timed = up.kubectl("logs hello --timestamps").await?;
    assert!(timed.starts_with("20") && timed.ends_with("Z hello from here\n"), "{timed}");
    assert!(up.kubectl("get pod hello --no-headers").await?.contains("Completed"));
    up.kubectl("run fails --image=busybox --restart=Never -- false").await?;
    up.wait("pod/fails --for=jsonpath={.status.phase}=Failed").await?;
    assert!(up.refused("logs nobody").await?.contains("not found"));

    // Who follows gets lines as they come, until the container ends.
    let talk = "{apiVersion: v1, kind: Pod, metadata: {name: talk}, spec: {restartPolicy: Never, containers: \
                [{name: talk, image: busybox, command: [sh, -c, echo one; sleep 2; echo two]}]}}";
    up.kubectl_with("create -f -", talk).await?;
    up.wait("pod/talk --for=condition=Ready").await?;
    assert_eq!(up.kubectl("logs -f talk").await?, "one\ntwo\n");
    up.down().await
}
