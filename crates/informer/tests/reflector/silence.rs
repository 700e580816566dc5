//! Servers that say nothing.

use crate::support::objects::{added, bookmark, list, streamed};
use crate::support::server::{Answer, BOTH, Http, Server};
use crate::support::{Scene, options, pass, play, seconds};

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_requests_and_says_nothing_is_given_up_in_under_a_minute() {
    for http in BOTH {
        let scene = play(http, [Answer::mute(), Answer::json(list(10, &[("a", 3)]))]);
        pass(seconds(60)).await;
        assert_eq!(scene.asked()[..2], ["stream", "list 500"]);
        assert_eq!(scene.reported(), ["list 10: a@3"]);
        assert!(scene.server.times()[1] < 60.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_stands_still_is_given_up() {
    for http in BOTH {
        let half = list(10, &[("a", 3), ("b", 4)]);
        let scene = play(
            http,
            [
                Answer::json(added("a", 3)).hang(),
                Answer::json(half[..half.len() / 2].to_owned()).hang(),
                Answer::json(streamed(11, &[("a", 3)])).hang(),
            ],
        );
        pass(seconds(130)).await;
        assert_eq!(scene.asked(), ["stream", "list 500", "stream"]);
        assert_eq!(scene.reported(), ["list 11: a@3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_noticed_in_under_a_minute() {
    // HTTP/2 pings; for HTTP/1.1 the same is TCP's work, which pipes in memory do not have.
    let scene = play(Http::Two, [Answer::json(streamed(10, &[("a", 3)])).hang()]);
    scene.server.otherwise(|_| Answer::json(added("b", 11)).hang());
    pass(seconds(100)).await;
    assert_eq!(scene.asked(), ["stream"], "a silent watch that answers pings is left alone");
    scene.server.unplug();
    pass(seconds(50)).await;
    assert!(scene.problem().unwrap().starts_with("Unreachable"), "{:?}", scene.problem());
    scene.server.plug_in();
    pass(seconds(100)).await;
    assert_eq!(scene.asked().last().unwrap(), "watch from 10");
    assert_eq!(scene.reported(), ["list 10: a@3", "+ b@11"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_for_longer_than_it_may_is_started_again() {
    for http in BOTH {
        let answers = [
            Answer::json(streamed(10, &[]))
                .after(seconds(30))
                .then_text(&bookmark(20))
                .after(seconds(30))
                .then_text(&bookmark(30))
                .hang(),
            Answer::json(added("a", 31)).hang(),
        ];
        let mut options = options();
        options.watch_patience = Some(seconds(45));
        let scene: Scene = Scene::start(Server::in_turn(http, answers), options);
        pass(seconds(100)).await;
        assert_eq!(scene.asked(), ["stream"], "its patience is not over");
        pass(seconds(10)).await;
        assert_eq!(scene.asked(), ["stream", "watch from 30"]);
        assert_eq!(scene.reported(), ["list 10:", "at 20", "at 30", "+ a@31"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_has_until_its_timeout() {
    let scene = play(
        Http::One,
        [
            Answer::status(400, ""),
            Answer::json(list(10, &[])),
            Answer::json("").hang(),
            Answer::json(added("a", 11)).hang(),
        ],
    );
    pass(seconds(300)).await;
    assert_eq!(scene.asked().len(), 3, "it may be silent because nothing happens");
    pass(seconds(340)).await;
    assert_eq!(scene.asked()[3], "watch from 10", "but not beyond the timeout that it was given");
    assert_eq!(scene.reported(), ["list 10:", "+ a@11"]);
}
