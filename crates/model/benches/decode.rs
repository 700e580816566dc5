//! Measures how fast views are decoded, and how much memory each object takes: `cargo bench -p steersman-model`.
//!
//! Speeds stand beside `k8s_openapi`'s in the same run; compare the ratios, not the seconds. One line of JSON per figure.
//! With an argument, only figures whose name contains it are taken: `cargo bench -p steersman-model -- pod_protobuf`.

use std::alloc::System;
use std::hint::black_box;
use std::sync::{Arc, LazyLock};
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
    bodies: &'a Bodies,
    encoded: fn(&[u8]) -> Encoded<'_>,
}

/// Bodies, one after the other.
#[derive(Default)]
struct Bodies {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

fn main() {
    let corpus = Corpus::new(SEED);
    let pods = &Bodies::new(PODS, move |index| corpus.pod(index).into());
    let sets = &Bodies::new(REPLICA_SETS, move |index| corpus.replica_set(index).into());
    let metadata = &Bodies::new(PODS, move |index| corpus.pod_metadata(index).into());
    let pods_protobuf = &Bodies::new(PODS, move |index| corpus.pod_protobuf(index));
    let metadata_protobuf = &Bodies::new(PODS, move |index| corpus.pod_metadata_protobuf(index));

    // Memory is measured first: later the pools contain the strings already.
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

impl Bodies {
    /// Makes the bodies in a thread of their own, so that the allocator of this one starts out tidy.
    fn new(count: usize, body: impl Fn(usize) -> Vec<u8> + Send + 'static) -> Self {
        let make = move || {
            let mut bodies = Self::default();
            for index in 0..count {
                bodies.bytes.extend(body(index));
                bodies.ends.push(bodies.bytes.len());
            }
            bodies
        };
        std::thread::spawn(make).join().unwrap_or_else(|_| panic!("the corpus cannot be made"))
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end])
    }

    fn len(&self) -> usize {
        self.ends.len()
    }
}

impl Subject<'_> {
    /// Size of the bodies, and requested bytes that stay allocated for each object, pools included.
    fn keep<V: View>(&self) {
        let name = self.name;
        if is_wanted(name) {
            let size = self.bodies.bytes.len() as f64 / self.bodies.len() as f64;
            report(&format!("size/{name}"), size, "bytes");
            report(
                &format!("kept/{name}"),
                kept(self.bodies, self.bodies.len(), |body| self.decode::<V>(body)),
                "bytes",
            );
        }
    }

    /// Decoded objects per second, the ratio to the peer, and allocations.
    fn speed<V: View>(&self, peer: f64) {
        let Self { name, bodies, .. } = self;
        if is_wanted(name) {
            let rate = rate(bodies, bodies.len(), |body| self.decode::<V>(body));
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
fn peer<T: serde::de::DeserializeOwned>(name: &str, bodies: &Bodies) -> f64 {
    let decode = |body: &[u8]| serde_json::from_slice::<T>(body).unwrap_or_else(|error| panic!("{error}"));
    report(&format!("kept/{name}_k8s_openapi"), kept(bodies, PEER_OBJECTS, decode), "bytes");
    let rate = rate(bodies, PEER_OBJECTS, decode);
    report(&format!("speed/{name}_k8s_openapi"), rate, "objects/s");
    rate
}

fn kept<T>(bodies: &Bodies, count: usize, mut decode: impl FnMut(&[u8]) -> T) -> f64 {
    let mut objects = Vec::with_capacity(count);
    let region = Region::new(ALLOCATOR);
    objects.extend(bodies.iter().take(count).map(&mut decode));
    let change = region.change();
    drop(black_box(objects));
    (change.bytes_allocated as f64 - change.bytes_deallocated as f64) / count as f64
}

/// Objects in a second of processor time, in the best round. Objects are kept, as a store keeps them, and freed between
/// rounds.
fn rate<T>(bodies: &Bodies, count: usize, mut decode: impl FnMut(&[u8]) -> T) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut objects = Vec::with_capacity(count);
        let start = processor_time();
        objects.extend(bodies.iter().take(count).map(&mut decode));
        best = best.min(processor_time() - start);
        drop(black_box(objects));
    }
    count as f64 / best.as_secs_f64()
}

/// Returns the CPU time of this thread, so that other processes disturb less; wall time where Linux does not report it.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn processor_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let reported = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = reported.and_then(|text| text.split(' ').next().and_then(|nanos| nanos.parse().ok()));
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Whether a figure was requested: all are, without an argument. `cargo bench` itself passes `--bench`.
fn is_wanted(name: &str) -> bool {
    std::env::args().skip(1).find(|argument| !argument.starts_with('-')).is_none_or(|only| name.contains(&only))
}

fn report(name: &str, value: f64, unit: &str) {
    println!(r#"{{"bench":"model/{name}","value":{value:.2},"unit":"{unit}"}}"#);
}
