//! JSON and protobuf, whole objects and metadata.

use crate::support::server::{Answer, BOTH, Http, Server};
use crate::support::{Scene, objects, options, pass, play, protobuf, seconds};
use steersman_base::Meta;

#[tokio::test(start_paused = true)]
async fn protobuf_and_json_give_the_same() {
    for http in BOTH {
        let items = [("a", 3), ("b", 4)];
        let json = [
            Answer::status(400, ""),
            Answer::json(objects::page(10, "x", &items)),
            Answer::json(objects::page(10, "", &[("c", 5)])),
            Answer::json(objects::modified("a", 11) + &objects::deleted("b", 12) + &objects::bookmark(20))
                .after(seconds(2)),
            Answer::json(objects::error(410, "Expired")),
            Answer::json(objects::list(30, &[("a", 11)])),
        ];
        let frames =
            [protobuf::event("MODIFIED", "a", 11), protobuf::event("DELETED", "b", 12), protobuf::bookmark(20, false)];
        let proto = [
            Answer::status(400, ""),
            Answer::protobuf(protobuf::list(10, "x", &items)),
            Answer::protobuf(protobuf::list(10, "", &[("c", 5)])),
            Answer::protobuf(frames.concat()).after(seconds(2)),
            Answer::protobuf(protobuf::frame("ERROR", &protobuf::status(410, "Expired", "old", 0))),
            Answer::protobuf(protobuf::list(30, "", &[("a", 11)])),
        ];
        let json = play(http, json);
        let proto = play(http, proto);
        pass(seconds(2)).await;
        assert_eq!(json.reported(), ["list 10: a@3 b@4 c@5", "~ a@11", "- b@12", "at 20"]);
        assert_eq!(json.reported(), proto.reported());
        assert_eq!(json.recorder.objects(), proto.recorder.objects());
        pass(seconds(10)).await;
        assert_eq!(json.reported()[4..], ["list 30: a@11"]);
        assert_eq!(json.reported(), proto.reported());
        assert_eq!(json.asked(), proto.asked());
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_in_protobuf_becomes_the_watch() {
    for http in BOTH {
        let frames = [
            protobuf::event("ADDED", "a", 3),
            protobuf::event("ADDED", "b", 4),
            protobuf::bookmark(10, true),
            protobuf::event("ADDED", "c", 11),
        ];
        for size in [1, 7, 4096] {
            let scene = play(http, [Answer::protobuf(frames.concat()).in_pieces(size).hang()]);
            pass(seconds(1)).await;
            assert_eq!(scene.reported(), ["list 10: a@3 b@4", "+ c@11"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_protobuf_is_understood() {
    let refusal = |code, reason: &str, after| {
        let mut answer = Answer::protobuf(protobuf::status(code, reason, "told in protobuf", after));
        answer = answer.with_status(code);
        answer
    };
    let scene = play(Http::One, [refusal(429, "TooManyRequests", 25), refusal(500, "InternalError", 0)]);
    pass(seconds(24)).await;
    assert_eq!(scene.problem().unwrap(), "Throttled: the server answered 429 TooManyRequests: told in protobuf");
    pass(seconds(2)).await;
    assert!((25.0..25.1).contains(&scene.server.times()[1]));
    assert_eq!(scene.problem().unwrap(), "Unreachable: the server answered 500 InternalError: told in protobuf");
}

#[tokio::test(start_paused = true)]
async fn protobuf_of_another_kind_is_an_error() {
    let service = protobuf::frame("ADDED", &protobuf::envelope("v1", "Service", &protobuf::pod("a", 11)));
    let scene = play(Http::One, [Answer::protobuf([protobuf::bookmark(10, true), service].concat()).hang()]);
    pass(seconds(1) / 2).await;
    assert_eq!(scene.problem().unwrap(), "BadAnswer: expected Pod of v1, the server sent Service of v1");
    assert_eq!(scene.reported(), ["list 10:"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_encodings_asked_for_is_asked_for_plain_json() {
    for code in [406, 415] {
        let scene = play(
            Http::One,
            [Answer::status(code, "NotAcceptable"), Answer::json(objects::streamed(10, &[("a", 3)])).hang()],
        );
        pass(seconds(1) / 2).await;
        assert_eq!(scene.reported(), ["list 10: a@3"]);
        let accepts: Vec<_> = scene.server.requests().into_iter().map(|asked| asked.accept).collect();
        assert_eq!(accepts, ["application/vnd.kubernetes.protobuf, application/json", "application/json"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_nothing_is_not_asked_for_ever_without_a_wait() {
    let scene = play(Http::One, (0..9).map(|_| Answer::status(406, "NotAcceptable")));
    pass(seconds(1) / 2).await;
    assert!(scene.asked().len() <= 4, "{:?}", scene.asked());
    assert!(scene.problem().unwrap().starts_with("BadAnswer"));
}

#[tokio::test(start_paused = true)]
async fn metadata_is_asked_for_as_such_and_read_from_whole_objects_too() {
    let partial =
        objects::added("a", 3).replace("\"Pod\"", "\"PartialObjectMetadata\"").replace("\"v1\"", "\"meta.k8s.io/v1\"");
    let body = partial + &objects::added("b", 4) + &objects::synced(10);
    let scene: Scene<Meta> = Scene::start(Server::in_turn(Http::One, [Answer::json(body).hang()]), options());
    pass(seconds(1)).await;
    assert_eq!(scene.reported(), ["list 10: a@3 b@4"]);
    assert_eq!(
        scene.server.requests()[0].accept,
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, \
         application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_proxy_is_not_taken_for_a_list() {
    let scene = play(Http::One, [Answer::of_type("text/html; charset=utf-8", "<html>"), Answer::mute()]);
    pass(seconds(1) / 2).await;
    assert_eq!(
        scene.problem().unwrap(),
        "BadAnswer: expected JSON or protobuf, the server sent content of type text/html"
    );
}
