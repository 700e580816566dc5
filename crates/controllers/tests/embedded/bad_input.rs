//! Objects that no validation stopped: nothing crashes or loops, nothing is deleted that is not owned, and the problem
//! is reported.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, expect_eq};

use crate::LONG;
use crate::scenarios::garbage_collector::{config_map, delete, own_each_other, owner, reference, until_owned_by};
use crate::scenarios::services::{self, add_node, run_pod, service, until_endpoints, until_slices};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::line::{Line, Trouble};
use crate::scenarios::support::log::Logged;

const SETS: &[Controller] = &[controllers::DEPLOYMENT, controllers::REPLICA_SET];
const SETS_AND_COLLECTOR: &[Controller] = &[controllers::REPLICA_SET, controllers::GARBAGE_COLLECTOR];

/// In ten idle minutes: discovery every half a minute, and watches that are renewed.
const CALLS_MAX: usize = 150;

/// Nothing is written for ten minutes, and there are hardly any requests.
async fn expect_calm(cluster: &TestCluster, line: &Line) -> Result<(), Failure> {
    cluster.settle().await?;
    let before = line.requests().len();
    cluster.expect_quiet(LONG).await?;
    let calls = line.requests().split_off(before);
    assert!(calls.len() <= CALLS_MAX, "{} calls in ten quiet minutes, such as {:?}", calls.len(), &calls[..20]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_matches_everything_or_nothing_makes_and_takes_nothing() -> Result<(), Failure> {
    const SELECTOR: &str = r#""matchLabels":{"app":"web"}"#;
    for (forged, problem) in [
        (r#""matchLabels":{}"#, "its selector matches everything there is"),
        (r#""matchLabels":{"app":"other"}"#, "its selector does not match the labels of its template"),
    ] {
        let logged = Logged::from_now_on();
        let cluster = TestCluster::builder().start().await?;
        cluster.create(objects::pod("of-web").app("web")).await?;
        cluster.create(objects::pod("of-other").app("other")).await?;
        let mut set = objects::replica_set("web").replicas(3);
        set.metadata.name = Some("set".into());
        cluster.create(set).await?;
        cluster.create(crate::scenarios::deployment::deployment(3, json!({}))).await?;
        let line = Line::to(cluster.faulty_client(), Trouble::Forges(SELECTOR, forged));
        let manager = Beside::start(&cluster, line.client(), SETS)?;
        expect_calm(&cluster, &line).await?;

        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items;
        let owned = pods.iter().filter(|pod| pod.metadata.owner_references.is_some()).count();
        expect_eq("pods, and those that were adopted", &(pods.len(), owned), &(2, 0))?;
        expect_eq("sets", &cluster.api::<ReplicaSet>().list(&ListParams::default()).await?.items.len(), &1)?;
        let key = format!("{}/set", cluster.namespace());
        expect_eq(&format!("lines about the set among {:?}", logged.all()), &logged.with(&[&key, problem]).len(), &1)?;
        events_about_the_deployment(&cluster, &logged, forged.contains("{}"), problem).await?;
        manager.stop().await?;
        cluster.stop().await?;
    }
    Ok(())
}

/// A Deployment that selects everything is reported by an event, as upstream does; any other in the log.
async fn events_about_the_deployment(
    cluster: &TestCluster,
    logged: &Logged,
    selects_all: bool,
    problem: &str,
) -> Result<(), Failure> {
    let events = cluster.api::<Event>().list(&ListParams::default()).await?.items;
    let reported: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    if selects_all {
        expect_eq("the event", &reported, &vec!["SelectingAll"])?;
        // Once more when the status shows that it was looked at; as upstream.
        assert!(events[0].count <= Some(2), "{:?} times", events[0].count);
        let web = cluster.api::<Deployment>().get("web").await?;
        return expect_eq("it was looked at", &web.status.and_then(|status| status.observed_generation), &Some(1));
    }
    expect_eq("events", &reported, &vec![])?;
    let key = format!("{}/web", cluster.namespace());
    expect_eq(&format!("lines about the Deployment among {:?}", logged.all()), &logged.with(&[&key, problem]).len(), &1)
}

#[tokio::test(start_paused = true)]
async fn objects_that_own_each_other_or_themselves_stay_until_one_is_deleted() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    own_each_other(&cluster, "self", 1).await?;
    own_each_other(&cluster, "ring", 5).await?;
    let line = Line::to(cluster.faulty_client(), Trouble::None);
    let manager = Beside::start(&cluster, line.client(), crate::scenarios::garbage_collector::CONTROLLERS)?;
    expect_calm(&cluster, &line).await?;
    expect_eq("writes", &cluster.last_writes().len(), &0)?;
    delete::<ConfigMap>(&cluster, "ring-3", DeleteParams::background()).await?;
    for n in 0..5 {
        cluster.until_gone::<ConfigMap>(&format!("ring-{n}")).await?;
    }
    cluster.api::<ConfigMap>().get("self-0").await?;
    delete::<ConfigMap>(&cluster, "self-0", DeleteParams::background()).await?;
    expect_calm(&cluster, &line).await?;
    expect_eq("one write for each that was left of the ring", &cluster.last_writes().len(), &4)?;
    manager.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn of_two_controllers_of_a_pod_the_first_one_counts() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let mut sets = Vec::new();
    for (name, replicas) in [("first", 1), ("second", 0)] {
        let mut set = objects::replica_set("web").replicas(replicas);
        set.metadata.name = Some(name.into());
        sets.push(cluster.create(set).await?);
    }
    let mut second = objects::controller_ref(&sets[1]);
    second.controller = Some(false);
    cluster.create(objects::pod("pod").app("web").owned_by(&sets[0]).owner(second)).await?;

    // No server would have stored this: both claim to be its controller.
    let forges = Trouble::Forges(r#""controller":false"#, r#""controller":true"#);
    let line = Line::to(cluster.faulty_client(), forges);
    let manager = Beside::start(&cluster, line.client(), SETS_AND_COLLECTOR)?;
    expect_calm(&cluster, &line).await?;
    expect_eq("pods", &crate::scenarios::pod_garbage_collector::names(&cluster).await?, &vec!["pod".to_owned()])?;
    for (name, replicas) in [("first", 1), ("second", 0)] {
        let status = cluster.api::<ReplicaSet>().get(name).await?.status.unwrap_or_default();
        expect_eq("its pods", &status.replicas, &replicas)?;
    }
    delete::<ReplicaSet>(&cluster, "second", DeleteParams::background()).await?;
    until_owned_by::<Pod>(&cluster, "pod", &[objects::controller_ref(&sets[0])]).await?;
    expect_calm(&cluster, &line).await?;
    manager.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_owners_are_an_owner_ten_thousand_times() -> Result<(), Failure> {
    const OWNERS: u32 = 10_000;
    let cluster = TestCluster::builder().start().await?;
    let solid = cluster.create(config_map("solid", vec![])).await?;
    let absent = |count| (0..count).map(|n| reference("v1", "Pod", "p", n));
    cluster.create(config_map("garbage", absent(OWNERS).collect())).await?;
    cluster.create(config_map("kept", absent(99).chain([owner(&solid)]).collect())).await?;
    let line = Line::to(cluster.faulty_client(), Trouble::None);
    let manager = Beside::start(&cluster, line.client(), crate::scenarios::garbage_collector::CONTROLLERS)?;
    cluster.until_gone::<ConfigMap>("garbage").await?;
    until_owned_by::<ConfigMap>(&cluster, "kept", &[owner(&solid)]).await?;
    expect_calm(&cluster, &line).await?;
    expect_eq("one write for each object", &cluster.last_writes().len(), &2)?;
    let looked_for = line.count(&http::Method::GET, "/pods/p");
    // Once for itself, as it is referred to and was never seen; and once as an owner.
    let most = 2 * (usize::try_from(OWNERS).map_err(|error| Failure::new(error.to_string()))? + 99);
    assert!(looked_for <= most, "{looked_for} looks for owners, at most {most} are needed");
    manager.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_none_is_left_out_and_reported_once() -> Result<(), Failure> {
    let logged = Logged::from_now_on();
    let cluster = TestCluster::builder().start().await?;
    let node = add_node(&cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    run_pod(&cluster, "good", &node, "10.1.0.1").await?;
    run_pod(&cluster, "bad", &node, "10.9.9.9").await?;
    let line = Line::to(cluster.faulty_client(), Trouble::Forges("10.9.9.9", "10.9.9.999"));
    let manager = Beside::start(&cluster, line.client(), services::CONTROLLERS)?;
    until_endpoints(&cluster, "web", &["10.1.0.1 ready"]).await?;
    until_slices(&cluster, "web", &["10.1.0.1 ready"]).await?;
    // Changes of others must not be reported again, or lost.
    for n in 2..10 {
        run_pod(&cluster, &format!("good-{n}"), &node, &format!("10.1.0.{n}")).await?;
        cluster.settle().await?;
    }
    let want: Vec<_> = (1..10).map(|n| format!("10.1.0.{n} ready")).collect();
    let want: Vec<_> = want.iter().map(String::as_str).collect();
    until_endpoints(&cluster, "web", &want).await?;
    until_slices(&cluster, "web", &want).await?;
    expect_calm(&cluster, &line).await?;
    let key = format!("{}/bad", cluster.namespace());
    let reported = logged.with(&["10.9.9.999"]);
    assert!(reported.iter().all(|line| line.contains(&key) || line.contains("bad")), "it says which pod: {reported:?}");
    expect_eq(
        &format!("lines, one of each controller, among {:?}", logged.all()),
        &reported.len(),
        &services::CONTROLLERS.len(),
    )?;
    manager.stop().await?;
    cluster.stop().await
}

/// One object that no typed client can decode: the others are reconciled, and the log names it.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_holds_back_no_other() -> Result<(), Failure> {
    const REPLICAS: &str = r#""replicas":7"#;
    let logged = Logged::from_now_on();
    let cluster = TestCluster::builder().start().await?;
    let deployment = |name: &str, replicas: i32| {
        let mut deployment = crate::scenarios::deployment::deployment(replicas, json!({}));
        deployment.metadata.name = Some(name.to_owned());
        deployment
    };
    cluster.create(deployment("before", 2)).await?;
    cluster.create(deployment("large", 7)).await?;
    let line = Line::to(cluster.faulty_client(), Trouble::Forges(REPLICAS, r#""replicas":3000000000"#));
    let manager = Beside::start(&cluster, line.client(), SETS)?;
    cluster.create(deployment("after", 3)).await?;
    let sets = || async {
        let mut sets: Vec<_> = cluster.api::<ReplicaSet>().list(&ListParams::default()).await?.items;
        sets.sort_by_key(|set| set.metadata.owner_references.as_ref().map(|owners| owners[0].name.clone()));
        let shown = |set: &ReplicaSet| {
            let owner = set.metadata.owner_references.as_ref().map(|owners| owners[0].name.clone());
            let wanted = set.spec.replicas.unwrap_or_default();
            format!("{} {wanted}", owner.unwrap_or_default())
        };
        Ok::<_, Failure>(sets.iter().map(shown).collect::<Vec<_>>())
    };
    cluster.settle().await?;
    // Long enough for a reflector to have listed again and again, if it did.
    cluster.advance(std::time::Duration::from_secs(120)).await;
    expect_eq("sets", &sets().await?, &vec!["after 3".to_owned(), "before 2".to_owned()])?;
    expect_eq("pods", &cluster.api::<Pod>().list(&ListParams::default()).await?.items.len(), &5)?;
    let reported = logged.with(&["cannot be read", "/large"]);
    expect_eq(&format!("lines about it, among {:?}", logged.all()), &reported.len(), &1)?;
    assert!(reported[0].contains("deployments") && reported[0].contains("3000000000"), "{reported:?}");
    // A corrected object is reconciled.
    let patch = json!({ "spec": { "replicas": 4 } });
    let params = kube::api::PatchParams::default();
    cluster.api::<Deployment>().patch("large", &params, &kube::api::Patch::Merge(patch)).await?;
    cluster.settle().await?;
    let want = ["after 3", "before 2", "large 4"].map(str::to_owned).to_vec();
    expect_eq("sets", &sets().await?, &want)?;
    manager.stop().await?;
    cluster.stop().await
}
