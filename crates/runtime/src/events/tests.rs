//! Tables for what becomes of events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use steersman_base::{Clock, Meta, MicroTime, Resource, Time};

use super::correlate::{ALIKE_MAX, ENTRIES_MAX, Pending, SPAM_BURST};
use super::*;

const SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
const NODES: Resource = Resource::cluster("", "v1", "nodes", "Node");

struct Table {
    correlator: Correlator,
    now: MicroTime,
    next: i64,
    is_behind: bool,
}

fn reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        namespace: "ns".into(),
        name: name.into(),
        uid: "u".into(),
        resource_version: "7".into(),
        field_path: "".into(),
    }
}

impl Table {
    fn new() -> Self {
        let now = MicroTime::from(Time::from_unix(1_794_744_000));
        Self { correlator: Correlator::default(), now, next: 0x10, is_behind: false }
    }

    fn event(&mut self, object: &str, message: &str) -> Event {
        self.next += 1;
        Event {
            name: event::name(object, self.next),
            namespace: "ns".into(),
            nanos: self.next,
            involved_object: reference(object),
            related: None,
            action: "".into(),
            reason: "SuccessfulCreate".into(),
            message: message.into(),
            component: "c".into(),
            host: "".into(),
            reporting_component: "c".into(),
            reporting_instance: "".into(),
            first_time: self.now,
            last_time: self.now,
            count: 1,
            type_: EventType::Normal,
        }
    }

    /// What becomes of it, in short: `create web.11 1 text`, `patch web.11 2 text`, `skip`.
    fn send(&mut self, event: Event) -> String {
        short(&self.correlator.correlate(event, self.now, self.is_behind))
    }

    fn happens(&mut self, object: &str, message: &str) -> String {
        let event = self.event(object, message);
        self.send(event)
    }

    fn later(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }
}

fn short(verdict: &Verdict) -> String {
    let reported = |verb: &str, pending: &Pending, body: &Value| {
        let text = body["message"].as_str().unwrap_or_default();
        format!("{verb} {} {} {text}", pending.event.name, body["count"])
    };
    match verdict {
        Verdict::Skip => "skip".into(),
        Verdict::Create(pending) => reported("create", pending, &pending.body()),
        Verdict::Patch(pending) => reported("patch", pending, &pending.patch()),
    }
}

#[test]
fn equal_events_are_counted_in_one_object() {
    let mut table = Table::new();
    assert_eq!(table.happens("web", "a"), "create web.11 1 a");
    table.later(60);
    assert_eq!(table.happens("web", "a"), "patch web.11 2 a");
    assert_eq!(table.happens("web", "b"), "create web.13 1 b", "another text is another event");
    assert_eq!(table.happens("other", "a"), "create other.14 1 a", "another object is another event");
    assert_eq!(table.happens("web", "a"), "patch web.11 3 a");
}

#[test]
fn a_patch_changes_count_time_and_text_and_nothing_else() {
    let mut table = Table::new();
    table.happens("web", "a");
    table.later(61);
    let event = table.event("web", "a");
    let Verdict::Patch(pending) = table.correlator.correlate(event, table.now, false) else { panic!("not a patch") };
    assert_eq!(pending.patch(), json!({"count": 2, "lastTimestamp": "2026-11-15T12:01:01Z", "message": "a"}));
    assert_eq!(pending.event.namespace, "ns");
    assert_eq!(
        pending.body()["firstTimestamp"],
        "2026-11-15T12:00:00Z",
        "should it be gone, it is created with its history"
    );
}

#[test]
fn a_new_event_looks_as_upstreams_does() {
    let mut table = Table::new();
    let event = table.event("web", "Created pod: web-x");
    let Verdict::Create(pending) = table.correlator.correlate(event, table.now, false) else { panic!("not new") };
    let body = pending.body();
    let want = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.11", "namespace": "ns"},
        "involvedObject": {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "ns", "name": "web", "uid": "u",
            "resourceVersion": "7",
        },
        "reason": "SuccessfulCreate", "message": "Created pod: web-x", "source": {"component": "c"},
        "firstTimestamp": "2026-11-15T12:00:00Z", "lastTimestamp": "2026-11-15T12:00:00Z", "count": 1,
        "type": "Normal", "eventTime": null, "reportingComponent": "c", "reportingInstance": "",
    });
    assert_eq!(body, want);
}

/// client-go compares with "fewer than ten": nine are sent one by one, and the tenth is the first to be joined.
#[test]
fn the_tenth_alike_and_all_after_it_are_joined_into_one() {
    let mut table = Table::new();
    for at in 1..ALIKE_MAX {
        assert!(table.happens("web", &format!("text {at}")).starts_with("create"), "number {at}");
    }
    assert_eq!(table.happens("web", "text 10"), "create web.1a 1 (combined from similar events): text 10");
    assert_eq!(table.happens("web", "text 11"), "patch web.1a 2 (combined from similar events): text 11");
    assert_eq!(table.happens("web", "text 12"), "patch web.1a 3 (combined from similar events): text 12");
    assert!(table.happens("other", "text 13").starts_with("create other"), "another object is not alike");
    let mut event = table.event("web", "text 13");
    event.reason = "FailedCreate".into();
    assert!(table.send(event).ends_with(" 1 text 13"), "another reason is not alike");
}

#[test]
fn a_joined_event_has_a_source_and_no_reporter_as_upstream() {
    let mut table = Table::new();
    (1..ALIKE_MAX).for_each(|at| drop(table.happens("web", &at.to_string())));
    let event = table.event("web", "last");
    let Verdict::Create(pending) = table.correlator.correlate(event, table.now, false) else { panic!("not new") };
    let body = pending.body();
    assert_eq!((&body["source"]["component"], &body["reportingComponent"]), (&json!("c"), &json!("")));
}

#[test]
fn ten_minutes_of_silence_end_the_joining() {
    for (silence, joined) in [(600, true), (601, false)] {
        let mut table = Table::new();
        (1..ALIKE_MAX).for_each(|at| drop(table.happens("web", &at.to_string())));
        table.later(silence);
        let reported = table.happens("web", "next");
        assert_eq!(reported.contains("combined"), joined, "after {silence} s: {reported}");
    }
}

#[test]
fn equal_texts_count_as_one_of_the_alike() {
    let mut table = Table::new();
    table.happens("web", "same");
    for count in 2..=20 {
        assert_eq!(table.happens("web", "same"), format!("patch web.11 {count} same"));
    }
}

#[test]
fn a_source_sends_25_events_about_an_object_and_then_one_every_five_minutes() {
    let mut table = Table::new();
    for at in 1..=SPAM_BURST {
        assert_ne!(table.happens("web", "same"), "skip", "number {at}");
    }
    assert_eq!(table.happens("web", "same"), "skip");
    assert_ne!(table.happens("other", "same"), "skip", "another object has its own");
    let mut event = table.event("web", "same");
    event.component = "d".into();
    assert_ne!(table.send(event), "skip", "another source has its own");
    let mut event = table.event("web", "same");
    event.type_ = EventType::Warning;
    assert_ne!(table.send(event), "skip", "warnings are not crowded out");
    table.later(299);
    assert_eq!(table.happens("web", "same"), "skip");
    table.later(1);
    assert_eq!(table.happens("web", "same"), "patch web.11 28 same", "what was not sent was counted");
    assert_eq!(table.happens("web", "same"), "skip");
}

#[test]
fn what_is_remembered_is_bounded_and_the_oldest_is_forgotten() {
    let mut table = Table::new();
    table.happens("first", "a");
    for at in 0..ENTRIES_MAX {
        table.happens(&format!("web-{at}"), "a");
    }
    assert!(table.happens("first", "a").starts_with("create"), "forgotten");
    assert!(table.happens(&format!("web-{}", ENTRIES_MAX - 1), "a").starts_with("patch"), "remembered");
}

#[test]
fn while_the_sender_is_behind_the_second_alike_is_joined_already() {
    let mut table = Table::new();
    table.is_behind = true;
    assert_eq!(table.happens("web", "made a"), "create web.11 1 made a");
    assert_eq!(table.happens("web", "made b"), "create web.12 1 (combined from similar events): made b");
    assert_eq!(table.happens("web", "made c"), "patch web.12 2 (combined from similar events): made c");
    assert_eq!(table.happens("api", "made a"), "create api.14 1 made a", "of another object");
    assert_eq!(table.happens("api", "made a"), "patch api.14 2 made a", "the same again is counted, as ever");
    table.is_behind = false;
    assert_eq!(table.happens("web", "made d"), "create web.16 1 made d", "it has caught up");
}

#[test]
fn what_changes_a_waiting_event_is_sent_with_it() {
    let mut table = Table::new();
    let mut backlog = Backlog::default();
    let mut send = |backlog: &mut Backlog, object: &str, text: &str| {
        let event = table.event(object, text);
        backlog.push(table.correlator.correlate(event, table.now, false));
    };
    send(&mut backlog, "web", "made a");
    send(&mut backlog, "api", "made a");
    send(&mut backlog, "web", "made a");
    send(&mut backlog, "web", "made b");
    let sent = |backlog: &mut Backlog| backlog.pop().as_ref().map(short).unwrap_or_default();
    assert_eq!(sent(&mut backlog), "create web.11 2 made a", "sent once, with its count");
    send(&mut backlog, "web", "made a");
    send(&mut backlog, "web", "made a");
    assert_eq!(sent(&mut backlog), "create api.12 1 made a", "first come, first sent");
    assert_eq!(sent(&mut backlog), "create web.14 1 made b");
    assert_eq!(sent(&mut backlog), "patch web.11 4 made a", "one patch for both");
    assert_eq!(sent(&mut backlog), "");
}

#[test]
fn many_events_of_one_object_are_no_long_backlog_and_those_of_many_are() {
    let mut table = Table::new();
    let mut backlog = Backlog::default();
    for n in 0..100 {
        let event = table.event("web", &format!("made {n}"));
        backlog.push(table.correlator.correlate(event, table.now, backlog.is_long()));
    }
    assert!(!backlog.is_long());
    for n in 0..60 {
        let event = table.event(&format!("web-{n}"), "made a");
        backlog.push(table.correlator.correlate(event, table.now, backlog.is_long()));
    }
    assert!(backlog.is_long() && !backlog.is_full());
}

/// What a server has of each object in the end, if so many objects make so many events at once, and it takes one while
/// `per_sent` come.
fn flood(objects: usize, each: usize, per_sent: usize) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut table = Table::new();
    let mut backlog = Backlog::default();
    let mut server = BTreeMap::new();
    let mut recorded: VecDeque<_> = (0..objects * each).map(|n| (n % objects, n / objects)).collect();
    loop {
        for _ in 0..per_sent {
            if backlog.is_full() {
                break;
            }
            let Some((object, n)) = recorded.pop_front() else { break };
            let event = table.event(&format!("web-{object}"), &format!("made {n}"));
            backlog.push(table.correlator.correlate(event, table.now, backlog.is_long()));
        }
        match backlog.pop() {
            Some(Verdict::Create(made)) => {
                assert!(server.insert(made.event.name.clone(), made.body()).is_none(), "made twice");
            }
            Some(Verdict::Patch(changed)) => {
                assert!(server.insert(changed.event.name.clone(), changed.body()).is_some(), "not there yet");
            }
            Some(Verdict::Skip) => panic!("waits for nothing"),
            None if recorded.is_empty() => break,
            None => {}
        }
    }
    let mut reported: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for body in server.values() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = reported.entry(text(&body["involvedObject"]["name"])).or_default();
        events.insert(text(&body["message"]), body["count"].as_u64().unwrap_or_default());
    }
    reported
}

#[test]
fn a_flood_loses_no_count_but_those_that_a_source_may_not_send() {
    let joined = |text: &String| text.starts_with("(combined from similar events): ");
    let floods = [(1, 30, 1), (1, 30, 30), (60, 20, 10), (60, 30, 3), (60, 30, 1_800), (500, 3, 9)];
    for (objects, each, per_sent) in floods {
        let reported = flood(objects, each, per_sent);
        assert_eq!(reported.len(), objects);
        for (object, events) in reported {
            let what = format!("{object} of {objects} with {each} each: {events:?}");
            assert_eq!(events.values().sum::<u64>(), each.min(SPAM_BURST as usize) as u64, "{what}");
            let alone = events.keys().filter(|text| !joined(text)).count();
            assert!(alone >= 1 && events.len() - alone <= 1, "{what}");
            assert!(objects > 1 || alone == ALIKE_MAX - 1, "as with client-go: {what}");
        }
    }
}

fn client() -> kube::Client {
    let refused = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, tower::BoxError>("nobody is there".into())
    });
    kube::Client::new(refused, "default")
}

fn meta(namespace: &str, name: &str) -> Meta {
    Meta { namespace: namespace.into(), name: name.into(), uid: "u".into(), ..Meta::default() }
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_and_what_is_too_much_is_dropped_and_counted() {
    let broadcaster = Broadcaster::new(client(), Clock::system(), EventOptions::default());
    let recorder = broadcaster.recorder().for_component("c");
    let web = meta("ns", "web");
    for _ in 0..QUEUED_MAX + 7 {
        recorder.normal(&About::new(&SETS, &web), "Reason", "note");
    }
    assert_eq!((recorder.dropped(), broadcaster.received.len()), (7, QUEUED_MAX));
    let silent = Recorder::nowhere().for_component("c");
    silent.warning(&About::new(&SETS, &web), "Reason", "note");
    assert_eq!(silent.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_even_if_the_clock_stands_still() {
    let clock = Clock::starting_at(Time::from_unix(1_794_744_000));
    let mut broadcaster = Broadcaster::new(client(), clock, EventOptions::default());
    let recorder = broadcaster.recorder().for_component("c");
    for (resource, object) in [(&SETS, meta("ns", "web")), (&SETS, meta("ns", "web")), (&NODES, meta("", "n:1"))] {
        recorder.normal(&About::new(resource, &object), "Reason", "note");
    }
    let mut next = || broadcaster.received.try_recv().unwrap();
    let first = next();
    let second = next();
    let third = next();
    assert_eq!((&*first.name, &*second.name), ("web.18e83628b6c38000", "web.18e83628b6c38001"));
    assert_eq!((&*first.namespace, &*third.namespace), ("ns", "default"), "cluster-wide objects");
    assert_eq!(third.involved_object.namespace, "");
    assert_eq!((third.name.len(), third.name.contains(':')), (36, false), "no DNS name: a UUID");
    assert_eq!(recorder.queue.as_ref().unwrap().newest.load(Ordering::Relaxed), third.nanos);
}

#[tokio::test(start_paused = true)]
async fn an_event_names_what_was_done_and_what_else_it_concerns_and_other_actions_are_other_series() {
    let mut broadcaster = Broadcaster::new(client(), Clock::system(), EventOptions::default());
    let recorder = broadcaster.recorder().for_component("c");
    let web = meta("ns", "web");
    let node = meta("", "n1");
    recorder.normal(&About::new(&SETS, &web), "Moved", "note");
    let about = |sets, nodes| {
        recorder.normal(
            &About::new(sets, &web).action("Draining").related_to(&About::new(nodes, &node)),
            "Moved",
            "note",
        );
    };
    about(&SETS, &NODES);
    let plain = broadcaster.received.try_recv().unwrap();
    let full = broadcaster.received.try_recv().unwrap();
    for (event, action, related) in [(&plain, "Moved", &Value::Null), (&full, "Draining", &"n1".into())] {
        let body = event.v1_body();
        assert_eq!((&body["action"], &body["related"]["name"]), (&action.into(), related));
        assert_eq!((&body["regarding"]["name"], &body["reason"]), (&"web".into(), &"Moved".into()));
    }
    assert_eq!(full.core_body()["related"]["kind"], "Node");
    assert_eq!(full.core_body()["action"], "Draining");
    let body = plain.core_body();
    assert!(body.get("action").is_none() && body.get("related").is_none(), "as in kube-controller-manager: {body}");
    let mut series = Series::default();
    let now = plain.first_time;
    for event in [&plain, &full] {
        assert!(matches!(series.correlate(event, now), Verdict::Create(_)));
    }
}

#[test]
fn a_series_is_sent_at_once_then_every_half_hour_and_at_its_end() {
    let mut table = Table::new();
    let mut series = Series::default();
    let text = |verdict: &Verdict| match verdict {
        Verdict::Skip => "skip".to_owned(),
        Verdict::Create(pending) => format!("create {} {}", pending.event.name, pending.body()["series"]),
        Verdict::Patch(pending) => format!("patch {} {}", pending.event.name, pending.patch()["series"]["count"]),
    };
    let happens = |series: &mut Series, table: &mut Table| {
        let event = table.event("web", "a");
        text(&series.correlate(&event, table.now))
    };
    assert_eq!(happens(&mut series, &mut table), "create web.11 null");
    assert_eq!(happens(&mut series, &mut table), "patch web.11 2");
    assert_eq!(happens(&mut series, &mut table), "skip", "from now on it is counted here");
    for _ in 0..6 {
        table.later(5 * 60);
        assert_eq!(happens(&mut series, &mut table), "skip");
    }
    let reported: Vec<_> = series.look(table.now).iter().map(text).collect();
    assert_eq!(reported, ["patch web.11 9"], "half an hour has passed");
    assert!(series.look(table.now).is_empty(), "and it is sent once");
    table.later(60);
    assert_eq!(happens(&mut series, &mut table), "skip");
    assert!(series.next_look(table.now).is_some());
    table.later(6 * 60);
    let reported: Vec<_> = series.look(table.now).iter().map(text).collect();
    assert_eq!(reported, ["patch web.11 10"], "it is over");
    assert_eq!(series.next_look(table.now), None);
    assert!(happens(&mut series, &mut table).starts_with("create"), "a new one begins");
}

/// All other events wait for the one that is tried again.
#[test]
fn an_event_is_tried_again_when_the_server_asks_for_that_and_for_two_minutes() {
    let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
    let tries = |asked: Option<Duration>| {
        let mut patience = Patience::default();
        let mut waits = Vec::new();
        while let Some(wait) = patience.next(asked, 0.5) {
            waits.push(wait);
        }
        (waits.first().copied(), waits.last().copied(), waits.len() + 1)
    };
    for (name, asked, first, later, count) in [
        ("it cannot be reached: client-go's twelve tries", None, seconds(5), seconds(10), 12),
        ("it asks for a second, as upstream's servers do", seconds(1), seconds(1), seconds(1), 120),
        ("it asks for five", seconds(5), seconds(5), seconds(5), 24),
        ("at once is too soon", seconds(0), seconds(1), seconds(1), 120),
        ("an hour is too late", seconds(3600), seconds(10), seconds(10), 12),
    ] {
        assert_eq!(tries(asked), (first, later, count), "{name}");
    }
    let mut patience = Patience::default();
    assert_eq!(patience.next(seconds(1), 0.5), seconds(1));
    assert_eq!(patience.next(None, 0.5), seconds(10), "only a first wait is random");
}
