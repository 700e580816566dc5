//! `create_or_patch` when answers lie and watches stall.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_base::ObjectKey;
use steersman_informer::{Change, Typed};
use steersman_runtime::handler::Keys;
use steersman_runtime::{Action, Context, Error, Lister, Manager, ManagerOptions, Reconciler};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::support::*;

/// Keeps a ConfigMap for each quota, with the quota's label `value` in it.
struct Copies {
    quotas: Lister<ResourceQuota>,
    /// The namespace of the copies; that of the quota by default.
    namespace: Option<&'static str>,
}

impl Reconciler for Copies {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(quota) = cx.main(&self.quotas, key).await? else { return Ok(Action::Done) };
        let value = quota.metadata.labels.iter().flatten().find(|(name, _)| *name == "value").map(|(_, value)| value);
        let mut copy = ConfigMap::default();
        copy.metadata.name = Some(key.name.to_string());
        copy.metadata.namespace = Some(self.namespace.unwrap_or(&key.namespace).to_owned());
        copy.data = Some([("value".to_owned(), value.cloned().unwrap_or_default())].into());
        cx.writer.on_behalf_of(&*quota).create_or_patch(&copy, "the copy differs").await?;
        Ok(Action::Done)
    }
}

fn add_copies(manager: &Manager, reads_live: bool) {
    let copies = Copies { quotas: manager.lister(), namespace: None };
    let mut builder = manager.controller::<ResourceQuota>("copies").owns::<ConfigMap>();
    if reads_live {
        builder = builder.reads_live();
    }
    builder.reconcile_with(copies);
}

async fn start(faults: &Faults, reads_live: bool) -> Result<TestCluster, Failure> {
    TestCluster::builder().faults(faults).with(move |manager| add_copies(manager, reads_live)).start().await
}

async fn set_value(cluster: &TestCluster, value: &str) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"value": value}}}));
    cluster.api::<ResourceQuota>().patch("a", &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn copied(cluster: &TestCluster) -> Result<Option<String>, Failure> {
    let copy = cluster.api::<ConfigMap>().get_opt("a").await?;
    Ok(copy.and_then(|copy| copy.data).and_then(|data| data.get("value").cloned()))
}

/// Breaks all open watches, which then meet these faults.
async fn reconnect_after(cluster: &TestCluster, add_faults: impl FnOnce()) {
    cluster.advance(SOON).await;
    cluster.faults().server_goes_away();
    add_faults();
    cluster.faults().server_is_back();
    cluster.advance(Duration::from_secs(5)).await;
}

/// The number of writes of this verb to ConfigMaps that were sent, whatever their answers.
fn sent(cluster: &TestCluster, verb: Verb) -> usize {
    cluster.last_writes().iter().filter(|write| write.verb == verb && write.resource == "configmaps").count()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_made_and_answered_with_500_is_not_made_again() -> Result<(), Failure> {
    for code in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::GATEWAY_TIMEOUT] {
        let faults = Faults::default();
        faults.on(Verb::Create, "configmaps").nth(1).happens(Fault::DoThenRefuse(code));
        faults.on(Verb::Patch, "configmaps").nth(1).happens(Fault::DoThenRefuse(code));
        let cluster = start(&faults, false).await?;
        cluster.create(quota("a")).await?;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(copied(&cluster).await?.as_deref(), Some(""));
        set_value(&cluster, "1").await?;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(copied(&cluster).await?.as_deref(), Some("1"));
        assert_eq!((sent(&cluster, Verb::Create), sent(&cluster, Verb::Patch)), (1, 1), "{code}");
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn under_a_stalled_watch_it_waits_for_the_cache_and_creates_once() -> Result<(), Failure> {
    let faults = Faults::default();
    let cluster = start(&faults, false).await?;
    reconnect_after(&cluster, || faults.on(Verb::Watch, "configmaps").nth(1).happens(Fault::Stall(0))).await;
    cluster.create(quota("a")).await?;
    cluster.advance(SOON).await;
    assert_eq!(copied(&cluster).await?.as_deref(), Some(""));
    set_value(&cluster, "1").await?;
    cluster.advance(SOON).await;
    assert_eq!(copied(&cluster).await?.as_deref(), Some(""), "the cache does not show the first write yet");
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(copied(&cluster).await?.as_deref(), Some("1"), "the stalled watch was restarted");
    assert_eq!((sent(&cluster, Verb::Create), sent(&cluster, Verb::Patch)), (1, 1));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn in_a_live_pass_it_reads_the_existing_object_from_the_server() -> Result<(), Failure> {
    let faults = Faults::default();
    let cluster = start(&faults, true).await?;
    reconnect_after(&cluster, || {
        faults.on(Verb::Watch, "configmaps").happens(Fault::Stall(0));
        faults.on(Verb::List, "configmaps").refuse(StatusCode::SERVICE_UNAVAILABLE);
    })
    .await;
    cluster.create(quota("a")).await?;
    cluster.advance(SOON).await;
    set_value(&cluster, "1").await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(copied(&cluster).await?.as_deref(), Some("1"), "no cache will ever show the first write");
    assert_eq!((sent(&cluster, Verb::Create), sent(&cluster, Verb::Patch)), (1, 1));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_manager_of_one_namespace_writes_to_others_without_waiting_for_caches_that_never_show_it()
-> Result<(), Failure> {
    let add = |manager: &Manager| {
        let copies = Copies { quotas: manager.lister(), namespace: Some("kube-system") };
        let controller = manager.controller::<ResourceQuota>("copies");
        controller.watches::<ConfigMap>(|_: &Change<Typed<ConfigMap>>| Keys::default()).reconcile_with(copies);
    };
    let here = |options: &mut ManagerOptions| options.namespace = Some("default".into());
    let cluster = TestCluster::builder().with(add).manager_options(here).start().await?;
    let quotas = Api::<ResourceQuota>::namespaced(cluster.client(), "default");
    let copies = Api::<ConfigMap>::namespaced(cluster.client(), "kube-system");
    quotas.create(&PostParams::default(), &quota("a")).await?;
    cluster.advance(SOON).await;
    for value in ["1", "2"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"value": value}}}));
        quotas.patch("a", &PatchParams::default(), &patch).await?;
        cluster.advance(SOON).await;
        let copy = copies.get("a").await?.data.unwrap_or_default();
        assert_eq!(copy.get("value").map(String::as_str), Some(value));
    }
    assert_eq!((sent(&cluster, Verb::Create), sent(&cluster, Verb::Patch)), (1, 2));
    cluster.stop().await
}
