//! Connections that break at every byte.

use crate::support::objects::{added, bookmark, deleted, list, modified, page, streamed};
use crate::support::server::{Answer, BOTH, Http};
use crate::support::{pass, play, protobuf, seconds};

/// What the store holds in the end, however the way there was.
const END: [&str; 2] = ["a@11", "c@12"];

/// The versions of the world: a list at 10, then these changes.
fn changes_after(version: u64) -> String {
    [(11, modified("a", 11)), (12, added("c", 12)), (13, deleted("b", 13)), (20, bookmark(20))]
        .into_iter()
        .filter_map(|(at, line)| (at > version).then_some(line))
        .collect()
}

/// Plays a first answer that breaks, and a world that goes on where the reflector resumes.
async fn check(http: Http, broken: Answer, name: &str) {
    // What follows depends on what the reflector asks: the script has an answer for each way of asking.
    let scene = play(http, [broken]);
    scene.server.otherwise(|asked| match asked.split(' ').collect::<Vec<_>>()[..] {
        ["stream"] => Answer::json(streamed(10, &[("a", 3), ("b", 4)]) + &changes_after(10)).hang(),
        ["list", ..] => Answer::json(list(10, &[("a", 3), ("b", 4)])),
        ["watch", "from", version] => Answer::json(changes_after(version.parse().expect("a number"))).hang(),
        _ => unreachable!(),
    });
    pass(seconds(10)).await;
    assert_eq!(scene.holds(), END, "{name}: {:?} {:?}", scene.reported(), scene.asked());
    // The recorder fails if versions ever go back; here: no state is delivered twice, and nothing half.
    let mut reported = scene.reported();
    reported.dedup();
    assert_eq!(reported, scene.reported(), "{name}");
    let lists = reported.iter().filter(|line| line.starts_with("list")).count();
    assert_eq!(lists, 1, "{name}: what is not lost is not listed again: {reported:?}");
    assert!(reported[0].starts_with("list 10: a@3 b@4"), "{name}: {reported:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_cut_at_every_byte_loses_nothing_and_applies_nothing_twice() {
    let body = streamed(10, &[("a", 3), ("b", 4)]) + &changes_after(10);
    for http in BOTH {
        for at in 0..=body.len() {
            check(http, Answer::json(body.clone()).cut_body(at), &format!("{http:?}, body cut at {at}")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_at_every_byte_loses_nothing() {
    let body = streamed(10, &[("a", 3), ("b", 4)]) + &changes_after(10);
    for http in BOTH {
        // Heads and frames of HTTP/2 add some two hundred bytes.
        for at in 0..body.len() + 250 {
            let answer = Answer::json(body.clone()).in_pieces(100).hang().cut_wire(at);
            check(http, answer, &format!("{http:?}, wire cut at {at}")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_gracefully_at_every_byte_loses_nothing() {
    let body = streamed(10, &[("a", 3), ("b", 4)]) + &changes_after(10);
    for at in 0..=body.len() {
        check(Http::One, Answer::json(&body[..at]), &format!("ends at {at}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_protobuf_stream_cut_at_every_byte_loses_nothing() {
    let body = [
        protobuf::event("ADDED", "a", 3),
        protobuf::event("ADDED", "b", 4),
        protobuf::bookmark(10, true),
        protobuf::event("MODIFIED", "a", 11),
        protobuf::event("ADDED", "c", 12),
        protobuf::event("DELETED", "b", 13),
        protobuf::bookmark(20, false),
    ]
    .concat();
    for at in 0..=body.len() {
        check(Http::One, Answer::protobuf(body.clone()).cut_body(at), &format!("cut at {at}")).await;
        check(Http::One, Answer::protobuf(body[..at].to_vec()), &format!("ends at {at}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_cut_at_every_byte_is_asked_for_again() {
    let whole = [("a", 3), ("b", 4)];
    let pages = [
        (Answer::json(list(10, &whole)), list(10, &whole).len()),
        (Answer::protobuf(protobuf::list(10, "", &whole)), protobuf::list(10, "", &whole).len()),
    ];
    for http in BOTH {
        for (answer, length) in &pages {
            for at in 0..*length {
                // To end early is a matter of the body alone; to break is one of the protocol, too.
                let early = (http == Http::One).then(|| answer.clone().end_body(at));
                for broken in early.into_iter().chain([answer.clone().cut_body(at)]) {
                    let scene = play(http, [Answer::status(400, ""), broken]);
                    scene.server.otherwise(|asked| match asked {
                        "list 500" => Answer::json(page(10, "next", &[("a", 3)])),
                        "list 500 from next" => Answer::json(page(10, "", &[("b", 4)])),
                        _ => Answer::json("").hang(),
                    });
                    pass(seconds(5)).await;
                    assert_eq!(scene.reported(), ["list 10: a@3 b@4"], "{http:?}, at {at}");
                }
            }
        }
    }
}
