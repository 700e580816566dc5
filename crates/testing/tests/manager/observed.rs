//! What can be seen of a manager from outside.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::client::Body;
use kube::core::DynamicObject;
use prometheus::Registry;
use prometheus::proto::{LabelPair, MetricType};
use serde_json::Value;
use steersman_apiserver::ApiServer;
use steersman_base::{ObjectKey, Resource};
use steersman_informer::{Selection, Typed};
use steersman_runtime::__internal::admin::text_page;
use steersman_runtime::serving::ServeOptions;
use steersman_runtime::webhook::{Admission, Verdict, WebhookServer};
use steersman_runtime::{Action, Context, Error, Manager, ManagerOptions, Reconciler};
use steersman_testing::{Failure, TestCluster};
use tower::{ServiceExt, service_fn};

use crate::support::*;

/// Of `kube-controller-manager-metrics.tsv` (1.37.1), and of controller-runtime 0.25: what a manager counts.
const WANTED: [(&str, MetricType, &str); 16] = [
    ("controller_runtime_active_workers", MetricType::GAUGE, "controller"),
    ("controller_runtime_max_concurrent_reconciles", MetricType::GAUGE, "controller"),
    ("controller_runtime_reconcile_errors_total", MetricType::COUNTER, "controller"),
    ("controller_runtime_reconcile_panics_total", MetricType::COUNTER, "controller"),
    ("controller_runtime_reconcile_time_seconds", MetricType::HISTOGRAM, "controller"),
    ("controller_runtime_reconcile_timeouts_total", MetricType::COUNTER, "controller"),
    ("controller_runtime_reconcile_total", MetricType::COUNTER, "controller,result"),
    ("controller_runtime_terminal_reconcile_errors_total", MetricType::COUNTER, "controller"),
    ("leader_election_master_status", MetricType::GAUGE, "name"),
    ("workqueue_adds_total", MetricType::COUNTER, "name"),
    ("workqueue_depth", MetricType::GAUGE, "name"),
    ("workqueue_longest_running_processor_seconds", MetricType::GAUGE, "name"),
    ("workqueue_queue_duration_seconds", MetricType::HISTOGRAM, "name"),
    ("workqueue_retries_total", MetricType::COUNTER, "name"),
    ("workqueue_unfinished_work_seconds", MetricType::GAUGE, "name"),
    ("workqueue_work_duration_seconds", MetricType::HISTOGRAM, "name"),
];

#[tokio::test(start_paused = true)]
async fn metrics_have_upstreams_names_types_and_labels() -> Result<(), Failure> {
    let options = ManagerOptions::default().metrics(Registry::new()).lease(lease("a"));
    let (manager, client) = embedded(options)?;
    add_one_pod_each(&manager);
    let running = Running::start(manager.clone());
    kube::Api::default_namespaced(client).create(&Default::default(), &quota("a")).await?;
    tokio::time::sleep(SOON).await;
    let families = manager.exposition().gather();
    let of_ours =
        |name: &str| ["controller_runtime_", "leader_election_", "workqueue_"].iter().any(|of| name.starts_with(of));
    let mut seen = Vec::new();
    for family in families.iter().filter(|family| of_ours(family.name())) {
        for series in family.get_metric() {
            let labels: Vec<_> = series.get_label().iter().map(LabelPair::name).collect();
            seen.push((family.name(), family.get_field_type(), labels.join(",")));
        }
    }
    seen.dedup();
    let want: Vec<_> = WANTED.into_iter().map(|(name, type_, labels)| (name, type_, labels.to_owned())).collect();
    assert_eq!(seen, want);
    let text = manager.exposition().text();
    for line in [
        "controller_runtime_reconcile_total{controller=\"one-pod-each\",result=\"success\"} 1\n",
        "leader_election_master_status{name=\"lease\"} 1\n",
        "workqueue_depth{name=\"one-pod-each\"} 0\n",
        "# TYPE workqueue_queue_duration_seconds histogram\n",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    running.stop().await
}

#[tokio::test(start_paused = true)]
async fn managers_of_one_process_share_nothing() -> Result<(), Failure> {
    let start = || -> Result<_, Failure> {
        let registry = Registry::new();
        let (manager, client) = embedded(ManagerOptions::default().metrics(registry.clone()))?;
        add_one_pod_each(&manager);
        Ok((Running::start(manager), client, registry))
    };
    let (busy, client, registry) = start()?;
    let (idle, _, _) = start()?;
    kube::Api::default_namespaced(client).create(&Default::default(), &quota("a")).await?;
    tokio::time::sleep(SOON).await;
    let adds = |running: &Running, count: u32| {
        let text = running.manager.exposition().text();
        text.contains(&format!("workqueue_adds_total{{name=\"one-pod-each\"}} {count}\n"))
    };
    assert!(adds(&busy, 1) && adds(&idle, 0), "{}", busy.manager.exposition().text());
    assert_eq!(busy.manager.decisions().entries(&Default::default()).len(), 1);
    assert!(idle.manager.decisions().entries(&Default::default()).is_empty());
    let taken = embedded(ManagerOptions::default().metrics(registry)).err();
    let taken = taken.map(|error| format!("{error:?}")).unwrap_or_default();
    assert!(taken.contains("metrics of another manager"), "{taken}");
    busy.stop().await?;
    idle.stop().await
}

async fn page(manager: &Manager, path: &str) -> Result<Value, Failure> {
    let response = manager.admin().respond(Request::get(path).body(Bytes::new())?).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    Ok(serde_json::from_slice(response.body())?)
}

#[tokio::test(start_paused = true)]
async fn informers_queues_and_decisions_are_shown_in_code_and_on_pages() -> Result<(), Failure> {
    const SECRETS: Resource = Resource::namespaced("", "v1", "secrets", "Secret");
    const NODES: Resource = Resource::cluster("", "v1", "nodes", "Node");
    let cluster = TestCluster::builder()
        .with(|manager| {
            add_one_pod_each(manager);
            let _ = manager.informers().informer_for::<Typed<DynamicObject>>(SECRETS, Selection::everything());
            let _ = manager.informers().meta(&NODES);
            let _ = manager.admin().handle("/oven", |_| text_page(StatusCode::OK, "\"hot\""));
        })
        .start()
        .await?;
    cluster.create(quota("a")).await?;
    cluster.advance(SOON).await;
    let manager = cluster.manager();
    assert_eq!(page(manager, "/oven").await?, "hot", "a page of one's own");

    let shown = page(manager, "/debug/informers").await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let informers = shown["informers"].as_array().ok_or_else(|| Failure::new("no list"))?;
    let kinds: BTreeSet<_> = informers.iter().map(|each| (text(&each["resource"]), text(&each["kind"]))).collect();
    let want = [("nodes", "metadata"), ("pods", "typed"), ("resourcequotas", "typed"), ("secrets", "dynamic")];
    assert_eq!(kinds, want.into_iter().map(|(resource, kind)| (resource.to_owned(), kind.to_owned())).collect());
    let pods = informers.iter().find(|each| each["resource"] == "pods").ok_or_else(|| Failure::new("no pods"))?;
    assert_eq!((&pods["objects"], &pods["synced"]), (&1.into(), &true.into()));
    assert_eq!(pods["subscribers"][0]["name"], "one-pod-each");
    let inspected = manager.inspection().informers();
    let targets: BTreeSet<_> = inspected.iter().map(|each| each.informer.target.resource.to_string()).collect();
    assert_eq!(targets, want.into_iter().map(|(resource, _)| resource.to_owned()).collect());

    let queues = page(manager, "/debug/queues").await?;
    let queue = &queues["queues"][0];
    assert_eq!((&queue["name"], &queue["depth"], &queue["adds"]), (&"one-pod-each".into(), &0.into(), &1.into()));

    let key = format!("{}/a", cluster.namespace());
    let decisions = page(manager, &format!("/debug/decisions?controller=one-pod-each&key={key}")).await?;
    let entry = &decisions["entries"][0];
    assert_eq!((text(&entry["key"]), text(&entry["controller"])), (key, "one-pod-each".to_owned()));
    let whole = entry.to_string();
    for want in ["NoPod", "there is no pod", "create", "pods", "resourceVersion", "ResourceQuota"] {
        assert!(whole.contains(want), "{want} is not in {whole}");
    }
    assert_eq!(page(manager, "/debug/decisions?controller=nobody").await?["entries"], Value::Array(Vec::new()));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn discovery_is_requested_only_when_used_and_then_follows_the_server() -> Result<(), Failure> {
    // And a little more: not at the same time as what happens every half a minute.
    const AN_HOUR: Duration = Duration::from_secs(3610);
    let server = ApiServer::new(steersman_apiserver::Options::default());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let inner = server.clone();
    let counted = service_fn(move |request: Request<Body>| {
        if request.uri().path() == "/apis" {
            count.fetch_add(1, Ordering::Relaxed);
        }
        inner.clone().oneshot(request)
    });
    let manager = Manager::new(kube::Client::new(counted, "default"), ManagerOptions::default())?;
    add_one_pod_each(&manager);
    let running = Running::start(manager.clone());
    tokio::time::sleep(AN_HOUR).await;
    assert_eq!(asked.load(Ordering::Relaxed), 0, "nobody uses it");

    assert!(manager.mapper().find("deployments").await.is_ok() && manager.mapper().find("pods").await.is_ok());
    assert_eq!(asked.swap(0, Ordering::Relaxed), 1);
    tokio::time::sleep(AN_HOUR).await;
    assert_eq!(asked.load(Ordering::Relaxed), 0, "nobody uses it now");
    assert!(manager.mapper().find("pods").await.is_ok());
    assert_eq!(asked.swap(0, Ordering::Relaxed), 1, "what is old is doubted");

    let mut known = manager.mapper().subscribe();
    let definition = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cakes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "cakes", "singular": "cake", "kind": "Cake"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::post(path).header("content-type", "application/json").body(definition.to_string().into())?;
    let _: Value = kube::Client::new(server, "default").request(request).await?;
    let follows = known.wait_for(|known| known.as_ref().is_some_and(|known| known.find("cakes").is_some()));
    drop(tokio::time::timeout(Duration::from_secs(31), follows).await??);
    running.stop().await
}

/// On real sockets, and so on the real clock.
#[tokio::test]
async fn a_webhook_server_that_does_not_serve_is_not_ready() -> Result<(), Failure> {
    let (manager, _) = embedded(ManagerOptions::default())?;
    let webhooks = WebhookServer::new(ServeOptions::at("127.0.0.1:0".parse()?))
        .validate("/check", async |_: Admission<Pod>| Ok(Verdict::allow()));
    let started = webhooks.started();
    manager.add(webhooks);
    let report = ready(&manager);
    let want = "[-]webhook-server failed: the webhook server does not run";
    assert!(!report.passed && report.text.contains(want), "{}", report.text);
    let running = Running::start(manager.clone());
    while started.check().await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(ready(&manager).text.contains("[+]webhook-server ok"), "{}", ready(&manager).text);
    running.stop().await?;
    assert!(ready(&manager).text.contains(want));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pass_about_an_object_that_is_gone_says_so() -> Result<(), Failure> {
    struct Failing;
    impl Reconciler for Failing {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            Err(Error::terminal("on purpose"))
        }
    }
    let failing = |manager: &Manager| drop(manager.controller::<ResourceQuota>("failing").reconcile_with(Failing));
    let cluster = TestCluster::builder().with(failing).start().await?;
    let key = ObjectKey::new(cluster.namespace(), "nobody");
    cluster.manager().inspection().controllers()[0].trigger(key.clone());
    cluster.advance(SOON).await;
    let log = cluster.manager().decisions().for_key("failing", &key);
    assert!(log.len() == 1 && log[0].to_string().contains("gone"), "{log:?}");
    cluster.stop().await
}
