//! What the writer promises whatever is written.

use steersman_base::Clock;
use steersman_runtime::decisions::{Filter, Outcome};
use steersman_runtime::lease::{Elector, LeaseOptions};
use steersman_runtime::writer::Retries;
use steersman_runtime::{Patch, Propagation, WriteError};

use crate::support::*;

/// The lines of the log's entries about writes.
fn decisions(world: &World) -> Vec<String> {
    let entries = world.log.entries(&Filter::default());
    entries.iter().flat_map(|entry| entry.decisions.iter().map(ToString::to_string)).collect()
}

#[tokio::test(start_paused = true)]
async fn without_leadership_nothing_is_sent() {
    let world = World::new().await;
    let elector =
        Elector::new(world.client.clone(), LeaseOptions::new("kube-system", "test"), Clock::system()).unwrap();
    let pass = world.log.begin("test", &world.owner.key(), "test".into());
    let writer = world.writer.clone().led_by(elector.leadership()).in_pass(&pass);
    let write = writer.on_behalf_of(&world.owner);
    let why = Why::Test { number: 1 };
    let created = write.create(&CONFIG_MAPS, config_map("a"), &why).await;
    assert!(matches!(created, Err(WriteError::NotLeader)), "{created:?}");
    let deleted = write.delete(&CONFIG_MAPS, &world.owner, Propagation::Background, &why).await;
    assert!(matches!(deleted, Err(WriteError::NotLeader)), "{deleted:?}");
    pass.end(Outcome::Done);
    moment().await;
    assert_eq!(world.seen.writes(), [""; 0]);
    assert_eq!(world.events().await, [], "no event says what did not happen");
    let reported = decisions(&world);
    assert!(reported.len() == 2 && reported[0].contains("does not lead any more"), "{reported:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shadow_mode_writes_nothing_and_logs_what_it_would_have() {
    let world = World::new().await;
    let pass = world.log.begin("test", &world.owner.key(), "test".into());
    let writer = world.writer.clone().in_shadow().in_pass(&pass);
    let write = writer.on_behalf_of(&world.owner);
    let why = Why::Test { number: 1 };
    let key = world.owner.key();
    let made = write.create(&CONFIG_MAPS, config_map("a"), &why).await.unwrap();
    assert_eq!((&*made.namespace, &*made.name), ("default", "a"), "answered as if it had been made");
    let patch = serde_json::json!({"metadata": {"labels": {"a": "b"}}});
    let changed = write.patch(&CONFIG_MAPS, &key, Patch::Merge(&patch), &why).await.unwrap();
    assert_eq!(changed.labels.get("a").map(|value| &**value), Some("b"));
    write.put_status(&SETS, &key, b"{}".to_vec(), &why).await.unwrap();
    write.post_subresource(&PODS, &key, "eviction", b"{}".to_vec(), &why).await.unwrap();
    write.delete(&CONFIG_MAPS, &world.owner, Propagation::Foreground, &why).await.unwrap();
    write.delete_collection(&PODS, Some("default"), Default::default(), Propagation::Background, &why).await.unwrap();
    pass.end(Outcome::Done);
    moment().await;
    assert_eq!((world.seen.writes(), world.events().await), (vec![], vec![]));
    let want = [
        "create configmaps default/a",
        "patch configmaps default/web",
        "update replicasets.apps/status default/web",
        "create pods/eviction default/web",
        "delete configmaps default/web",
        "deletecollection pods default/*",
    ];
    let want = want.map(|write| format!("Test: test number 1 → {write}: not sent (shadow mode)"));
    assert_eq!(decisions(&world), want);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_unknown_and_nothing_is_sent_twice() {
    for (fate, exists) in [(Fate::ReplyLost, true), (Fate::Lost, false)] {
        let world = World::with(move |_| fate).await;
        let write = world.writer.on_behalf_of(&world.owner);
        let made = write.create(&CONFIG_MAPS, config_map("a"), &Why::Silent).await;
        assert!(matches!(made, Err(WriteError::Unknown(_))), "{made:?}");
        assert_eq!(world.seen.writes(), ["POST /api/v1/namespaces/default/configmaps"], "{fate:?}");
        assert_eq!(world.get("/api/v1/namespaces/default/configmaps/a").await.is_ok(), exists);
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_certainly_did_nothing_is_sent_again() {
    const NEVER: usize = usize::MAX;
    let check = |fate: Fate, served_at: usize, want: &'static str, want_sent: usize, want_seconds: u64| async move {
        let mut number = 0;
        let world = World::with(move |_| {
            number += 1;
            if number < served_at { fate } else { Fate::Served }
        });
        let world = world.await;
        let write = world.writer.on_behalf_of(&world.owner);
        let start = tokio::time::Instant::now();
        let made = write.create(&CONFIG_MAPS, config_map("a"), &Why::Silent).await;
        let got = (name(&made), world.seen.writes().len(), start.elapsed().as_secs());
        assert_eq!(got, (want.to_owned(), want_sent, want_seconds), "{fate:?} until number {served_at}");
    };
    check(Fate::Served, 1, "Ok", 1, 0).await;
    check(Fate::Refused(429, Some(1)), 3, "Ok", 3, 2).await;
    check(Fate::Refused(429, Some(1)), NEVER, "Throttled", 4, 3).await;
    check(Fate::Refused(429, Some(60)), NEVER, "Throttled", 1, 0).await;
    check(Fate::Refused(429, None), NEVER, "Throttled", 1, 0).await;
    check(Fate::Refused(503, Some(1)), NEVER, "Unknown", 1, 0).await;
    check(Fate::Refused(500, None), NEVER, "Unknown", 1, 0).await;
    check(Fate::Refused(504, Some(1)), NEVER, "Unknown", 1, 0).await;
    check(Fate::Refused(409, Some(1)), NEVER, "Conflict", 1, 0).await;
    check(Fate::Lost, NEVER, "Unknown", 1, 0).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_nothing_is_sent_again() {
    let world = World::with(|_| Fate::Refused(429, Some(1))).await;
    let writer = world.writer.clone().retrying(Retries::NEVER);
    let made = writer.on_behalf_of(&world.owner).create(&CONFIG_MAPS, config_map("a"), &Why::Silent).await;
    assert!(matches!(made, Err(WriteError::Throttled(time)) if time.as_secs() == 1), "{made:?}");
    assert_eq!(world.seen.writes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_and_its_failure_have_events_about_the_owner() {
    let world = World::new().await;
    let write = world.writer.on_behalf_of(&world.owner);
    let why = Why::Test { number: 7 };
    write.create(&CONFIG_MAPS, config_map("a"), &why).await.unwrap();
    let twice = write.create(&CONFIG_MAPS, config_map("a"), &why).await;
    assert!(matches!(twice, Err(WriteError::AlreadyExists)), "{twice:?}");
    write.create(&CONFIG_MAPS, config_map("b"), &Why::Silent).await.unwrap();
    let gone = write.delete(&PODS, &world.owner, Propagation::Background, &why).await;
    assert!(matches!(gone, Err(WriteError::NotFound)), "{gone:?}");
    world.writer.unowned().create_in(Some("default"), &CONFIG_MAPS, config_map("c"), &why).await.unwrap();
    moment().await;
    let reported = |type_: &str, reason: &str, text: &str| (type_.to_owned(), reason.to_owned(), text.to_owned(), 1);
    let want = [
        reported("Normal", "Wrote", "Wrote a in test 7"),
        reported("Warning", "FailedWrite", "Error writing: configmaps \"a\" already exists"),
    ];
    assert_eq!(world.events().await, want, "a pod that is gone already is no failure, and nobody owns the last one");
    let list = world.get("/api/v1/namespaces/default/events").await.unwrap();
    let event = &list["items"][0];
    assert_eq!(event["involvedObject"]["kind"], "ReplicaSet");
    assert_eq!((&event["involvedObject"]["name"], &event["involvedObject"]["uid"]), (&"web".into(), &"u-1".into()));
    assert_eq!(event["source"]["component"], "test-controller");
    world.stop().await;
}
