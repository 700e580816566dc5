//! Objects that the view cannot read: they hold back nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::support::objects::{added, deleted, event, item, list, modified, pod, streamed, synced};
use crate::support::server::{Answer, BOTH, Http, Server};
use crate::support::{Scene, options, pass, play, protobuf, seconds};
use steersman_base::{Meta, Resource};
use steersman_informer::__internal::reflector::{Phase, ReflectorMetrics};
use steersman_model::{DecodeError, Encoded, View};

/// A pod in which a list is a number.
fn bad(pod: &str) -> String {
    pod.replace("\"spec\":{", "\"spec\":{\"containers\":7,")
}

/// A page whose last item cannot be read.
fn page_with_bad(version: u64, items: &[(&str, u64)], (name, of): (&str, u64)) -> String {
    let last = bad(&item(name, of));
    let body = list(version, items);
    let comma = if items.is_empty() { "" } else { "," };
    format!("{}{comma}{last}]}}", body.trim_end_matches("]}"))
}

/// A pod in protobuf whose containers are a number.
fn bad_protobuf(name: &str, version: u64) -> Vec<u8> {
    [protobuf::pod(name, version), protobuf::field(2, &protobuf::number(2, 7))].concat()
}

fn bad_frame(kind: &str, name: &str, version: u64) -> Vec<u8> {
    protobuf::frame(kind, &protobuf::envelope("v1", "Pod", &bad_protobuf(name, version)))
}

fn bad_page(version: u64, (name, of): (&str, u64), items: &[(&str, u64)]) -> Vec<u8> {
    let metadata = protobuf::field(2, version.to_string().as_bytes());
    let bad = protobuf::field(2, &bad_protobuf(name, of));
    let good = items.iter().flat_map(|(name, of)| protobuf::field(2, &protobuf::pod(name, *of)));
    let body: Vec<u8> = protobuf::field(1, &metadata).into_iter().chain(bad).chain(good).collect();
    protobuf::envelope("v1", "PodList", &body)
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_event_is_skipped_and_the_last_known_state_stays() {
    for http in BOTH {
        let body = [
            streamed(10, &[("a", 3), ("b", 4)]),
            event("MODIFIED", &bad(&pod("a", 11))),
            event("ADDED", &bad(&pod("x", 12))),
            added("c", 13),
            event("MODIFIED", &bad(&pod("x", 14))),
        ];
        let scene = play(http, [Answer::json(body.concat()).after(seconds(2)), Answer::json(modified("a", 15)).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: a@3 b@4", "at 11", "at 12", "+ c@13", "at 14"]);
        assert_eq!(scene.holds(), ["a@3", "b@4", "c@13"]);
        assert_eq!((scene.state.borrow().phase, scene.problem()), (Phase::Watching, None));
        pass(seconds(2)).await;
        assert_eq!(scene.asked(), ["stream", "watch from 14"], "the watch goes on, and goes on behind it");
        assert_eq!(scene.holds(), ["a@15", "b@4", "c@13"], "what can be read again is read again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_last_state_is_unreadable_is_a_deletion() {
    let other = bad(&pod("b", 13)).replace("uid-b", "uid-old");
    let body = [
        streamed(10, &[("a", 3), ("b", 12)]),
        event("DELETED", &bad(&pod("a", 11))),
        event("DELETED", &bad(&pod("never", 12))),
        event("DELETED", &other),
        modified("a", 11),                    // late
        event("DELETED", &bad(&pod("b", 9))), // late
    ];
    let scene = play(Http::One, [Answer::json(body.concat()).hang()]);
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 10: a@3 b@12", "- a@3", "at 11", "at 12", "at 13"]);
    assert_eq!(scene.holds(), ["b@12"], "another object of that name was deleted");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_that_took_the_name_of_a_known_one_ends_that() {
    let new = bad(&pod("a", 11)).replace("uid-a", "uid-new");
    let scene = play(Http::One, [Answer::json(streamed(10, &[("a", 3)]) + &event("ADDED", &new)).hang()]);
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 10: a@3", "- a@3", "at 11"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_goes_on_without_an_unreadable_object() {
    for http in BOTH {
        let stream = [added("a", 3), event("ADDED", &bad(&pod("b", 4))), added("c", 5), synced(10)].concat();
        let gone = [added("a", 3), added("b", 4), event("DELETED", &bad(&pod("b", 6))), synced(10)].concat();
        let pages = [Answer::status(400, ""), Answer::json(page_with_bad(10, &[("a", 3), ("c", 5)], ("b", 4)))];
        let scene = play(http, [Answer::json(stream).hang()]);
        pass(seconds(1)).await;
        assert_eq!((scene.reported(), scene.problem()), (vec!["list 10: a@3 c@5".to_owned()], None));
        let scene = play(http, [Answer::json(gone).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: a@3"]);
        let scene = play(http, pages);
        pass(seconds(1)).await;
        assert_eq!((scene.reported(), scene.problem()), (vec!["list 10: a@3 c@5".to_owned()], None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_that_panics_on_an_object_costs_that_object_alone() {
    struct Fragile(Meta);
    impl View for Fragile {
        fn meta(&self) -> &Meta {
            &self.0
        }
        fn decode(object: Encoded<'_>) -> Result<Self, DecodeError> {
            let meta = Meta::decode(object)?;
            assert!(meta.name != "bad", "on purpose");
            Ok(Self(meta))
        }
    }
    for list in [
        vec![
            Answer::json(streamed(10, &[("a", 3), ("bad", 4), ("c", 5)]) + &modified("bad", 11) + &added("d", 12))
                .hang(),
        ],
        vec![
            Answer::status(400, ""),
            Answer::json(list(10, &[("a", 3), ("bad", 4), ("c", 5)])),
            Answer::json(modified("bad", 11) + &added("d", 12)).hang(),
        ],
    ] {
        let scene: Scene<Fragile> = Scene::start(Server::in_turn(Http::One, list), options());
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: a@3 c@5", "at 11", "+ d@12"]);
        assert_eq!((scene.state.borrow().phase, scene.problem()), (Phase::Watching, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_keeps_what_is_known_of_an_unreadable_object() {
    let relists = [
        vec![Answer::json([added("a", 3), event("ADDED", &bad(&pod("b", 15))), synced(20)].concat()).hang()],
        vec![Answer::status(400, ""), Answer::json(page_with_bad(20, &[("a", 3)], ("b", 15)))],
    ];
    for relist in relists {
        let first = [Answer::json(streamed(10, &[("a", 3), ("b", 4)])), Answer::status(410, "Expired")];
        let scene = play(Http::One, first.into_iter().chain(relist));
        pass(seconds(10)).await;
        assert_eq!(scene.reported(), ["list 10: a@3 b@4", "list 20: a@3 b@4"]);
    }
    let made_again = event("ADDED", &bad(&pod("b", 15)).replace("uid-b", "uid-new"));
    let scene = play(
        Http::One,
        [
            Answer::json(streamed(10, &[("a", 3), ("b", 4)])),
            Answer::status(410, "Expired"),
            Answer::json([added("a", 3), made_again, synced(20)].concat()).hang(),
        ],
    );
    pass(seconds(10)).await;
    assert_eq!(scene.reported()[1..], ["list 20: a@3"], "another object took its name");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_from_protobuf_is_read_as_json() {
    for http in BOTH {
        // In a stream, in a page, in an event; JSON can read it.
        let stream =
            [protobuf::event("ADDED", "a", 3), bad_frame("ADDED", "b", 4), protobuf::bookmark(10, true)].concat();
        let scene = play(http, [Answer::protobuf(stream), Answer::json(streamed(10, &[("a", 3), ("b", 4)])).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: a@3 b@4"]);
        assert_eq!(scene.asked(), ["stream", "stream"]);

        let page = bad_page(10, ("b", 4), &[("c", 5)]);
        let json = Answer::json(list(10, &[("b", 4), ("c", 5)]));
        let scene = play(http, [Answer::status(400, ""), Answer::protobuf(page), json]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: b@4 c@5"]);
        assert_eq!(scene.asked()[..3], ["stream", "list 500", "list 500"]);

        let watch =
            [protobuf::bookmark(10, true), protobuf::event("ADDED", "a", 11), bad_frame("ADDED", "b", 12)].concat();
        let scene = play(http, [Answer::protobuf(watch).hang(), Answer::json(added("b", 12)).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10:", "+ a@11", "+ b@12"]);
        assert_eq!(scene.asked(), ["stream", "watch from 11"]);
        let accepts: Vec<_> = scene.server.requests().into_iter().map(|asked| asked.accept).collect();
        assert_eq!(accepts, ["application/vnd.kubernetes.protobuf, application/json", "application/json"]);
        assert_eq!(scene.problem(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_json_cannot_read_either_is_skipped() {
    let watch = [protobuf::bookmark(10, true), bad_frame("ADDED", "b", 12)].concat();
    let json = event("ADDED", &bad(&pod("b", 12))) + &added("c", 13);
    let scene = play(Http::One, [Answer::protobuf(watch).hang(), Answer::json(json).hang()]);
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 10:", "at 12", "+ c@13"]);
}

#[tokio::test(start_paused = true)]
async fn text_that_is_not_utf_8_is_no_reason_to_ask_again() {
    let owner = [protobuf::field(3, b"\xff"), protobuf::field(4, b"uid"), protobuf::field(5, b"v1")].concat();
    let metadata = [
        protobuf::field(1, b"b"),
        protobuf::field(3, b"default"),
        protobuf::field(5, b"uid-b"),
        protobuf::field(6, b"4"),
        protobuf::field(12, &[protobuf::field(1, b"note"), protobuf::field(2, b"\xfe\xff")].concat()),
        protobuf::field(13, &owner),
    ];
    let hostile = protobuf::envelope("v1", "Pod", &protobuf::field(1, &metadata.concat()));
    let frames = [protobuf::event("ADDED", "a", 3), protobuf::frame("ADDED", &hostile), protobuf::bookmark(10, true)];
    let scene = play(Http::One, [Answer::protobuf(frames.concat()).hang()]);
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 10: a@3 b@4"]);
    assert_eq!(scene.asked(), ["stream"]);
}

#[tokio::test(start_paused = true)]
async fn each_object_that_is_skipped_is_counted() {
    #[derive(Default)]
    struct Counted(AtomicU64);
    impl ReflectorMetrics for Counted {
        fn unreadable_object(&self, resource: &Resource) {
            assert_eq!(resource.plural, "pods");
            self.0.fetch_add(1, SeqCst);
        }
    }
    let counted = Arc::new(Counted::default());
    let body = event("ADDED", &bad(&pod("a", 3)))
        + &synced(10)
        + &event("MODIFIED", &bad(&pod("a", 11)))
        + &event("MODIFIED", &bad(&pod("a", 12)))
        + &deleted("a", 13);
    let mut options = options();
    options.metrics = counted.clone();
    let server = Server::in_turn(Http::One, [Answer::json(body).hang()]);
    let scene: Scene = Scene::start(server, options);
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 10:", "at 11", "at 12", "- a@13"]);
    assert_eq!(counted.0.load(SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_without_a_name_is_garbage() {
    let nameless = bad(&pod("x", 12)).replace("\"name\":\"x\",", "");
    let scene = play(Http::One, [Answer::json(streamed(10, &[]) + &event("ADDED", &nameless)).hang()]);
    pass(seconds(1) / 2).await;
    assert!(
        scene.problem().unwrap().starts_with("BadAnswer: cannot read Pod without a name: "),
        "{:?}",
        scene.problem()
    );
}
