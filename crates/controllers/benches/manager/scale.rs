//! Large numbers of small objects on `steersman up`: one step each, on a cluster of its own.

use std::time::{Duration, Instant};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::api::{Call, until};
use crate::autoscalers::{Autoscaled, nodes_for};
use crate::embedded::{ALL, Up};
use crate::load;
use crate::managers::ours_on;
use crate::process::Scratch;
use crate::report_time;
use crate::sizes::Scale;

const NAMESPACE: &str = "bench-scale";
const AUTOSCALER: &str = "horizontal-pod-autoscaler-controller";
/// Of the lists that are looked at: 10,000 objects are a large answer, which the measured process gives.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The time between two passes over an autoscaler, and how many are measured.
const PERIOD: Duration = Duration::from_secs(15);
const PERIODS: u32 = 2;

pub(crate) async fn all(sizes: &Scale) {
    // A quarter beside the whole shows how the cost grows: it is a quarter, or the matching is quadratic.
    let (_, cpu) = claims(sizes.claims / 4).await;
    report_time("2,500 claims against as many volumes, CPU", cpu);
    let (wall, cpu) = claims(sizes.claims).await;
    report_time("10,000 claims against as many volumes, CPU", cpu);
    report_time("10,000 claims against as many volumes, wall", wall);
    signing_requests(sizes.signing_requests).await;
    quota(sizes.quota_pods).await;
    autoscalers(sizes.autoscalers).await;
}

/// Claims are created, each of which fits every volume; over when all are bound. The CPU is that of the whole cluster.
async fn claims(count: usize) -> (Duration, Duration) {
    let (scratch, mut up) = cluster(0, ALL).await;
    let volumes = (0..count).map(|at| Call::create("/api/v1/persistentvolumes", &volume(at)));
    up.api.send_all(volumes.collect()).await;
    up.process.quiet().await;

    let path = load::core(NAMESPACE, "persistentvolumeclaims");
    let calls = (0..count).map(|at| Call::create(&path, &claim(at))).collect();
    let before = up.process.usage().cpu;
    let since = Instant::now();
    up.api.send_all(calls).await;
    up.api.until_matches(&path, r#""phase":"Bound""#, count, LOOK_EVERY).await;
    let took = since.elapsed();
    up.process.quiet().await;
    let cpu = up.process.usage().cpu - before;
    up.process.end().await;
    drop(scratch);
    (took, cpu)
}

/// Requests are created and approved; over when all have a certificate.
async fn signing_requests(count: usize) {
    let (_scratch, up) = cluster(0, ALL).await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let key = KeyPair::generate().expect("a key");
    let creates = (0..count).map(|at| Call::create(path, &signing_request(at, &key))).collect();
    let approvals = (0..count).map(|at| Call::patch(format!("{path}/request-{at}/approval"), &approval())).collect();
    let since = Instant::now();
    up.api.send_all(creates).await;
    up.api.send_all(approvals).await;
    up.api.until_matches(path, r#""certificate":""#, count, LOOK_EVERY / 5).await;
    report_time("1,000 signing requests, wall", since.elapsed());
    up.process.end().await;
}

/// A quota is created for a namespace full of pods; over when its status has counted them.
async fn quota(pods: usize) {
    let (_scratch, mut up) = cluster(0, ALL).await;
    let path = load::pods(NAMESPACE);
    let calls = (0..pods).map(|at| Call::create(&path, &load::lone_pod(at))).collect();
    up.api.send_all(calls).await;
    up.process.quiet().await;
    let path = load::core(NAMESPACE, "resourcequotas");
    let hard = json!({"pods": "100k", "requests.cpu": "100k", "requests.memory": "1Pi"});
    let quota = json!({"metadata": {"name": "all"}, "spec": {"hard": hard}});
    let since = Instant::now();
    up.api.send(Call::create(&path, &quota)).await;
    until("the pods counted", || async {
        let used = &up.api.get(&format!("{path}/all")).await["status"]["used"]["pods"];
        let used = used.as_str().unwrap_or_default();
        used.strip_suffix('k').map_or(used.parse() == Ok(pods), |thousands| thousands.parse() == Ok(pods / 1_000))
    })
    .await;
    report_time("recount of a namespace with 50,000 pods, wall", since.elapsed());
    up.process.end().await;
}

/// A manager with the autoscaler alone, in a process of its own so that the CPU of API server and metrics is not counted.
async fn autoscalers(count: usize) {
    let (scratch, up) = cluster(nodes_for(count), &format!("{ALL},-{AUTOSCALER}")).await;
    let autoscaled = Autoscaled { api: &up.api, namespace: NAMESPACE, count };
    autoscaled.add_targets().await;
    autoscaled.add().await;
    let mut manager = ours_on(&up.kubeconfig, AUTOSCALER, &scratch);
    autoscaled.until_seen().await;
    let first = manager.usage().cpu;
    report_time("first pass over 10,000 autoscalers, with start and statuses, CPU", first);
    tokio::time::sleep(PERIOD * PERIODS).await;
    report_time("one pass over 10,000 autoscalers, CPU", (manager.usage().cpu - first) / PERIODS);
    autoscaled.check().await;
    manager.end().await;
    up.process.end().await;
}

/// A cluster that has the namespace.
async fn cluster(nodes: usize, controllers: &str) -> (Scratch, Up) {
    let scratch = Scratch::new();
    let up = Up::launch(&scratch, nodes, controllers).await;
    up.api.create_namespace(NAMESPACE).await;
    (scratch, up)
}

fn volume(at: usize) -> Value {
    let path = format!("/data/{at}");
    json!({"metadata": {"name": format!("volume-{at}")}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": path},
    }})
}

fn claim(at: usize) -> Value {
    json!({"metadata": {"name": format!("claim-{at}")}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "manual", "resources": {"requests": {"storage": "1Gi"}},
    }})
}

fn signing_request(at: usize, key: &KeyPair) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("user-{at}"));
    let request = params.serialize_request(key).and_then(|request| request.pem()).expect("a request");
    let request = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, request);
    json!({"metadata": {"name": format!("request-{at}")}, "spec": {
        "request": request, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
    }})
}

fn approval() -> Value {
    json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Bench", "message": "bench"}]}})
}
