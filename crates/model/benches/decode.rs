//! How fast views are decoded, and how much is kept of each object: `cargo bench -p steersman-model`.
//!
//! Speeds stand beside `k8s_openapi`'s in the same run; compare the ratios, not the seconds. One line of JSON per figure.
//! With an argument, only figures whose name contains it are taken: `cargo bench -p steersman-model -- pod_protobuf`.

use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steersman_base::Meta;
use steersman_model::corpus::Corpus;
use steersman_model::{Encoded, PodView, ReplicaSetView, View};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PODS: usize = 30_000;
const REPLICA_SETS: usize = 6_000;
/// The peer is slow and its figure steady, so it decodes fewer.
const PEER_OBJECTS: usize = 6_000;
const SEED: u64 = 1;
/// Each speed is the best of some rounds: the least disturbed one.
const ROUNDS: usize = 5;

/// One kind of object in one encoding.
struct Subject<'a> {
    name: &'static str,
    bodies: &'a [Vec<u8>],
    encoded: fn(&[u8]) -> Encoded<'_>,
}

fn main() {
    let corpus = Corpus::new(SEED);
    let bodies = |count, body: &dyn Fn(usize) -> Vec<u8>| (0..count).map(body).collect::<Vec<_>>();
    let pods = &bodies(PODS, &|index| corpus.pod(index).into());
    let sets = &bodies(REPLICA_SETS, &|index| corpus.replica_set(index).into());
    let metadata = &bodies(PODS, &|index| corpus.pod_metadata(index).into());
    let pods_protobuf = &bodies(PODS, &|index| corpus.pod_protobuf(index));
    let metadata_protobuf = &bodies(PODS, &|index| corpus.pod_metadata_protobuf(index));

    // What is kept comes first: later the pools know the strings already.
    let json = |name, bodies| Subject { name, bodies, encoded: |body| Encoded::Json(body) };
    let protobuf = |name, bodies| Subject { name, bodies, encoded: |body| Encoded::Protobuf(body) };
    let pod = [json("pod_json", pods), protobuf("pod_protobuf", pods_protobuf)];
    let meta = [json("metadata_json", metadata), protobuf("metadata_protobuf", metadata_protobuf)];
    let set = [json("replica_set_json", sets)];
    pod.iter().for_each(Subject::keep::<PodView>);
    meta.iter().for_each(Subject::keep::<Meta>);
    set.iter().for_each(Subject::keep::<ReplicaSetView>);

    let peer = peer::<Pod>("pod", pods);
    pod.iter().for_each(|subject| subject.speed::<PodView>(peer));
    meta.iter().for_each(|subject| subject.speed::<Meta>(peer));
    let peer = self::peer::<ReplicaSet>("replica_set", sets);
    set.iter().for_each(|subject| subject.speed::<ReplicaSetView>(peer));
}

impl Subject<'_> {
    /// Size of the bodies, and requested bytes that stay allocated for each object, pools included.
    fn keep<V: View>(&self) {
        let name = self.name;
        if is_wanted(name) {
            let size = self.bodies.iter().map(Vec::len).sum::<usize>();
            report(&format!("size/{name}"), size as f64 / self.bodies.len() as f64, "bytes");
            report(&format!("kept/{name}"), kept(self.bodies, |body| self.decode::<V>(body)), "bytes");
        }
    }

    /// How many are decoded in a second, how many times the peer's figure that is, and what it allocates on the way.
    fn speed<V: View>(&self, peer: f64) {
        let Self { name, bodies, .. } = self;
        if is_wanted(name) {
            let rate = rate(bodies, |body| self.decode::<V>(body));
            report(&format!("speed/{name}"), rate, "objects/s");
            report(&format!("speed/{name}/times_k8s_openapi"), rate / peer, "×");
            let region = Region::new(ALLOCATOR);
            bodies.iter().for_each(|body| drop(self.decode::<V>(body)));
            let change = region.change();
            let count = (change.allocations + change.reallocations) as f64 / bodies.len() as f64;
            report(&format!("allocations/{name}"), count, "allocations");
        }
    }

    fn decode<V: View>(&self, body: &[u8]) -> Arc<V> {
        Arc::new(V::decode((self.encoded)(body)).unwrap_or_else(|error| panic!("{error}")))
    }
}

/// The peer: `k8s_openapi` with `serde_json`. Returns how many it decodes in a second.
fn peer<T: serde::de::DeserializeOwned>(name: &str, bodies: &[Vec<u8>]) -> f64 {
    let bodies = &bodies[..PEER_OBJECTS.min(bodies.len())];
    let decode = |body: &[u8]| serde_json::from_slice::<T>(body).unwrap_or_else(|error| panic!("{error}"));
    report(&format!("kept/{name}_k8s_openapi"), kept(bodies, decode), "bytes");
    let rate = rate(bodies, decode);
    report(&format!("speed/{name}_k8s_openapi"), rate, "objects/s");
    rate
}

fn kept<T>(bodies: &[Vec<u8>], mut decode: impl FnMut(&[u8]) -> T) -> f64 {
    let mut objects = Vec::with_capacity(bodies.len());
    let region = Region::new(ALLOCATOR);
    objects.extend(bodies.iter().map(|body| decode(body)));
    let change = region.change();
    drop(black_box(objects));
    (change.bytes_allocated as f64 - change.bytes_deallocated as f64) / bodies.len() as f64
}

/// Objects in a second, in the best round. Objects are kept, as a store keeps them, and freed between rounds.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn rate<T>(bodies: &[Vec<u8>], mut decode: impl FnMut(&[u8]) -> T) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut objects = Vec::with_capacity(bodies.len());
        let start = Instant::now();
        objects.extend(bodies.iter().map(|body| decode(body)));
        best = best.min(start.elapsed());
        drop(black_box(objects));
    }
    bodies.len() as f64 / best.as_secs_f64()
}

/// Whether a figure was asked for: all are, without an argument. `cargo bench` itself passes `--bench`.
fn is_wanted(name: &str) -> bool {
    std::env::args().skip(1).find(|argument| !argument.starts_with('-')).is_none_or(|only| name.contains(&only))
}

fn report(name: &str, value: f64, unit: &str) {
    println!(r#"{{"bench":"model/{name}","value":{value:.2},"unit":"{unit}"}}"#);
}
