//! ReplicaSets and ReplicationControllers under faults.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use steersman_controllers::replicaset::GATHERED_FOR;
use steersman_runtime::decisions::{Fate, Filter};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::scenarios::replicaset::{self as scenarios, events_of};
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

const CONTROLLERS: &[Controller] = &[controllers::REPLICA_SET];

#[tokio::test(start_paused = true)]
async fn a_lost_reply_never_makes_a_second_pod() -> Result<(), Failure> {
    for lost in 1..=3 {
        // The cache lags, so that it cannot show by chance what became of the create.
        let faults = Faults::default();
        faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(1)));
        faults.on(Verb::Create, "pods").nth(lost).lose_reply();
        let cluster = scenarios::cluster().faults(&faults).start().await?;
        let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
        cluster.settle().await?;
        cluster.pods_of(&web).until_count(3).await?;
        cluster.expect_quiet(Duration::from_secs(600)).await?;
        let creates =
            cluster.last_writes().iter().filter(|write| write.verb == Verb::Create && write.resource == "pods").count();
        assert_eq!(creates, 3, "reply {lost} was lost, and no pod was asked for twice: {:?}", cluster.last_writes());
        cluster.stop().await?;
    }
    Ok(())
}

/// Twelve refusals cost four passes over three orphans, and not twelve passes, whose back-off would take twenty seconds.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_adopted_does_not_hold_back_the_others() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Patch, "pods").next(12).refuse(http::StatusCode::FORBIDDEN);
    let cluster = scenarios::cluster().faults(&faults).start().await?;
    for name in ["a", "b", "c"] {
        cluster.create(objects::pod(name).app("web")).await?;
    }
    let began = tokio::time::Instant::now();
    let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
    cluster.pods_of(&web).until_count(3).await?;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "adopted after {took:?}");
    assert_eq!(creates_of_pods(&cluster), 0, "nothing is created before it is certain what is there");
    cluster.stop().await
}

/// Waits until a ReplicaSet has so many pods, makes them ready, and waits until its status says so.
async fn until_ready(cluster: &TestCluster, name: &str, want: usize) -> Result<(), Failure> {
    let set = cluster.api::<ReplicaSet>().get(name).await?;
    cluster.pods_of(&set).until_count(want).await?;
    cluster.pods_of(&set).make_ready().await?;
    let ready = i32::try_from(want).ok();
    let seen = async || Ok(cluster.api::<ReplicaSet>().get(name).await?.status.unwrap_or_default().ready_replicas);
    cluster.until_eq(&format!("{want} pods of {name} are ready"), seen, ready).await
}

fn creates_of_pods(cluster: &TestCluster) -> u64 {
    cluster.done(Verb::Create, "pods")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_late_or_stands_still_makes_no_second_pod() -> Result<(), Failure> {
    let late = |seconds| Fault::Lag(Duration::from_secs(seconds));
    for (fault, away) in
        [(late(45), 0), (late(600), 0), (late(1), 60), (late(45), 60), (Fault::Stall(1), 0), (Fault::Stall(1), 60)]
    {
        let cluster = scenarios::cluster().start().await?;
        let reported = format!("{fault:?}, away for {away} s");
        cluster.create(objects::replica_set("before").replicas(1)).await?;
        cluster.settle().await?;
        // The watch that is open breaks; the next ones are bad for ten minutes.
        cluster.faults().server_goes_away();
        cluster.faults().on(Verb::Watch, "pods").happens(fault);
        cluster.faults().server_is_back();
        cluster.advance(Duration::from_secs(5)).await;
        let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
        cluster.advance(Duration::from_millis(300)).await;
        assert_eq!(cluster.pods_of(&web).list().await?.len(), 3, "{reported}: the pods come at once");
        if away > 0 {
            cluster.faults().server_goes_away();
            cluster.advance(Duration::from_secs(away)).await;
            cluster.faults().server_is_back();
        }
        for second in (0..600).step_by(4) {
            cluster.advance(Duration::from_secs(4)).await;
            // Events of the set itself, whose watch is well, wake it over and over.
            let touched = json!({ "metadata": { "annotations": { "touched": second.to_string() } } });
            let sets = cluster.api::<ReplicaSet>();
            sets.patch("web", &PatchParams::default(), &Patch::Merge(touched)).await?;
            assert_eq!(creates_of_pods(&cluster), 4, "{reported}, after {second} s");
        }
        assert_eq!(cluster.done(Verb::Delete, "pods"), 0, "{reported}");
        cluster.faults().heal();
        cluster.faults().server_goes_away();
        cluster.faults().server_is_back();
        until_ready(&cluster, "web", 3).await?;
        assert_eq!((creates_of_pods(&cluster), cluster.done(Verb::Delete, "pods")), (4, 0), "{reported}");
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_with_creates_unanswered_gets_no_second_pod_when_it_is_back() -> Result<(), Failure> {
    for lag in [0, 1, 4] {
        let faults = Faults::default();
        faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(lag)));
        // The second batch is done and not answered, and then nobody can be asked.
        faults.on(Verb::Create, "pods").nth(2).happens(Fault::DoThenGoAway);
        let cluster = scenarios::cluster().faults(&faults).start().await?;
        cluster.create(objects::replica_set("web").replicas(10)).await?;
        cluster.advance(Duration::from_secs(60)).await;
        cluster.faults().server_is_back();
        let back = tokio::time::Instant::now();
        until_ready(&cluster, "web", 10).await?;
        let took = back.elapsed();
        assert!(took < Duration::from_secs(10 + 2 * lag), "lag {lag} s: ready after {took:?}");
        // Events that nobody took are sent now.
        cluster.advance(Duration::from_secs(60)).await;
        cluster.settle().await?;
        cluster.expect_quiet(Duration::from_secs(600)).await?;
        assert_eq!((creates_of_pods(&cluster), cluster.done(Verb::Delete, "pods")), (10, 0), "lag {lag} s");
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn creates_that_are_done_and_answered_with_an_error_are_not_made_again_and_cost_no_time() -> Result<(), Failure> {
    use http::StatusCode as Code;
    let codes = [Code::INTERNAL_SERVER_ERROR, Code::BAD_GATEWAY, Code::SERVICE_UNAVAILABLE, Code::GATEWAY_TIMEOUT];
    for fault in codes.into_iter().map(Fault::DoThenRefuse).chain([Fault::LoseReply]) {
        let faults = Faults::default();
        faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(4)));
        // Every other answer is false.
        for nth in 0..60 {
            faults.on(Verb::Create, "pods").nth(2 * nth + 1).happens(fault.clone());
        }
        let cluster = scenarios::cluster().faults(&faults).start().await?;
        let began = tokio::time::Instant::now();
        let web = cluster.create(objects::replica_set("web").replicas(20)).await?;
        cluster.pods_of(&web).until_count(20).await?;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{fault:?}: all are there after {took:?}");
        until_ready(&cluster, "web", 20).await?;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(15), "{fault:?}: all are ready after {took:?}");
        cluster.expect_quiet(Duration::from_secs(600)).await?;
        assert_eq!((creates_of_pods(&cluster), cluster.done(Verb::Delete, "pods")), (20, 0), "{fault:?}");
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_create_that_arrives_late_is_not_made_again() -> Result<(), Failure> {
    // Something on the way answers at once; the request is at the server a while later.
    use http::StatusCode as Code;
    for (code, late) in [(Code::INTERNAL_SERVER_ERROR, 1), (Code::SERVICE_UNAVAILABLE, 5), (Code::GATEWAY_TIMEOUT, 45)]
    {
        let faults = Faults::default();
        let late = Duration::from_secs(late);
        faults.on(Verb::Create, "pods").nth(2).happens(Fault::RefuseThenDo(code, late));
        let cluster = scenarios::cluster().faults(&faults).start().await?;
        let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
        cluster.advance(Duration::from_millis(500)).await;
        assert_eq!(cluster.pods_of(&web).list().await?.len(), 3, "{code}: nobody waits for it");
        cluster.expect_quiet(Duration::from_secs(120)).await?;
        assert_eq!((creates_of_pods(&cluster), cluster.done(Verb::Delete, "pods")), (3, 0), "{code}, {late:?} late");
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pods_have_names_as_a_server_would_have_chosen_them() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    let web = cluster.create(objects::replica_set("web").replicas(2)).await?;
    for pod in cluster.pods_of(&web).until_count(2).await? {
        let name = pod.metadata.name.unwrap_or_default();
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"), "{name}");
        let letters = name.strip_prefix("web-").unwrap_or_default();
        assert!(
            letters.len() == 5 && letters.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)),
            "{name}"
        );
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_network_that_swallows_everything_for_two_minutes_makes_no_second_pod() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    cluster.create(objects::replica_set("web").replicas(5)).await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::Create, "pods").nth(10).happens(Fault::DoThenGoDark);
    scenarios::scale(&cluster, "web", 40).await?;
    cluster.advance(Duration::from_secs(120)).await;
    cluster.faults().network_is_back();
    let back = tokio::time::Instant::now();
    until_ready(&cluster, "web", 40).await?;
    let took = back.elapsed();
    assert!(took < Duration::from_secs(10), "ready {took:?} after the network is back");
    cluster.advance(Duration::from_secs(60)).await;
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    assert_eq!((creates_of_pods(&cluster), cluster.done(Verb::Delete, "pods")), (40, 0));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn pods_that_become_ready_one_after_the_other_make_one_status() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    let web = cluster.create(objects::replica_set("web").replicas(10)).await?;
    cluster.settle().await?;
    let statuses = || {
        let writes = cluster.last_writes();
        writes.iter().filter(|write| write.resource == "replicasets/status").count()
    };
    let before = statuses();
    cluster.pods_of(&web).make_ready().await?;
    cluster.settle().await?;
    let status = cluster.api::<ReplicaSet>().get("web").await?.status.unwrap_or_default();
    assert_eq!(status.ready_replicas, Some(10));
    assert_eq!(statuses() - before, 1, "{:?}", cluster.last_writes());
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_while_changes_are_gathered_is_replaced_at_once() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    let web = cluster.create(objects::replica_set("web").replicas(2)).await?;
    cluster.settle().await?;
    let before = cluster.pods_of(&web).list().await?;
    let began = tokio::time::Instant::now();
    cluster.pods_of(&web).make_ready().await?;
    cluster.delete::<Pod>(before[0].metadata.name.as_deref().unwrap_or_default()).await?;
    cluster.pods_of(&web).until_count(2).await?;
    let took = began.elapsed();
    assert!(took < GATHERED_FOR, "the missing one is not waited for: {took:?}");
    cluster.settle().await?;
    let status = cluster.api::<ReplicaSet>().get("web").await?.status.unwrap_or_default();
    assert_eq!((status.replicas, status.ready_replicas), (2, Some(1)), "the other one became ready");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_refused_create_is_reported_in_the_servers_words_and_a_terminating_namespace_in_none() -> Result<(), Failure>
{
    let cluster = scenarios::cluster().start().await?;
    cluster.faults().on(Verb::Create, "pods").next(1).refuse(http::StatusCode::FORBIDDEN);
    cluster.create(objects::replica_set("web").replicas(1)).await?;
    cluster.settle().await?;
    let reported = events_of(&cluster, "web").await?;
    let failed = ("Warning", "FailedCreate", "Error creating: refused with 403 Forbidden, on purpose");
    let reported: Vec<_> =
        reported.iter().map(|(type_, reason, text)| (type_.as_str(), reason.as_str(), text.as_str())).collect();
    assert_eq!(reported[0], failed, "{reported:?}");
    assert_eq!((reported.len(), reported[1].1), (2, "SuccessfulCreate"), "{reported:?}");

    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(cluster.client());
    namespaces.delete(cluster.namespace(), &kube::api::DeleteParams::default()).await?;
    let patch = serde_json::json!({ "spec": { "replicas": 3 } });
    let sets = cluster.api::<ReplicaSet>();
    sets.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    cluster.settle().await?;
    let creates = cluster.last_writes().iter().filter(|write| write.resource == "pods").count();
    assert!(creates > 2, "it was tried: {:?}", cluster.last_writes());
    assert_eq!(events_of(&cluster, "web").await?.len(), 2, "no event comes again");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refused_create_is_retried_and_shows_as_a_condition() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    cluster.faults().on(Verb::Create, "pods").next(4).refuse(http::StatusCode::FORBIDDEN);
    let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
    let conditions = async || {
        let set = cluster.api::<ReplicaSet>().get("web").await?;
        let conditions = set.status.and_then(|status| status.conditions).unwrap_or_default();
        Ok(conditions.into_iter().filter_map(|condition| condition.type_).collect::<Vec<_>>())
    };
    let failed = |conditions: &Vec<String>| conditions.contains(&"ReplicaFailure".to_owned());
    cluster.until_right("the condition ReplicaFailure", conditions, failed).await?;
    cluster.settle().await?;
    cluster.pods_of(&web).until_count(3).await?;
    let set = cluster.api::<ReplicaSet>().get("web").await?;
    assert_eq!(set.status.and_then(|status| status.conditions).unwrap_or_default(), [], "it is over");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn in_shadow_mode_nothing_is_written_and_the_log_shows_what_would_have_been() -> Result<(), Failure> {
    let shadow = TestCluster::builder().manager_options(|options| options.shadow = true);
    let cluster = shadow.controllers(CONTROLLERS).start().await?;
    cluster.create(objects::replica_set("web").replicas(2)).await?;
    cluster.settle().await?;
    assert!(cluster.last_writes().is_empty(), "{:?}", cluster.last_writes());
    let entries = cluster.manager().decisions().entries(&Filter::default());
    let reported: Vec<String> = entries[0].decisions.iter().map(ToString::to_string).collect();
    let pod = format!("{}/web-?????", cluster.namespace());
    let create = format!("TooFew: 0 of 2 pods are active → create pods {pod}: not sent (shadow mode)");
    assert_eq!(reported[..2], [create.clone(), create], "{}", entries[0]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn the_decision_log_shows_what_woke_a_pass_and_what_it_did() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    let web = cluster.create(objects::replica_set("web").replicas(1)).await?;
    let pod = cluster.pods_of(&web).until_count(1).await?.remove(0).metadata.name.unwrap_or_default();
    cluster.settle().await?;
    let log = cluster.manager().decisions().clone();
    let before = log.entries(&Filter::default()).len();
    cluster.delete::<Pod>(&pod).await?;
    cluster.settle().await?;
    let key = steersman_base::ObjectKey::new(cluster.namespace(), "web");
    let entries = log.for_key(controllers::REPLICA_SET.name, &key);
    let entry = &entries[before];
    assert_eq!(&*entry.trigger, format!("Pod {}/{pod} deleted", cluster.namespace()), "{entry}");
    assert_eq!(entry.decisions[0].rule, "TooFew", "{entry}");
    assert!(matches!(entry.decisions[0].fate, Fate::Written(_)), "{entry}");
    cluster.pods_of(&web).make_ready().await?;
    cluster.settle().await?;
    let entries = log.for_key(controllers::REPLICA_SET.name, &key);
    let last = &entries[entries.len() - 1];
    let pods = cluster.pods_of(&web).list().await?;
    let pod = pods[0].metadata.name.as_deref().unwrap_or_default();
    let updated = format!("Pod {}/{pod} updated", cluster.namespace());
    assert_eq!((&*last.trigger, last.decisions[0].rule), (&*updated, "Status"), "also if it was gathered: {last}");
    let passes = entries.len();
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    assert_eq!(log.for_key(controllers::REPLICA_SET.name, &key).len(), passes, "passes that do nothing leave no trace");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_replica_set_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        cluster.create(objects::pod("orphan").app("web")).await?;
        cluster.create(objects::replica_set("web").replicas(4)).await?;
        scene.rest().await?;
        scenarios::scale(cluster, "web", 2).await
    };
    let world = async |cluster: &TestCluster| {
        let web = cluster.api::<ReplicaSet>().get("web").await?;
        let pods = cluster.pods_of(&web).list().await?.len();
        Ok(vec![format!("{pods} pods"), format!("{:?}", web.status)])
    };
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_replication_controller_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        cluster.create(objects::pod("orphan").app("web")).await?;
        cluster.create(objects::replication_controller("web").replicas(4)).await?;
        scene.rest().await?;
        let scale = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
        cluster.api::<ReplicationController>().patch("web", &PatchParams::default(), &scale).await?;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let web = cluster.api::<ReplicationController>().get("web").await?;
        let pods = cluster.pods_of(&web).list().await?.len();
        Ok(vec![format!("{pods} pods"), format!("{:?}", web.status)])
    };
    let controllers = &[controllers::REPLICATION_CONTROLLER];
    crash_after_each_write(TestCluster::builder, controllers, story, world).await?;
    Ok(())
}
