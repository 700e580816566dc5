//! The garbage collector under faults.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect_eq};

use crate::quiet;
use crate::scenarios::garbage_collector::{
    self as scenarios, CONTROLLERS, config_map, definition_of_cakes, delete, graph, held, owner, reference,
    until_known, until_owned_by, with_cakes,
};
use crate::scenarios::issues::collects_what_is_not_broken;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::crash::{Scene, crash_after_each_write};
use crate::scenarios::support::line::{Line, Trouble};

pub(crate) async fn start() -> Result<TestCluster, Failure> {
    TestCluster::builder().controllers(CONTROLLERS).start().await
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_is_none_and_an_event_says_so() -> Result<(), Failure> {
    let cluster = start().await?;
    let elsewhere = objects::namespace("elsewhere");
    Api::<Namespace>::all(cluster.client()).create(&PostParams::default(), &elsewhere).await?;
    let there = Api::<ConfigMap>::namespaced(cluster.client(), "elsewhere");
    let parent = there.create(&PostParams::default(), &config_map("parent", vec![])).await?;
    cluster.settle().await?;
    let child = cluster.create(config_map("child", vec![owner(&parent)])).await?;
    cluster.until_gone::<ConfigMap>("child").await?;
    there.get("parent").await?;
    cluster.settle().await?;
    let events = cluster.api::<Event>().list(&ListParams::default()).await?.items;
    let reported: Vec<_> = events
        .iter()
        .map(|event| (event.type_.as_deref(), event.reason.as_deref(), event.message.as_deref().unwrap_or_default()))
        .collect();
    let uid = parent.metadata.uid.unwrap_or_default();
    let namespace = cluster.namespace();
    let text = format!(
        "ownerRef [v1/ConfigMap, namespace: {namespace}, name: parent, uid: {uid}] does not exist in namespace {namespace:?}"
    );
    expect_eq("what is reported", &reported, &vec![(Some("Warning"), Some("OwnerRefInvalidNamespace"), &*text)])?;
    expect_eq("about whom", &events[0].involved_object.uid.clone(), &child.metadata.uid)?;
    let source = events[0].source.as_ref().and_then(|source| source.component.clone());
    expect_eq("by whom", &source.as_deref(), &Some("garbage-collector-controller"))?;
    quiet(cluster).await
}

/// kubernetes/kubernetes issue 101078: one CRD that cannot be read, and nothing is collected after a restart.
#[tokio::test(start_paused = true)]
async fn issue_101078_a_broken_resource_stops_nothing() -> Result<(), Failure> {
    // Where one is broken, the other may serve instead.
    for broken in [&[Verb::List][..], &[Verb::Watch], &[Verb::List, Verb::Watch]] {
        let faults = Faults::default();
        for &verb in broken {
            faults.on(verb, "cakes").refuse(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let cluster = scenarios::alone().faults(&faults).start().await?;
        collects_what_is_not_broken(&cluster).await?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_breaks_later_stops_nothing_and_is_caught_up_with() -> Result<(), Failure> {
    let cluster = scenarios::alone().start().await?;
    cluster.settle().await?;
    cluster.faults().server_goes_away();
    cluster.faults().on(Verb::List, "cakes").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    cluster.faults().on(Verb::Watch, "cakes").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    cluster.advance(Duration::from_secs(5)).await;
    cluster.faults().server_is_back();
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let cakes = scenarios::cakes(&cluster);
    cakes.create(&PostParams::default(), &scenarios::cake("child", vec![owner(&parent)])).await?;
    cluster.create(config_map("child", vec![owner(&parent)])).await?;
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.until_gone::<ConfigMap>("child").await?;
    cakes.get("child").await?;
    cluster.faults().heal();
    cluster.advance(Duration::from_secs(60)).await;
    cluster.until_eq("the cake is gone", async || Ok(cakes.get_opt("child").await?.is_none()), true).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_later_is_collected_and_one_that_goes_is_let_go() -> Result<(), Failure> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    let cluster = start().await?;
    cluster.settle().await?;
    let definitions = Api::<CustomResourceDefinition>::all(cluster.client());
    for round in 0..2 {
        let definition = serde_json::from_value(definition_of_cakes())?;
        definitions.create(&PostParams::default(), &definition).await?;
        let cakes = scenarios::cakes(&cluster);
        let name = format!("parent-{round}");
        let parent = cluster.create(config_map(&name, vec![])).await?;
        let cake = scenarios::cake("child", vec![owner(&parent)]);
        cluster
            .until_eq("cakes are served", async || Ok(cakes.create(&PostParams::default(), &cake).await.is_ok()), true)
            .await?;
        until_known(&cluster, 2).await?;
        delete::<ConfigMap>(&cluster, &name, DeleteParams::background()).await?;
        cluster.until_eq("the cake is gone", async || Ok(cakes.get_opt("child").await?.is_none()), true).await?;
        definitions.delete("cakes.garbage.example.com", &DeleteParams::default()).await?;
        let watches = || {
            let all = cluster.manager().inspection().informers();
            all.iter().any(|running| running.informer.target.resource.plural == "cakes")
        };
        cluster.until_eq("nobody watches cakes", async || Ok(!watches()), true).await?;
    }
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_cluster_wide_object_with_an_owner_in_a_namespace_stays() -> Result<(), Failure> {
    let cluster = start().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let mut role = ClusterRole { metadata: objects::named("child"), ..ClusterRole::default() };
    role.metadata.owner_references = Some(vec![owner(&parent), reference("v1", "Pod", "absent", 3)]);
    let roles = Api::<ClusterRole>::all(cluster.client());
    roles.create(&PostParams::default(), &role).await?;
    cluster.settle().await?;
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::background()).await?;
    cluster.settle().await?;
    roles.get("child").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_cluster_wide_object_that_is_first_heard_of_by_its_dependents_is_in_no_namespace() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "clusterroles").happens(Fault::Lag(Duration::from_secs(60)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    cluster.settle().await?;
    let mut role = ClusterRole { metadata: objects::named("role"), ..ClusterRole::default() };
    role.metadata.owner_references = Some(vec![reference("v1", "ConfigMap", "absent", 3)]);
    let roles = Api::<ClusterRole>::all(cluster.client());
    let role = roles.create(&PostParams::default(), &role).await?;
    cluster.create(config_map("child", vec![owner(&role)])).await?;
    let looked = || cluster.manager().inspection().controllers()[0].queue().stats().worked.count();
    cluster.advance(Duration::from_secs(30)).await;
    assert!(looked() > 0, "the role was looked at before it was seen");
    roles.get("role").await?;
    cluster.advance(Duration::from_secs(120)).await;
    roles.get("role").await?;
    cluster.api::<ConfigMap>().get("child").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn lost_replies_and_lagging_watches_change_nothing() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "configmaps").happens(Fault::Lag(Duration::from_secs(2)));
    for verb in [Verb::Patch, Verb::Delete] {
        faults.on(verb, "configmaps").nth(1).lose_reply();
        faults.on(verb, "configmaps").nth(3).happens(Fault::LoseRequest);
    }
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let other = cluster.create(config_map("other", vec![])).await?;
    for n in 0..4 {
        cluster.create(config_map(&format!("child-{n}"), vec![owner(&parent)])).await?;
        cluster.create(config_map(&format!("shared-{n}"), vec![owner(&parent), owner(&other)])).await?;
    }
    until_known(&cluster, 10).await?;
    delete::<ConfigMap>(&cluster, "parent", DeleteParams::foreground()).await?;
    for n in 0..4 {
        cluster.until_gone::<ConfigMap>(&format!("child-{n}")).await?;
        until_owned_by::<ConfigMap>(&cluster, &format!("shared-{n}"), &[owner(&other)]).await?;
    }
    cluster.until_gone::<ConfigMap>("parent").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_restart_looks_at_nothing_that_is_well() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let parent = cluster.create(objects::replica_set("web").replicas(0)).await?;
    for n in 0..50 {
        cluster.create(objects::pod(&format!("web-{n}")).owner(owner(&parent))).await?;
    }
    // Another manager, on the same server.
    let line = Line::to(cluster.client(), Trouble::None);
    let asked = |verb| line.requests().iter().filter(|(method, path)| method == verb && path.contains("/web")).count();
    let manager = Beside::start(&cluster, line.client(), CONTROLLERS)?;
    cluster.advance(Duration::from_secs(120)).await;
    let looked = manager.manager().inspection().controllers()[0].queue().stats().worked.count();
    assert!(looked > 0, "the owner was referred to before it was seen");
    assert_eq!(asked("GET"), 0, "and by the time of the look it was there");
    delete::<ReplicaSet>(&cluster, "web", DeleteParams::background()).await?;
    cluster.until_gone::<Pod>("web-49").await?;
    assert_eq!(asked("DELETE"), 50, "each pod is deleted, once");
    assert_eq!(asked("GET"), 0, "in the version that was watched, which needs no read");
    manager.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn the_graph_is_shown_as_dot_and_json() -> Result<(), Failure> {
    let cluster = start().await?;
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let child = cluster.create(held(config_map("child", vec![owner(&parent)]))).await?;
    until_known(&cluster, 2).await?;
    let parent = parent.metadata.uid.unwrap_or_default();
    let child = child.metadata.uid.unwrap_or_default();
    let shown = graph(&cluster).await?;
    expect_eq("edges", &shown["edges"].clone(), &serde_json::json!([{ "dependent": child, "owner": parent }]))?;
    let page = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new().into()).map_err(kube::Error::HttpError)?;
        let answer = cluster.manager().admin().respond(request).await;
        let kind = answer.headers()["content-type"].to_str().unwrap_or_default().to_owned();
        Ok::<_, Failure>((answer.status(), kind, String::from_utf8_lossy(answer.body()).into_owned()))
    };
    let (code, kind, text) = page("/debug/controllers/garbage-collector-controller/graph").await?;
    expect_eq("the page", &(code, &*kind), &(StatusCode::OK, "text/vnd.graphviz"))?;
    assert!(
        text.starts_with("strict digraph full {\n") && text.contains(&format!("  \"{child}\" -> \"{parent}\";\n")),
        "{text}"
    );
    let (_, _, alone) = page("/debug/controllers/garbage-collector-controller/graph?uid=nobody").await?;
    expect_eq("what is around nobody", &&*alone, &"strict digraph full {\n}\n")?;
    expect_eq(
        "no such page",
        &page("/debug/controllers/garbage-collector-controller/x").await?.0,
        &StatusCode::NOT_FOUND,
    )?;
    cluster.stop().await
}

/// Names, owners and finalizers of all ConfigMaps and cakes.
async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let configs = cluster.api::<ConfigMap>().list(&ListParams::default()).await?.items;
    let cakes = scenarios::cakes(cluster).list(&ListParams::default()).await?.items;
    let metas = configs.into_iter().map(|config| config.metadata).chain(cakes.into_iter().map(|cake| cake.metadata));
    let line = |meta: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        let owners: Vec<_> = meta.owner_references.unwrap_or_default().into_iter().map(|owner| owner.name).collect();
        let name = meta.name.unwrap_or_default();
        let finalizers = meta.finalizers.unwrap_or_default();
        format!("{name} of {owners:?}, held by {finalizers:?}, going: {}", meta.deletion_timestamp.is_some())
    };
    Ok(metas.map(line).collect())
}

/// A family of three generations, of which two children have another owner, too; one of each is a cake.
async fn family(cluster: &TestCluster) -> Result<(), Failure> {
    let parent = cluster.create(config_map("parent", vec![])).await?;
    let other = cluster.create(config_map("other", vec![])).await?;
    let child = cluster.create(config_map("child", vec![owner(&parent)])).await?;
    cluster.create(config_map("grandchild", vec![owner(&child)])).await?;
    cluster.create(config_map("shared", vec![owner(&parent), owner(&other)])).await?;
    let cakes = scenarios::cakes(cluster);
    cakes.create(&PostParams::default(), &scenarios::cake("cake", vec![owner(&parent)])).await?;
    let shared = scenarios::cake("shared-cake", vec![owner(&parent), owner(&other)]);
    cakes.create(&PostParams::default(), &shared).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_cascade_changes_nothing() -> Result<(), Failure> {
    for how in [DeleteParams::background(), DeleteParams::foreground(), DeleteParams::orphan()] {
        let story = async |scene: &Scene<'_>| {
            family(scene.cluster()).await?;
            // The graph must show the family: unknown dependents cannot be orphaned.
            scene.rest().await?;
            delete::<ConfigMap>(scene.cluster(), "parent", how.clone()).await
        };
        crash_after_each_write(with_cakes, CONTROLLERS, story, world).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_an_opened_cycle_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        let first = cluster.create(config_map("first", vec![])).await?;
        let second = cluster.create(config_map("second", vec![owner(&first)])).await?;
        let patch = serde_json::json!({ "metadata": { "ownerReferences": [owner(&second)] } });
        let configs = cluster.api::<ConfigMap>();
        configs.patch("first", &PatchParams::default(), &Patch::Merge(patch)).await?;
        scene.rest().await?;
        delete::<ConfigMap>(cluster, "first", DeleteParams::foreground()).await
    };
    crash_after_each_write(with_cakes, CONTROLLERS, story, world).await?;
    Ok(())
}

/// Checks wait until all resources are synced, or half a minute; a stop does not wait.
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_resources_that_cannot_be_read() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    for verb in [Verb::List, Verb::Watch] {
        cluster.faults().on(verb, "secrets").refuse(StatusCode::FORBIDDEN);
    }
    cluster.create(config_map("child", vec![reference("v1", "ConfigMap", "nobody", 7)])).await?;
    let manager = Beside::start(&cluster, cluster.faulty_client(), CONTROLLERS)?;
    cluster.advance(Duration::from_secs(5)).await;
    let begun = tokio::time::Instant::now();
    manager.stop().await?;
    assert!(begun.elapsed() < Duration::from_secs(2), "it took {:?} to stop", begun.elapsed());
    cluster.api::<ConfigMap>().get("child").await?;
    cluster.stop().await
}
