//! Endpoints and slices on the embedded server, under the paused clock.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, Patch, PatchParams};
use prometheus::Registry;
use serde_json::json;
use steersman_controllers::{endpoint_slice, endpoints};
use steersman_runtime::Descriptor;
use steersman_runtime::decisions::Filter;
use steersman_testing::{Builder, Failure, Fault, Faults, TestCluster, Verb};

#[path = "support/crash.rs"]
mod crash;
#[path = "scenarios/services.rs"]
mod scenarios;

use crash::crash_after_each_write;
use scenarios::{
    add_node, addresses_in_words, all, bind_pod, endpoints_in_words, expect, kill_pod, run_pod, say_running, service,
    set_ready, set_spec, size, slices_of, until_endpoints, until_event, until_hints, until_slices,
};

const BOTH: &[Descriptor] = &[endpoints::DESCRIPTOR, endpoint_slice::DESCRIPTOR];

macro_rules! embedded {
    ($($scenario:ident),* $(,)?) => {$(
        #[tokio::test(start_paused = true)]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = both().start().await?;
            scenarios::$scenario(&cluster).await?;
            quiet(cluster).await
        }
    )*};
}

embedded! {
    endpoints_follow_their_pods,
    a_named_port_is_looked_up_on_each_pod,
    a_terminating_pod_is_serving_and_not_ready,
    services_without_selector_are_left_to_others,
    hints_follow_the_traffic_distribution,
    more_than_a_thousand_pods_fill_slices_and_overflow_endpoints,
    what_others_do_to_slices_is_undone,
    a_pod_without_node_waits_for_it,
    endpoints_go_with_their_service,
}

fn both() -> Builder {
    TestCluster::builder().controllers(BOTH)
}

async fn quiet(cluster: TestCluster) -> Result<(), Failure> {
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

/// Upstream 125638 and 127370: a cache that lagged behind fast changes left endpoints stuck at a state in between.
#[tokio::test(start_paused = true)]
async fn however_fast_pods_flap_the_last_state_stays() -> Result<(), Failure> {
    for (pods, slices) in [(0, 0), (0, 2000), (700, 3000), (3000, 700)] {
        let faults = Faults::default();
        let lag = |resource: &str, millis: u64| {
            if millis > 0 {
                faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_millis(millis)));
            }
        };
        lag("pods", pods);
        lag("endpoints", slices);
        lag("endpointslices", slices);
        let cluster = both().faults(&faults).start().await?;
        let node = add_node(&cluster, "a", None).await?;
        cluster.create(service("web", json!({}))).await?;
        for (name, ip) in [("one", "10.1.0.1"), ("two", "10.1.0.2")] {
            run_pod(&cluster, name, &node, ip).await?;
        }
        for round in 0..40_u64 {
            set_ready(&cluster, "one", round % 2 == 1).await?;
            set_ready(&cluster, "two", round % 3 == 0).await?;
            cluster.advance(Duration::from_millis(1 + (round * 37) % 400)).await;
        }
        // A watch that lags tells one event after the other, so the last one comes late.
        cluster.advance(Duration::from_secs(400)).await;
        cluster.settle().await?;
        let want = ["10.1.0.1 ready", "10.1.0.2 ready"];
        let slices = slices_of(&cluster, "web").await?;
        expect(endpoints_in_words(&slices) == want, "the last state", &(pods, endpoints_in_words(&slices)))?;
        expect(slices.len() == 1, "one slice has them", &slices)?;
        let endpoints = cluster.api::<Endpoints>().get("web").await?;
        expect(addresses_in_words(&endpoints) == want, "the last state", &(pods, addresses_in_words(&endpoints)))?;
        quiet(cluster).await?;
    }
    Ok(())
}

/// Upstream 127370: a write that changed nothing made the controller wait for ever for a version that never came.
#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_stalls_nobody() -> Result<(), Failure> {
    let cluster = both().start().await?;
    let node = add_node(&cluster, "a", None).await?;
    for number in 0..1010 {
        run_pod(&cluster, &format!("pod-{number:04}"), &node, &format!("10.1.{}.{}", number / 250, number % 250 + 1))
            .await?;
    }
    cluster.create(service("web", json!({}))).await?;
    cluster.settle().await?;
    let before = cluster.api::<Endpoints>().get("web").await?.metadata.resource_version;
    // 10.1.4.99 sorts behind all others: it is not among the thousand, whatever becomes of it.
    run_pod(&cluster, "last", &node, "10.1.4.99").await?;
    set_ready(&cluster, "last", true).await?;
    cluster.settle().await?;
    let after = cluster.api::<Endpoints>().get("web").await?.metadata.resource_version;
    expect(before == after, "nothing that is told has changed", &(before, after))?;
    kill_pod(&cluster, "pod-0000").await?;
    cluster.settle().await?;
    let endpoints = cluster.api::<Endpoints>().get("web").await?;
    let gone = !addresses_in_words(&endpoints).contains(&"10.1.0.1 ready".to_owned());
    expect(gone, "the next change is seen", &addresses_in_words(&endpoints).len())?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_never_makes_a_second_slice() -> Result<(), Failure> {
    for verb in [Verb::Create, Verb::Update] {
        let faults = Faults::default();
        for resource in ["endpointslices", "endpoints"] {
            faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_secs(1)));
            faults.on(verb, resource).nth(1).lose_reply();
        }
        let cluster = both().faults(&faults).start().await?;
        let node = add_node(&cluster, "a", None).await?;
        cluster.create(service("web", json!({}))).await?;
        cluster.settle().await?;
        run_pod(&cluster, "one", &node, "10.1.0.1").await?;
        cluster.settle().await?;
        until_endpoints(&cluster, "web", &["10.1.0.1 ready"]).await?;
        let slices = until_slices(&cluster, "web", &["10.1.0.1 ready"]).await?;
        expect(slices.len() == 1, "there is one slice", &slices)?;
        quiet(cluster).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_leaves_the_same_endpoints() -> Result<(), Failure> {
    let story = async |cluster: &TestCluster| {
        let (a, b) = (add_node(cluster, "a", Some("zone-a")).await?, add_node(cluster, "b", Some("zone-b")).await?);
        cluster.create(service("web", json!({ "spec": { "trafficDistribution": "PreferClose" } }))).await?;
        cluster.create(service("api", json!({ "spec": { "clusterIP": "None", "ports": null } }))).await?;
        cluster.create(service("gone", json!({}))).await?;
        for (name, node, ip) in [("one", &a, "10.1.0.1"), ("two", &b, "10.1.0.2"), ("three", &a, "10.1.0.3")] {
            run_pod(cluster, name, node, ip).await?;
            cluster.advance(Duration::from_secs(2)).await;
        }
        set_ready(cluster, "two", false).await?;
        cluster.advance(Duration::from_secs(2)).await;
        kill_pod(cluster, "one").await?;
        cluster.delete::<Service>("gone").await?;
        set_spec(cluster, "web", &json!({ "ports": [{ "name": "http", "port": 80, "targetPort": 9090 }] })).await
    };
    let world = async |cluster: &TestCluster| {
        let mut world = Vec::new();
        for name in ["web", "api"] {
            let slices = slices_of(cluster, name).await?;
            let ports = slices.iter().flat_map(|slice| slice.ports.iter().flatten()).map(|port| port.port);
            world.push(format!("{name}: {} slices, ports {:?}", slices.len(), ports.collect::<Vec<_>>()));
            let hints = all(&slices).filter(|endpoint| endpoint.hints.is_some());
            world.push(format!("{name}: {} hints", hints.count()));
            world.extend(endpoints_in_words(&slices));
        }
        for endpoints in cluster.api::<Endpoints>().list(&ListParams::default()).await?.items {
            let subsets: Vec<_> = endpoints.subsets.iter().flatten().map(|subset| subset.ports.clone()).collect();
            world.push(format!("{:?} {:?} {subsets:?}", endpoints.metadata.name, addresses_in_words(&endpoints)));
        }
        Ok(world)
    };
    crash_after_each_write(TestCluster::builder, BOTH, story, world).await
}

#[tokio::test(start_paused = true)]
async fn topology_hints_come_and_go_and_are_told_of() -> Result<(), Failure> {
    let cluster = both().start().await?;
    let (a, b) = (add_node(&cluster, "a", Some("zone-a")).await?, add_node(&cluster, "b", Some("zone-b")).await?);
    let auto = json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": "Auto" } } });
    cluster.create(service("web", auto)).await?;
    run_pod(&cluster, "one", &a, "10.1.0.1").await?;
    let few = "Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4";
    until_event(&cluster, "web", "TopologyAwareHintsDisabled", few).await?;
    until_hints(&cluster, "web", &["10.1.0.1"]).await?;

    run_pod(&cluster, "two", &a, "10.1.0.2").await?;
    until_hints(&cluster, "web", &["10.1.0.1 for zone-b", "10.1.0.2 for zone-a"]).await?;
    let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
    until_event(&cluster, "web", "TopologyAwareHintsEnabled", enabled).await?;
    for (name, ip) in [("three", "10.1.0.3"), ("four", "10.1.0.4"), ("five", "10.1.0.5"), ("six", "10.1.0.6")] {
        run_pod(&cluster, name, &b, ip).await?;
    }
    cluster.settle().await?;

    // A third zone has no endpoints at all: the service is looked at, and gives it some of the others.
    add_node(&cluster, "c", Some("zone-c")).await?;
    cluster.settle().await?;
    let slices = slices_of(&cluster, "web").await?;
    let zones = all(&slices).filter_map(|endpoint| endpoint.hints.clone());
    let zones: Vec<_> = zones.flat_map(|hints| hints.for_zones.unwrap_or_default()).map(|zone| zone.name).collect();
    expect(zones.contains(&"zone-c".to_owned()), "somebody is for the third zone", &zones)?;

    let off = json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": null } } });
    cluster.api::<Service>().patch("web", &PatchParams::default(), &Patch::Merge(&off)).await?;
    until_hints(&cluster, "web", &["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6"]).await?;
    let disabled = "Topology Aware Hints has been disabled, addressType: IPv4";
    until_event(&cluster, "web", "TopologyAwareHintsDisabled", disabled).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_were_left_behind_go_at_the_next_start_and_locks_stay() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let make = async |name: &str, annotations: serde_json::Value| -> Result<(), Failure> {
        let object = json!({ "metadata": { "name": name, "annotations": annotations } });
        cluster.create(serde_json::from_value::<Endpoints>(object).unwrap()).await?;
        Ok(())
    };
    make("left-behind", json!({})).await?;
    make("lock", json!({ "control-plane.alpha.kubernetes.io/leader": "{}" })).await?;
    let options = steersman_runtime::ManagerOptions { clock: cluster.clock().clone(), ..Default::default() };
    let manager = steersman_runtime::Manager::new(cluster.faulty_client(), options)?;
    let _ = manager.build(&endpoints::DESCRIPTOR, None);
    let running = manager.clone();
    let stop = tokio_util::sync::CancellationToken::new();
    let ended = stop.clone();
    let task = tokio::spawn(async move { running.run(ended).await });
    cluster.advance(Duration::from_secs(5)).await;
    make("made-later", json!({})).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let names: Vec<_> = cluster.api::<Endpoints>().list(&ListParams::default()).await?.items;
    let names: Vec<_> = names.into_iter().filter_map(|endpoints| endpoints.metadata.name).collect();
    expect(names == ["lock", "made-later"], "these are nobody's business", &names)?;
    stop.cancel();
    task.await.map_err(|error| Failure::new(error.to_string()))?.map_err(|error| Failure::new(error.to_string()))?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn changes_are_gathered_for_the_batch_period() -> Result<(), Failure> {
    let period = Duration::from_secs(3);
    let cluster = TestCluster::builder()
        .with(move |manager| {
            let slices = endpoint_slice::Options { updates_batch_period: period, ..endpoint_slice::Options::default() };
            manager.set_options(slices);
            manager.set_options(endpoints::Options { updates_batch_period: period });
            for descriptor in BOTH {
                let _ = manager.build(descriptor, None);
            }
        })
        .start()
        .await?;
    let node = add_node(&cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    cluster.settle().await?;
    let before = cluster.last_writes().len();
    for number in 1..=10 {
        run_pod(&cluster, &format!("pod-{number}"), &node, &format!("10.1.0.{number}")).await?;
        cluster.advance(Duration::from_millis(200)).await;
    }
    expect(cluster.last_writes().len() == before, "nothing is written yet", &cluster.last_writes())?;
    cluster.advance(period).await;
    cluster.settle().await?;
    let writes = &cluster.last_writes()[before..];
    expect(writes.len() == 2, "one write for each controller has them all", &writes)?;
    let slices = slices_of(&cluster, "web").await?;
    expect(endpoints_in_words(&slices).len() == 10, "all are there", &slices)?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn slices_are_as_large_as_the_flag_says_and_are_counted() -> Result<(), Failure> {
    let registry = Registry::new();
    let counted = registry.clone();
    let cluster = TestCluster::builder()
        .manager_options(move |options| options.metrics = Some(counted.clone()))
        .with(|manager| {
            let options = endpoint_slice::Options { endpoints_per_slice_max: 3, ..endpoint_slice::Options::default() };
            manager.set_options(options);
            let _ = manager.build(&endpoint_slice::DESCRIPTOR, None);
        })
        .start()
        .await?;
    let node = add_node(&cluster, "a", None).await?;
    for number in 1..=7 {
        run_pod(&cluster, &format!("pod-{number}"), &node, &format!("10.1.0.{number}")).await?;
    }
    cluster.create(service("web", json!({ "spec": { "trafficDistribution": "PreferClose" } }))).await?;
    cluster.settle().await?;
    let mut lengths: Vec<_> = slices_of(&cluster, "web").await?.iter().map(size).collect();
    lengths.sort_unstable();
    expect(lengths == [1, 3, 3], "three at most", &lengths)?;
    let value = |name: &str, label: &str| {
        let name = format!("endpoint_slice_controller_{name}");
        let families = registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        let metrics = family.map(|family| family.get_metric().to_vec()).unwrap_or_default();
        let matching = metrics
            .iter()
            .find(|metric| label.is_empty() || metric.get_label().iter().any(|pair| pair.value() == label));
        matching.map(|metric| metric.get_gauge().get_value() + metric.get_counter().get_value())
    };
    let told = [
        value("endpoints_desired", ""),
        value("num_endpoint_slices", ""),
        value("desired_endpoint_slices", ""),
        value("changes", "create"),
        value("services_count_by_traffic_distribution", "PreferClose"),
    ];
    expect(told == [Some(7.0), Some(3.0), Some(3.0), Some(3.0), Some(1.0)], "what is counted", &told)?;

    // What we wrote wakes nobody: no pass comes after the last write.
    let passes = value("syncs", "success");
    cluster.advance(Duration::from_secs(60)).await;
    expect(value("syncs", "success") == passes, "nobody looked again", &(passes, value("syncs", "success")))?;
    cluster.delete::<Service>("web").await?;
    cluster.settle().await?;
    let told = [value("endpoints_desired", ""), value("num_endpoint_slices", "")];
    expect(told == [Some(0.0), Some(0.0)], "a service that is gone is not counted", &told)?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_addresses_of_two_families_has_endpoints_in_both() -> Result<(), Failure> {
    let cluster = both().dual_stack().start().await?;
    let node = add_node(&cluster, "a", None).await?;
    bind_pod(&cluster, "one", &node).await?;
    say_running(&cluster, "one", &["10.1.0.1", "fd00::1"], true).await?;
    run_pod(&cluster, "two", &node, "10.1.0.2").await?;
    cluster.create(service("web", json!({ "spec": { "ipFamilyPolicy": "RequireDualStack" } }))).await?;
    let slices = until_slices(&cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready", "fd00::1 ready"]).await?;
    let mut types: Vec<_> = slices.iter().map(|slice| (slice.address_type.clone(), size(slice))).collect();
    types.sort();
    expect(types == [("IPv4".to_owned(), 2), ("IPv6".to_owned(), 1)], "a slice for each family", &types)?;
    until_endpoints(&cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready"]).await?;

    set_spec(&cluster, "web", &json!({ "ipFamilyPolicy": "SingleStack" })).await?;
    until_slices(&cluster, "web", &["10.1.0.1 ready", "10.1.0.2 ready"]).await?;
    cluster.settle().await?;
    let slices = slices_of(&cluster, "web").await?;
    expect(slices.len() == 1, "the slice of the other family is gone", &slices)?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_told_of_and_made_again() -> Result<(), Failure> {
    let cluster = both().start().await?;
    cluster.faults().on(Verb::Create, "endpoints").next(1).refuse(http::StatusCode::FORBIDDEN);
    cluster.faults().on(Verb::Create, "endpointslices").next(1).refuse(http::StatusCode::FORBIDDEN);
    cluster.create(service("web", json!({}))).await?;
    until_endpoints(&cluster, "web", &[]).await?;
    until_slices(&cluster, "web", &[]).await?;
    let key = format!("{}/web", cluster.namespace());
    let refused = "refused with 403 Forbidden, on purpose";
    let text = format!("Failed to create endpoint for service {key}: {refused}");
    until_event(&cluster, "web", "FailedToCreateEndpoint", &text).await?;
    let text = format!(
        "Error updating Endpoint Slices for Service {key}: failed to create EndpointSlice for Service {key}: {refused}"
    );
    until_event(&cluster, "web", "FailedToUpdateEndpointSlices", &text).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn the_decision_log_tells_why_a_slice_was_written() -> Result<(), Failure> {
    let cluster = both().start().await?;
    let node = add_node(&cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    cluster.settle().await?;
    run_pod(&cluster, "one", &node, "10.1.0.1").await?;
    cluster.settle().await?;
    let filter = Filter { controller: Some(endpoint_slice::DESCRIPTOR.name.to_owned()), ..Filter::default() };
    let entries = cluster.manager().decisions().entries(&filter);
    let told: Vec<_> = entries.iter().flat_map(|entry| &entry.decisions).map(|decision| decision.rule).collect();
    expect(told == ["NeedsSlice", "Changed"], "the empty slice, and the endpoint in it", &told)?;
    let slices = cluster.api::<EndpointSlice>().list(&ListParams::default()).await?.items;
    expect(slices.len() == 1, "one slice", &slices)?;
    quiet(cluster).await
}
