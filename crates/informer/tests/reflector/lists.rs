//! How the state comes in: streamed, in pages, again.

use crate::support::objects::{added, deleted, event, list, modified, page, pod, streamed, synced};
use crate::support::server::{Answer, BOTH, Http, Server};
use crate::support::{Scene, options, pass, play, seconds};
use steersman_informer::__internal::reflector::{Lists, Phase};
use steersman_informer::__internal::wire::latest_version;

#[tokio::test(start_paused = true)]
async fn a_streaming_list_becomes_the_watch() {
    for http in BOTH {
        let body = streamed(10, &[("a", 3), ("b", 4)]) + &modified("a", 11) + &added("c", 12) + &deleted("b", 13);
        let scene = play(http, [Answer::json(body).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: a@3 b@4", "~ a@11", "+ c@12", "- b@13"]);
        assert_eq!(scene.asked(), ["stream"], "one request does it all");
        assert_eq!(scene.state.borrow().phase, Phase::Watching);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_list_is_seen_before_all_of_it_is_there() {
    let scene = play(
        Http::One,
        [Answer::json(added("a", 3))
            .after(seconds(8))
            .then_text(&added("b", 4))
            .after(seconds(8))
            .then_text(&synced(10))
            .hang()],
    );
    pass(seconds(15)).await;
    assert!(scene.reported().is_empty());
    assert_eq!(scene.state.borrow().phase, Phase::Listing);
    pass(seconds(2)).await;
    assert_eq!(scene.reported(), ["list 10: a@3 b@4"]);
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_streaming_list_are_part_of_it() {
    let body =
        [added("a", 1), added("b", 2), added("c", 3), modified("a", 8), deleted("b", 9), modified("c", 2), synced(9)];
    let scene = play(Http::One, [Answer::json(body.concat()).hang()]);
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 9: a@8 c@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_streaming_is_asked_for_pages() {
    for http in BOTH {
        for refusal in
            [Answer::status(422, "Invalid"), Answer::status(400, "BadRequest"), Answer::text(405, "no such thing")]
        {
            let scene = play(
                http,
                [
                    refusal,
                    Answer::json(page(10, "x", &[("a", 3), ("b", 4)])),
                    Answer::json(page(10, "y", &[("c", 5)])),
                    Answer::json(page(10, "", &[("d", 6)])),
                    Answer::json(added("e", 11)).hang(),
                ],
            );
            pass(seconds(1)).await;
            assert_eq!(scene.asked(), ["stream", "list 500", "list 500 from x", "list 500 from y", "watch from 10"]);
            assert_eq!(scene.reported(), ["list 10: a@3 b@4 c@5 d@6", "+ e@11"]);
            assert_eq!(scene.problem(), None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refused_streaming_is_not_asked_for_it_again() {
    let scene = play(
        Http::One,
        [
            Answer::status(400, "BadRequest"),
            Answer::json(list(10, &[("a", 3)])),
            Answer::status(410, "Expired"),
            Answer::json(list(20, &[("a", 3)])),
        ],
    );
    pass(seconds(5)).await;
    assert_eq!(scene.asked(), ["stream", "list 500", "watch from 10", "list 500", "watch from 20"]);
}

#[tokio::test(start_paused = true)]
async fn pages_can_be_asked_for_from_the_start() {
    let mut options = options();
    options.lists = Lists::Paged;
    let scene: Scene = Scene::start(Server::in_turn(Http::One, [Answer::json(list(10, &[]))]), options);
    pass(seconds(1)).await;
    assert_eq!(scene.asked(), ["list 500", "watch from 10"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_a_list() {
    for http in BOTH {
        let scene = play(http, [Answer::json(synced(10)).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10:"]);
        for body in [list(10, &[]), r#"{"items":null,"metadata":{"resourceVersion":"10"}}"#.to_owned()] {
            let scene = play(http, [Answer::status(400, ""), Answer::json(body)]);
            pass(seconds(1)).await;
            assert_eq!(scene.reported(), ["list 10:"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_between_its_pages_is_asked_for_as_a_whole() {
    for http in BOTH {
        let scene = play(
            http,
            [
                Answer::status(400, ""),
                Answer::json(page(10, "x", &[("a", 3), ("b", 4)])),
                Answer::status(410, "Expired"),
                Answer::json(list(20, &[("b", 4), ("c", 15)])),
            ],
        );
        pass(seconds(1)).await;
        assert_eq!(scene.asked(), ["stream", "list 500", "list 500 from x", "list all", "watch from 20"]);
        assert_eq!(scene.reported(), ["list 20: b@4 c@15"], "nothing of the first attempt is left");
    }
}

#[tokio::test(start_paused = true)]
async fn unchanged_objects_of_a_relist_keep_their_allocation() {
    for relist in [Answer::json(streamed(20, &[("a", 3), ("b", 15)])).hang(), Answer::status(400, "")] {
        let scene = play(
            Http::One,
            [
                Answer::json(streamed(10, &[("a", 3), ("b", 4)])),
                Answer::status(410, "Expired"),
                relist,
                Answer::json(list(20, &[("a", 3), ("b", 15)])),
            ],
        );
        pass(seconds(1) / 2).await;
        let before = scene.recorder.objects();
        pass(seconds(10)).await;
        let after = scene.recorder.objects();
        assert_eq!(scene.reported(), ["list 10: a@3 b@4", "list 20: a@3 b@15"]);
        assert!(std::sync::Arc::ptr_eq(&before[0], &after[0]), "a did not change");
        assert!(!std::sync::Arc::ptr_eq(&before[1], &after[1]), "b did");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_made_again_is_another_one() {
    let again = event("ADDED", &pod("a", 3).replace("uid-a", "uid-new"));
    let scene = play(
        Http::One,
        [
            Answer::json(streamed(10, &[("a", 3)])),
            Answer::status(410, "Expired"),
            Answer::json(again + &synced(20)).hang(),
        ],
    );
    pass(seconds(10)).await;
    assert_eq!(scene.recorder.objects()[0].metadata.uid.to_string(), "uid-new");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_cannot_be_followed() {
    let scene = play(Http::One, [Answer::status(400, ""), Answer::json(r#"{"metadata":{},"items":[]}"#)]);
    pass(seconds(1) / 2).await;
    assert!(scene.reported().is_empty());
    assert!(scene.problem().unwrap().contains("no resourceVersion"), "{:?}", scene.problem());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_its_list_does_is_replaced_by_pages() {
    let scene = play(
        Http::One,
        [Answer::json(added("a", 3) + &added("b", 4)), Answer::json(list(10, &[("a", 3), ("b", 4), ("c", 5)]))],
    );
    pass(seconds(5)).await;
    assert_eq!(scene.asked(), ["stream", "list 500", "watch from 10"]);
    assert_eq!(scene.reported(), ["list 10: a@3 b@4 c@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_or_missing_resource_is_reported_and_retried() {
    for (code, kind) in [(403, "Forbidden"), (401, "Forbidden"), (404, "NotFound")] {
        let server = Server::in_turn(Http::One, (0..40).map(|_| Answer::status(code, "")));
        let scene: Scene = Scene::start(server, options());
        pass(seconds(600)).await;
        let problem = scene.problem().unwrap();
        assert!(problem.starts_with(kind), "{problem}");
        let requests = scene.asked().len();
        assert!((8..=36).contains(&requests), "{requests} requests in ten minutes");
        pass(seconds(3600)).await;
        let phase = scene.state.borrow().phase;
        assert!(matches!(phase, Phase::Listing | Phase::Waiting), "it does not give up: {phase:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_that_may_list_but_not_watch_gets_the_list() {
    let scene = play(
        Http::One,
        [
            Answer::status(403, "Forbidden"),
            Answer::json(list(10, &[("a", 3)])),
            Answer::status(403, "Forbidden"),
            Answer::status(403, "Forbidden"),
            Answer::json(added("b", 11)).hang(),
        ],
    );
    pass(seconds(1) / 2).await;
    assert_eq!(scene.reported(), ["list 10: a@3"]);
    assert!(scene.problem().unwrap().starts_with("Forbidden"));
    pass(seconds(20)).await;
    assert_eq!(scene.asked(), ["stream", "list 500", "watch from 10", "watch from 10", "watch from 10"]);
    assert_eq!(scene.reported(), ["list 10: a@3", "+ b@11"]);
    assert_eq!(scene.problem(), None);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_reflector_says_so_and_asks_nothing_more() {
    let mut scene = play(Http::Two, [Answer::json(streamed(10, &[("a", 3)])).hang()]);
    pass(seconds(1)).await;
    scene.stop();
    drop(scene.state.wait_for(|state| state.phase == Phase::Stopped).await.unwrap());
    pass(seconds(3600)).await;
    assert_eq!(scene.asked(), ["stream"]);
}

#[tokio::test(start_paused = true)]
async fn the_latest_version_is_a_consistent_list_of_one() {
    let server = Server::in_turn(
        Http::One,
        [Answer::json(page(77, "more", &[("a", 3)])), Answer::status(503, ""), Answer::mute()],
    );
    let target = crate::support::pods();
    let version = latest_version(&server.client(), &target, seconds(5)).await.unwrap();
    assert_eq!(version.as_str(), "77");
    assert_eq!(server.asked(), ["list 1"]);
    assert!(latest_version(&server.client(), &target, seconds(5)).await.is_err());
    let silent = latest_version(&server.client(), &target, seconds(5)).await.unwrap_err();
    assert_eq!(silent.to_string(), "the server was silent for 5 s");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_streaming_lists_is_asked_for_pages_in_time() {
    for http in BOTH {
        // It answers with an ordinary watch, on which nothing happens: pages are asked for, and nobody is blamed.
        let silent = Answer::json(added("a", 3) + &added("b", 4)).hang();
        let scene = play(http, [silent, Answer::json(list(10, &[("a", 3), ("b", 4)]))]);
        pass(seconds(13)).await;
        assert_eq!(scene.asked(), ["stream", "list 500", "watch from 10"]);
        assert_eq!(scene.reported(), ["list 10: a@3 b@4"]);
        assert_eq!(scene.problem(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_watch_with_many_changes_is_not_taken_for_a_streaming_list() {
    for http in BOTH {
        for change in [modified("a", 4), deleted("a", 4), crate::support::objects::bookmark(4)] {
            let busy = (0..100).fold(Answer::json(added("a", 3) + &change), |answer, at| {
                answer.after(seconds(1)).then_text(&modified("a", 5 + at))
            });
            let scene = play(
                http,
                [
                    busy.hang(),
                    Answer::json(list(10, &[("a", 9)])),
                    Answer::status(410, "Expired"),
                    Answer::json(list(20, &[("a", 9)])),
                ],
            );
            pass(seconds(11)).await;
            assert_eq!(scene.reported(), ["list 10: a@9"]);
            pass(seconds(10)).await;
            let again = ["stream", "list 500", "watch from 10", "list 500", "watch from 20"];
            assert_eq!(scene.asked(), again, "it is not asked for a stream again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_past_is_refused_until_the_server_has_caught_up() {
    let scene = play(
        Http::One,
        [
            Answer::json(streamed(20, &[("a", 3), ("b", 15)])),
            Answer::status(410, "Expired"),
            Answer::json(streamed(12, &[("a", 3)])).hang(),
            Answer::json(streamed(25, &[("a", 3), ("b", 15)])).hang(),
        ],
    );
    pass(seconds(20)).await;
    assert_eq!(scene.reported(), ["list 20: a@3 b@15", "list 25: a@3 b@15"], "b was never gone");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_restored_from_a_backup_is_believed_after_a_minute() {
    let scene = play(
        Http::One,
        [Answer::json(streamed(20, &[("a", 3), ("b", 15)])), Answer::status(410, "Expired")]
            .into_iter()
            .chain((0..30).map(|_| Answer::json(streamed(12, &[("a", 3)])).hang())),
    );
    pass(seconds(55)).await;
    assert_eq!(scene.reported(), ["list 20: a@3 b@15"]);
    pass(seconds(60)).await;
    assert_eq!(scene.reported(), ["list 20: a@3 b@15", "list 12: a@3"]);
}
