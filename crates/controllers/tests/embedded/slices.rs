//! Endpoints and slices under faults.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use prometheus::Registry;
use serde_json::json;
use steersman_controllers::{endpoints, endpointslice};
use steersman_runtime::decisions::Filter;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect};

use crate::quiet;
use crate::scenarios::endpointslice_mirroring as mirroring;
use crate::scenarios::issues::flap;
use crate::scenarios::services::{
    self as scenarios, CONTROLLERS, add_node, addresses_in_words, all, endpoints_in_words, kill_pod, run_pod, service,
    set_ready, set_spec, size, slices_of, until_endpoints, until_event, until_slices,
};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

/// Upstream 125638 and 127370, with caches that lag.
#[tokio::test(start_paused = true)]
async fn however_far_caches_are_behind_flapping_pods_the_last_state_stays() -> Result<(), Failure> {
    for (pods, slices) in [(0, 2000), (700, 3000), (3000, 700)] {
        let faults = Faults::default();
        for (resource, millis) in [("pods", pods), ("endpoints", slices), ("endpointslices", slices)] {
            if millis > 0 {
                faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_millis(millis)));
            }
        }
        let cluster = scenarios::cluster().faults(&faults).start().await?;
        // A watch that lags sends one event after the other, so the last one comes late.
        flap(&cluster, Duration::from_secs(400)).await?;
        quiet(cluster).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_never_makes_a_second_slice() -> Result<(), Failure> {
    let falsified = Fault::DoThenRefuse(http::StatusCode::SERVICE_UNAVAILABLE);
    let late = Fault::RefuseThenDo(http::StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(3));
    for (verb, fault) in [
        (Verb::Create, Fault::LoseReply),
        (Verb::Update, Fault::LoseReply),
        (Verb::Create, falsified.clone()),
        (Verb::Update, falsified),
        (Verb::Create, late),
    ] {
        let faults = Faults::default();
        for resource in ["endpointslices", "endpoints"] {
            faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_secs(1)));
            faults.on(verb, resource).nth(1).happens(fault.clone());
        }
        let cluster = scenarios::cluster().faults(&faults).start().await?;
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

/// A proxy answers 504, and the create arrives 50 ms later: with the pods of the first pass, not with those of the second.
#[tokio::test(start_paused = true)]
async fn a_slice_of_a_create_that_arrived_late_is_brought_up_to_date() -> Result<(), Failure> {
    for (name, verb) in [("seen late", Some(Verb::Watch)), ("seen at once", None)] {
        let faults = Faults::default();
        if let Some(watch) = verb {
            faults.on(watch, "endpointslices").happens(Fault::Lag(Duration::from_secs(4)));
        }
        let late = Fault::RefuseThenDo(http::StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(50));
        faults.on(Verb::Create, "endpointslices").nth(1).happens(late);
        // So that the pass of the pod's event is not the one that finds the slice: a retry is, and no other pass is due.
        faults.on(Verb::Create, "endpointslices").nth(2).refuse(http::StatusCode::FORBIDDEN);
        let cluster = TestCluster::builder()
            .options(endpointslice::Options::default().endpoints_per_slice_max(2))
            .controllers(&[controllers::ENDPOINT_SLICE])
            .faults(&faults)
            .start()
            .await?;
        let node = add_node(&cluster, "a", None).await?;
        run_pod(&cluster, "one", &node, "10.1.0.1").await?;
        run_pod(&cluster, "two", &node, "10.1.0.2").await?;
        set_ready(&cluster, "two", false).await?;
        cluster.create(service("web", json!({}))).await?;
        cluster.advance(Duration::from_millis(200)).await;
        set_ready(&cluster, "two", true).await?;
        cluster.advance(Duration::from_secs(60)).await;
        let slices = slices_of(&cluster, "web").await?;
        let want = ["10.1.0.1 ready", "10.1.0.2 ready"];
        expect(endpoints_in_words(&slices) == want, &format!("{name}: both are published"), &slices)?;

        // The second slice does not get the name of the first.
        run_pod(&cluster, "three", &node, "10.1.0.3").await?;
        cluster.advance(Duration::from_secs(60)).await;
        let slices = slices_of(&cluster, "web").await?;
        expect(slices.len() == 2 && all(&slices).count() == 3, &format!("{name}: the third is, too"), &slices)?;
        quiet(cluster).await?;
    }
    Ok(())
}

/// The same for addresses that are mirrored.
#[tokio::test(start_paused = true)]
async fn a_mirrored_slice_of_a_create_that_arrived_late_is_brought_up_to_date() -> Result<(), Failure> {
    for lag in [None, Some(Duration::from_secs(4))] {
        let faults = Faults::default();
        if let Some(lag) = lag {
            faults.on(Verb::Watch, "endpointslices").happens(Fault::Lag(lag));
        }
        let late = Fault::RefuseThenDo(http::StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(50));
        faults.on(Verb::Create, "endpointslices").nth(1).happens(late);
        let cluster = mirroring::cluster().faults(&faults).start().await?;
        cluster.create(mirroring::service()).await?;
        cluster.create(mirroring::endpoints(json!([mirroring::subset(&["192.0.2.1"], 80)]))).await?;
        cluster.advance(Duration::from_millis(200)).await;
        mirroring::set_subsets(&cluster, json!([mirroring::subset(&["192.0.2.1", "192.0.2.2"], 80)])).await?;
        cluster.advance(Duration::from_secs(60)).await;
        mirroring::until_slices(&cluster, &["IPv4 80 192.0.2.1 192.0.2.2"]).await?;
        // The second slice does not get the name of the first.
        let two = json!([mirroring::subset(&["192.0.2.1", "192.0.2.2"], 80), mirroring::subset(&["192.0.2.3"], 90)]);
        mirroring::set_subsets(&cluster, two).await?;
        cluster.advance(Duration::from_secs(60)).await;
        mirroring::until_slices(&cluster, &["IPv4 80 192.0.2.1 192.0.2.2", "IPv4 90 192.0.2.3"]).await?;
        quiet(cluster).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_endpoints_and_slices_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        let a = add_node(cluster, "a", Some("zone-a")).await?;
        let b = add_node(cluster, "b", Some("zone-b")).await?;
        cluster.create(service("web", json!({ "spec": { "trafficDistribution": "PreferClose" } }))).await?;
        cluster.create(service("api", json!({ "spec": { "clusterIP": "None", "ports": null } }))).await?;
        cluster.create(service("gone", json!({}))).await?;
        for (name, node, ip) in [("one", &a, "10.1.0.1"), ("two", &b, "10.1.0.2"), ("three", &a, "10.1.0.3")] {
            run_pod(cluster, name, node, ip).await?;
            scene.rest().await?;
        }
        set_ready(cluster, "two", false).await?;
        scene.rest().await?;
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
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
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
    let manager = Beside::start(&cluster, cluster.faulty_client(), &[controllers::ENDPOINTS])?;
    cluster.advance(Duration::from_secs(5)).await;
    make("made-later", json!({})).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let names: Vec<_> = cluster.api::<Endpoints>().list(&ListParams::default()).await?.items;
    let names: Vec<_> = names.into_iter().filter_map(|endpoints| endpoints.metadata.name).collect();
    expect(names == ["lock", "made-later"], "these are nobody's business", &names)?;
    manager.stop().await?;
    cluster.stop().await
}

/// A service that is deleted and created again while its watch lags: the cache shows the deletion when the new service and
/// its Endpoints exist.
#[tokio::test(start_paused = true)]
async fn endpoints_that_somebody_wrote_stay_while_the_cache_of_services_is_behind() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "services").happens(Fault::Lag(Duration::from_secs(30)));
    let cluster = TestCluster::builder().controllers(&[controllers::ENDPOINTS]).faults(&faults).start().await?;
    let without_selector = || service("db", json!({ "spec": { "selector": null } }));
    cluster.create(without_selector()).await?;
    cluster.advance(Duration::from_secs(60)).await;
    cluster.delete::<Service>("db").await?;
    cluster.advance(Duration::from_secs(10)).await;
    cluster.create(without_selector()).await?;
    let written: Endpoints = serde_json::from_value(json!({ "metadata": { "name": "db" } }))?;
    let written = cluster.create(written).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let held = cluster.api::<Endpoints>().get_opt("db").await?.and_then(|endpoints| endpoints.metadata.uid);
    expect(held == written.metadata.uid, "they are those of the new service", &held)?;
    cluster.delete::<Service>("db").await?;
    cluster.advance(Duration::from_secs(60)).await;
    cluster.until_gone::<Endpoints>("db").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn changes_are_gathered_for_the_batch_period() -> Result<(), Failure> {
    let period = Duration::from_secs(3);
    let cluster = TestCluster::builder()
        .options(endpointslice::Options::default().updates_batch_period(period))
        .options(endpoints::Options::default().updates_batch_period(period))
        .controllers(CONTROLLERS)
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
        .options(endpointslice::Options::default().endpoints_per_slice_max(3))
        .controllers(&[controllers::ENDPOINT_SLICE])
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
    let reported = [
        value("endpoints_desired", ""),
        value("num_endpoint_slices", ""),
        value("desired_endpoint_slices", ""),
        value("changes", "create"),
        value("services_count_by_traffic_distribution", "PreferClose"),
    ];
    expect(reported == [Some(7.0), Some(3.0), Some(3.0), Some(3.0), Some(1.0)], "what is counted", &reported)?;

    // Our own writes trigger no pass: no pass follows the last write.
    let passes = value("syncs", "success");
    cluster.advance(Duration::from_secs(60)).await;
    expect(value("syncs", "success") == passes, "nobody looked again", &(passes, value("syncs", "success")))?;
    cluster.delete::<Service>("web").await?;
    cluster.settle().await?;
    let reported = [value("endpoints_desired", ""), value("num_endpoint_slices", "")];
    expect(reported == [Some(0.0), Some(0.0)], "a service that is gone is not counted", &reported)?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_reported_and_made_again() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
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
async fn the_decision_log_shows_why_a_slice_was_written() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    let node = add_node(&cluster, "a", None).await?;
    cluster.create(service("web", json!({}))).await?;
    cluster.settle().await?;
    run_pod(&cluster, "one", &node, "10.1.0.1").await?;
    cluster.settle().await?;
    let mut filter = Filter::default();
    filter.controller = Some(controllers::ENDPOINT_SLICE.name.to_owned());
    let entries = cluster.manager().decisions().entries(&filter);
    let reported: Vec<_> = entries.iter().flat_map(|entry| &entry.decisions).map(|decision| decision.rule).collect();
    expect(reported == ["NeedsSlice", "Changed"], "the empty slice, and the endpoint in it", &reported)?;
    let slices = cluster.api::<EndpointSlice>().list(&ListParams::default()).await?.items;
    expect(slices.len() == 1, "one slice", &slices)?;
    quiet(cluster).await
}
