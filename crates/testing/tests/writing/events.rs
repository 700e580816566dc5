//! Events on their way to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use serde_json::Value;
use steersman_runtime::events::{About, EventOptions, EventSink};

use crate::support::*;

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// Whether the server can be reached: it can be switched off.
fn switched(is_up: &Arc<AtomicBool>) -> impl FnMut(&str) -> Fate + Send + use<> {
    let is_up = Arc::clone(is_up);
    move |_| if is_up.load(Ordering::Relaxed) { Fate::Served } else { Fate::Lost }
}

fn send(world: &World, note: &str) {
    world.recorder.for_component("test").normal(&About::new(&SETS, &world.owner), "Reason", note);
}

#[tokio::test(start_paused = true)]
async fn the_tenth_alike_is_joined_with_all_after_it() {
    let world = World::new().await;
    for at in 1..=14 {
        send(&world, &format!("text {at}"));
    }
    moment().await;
    let events = world.events().await;
    let texts: Vec<(&str, i64)> = events.iter().map(|(_, _, text, count)| (text.as_str(), *count)).collect();
    let mut want: Vec<(String, i64)> = (1..=9).map(|at| (format!("text {at}"), 1)).collect();
    want.push(("(combined from similar events): text 14".into(), 5));
    assert_eq!(texts, want.iter().map(|(text, count)| (text.as_str(), *count)).collect::<Vec<_>>());
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_of_a_source_that_sends_too_many_are_dropped() {
    let world = World::new().await;
    for _ in 0..100 {
        send(&world, "same");
        moment().await;
    }
    assert_eq!(world.seen.event_requests().len(), 25);
    assert_eq!(world.events().await[0].3, 25);
    tokio::time::sleep(Duration::from_secs(301)).await;
    send(&world, "same");
    send(&world, "same");
    moment().await;
    assert_eq!(world.seen.event_requests().len(), 26, "one every five minutes");
    assert_eq!(world.events().await[0].3, 101, "and what was not sent was counted");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_recorded_at_once_are_sent_at_once_and_all_counted() {
    let world = World::new().await;
    for _ in 0..100 {
        send(&world, "same");
    }
    moment().await;
    assert_eq!(world.seen.event_requests().len(), 1);
    assert_eq!(world.events().await[0].3, 25, "as many as a source may send");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_waits_for_the_server_but_not_for_ever() {
    let is_up = Arc::new(AtomicBool::new(false));
    let world = World::with(switched(&is_up)).await;
    send(&world, "patient");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let tries = world.seen.event_requests().len();
    assert!((6..=8).contains(&tries), "ten seconds apart: {tries}");
    is_up.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.events().await.len(), 1, "it arrived");

    is_up.store(false, Ordering::Relaxed);
    send(&world, "impatient");
    let before = world.seen.event_requests().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.seen.event_requests().len() - before, 12, "tried so often, and then given up");
    is_up.store(true, Ordering::Relaxed);
    send(&world, "next");
    moment().await;
    let texts: Vec<_> = world.events().await.into_iter().map(|event| event.2).collect();
    assert_eq!(texts, ["patient", "next"]);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_given_up_at_once() {
    let world = World::with(|_| Fate::Refused(403, None)).await;
    send(&world, "unwanted");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.seen.event_requests().len(), 1);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_is_created_again_with_its_count() {
    let world = World::new().await;
    send(&world, "same");
    moment().await;
    let request = Request::delete(EVENTS).body(Vec::new()).unwrap();
    world.client.request::<Value>(request).await.unwrap();
    assert_eq!(world.events().await, []);
    send(&world, "same");
    moment().await;
    assert_eq!(world.events().await[0].3, 2);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_events_are_sent_before_the_end_within_a_bounded_time() {
    for (fate, want) in [(Fate::Served, 3), (Fate::Lost, 0), (Fate::Silence, 0)] {
        let world = World::with(move |_| fate).await;
        let client = world.client.clone();
        let start = tokio::time::Instant::now();
        for at in 0..3 {
            send(&world, &format!("last {at}"));
        }
        // The first of them is on its way when the end comes.
        moment().await;
        world.stop().await;
        let took = start.elapsed() - Duration::from_millis(100);
        assert!(took <= steersman_runtime::__internal::events::DRAIN_WITHIN, "{took:?}");
        let list: Value = client.request(Request::get(EVENTS).body(Vec::new()).unwrap()).await.unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), want, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_the_newer_api_come_in_series() {
    let mut options = EventOptions::default();
    options.sink = EventSink::EventsV1;
    options.instance = "test-1".into();
    let world = World::with_events(options, |_| Fate::Served).await;
    for _ in 0..5 {
        send(&world, "same");
    }
    moment().await;
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let list = world.get(path).await.unwrap();
    let event = &list["items"][0];
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!((&event["series"]["count"], &event["reportingController"]), (&2.into(), &"test".into()));
    assert_eq!((&event["reportingInstance"], &event["regarding"]["name"]), (&"test-1".into(), &"web".into()));
    tokio::time::sleep(Duration::from_secs(13 * 60)).await;
    let list = world.get(path).await.unwrap();
    assert_eq!(list["items"][0]["series"]["count"], 5, "the series is over, and its count is sent");
    world.stop().await;
}
