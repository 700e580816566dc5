//! Leader election on the embedded server, in virtual time: who leads when, and that never two do.

#![allow(clippy::unwrap_used, reason = "a scenario that cannot go on has failed")]

mod lease {
    pub(crate) mod door;
    pub(crate) mod never_two;
    pub(crate) mod world;
}

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};
use steersman_base::{Clock, Time};
use steersman_runtime::lease::{Ended, LeaseMetrics, NotLeader, Transition};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::lease::door::{Door, Fate};
use crate::lease::world::{Candidate, DEADLINE, DURATION, RETRY, World, holder};

/// What in-process requests and millisecond timers may add.
const A_MOMENT: Duration = Duration::from_millis(10);

#[tokio::test(start_paused = true)]
async fn the_first_to_come_leads_and_goes_on_renewing() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    let two = world.start("two");

    let acquired = world.lease().await.unwrap();
    assert_eq!(holder(&acquired), "one");
    let spec = acquired.spec.unwrap();
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert_eq!(spec.acquire_time, spec.renew_time);

    sleep(Duration::from_secs(3600)).await;
    assert!(one.leadership.is_leading() && !two.leadership.is_leading());
    assert_eq!(two.leadership.holder().as_deref(), Some("one"));
    let refusal = two.leadership.check().unwrap_err().to_string();
    assert_eq!(refusal, "not the leader by lease kube-system/test: it is held by one");
    let later = world.lease().await.unwrap().spec.unwrap();
    assert_eq!((&later.acquire_time, later.lease_transitions), (&spec.acquire_time, Some(0)));
    let renewed = later.renew_time.unwrap().0.duration_since(spec.renew_time.unwrap().0);
    assert!(renewed.as_secs() >= 3597, "renewed an hour later: {renewed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_has_lost_at_its_deadline() {
    for fate in
        [Fate::Refuse(StatusCode::SERVICE_UNAVAILABLE), Fate::Refuse(StatusCode::FORBIDDEN), Fate::Hang, Fate::Fail]
    {
        let world = World::new();
        let one = world.start("one");
        one.leadership.acquired().await;
        // Right after a renewal: the next one is sent a retry period later, to a server that does not take it.
        sleep(RETRY + A_MOMENT).await;
        let shut = Instant::now();
        one.door.all(fate);
        assert!(
            timeout(DEADLINE - 2 * A_MOMENT, one.leadership.lost()).await.is_err(),
            "{fate:?}: it has until its deadline"
        );
        assert!(one.leadership.is_leading());
        one.leadership.lost().await;
        assert!(shut.elapsed() <= DEADLINE, "{fate:?}: {:?}", shut.elapsed());
        assert!(!one.leadership.is_leading());
        let refusal = one.leadership.check().unwrap_err();
        assert_eq!(one.ended().await, Ended::Lost, "{fate:?}: {refusal}");
        assert_eq!(
            holder(&world.lease().await.unwrap()),
            "one",
            "what is lost is not given back: workers may be at it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_in_time_loses_no_leader() {
    for fate in [Fate::Refuse(StatusCode::SERVICE_UNAVAILABLE), Fate::Hang, Fate::Fail, Fate::LoseReply] {
        let world = World::new();
        let one = world.start("one");
        one.leadership.acquired().await;
        let two = world.start("two");
        for _ in 0..20 {
            sleep(Duration::from_secs(30)).await;
            one.door.all(fate);
            sleep(Duration::from_secs(4)).await;
            one.door.open();
        }
        sleep(Duration::from_secs(30)).await;
        assert!(one.leadership.is_leading() && !two.leadership.is_leading(), "{fate:?}");
        assert_eq!(world.lease().await.unwrap().spec.unwrap().lease_transitions, Some(0), "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_in_other_hands_is_lost_by_the_next_renewal() {
    for thief in ["thief", ""] {
        let world = World::new();
        let one = world.start("one");
        one.leadership.acquired().await;
        sleep(Duration::from_secs(60)).await;
        world.change(|lease| lease.spec.as_mut().unwrap().holder_identity = Some(thief.to_owned())).await;
        timeout(RETRY + A_MOMENT, one.leadership.lost()).await.unwrap();
        assert!(!one.leadership.is_leading());
        assert_eq!(one.ended().await, Ended::Lost);
        assert_eq!(holder(&world.lease().await.unwrap()), thief, "it is not taken back");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_created_again_by_its_leader() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    sleep(RETRY / 2).await;
    world.delete().await;
    sleep(RETRY).await;
    assert!(one.leadership.is_leading());
    assert_eq!(holder(&world.lease().await.unwrap()), "one");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_taken_within_a_second() {
    let world = World::new();
    let one = world.start_with("one", |options| options.release_on_exit = true);
    one.leadership.acquired().await;
    let two = world.start("two");
    let three = world.start("three");
    // At any point of the standbys' polling.
    sleep(Duration::from_millis(61_700)).await;
    let stopped = Instant::now();
    assert_eq!(one.stop().await, Ended::Stopped);
    tokio::select! { biased; () = two.leadership.acquired() => {}, () = three.leadership.acquired() => {} }
    assert!(stopped.elapsed() <= Duration::from_secs(1), "{:?}", stopped.elapsed());
    sleep(Duration::from_secs(60)).await;
    assert!(two.leadership.is_leading() != three.leadership.is_leading(), "one of them leads");
    assert_eq!(world.lease().await.unwrap().spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_has_no_holder() {
    let world = World::new();
    let one = world.start_with("one", |options| options.release_on_exit = true);
    one.leadership.acquired().await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(one.stop().await, Ended::Stopped);
    let spec = world.lease().await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(1), Some(0)));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_under_way_at_the_end_does_not_keep_the_lease() {
    let world = World::new();
    let one = world.start_with("one", |options| options.release_on_exit = true);
    one.leadership.acquired().await;
    // The renewal is executed, its answer never comes, and the signal to stop does.
    one.door.on(Method::PUT, Fate::HangAfter);
    sleep(RETRY + A_MOMENT).await;
    one.door.open();
    assert_eq!(one.stop().await, Ended::Stopped);
    assert_eq!(holder(&world.lease().await.unwrap()), "");
}

#[tokio::test(start_paused = true)]
async fn without_release_a_stopped_leader_keeps_the_lease_until_it_ends() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    let two = world.start("two");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(one.stop().await, Ended::Stopped);
    assert_eq!(holder(&world.lease().await.unwrap()), "one");
    assert!(timeout(DURATION - RETRY - A_MOMENT, two.leadership.acquired()).await.is_err());
    timeout(RETRY + A_MOMENT, two.leadership.acquired()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_succeeded_within_the_lease_and_a_retry_period_and_never_before_its_deadline() {
    for millis in [0, 700, 1_400, 2_100, 2_800] {
        let world = World::new();
        let one = world.start("one");
        one.leadership.acquired().await;
        let two = world.start("two");
        sleep(Duration::from_secs(60) + Duration::from_millis(millis)).await;
        let killed = Instant::now();
        let was = one.freeze();
        two.leadership.acquired().await;
        assert!(!was.is_leading(), "the frozen leader's deadline has passed");
        assert!(killed.elapsed() >= DEADLINE - RETRY, "{:?}", killed.elapsed());
        assert!(killed.elapsed() <= DURATION + RETRY, "{:?}", killed.elapsed());
        assert_eq!(world.lease().await.unwrap().spec.unwrap().lease_transitions, Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn wall_clocks_that_are_years_apart_change_nothing() {
    let year = 365 * 24 * 3600;
    for years in [-50, -1, 1, 50] {
        let world = World::new();
        let one = world.start("one");
        one.leadership.acquired().await;
        let ours = Time::from_unix(1_794_744_000).plus_seconds(years * year);
        let two = world.start_at(Clock::starting_at(ours), "two");
        sleep(Duration::from_secs(600)).await;
        assert!(one.leadership.is_leading() && !two.leadership.is_leading(), "{years} years");
        let killed = Instant::now();
        let _frozen = one.freeze();
        two.leadership.acquired().await;
        assert!(killed.elapsed() > DEADLINE && killed.elapsed() <= DURATION + RETRY, "{years}: {:?}", killed.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_between_decision_and_send_sends_nothing() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    let two = world.start("two");
    // Decided, and written down what to send …
    assert_eq!(one.leadership.check(), Ok(()));
    let create = |name: &str| world.config_map(name);
    let before = one.leadership.guard(create("before")).await.unwrap();
    let after = one.leadership.guard(create("after")).await.unwrap();
    world.post_config_map(before).await.unwrap();
    assert!(world.has_config_map("before").await, "while it leads, it writes");
    // … and stopped for a minute: none of its tasks runs, its clock does.
    let leadership = one.freeze();
    sleep(Duration::from_secs(60)).await;
    assert!(two.leadership.is_leading());

    assert!(leadership.check().is_err());
    assert!(!leadership.is_leading());
    assert!(leadership.guard(create("again")).await.is_err());
    let _ = world.post_config_map(after).await;
    assert!(!world.has_config_map("after").await, "what was decided before does not leave after");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_held_back_is_known_by_its_error() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    let body = one.leadership.guard(world.config_map("late")).await.unwrap();
    let leadership = one.freeze();
    sleep(DEADLINE).await;
    let error = body.collect_bytes().await.unwrap_err();
    assert_eq!(NotLeader::cause_of(&error), leadership.check().err().as_ref());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_watched_is_polled() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    let two = world.start_through(Door::new(&world.server).refusing_watches(), "two");
    sleep(Duration::from_secs(600)).await;
    assert!(one.leadership.is_leading() && !two.leadership.is_leading());
    let killed = Instant::now();
    let _frozen = one.freeze();
    two.leadership.acquired().await;
    // client-go's polling: a renewal is seen after up to 2.2 periods.
    assert!(killed.elapsed() <= DURATION + RETRY.mul_f64(2.2) + A_MOMENT, "{:?}", killed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_others_put_into_the_lease_survives() {
    let world = World::new();
    let one = world.start_with("one", |options| options.release_on_exit = true);
    one.leadership.acquired().await;
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "owner".into(),
        uid: "6857e09a-dafd-4f51-9097-a283e1eeaac3".into(),
        ..OwnerReference::default()
    };
    world
        .change(|lease| {
            lease.metadata.labels = Some([("l".into(), "1".into())].into());
            lease.metadata.annotations = Some([("a".into(), "2".into())].into());
            lease.metadata.owner_references = Some(vec![owner.clone()]);
            let spec = lease.spec.as_mut().unwrap();
            spec.strategy = Some("OldestEmulationVersion".into());
            spec.preferred_holder = Some("best".into());
        })
        .await;
    let check = |lease: Lease, after: &str| {
        assert_eq!(lease.metadata.labels, Some([("l".into(), "1".into())].into()), "{after}");
        assert_eq!(lease.metadata.annotations, Some([("a".into(), "2".into())].into()), "{after}");
        assert_eq!(lease.metadata.owner_references.as_deref(), Some([owner.clone()].as_slice()), "{after}");
        let spec = lease.spec.unwrap();
        assert_eq!(spec.strategy.as_deref(), Some("OldestEmulationVersion"), "{after}");
        assert_eq!(spec.preferred_holder.as_deref(), Some("best"), "{after}");
    };
    sleep(Duration::from_secs(60)).await;
    assert!(one.leadership.is_leading(), "somebody's change of the lease takes nothing from its holder");
    check(world.lease().await.unwrap(), "renewals");
    assert_eq!(one.stop().await, Ended::Stopped);
    check(world.lease().await.unwrap(), "the release");
    let two = world.start("two");
    two.leadership.acquired().await;
    check(world.lease().await.unwrap(), "the take-over");
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_reply_was_lost_is_found_to_be_ours() {
    let world = World::new();
    let door = Door::new(&world.server);
    door.on(Method::POST, Fate::LoseReply);
    let one = world.start_through(door, "one");
    timeout(RETRY.mul_f64(2.2) + A_MOMENT, one.leadership.acquired()).await.unwrap();
    assert_eq!(world.lease().await.unwrap().spec.unwrap().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn transitions_are_reported_and_counted() {
    let world = World::new();
    let registry = Registry::new();
    let metrics = LeaseMetrics::new(&registry).unwrap();
    let text = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let door = Door::new(&world.server);
    let elector = world.elector(door.clone(), Clock::system(), "one", |options| options.release_on_exit = true);
    let elector = elector.metrics(&metrics).on_transition({
        let reported = Arc::clone(&reported);
        move |transition| {
            reported.lock().push(match (transition, transition.event()) {
                (_, Some((lease, note))) => format!("{note} on {}", lease.key()),
                (Transition::NewLeader { identity }, _) => format!("new leader {identity}"),
                _ => unreachable!("every other transition is an event"),
            });
        }
    });
    let other = world.start("other");
    other.leadership.acquired().await;
    assert!(text().contains("leader_election_master_status{name=\"test\"} 0\n"), "{}", text());

    let one = Candidate::run(elector, door);
    sleep(Duration::from_secs(30)).await;
    let _frozen = other.freeze();
    one.leadership.acquired().await;
    assert!(text().contains("leader_election_master_status{name=\"test\"} 1\n"), "{}", text());
    assert!(!text().contains("leader_election_slowpath_total{"), "{}", text());
    // Somebody changes the lease: the next renewal is refused, and the one after a look is not.
    world.change(|lease| lease.metadata.labels = Some([("l".into(), "1".into())].into())).await;
    sleep(RETRY + A_MOMENT).await;
    assert!(text().contains("leader_election_slowpath_total{name=\"test\"} 1\n"), "{}", text());
    assert_eq!(one.stop().await, Ended::Stopped);
    assert!(text().contains("leader_election_master_status{name=\"test\"} 0\n"), "{}", text());
    assert_eq!(
        *reported.lock(),
        [
            "new leader other",
            "new leader one",
            "one became leader on kube-system/test",
            "one stopped leading on kube-system/test"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_is_stopped_leaves_the_lease_alone() {
    let world = World::new();
    let one = world.start("one");
    one.leadership.acquired().await;
    let two = world.start_with("two", |options| options.release_on_exit = true);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(two.stop().await, Ended::Stopped);
    sleep(Duration::from_secs(30)).await;
    assert!(one.leadership.is_leading());
    // One that is stopped before it begins, too.
    let stop = CancellationToken::new();
    stop.cancel();
    let three = world.elector(Door::new(&world.server), Clock::system(), "three", |_| {});
    assert_eq!(three.run(stop).await, Ended::Stopped);
}
