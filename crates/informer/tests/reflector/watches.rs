//! How changes come in: resumed, repeated, out of order, unreadable.

use crate::support::objects::{added, bookmark, deleted, error, event, list, modified, pod, streamed};
use crate::support::server::{Answer, BOTH, Http, Server};
use crate::support::{Scene, options, pass, play, seconds};
use steersman_informer::__internal::wire::OBJECT_BYTES_MAX;

#[tokio::test(start_paused = true)]
async fn a_graceful_end_is_followed_at_once_from_the_version_reached() {
    for http in BOTH {
        let scene = play(
            http,
            [
                Answer::json(streamed(10, &[("a", 3)])).after(seconds(300)).then_text(&modified("a", 11)),
                Answer::json(added("b", 12)).after(seconds(300)),
                Answer::json("").after(seconds(400)).then_text(&bookmark(50)),
                Answer::json(added("c", 51)).hang(),
            ],
        );
        pass(seconds(1050)).await;
        assert_eq!(scene.asked(), ["stream", "watch from 11", "watch from 12", "watch from 50"]);
        assert_eq!(scene.reported(), ["list 10: a@3", "~ a@11", "+ b@12", "at 50", "+ c@51"]);
        let times: Vec<_> = scene.server.times().iter().map(|time| time.round() as u64).collect();
        assert_eq!(times, [0, 300, 600, 1000], "no wait in between");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_may_wait_are_gathered_and_none_is_lost() {
    let tenths = |tenths: u64| std::time::Duration::from_millis(100 * tenths);
    for http in BOTH {
        let answers = [
            Answer::json(streamed(10, &[]))
                .after(seconds(5))
                .then_text(&added("a", 11))
                .after(tenths(3))
                .then_text(&modified("a", 12))
                .after(tenths(3))
                .then_text(&added("b", 13))
                .after(tenths(2)),
            Answer::json(added("c", 14)).hang(),
        ];
        let mut options = options();
        options.gather = seconds(1);
        let scene: Scene = Scene::start(Server::in_turn(http, answers), options);
        pass(tenths(51)).await;
        assert_eq!(scene.reported(), ["list 10:", "+ a@11"], "the first change after a pause does not wait");
        pass(tenths(8)).await;
        assert_eq!(scene.reported().len(), 2, "others wait, and so does the end of the watch");
        assert_eq!(scene.asked().len(), 1);
        pass(tenths(2)).await;
        assert_eq!(scene.reported(), ["list 10:", "+ a@11", "~ a@12", "+ b@13", "+ c@14"]);
        assert_eq!(scene.asked(), ["stream", "watch from 13"]);
    }
}

#[tokio::test(start_paused = true)]
async fn timeouts_are_drawn_from_five_to_ten_minutes() {
    let scene = play(Http::One, (0..60).map(|at| Answer::json(streamed(10 + at, &[])).after(seconds(2))));
    pass(seconds(100)).await;
    let timeouts: Vec<u64> = scene
        .server
        .requests()
        .iter()
        .map(|asked| asked.url.split("timeoutSeconds=").nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(timeouts.len() > 40 && timeouts.iter().all(|timeout| (300..=600).contains(timeout)), "{timeouts:?}");
    assert!(timeouts.iter().max() > timeouts.iter().min());
    assert!(scene.server.requests().iter().all(|asked| asked.encoding == "identity"));
}

#[tokio::test(start_paused = true)]
async fn a_very_short_watch_backs_off() {
    let scene = play(
        Http::One,
        [
            Answer::json(streamed(10, &[])).after(seconds(2)),
            Answer::json(""),
            Answer::json(""),
            Answer::json(added("a", 11)),
            Answer::json(""),
        ],
    );
    pass(seconds(60)).await;
    let times = scene.server.times();
    assert!((0.8..1.6).contains(&(times[2] - times[1])), "{times:?}");
    assert!((1.6..3.2).contains(&(times[3] - times[2])), "{times:?}");
    assert!(times[4] - times[3] < 0.01, "an event makes it a watch: {times:?}");
    assert!((3.2..6.4).contains(&(times[5] - times[4])), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_alone_move_the_version_on() {
    for http in BOTH {
        let scene = play(
            http,
            [
                Answer::json(streamed(10, &[("a", 3)]) + &bookmark(20) + &bookmark(30)).after(seconds(2)),
                Answer::json(bookmark(40)).after(seconds(2)),
            ],
        );
        pass(seconds(5)).await;
        assert_eq!(scene.asked(), ["stream", "watch from 30", "watch from 40"]);
        assert_eq!(scene.reported(), ["list 10: a@3", "at 20", "at 30", "at 40"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_of_a_lagging_server_does_not_go_back() {
    let scene = play(Http::One, [Answer::json(streamed(100, &[]) + &bookmark(90)).after(seconds(2))]);
    pass(seconds(3)).await;
    assert_eq!(scene.reported(), ["list 100:"]);
    assert_eq!(scene.asked(), ["stream", "watch from 100"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_followed_by_a_list_in_a_status_or_as_an_event() {
    for http in BOTH {
        for expired in
            [Answer::status(410, "Expired"), Answer::status(410, "Gone"), Answer::json(error(410, "Expired"))]
        {
            let scene = play(
                http,
                [
                    Answer::json(streamed(10, &[("a", 3), ("b", 4)])),
                    expired,
                    Answer::json(streamed(90, &[("b", 4), ("c", 80)])).hang(),
                ],
            );
            pass(seconds(5)).await;
            assert_eq!(scene.asked(), ["stream", "watch from 10", "stream"]);
            assert_eq!(scene.reported(), ["list 10: a@3 b@4", "list 90: b@4 c@80"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_before_an_error_event_are_kept() {
    let scene = play(
        Http::One,
        [
            Answer::json(streamed(10, &[]) + &added("a", 11) + &error(500, "InternalError") + &added("never", 12))
                .hang(),
            Answer::json(added("b", 12)).hang(),
        ],
    );
    pass(seconds(5)).await;
    assert_eq!(scene.asked(), ["stream", "watch from 11"]);
    assert_eq!(scene.reported(), ["list 10:", "+ a@11", "+ b@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_gets_the_time_it_asks_for() {
    for http in BOTH {
        let busy = |after: &str| Answer::status(429, "TooManyRequests").header("retry-after", after);
        let scene = play(http, [busy("20"), Answer::json(streamed(10, &[])).after(seconds(2)), busy("40"), busy("1")]);
        pass(seconds(100)).await;
        let times = scene.server.times();
        assert_eq!(scene.asked()[..2], ["stream", "stream"]);
        assert!((20.0..20.1).contains(&times[1]), "{times:?}");
        assert!((40.0..40.1).contains(&(times[3] - times[2])), "{times:?}");
        assert!((3.2..6.4).contains(&(times[4] - times[3])), "a second is less than the back-off: {times:?}");
        assert_eq!(scene.asked()[4], "watch from 10");
    }
}

#[tokio::test(start_paused = true)]
async fn broken_servers_are_asked_less_and_less_often() {
    for http in BOTH {
        for broken in [Answer::status(500, "InternalError"), Answer::text(502, "<html>"), Answer::down()] {
            let ok = Answer::json(streamed(10, &[])).after(seconds(2));
            let scene = play(http, [ok].into_iter().chain((0..20).map(|_| broken.clone())));
            pass(seconds(400)).await;
            let times = scene.server.times();
            let waits: Vec<f64> = times[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
            for (wait, base) in waits.iter().zip([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]) {
                assert!((base..2.01 * base).contains(wait), "{waits:?}");
            }
            assert!(scene.problem().unwrap().starts_with("Unreachable"), "{:?}", scene.problem());
            assert!(scene.asked()[1..].iter().all(|asked| asked == "watch from 10"), "nothing was lost");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_quiet_minutes_reset_the_back_off() {
    let scene = play(
        Http::One,
        [
            Answer::status(429, ""),
            Answer::status(429, ""),
            Answer::status(429, ""),
            Answer::json(streamed(10, &[])).after(seconds(200)),
            Answer::status(500, ""),
        ],
    );
    pass(seconds(300)).await;
    let times = scene.server.times();
    assert!((0.8..1.6).contains(&(times[5] - times[4])), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_too_large_backs_off_and_then_lists_consistently() {
    for http in BOTH {
        let too_large = r#"{"kind":"Status","code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 10, current: 5",
            "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":3}}"#;
        let body = too_large.replace('\n', " ");
        let scene = play(
            http,
            [
                Answer::json(streamed(10, &[("a", 3)])).after(seconds(2)),
                Answer::json(event("ERROR", &body)),
                Answer::json(streamed(12, &[("a", 3)])).hang(),
            ],
        );
        pass(seconds(10)).await;
        assert_eq!(scene.asked(), ["stream", "watch from 10", "stream"]);
        let times = scene.server.times();
        assert!((3.0..3.1).contains(&(times[2] - times[1])), "{times:?}");
        assert_eq!(scene.reported(), ["list 10: a@3", "list 12: a@3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn duplicates_and_late_events_change_nothing() {
    for http in BOTH {
        let events = [
            modified("a", 12),
            modified("a", 12), // a duplicate
            modified("a", 11), // late
            added("b", 13),
            deleted("b", 14),
            modified("b", 13), // late: does not bring it back
            deleted("b", 14),  // again
            deleted("a", 9),   // late
            added("b", 15),    // in the selector again
        ];
        let scene = play(http, [Answer::json(streamed(10, &[("a", 3)]) + &events.concat()).hang()]);
        pass(seconds(1)).await;
        assert_eq!(scene.reported(), ["list 10: a@3", "~ a@12", "+ b@13", "- b@14", "+ b@15"]);
        assert_eq!(scene.holds(), ["a@12", "b@15"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_line_restarts_the_watch_and_then_the_list() {
    let table: [(&str, String, &str); 9] = [
        ("not JSON", "hello\n".into(), "not a JSON object at byte"),
        ("half an object", "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"\n".into(), "incomplete value"),
        (
            "bad JSON in the object",
            event("ADDED", r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":tru}}"#),
            "expected ident",
        ),
        (
            "another kind",
            event("ADDED", &pod("x", 12).replace("\"Pod\"", "\"Service\"")),
            "expected Pod of v1, the server sent Service of v1",
        ),
        ("another version", event("ADDED", &pod("x", 12).replace("\"v1\"", "\"v2\"")), "the server sent Pod of v2"),
        ("a table", event("ADDED", r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1"}"#), "the server sent Table"),
        ("no type", format!("{{\"object\":{}}}\n", pod("x", 12)), "it has no type"),
        ("an unknown type", event("CHANGED", &pod("x", 12)), "unknown type \"CHANGED\""),
        ("two documents", format!("{} {{}}\n", added("x", 12).trim()), "something follows the object"),
    ];
    for http in BOTH {
        for (name, line, want) in &table {
            let scene = play(
                http,
                [
                    Answer::json(streamed(10, &[("a", 3)]) + &added("b", 11) + line + &added("never", 13)).hang(),
                    Answer::json(line.clone()).hang(),
                    Answer::json(streamed(20, &[("a", 3), ("b", 11), ("c", 19)])).hang(),
                ],
            );
            pass(seconds(1) / 2).await;
            let problem = scene.problem().unwrap_or_default();
            assert!(problem.starts_with("BadAnswer") && problem.contains(want), "{name}: {problem}");
            assert_eq!(scene.holds(), ["a@3", "b@11"], "{name}");
            pass(seconds(30)).await;
            assert_eq!(scene.asked(), ["stream", "watch from 11", "stream"].map(str::to_owned), "{name}");
            assert_eq!(scene.reported()[2..], ["list 20: a@3 b@11 c@19"], "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_bound_is_an_error_and_not_a_full_memory() {
    let chunk = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let endless = (0..=OBJECT_BYTES_MAX >> 20)
        .fold(Answer::json(streamed(10, &[("a", 3)])), |answer, _| answer.then(chunk.clone()));
    let scene = play(Http::One, [endless.hang(), Answer::json(added("b", 11)).hang()]);
    pass(seconds(1) / 2).await;
    assert_eq!(scene.problem().unwrap(), "BadAnswer: a line of a watch is larger than 67108864 bytes");
    pass(seconds(5)).await;
    assert_eq!(scene.asked(), ["stream", "watch from 10"]);
    assert_eq!(scene.holds(), ["a@3", "b@11"]);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_vanishes_is_listed_when_it_is_back() {
    let scene = play(
        Http::One,
        [
            Answer::json(streamed(10, &[("a", 3)])).after(seconds(2)),
            Answer::text(404, "404 page not found"),
            Answer::text(404, "404 page not found"),
            Answer::json(streamed(50, &[("b", 40)])).hang(),
        ],
    );
    pass(seconds(3)).await;
    assert!(scene.problem().unwrap().starts_with("NotFound: the server answered 404: 404 page not found"));
    pass(seconds(20)).await;
    assert_eq!(scene.asked(), ["stream", "watch from 10", "stream", "stream"]);
    assert_eq!(scene.reported(), ["list 10: a@3", "list 50: b@40"]);
}

#[tokio::test(start_paused = true)]
async fn one_seed_is_one_run() {
    let times = async |seed| {
        let server = Server::in_turn(Http::One, (0..10).map(|_| Answer::down()).chain([Answer::json(list(1, &[]))]));
        let mut options = options();
        options.seed = Some(seed);
        let scene: Scene = Scene::start(server, options);
        pass(seconds(300)).await;
        scene.server.times()
    };
    assert_eq!(times(1).await, times(1).await);
    assert_ne!(times(1).await, times(2).await);
}
