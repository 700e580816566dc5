use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use steersman_base::Time;
use tower::Service as _;

use super::*;

#[tokio::test(start_paused = true)]
async fn objects_are_recorded_without_their_managers() {
    let clock = Clock::starting_at(Time::from_unix(0));
    let (mut server, recorder) = Recorder::server(&clock, invariants::Options::default(), None, 0);
    let request = Request::post("/api/v1/namespaces").header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(br#"{"metadata":{"name":"made","labels":{"a":"b"}}}"#.to_vec())).unwrap();
    assert!(server.call(request).await.unwrap().status().is_success());
    let request = Request::get("/api/v1/namespaces/made").body(Body::from(Vec::new())).unwrap();
    let answer = server.call(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let mut wanted: Value = serde_json::from_slice(&answer).unwrap();
    assert!(wanted["metadata"].as_object_mut().unwrap().remove("managedFields").is_some());
    let recorded = recorder.finish().objects;
    let (_, tree) = &recorded[&("namespaces".into(), ObjectKey::new("", "made"))];
    assert_eq!(**tree, wanted);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_in_the_decision_log_is_found() {
    let clock = Clock::starting_at(Time::from_unix(0));
    let (mut server, recorder) = Recorder::server(&clock, invariants::Options::default(), None, 0);
    let request = Request::post("/api/v1/namespaces").header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(br#"{"metadata":{"name":"made"}}"#.to_vec())).unwrap();
    let by = Actor::Controller { manager: 0, name: "bakery".into() };
    let answer = ASKED_BY.scope((by, None), async move { server.call(request).await }).await;
    assert!(answer.unwrap().status().is_success());
    recorder.check_reasons(&BTreeMap::from([(1, Log::new(clock.clone()))]));
    let told = |recorded: Recorded| {
        let violations = recorded.violations.into_iter();
        violations.filter(|violation| violation.invariant == invariants::REASONS).count()
    };
    assert_eq!(told(recorder.finish()), 0, "that manager wrote nothing");
    recorder.check_reasons(&BTreeMap::from([(0, Log::new(clock))]));
    assert_eq!(told(recorder.finish()), 1);
}

#[test]
fn an_event_about_what_is_waited_for_may_come_again() {
    let event = |reason: &str, message: &str| serde_json::json!({ "reason": reason, "message": message });
    let no_scale =
        "Failed to calculate the number of expected pods: jobs.batch does not implement the scale subresource";
    assert!(is_reminder(&event("CalculateExpectedPodCountFailed", no_scale)));
    assert!(is_reminder(&event("FailedCreate", "create Claim data-db-0 for Pod db-0: data-db-0 is being deleted")));
    assert!(!is_reminder(&event("FailedCreate", "create Pod db-0: refused")));
    assert!(!is_reminder(&event("SuccessfulCreate", "create Pod db-0")));
}
