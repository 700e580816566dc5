//! Groups that another part of the process serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use steersman_apiserver::aggregated::{Aggregated, AggregatedVersion};
use steersman_apiserver::{ApiServer, Options};

use crate::support::{ask, send};

/// A source that counts how often it is asked for its versions.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Aggregated for Counted {
    fn versions(&self) -> Vec<AggregatedVersion> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let group = "cakes.example.com".to_owned();
        vec![AggregatedVersion { group, version: "v1".to_owned(), resources: Vec::new() }]
    }

    fn get(&self, _: &str, _: &str) -> (u16, Value) {
        (200, json!({"kind": "CakeList"}))
    }
}

/// Metrics compute their versions from all pods: a request that did so would cost more, the larger the cluster.
#[tokio::test(start_paused = true)]
async fn a_request_for_objects_does_not_have_the_aggregated_versions_computed() {
    let source = Arc::new(Counted::default());
    let aggregated: Arc<dyn Aggregated> = Arc::clone(&source) as _;
    let server = ApiServer::new(Options::default().aggregated(aggregated));
    let before = source.0.load(Ordering::Relaxed);
    ask(&server, "GET", "/api/v1/pods", None).await.expect(200);
    let cakes = ask(&server, "GET", "/apis/cakes.example.com/v1/namespaces/default/cakes", None).await.expect(200);
    assert_eq!(cakes["kind"], "CakeList");
    ask(&server, "GET", "/apis/cakes.example.com/v2/namespaces/default/cakes", None).await.expect(404);
    assert_eq!(source.0.load(Ordering::Relaxed), before, "the versions are computed again");
}

/// A source whose resources come with time, as custom metrics do.
#[derive(Default)]
struct Growing(AtomicUsize);

impl Aggregated for Growing {
    fn versions(&self) -> Vec<AggregatedVersion> {
        let resource =
            |at: usize| json!({"name": format!("cakes-{at}"), "namespaced": true, "kind": "Cake", "verbs": ["get"]});
        let resources = (0..self.0.load(Ordering::Relaxed)).map(resource).collect();
        vec![AggregatedVersion { group: "cakes.example.com".to_owned(), version: "v1".to_owned(), resources }]
    }

    fn get(&self, _: &str, _: &str) -> (u16, Value) {
        (404, Value::Null)
    }
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_shows_resources_of_others_as_they_come() {
    let source = Arc::new(Growing::default());
    let aggregated: Arc<dyn Aggregated> = Arc::clone(&source) as _;
    let server = ApiServer::new(Options::default().aggregated(aggregated));
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for count in 0..3 {
        source.0.store(count, Ordering::Relaxed);
        let got = send(&server, "GET", "/apis", &[("accept", accept)], Vec::new()).await.expect(200);
        let groups = got["items"].as_array().unwrap();
        let cakes = groups.iter().find(|group| group["metadata"]["name"] == "cakes.example.com").unwrap();
        assert_eq!(cakes["versions"][0]["resources"].as_array().unwrap().len(), count);
    }
}
