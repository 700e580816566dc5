//! Logs of pods, from whoever has them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::json;
use steersman_apiserver::logs::{Line, Log, Logs, NoLog, Wanted};
use steersman_apiserver::{ApiServer, Options};
use steersman_base::{Clock, MicroTime};
use tower::ServiceExt;

use crate::support::{ask, pod};

/// Every container has said two words, and says more later; those of the pod `mute` have no log.
struct Talkers;

impl Logs for Talkers {
    fn open(&self, wanted: &Wanted) -> Result<Log, NoLog> {
        if wanted.pod == "mute" {
            return Err(NoLog("it says nothing".into()));
        }
        let said = |text: &str| Line { time: MicroTime::from_unix_micros(0), text: text.to_owned() };
        let later = futures::stream::iter([said("later"), said("last")]).then(|line| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            line
        });
        let lines = vec![said(&format!("{}/{}", wanted.pod, wanted.container)), said(&wanted.node)];
        Ok(Log { lines, more: Some(later.boxed()) })
    }
}

async fn server() -> ApiServer {
    let clock = Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
    let server = ApiServer::new(Options::default().clock(clock).logs(Arc::new(Talkers)));
    ask(&server, "POST", "/api/v1/nodes", Some(json!({"metadata": {"name": "n1"}}))).await.expect(201);
    for name in ["web", "mute"] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = "n1".into();
        ask(&server, "POST", "/api/v1/namespaces/default/pods", Some(pod)).await.expect(201);
    }
    server
}

async fn run(server: &ApiServer, pod: &str, state: serde_json::Value) {
    let status = json!({"status": {"phase": "Running", "containerStatuses": [
        {"name": "c", "image": "nginx", "imageID": "", "ready": true, "restartCount": 0, "state": state},
    ]}});
    ask(server, "PATCH", &format!("/api/v1/namespaces/default/pods/{pod}/status"), Some(status)).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_log_is_what_its_owner_says() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/pods/web/log";
    run(&server, "web", json!({"waiting": {"reason": "ContainerCreating"}})).await;
    let refused = ask(&server, "GET", path, None).await.expect(400);
    assert_eq!(refused["message"], "container \"c\" in pod \"web\" is waiting to start: ContainerCreating");
    run(&server, "web", json!({"running": {}})).await;
    assert_eq!(ask(&server, "GET", path, None).await.expect(200), "web/c\nn1\n");
    assert_eq!(ask(&server, "GET", &format!("{path}?tailLines=1"), None).await.expect(200), "n1\n");
    let refused = ask(&server, "GET", &format!("{path}?previous=true"), None).await.expect(400);
    assert_eq!(refused["message"], "previous terminated container \"c\" in pod \"web\" not found");
    run(&server, "mute", json!({"running": {}})).await;
    let refused = ask(&server, "GET", "/api/v1/namespaces/default/pods/mute/log", None).await.expect(400);
    assert_eq!(refused["message"], "it says nothing");
}

#[tokio::test(start_paused = true)]
async fn who_follows_gets_lines_as_they_come() {
    let server = server().await;
    run(&server, "web", json!({"running": {}})).await;
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true&tailLines=0";
    let request = http::Request::get(path).body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let mut body = server.clone().oneshot(request).await.unwrap().into_body();
    let start = tokio::time::Instant::now();
    for (second, want) in [(5, "later\n"), (10, "last\n")] {
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), want);
        assert_eq!(start.elapsed().as_secs(), second);
    }
    assert!(body.frame().await.is_none(), "it ends with the container");
}
