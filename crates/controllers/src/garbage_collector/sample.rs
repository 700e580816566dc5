//! A graph for measurements: any number of objects, in families as Deployments create them.

use steersman_base::meta::Owners;
use steersman_base::{Istr, Meta, OwnerRef, Uid};

use super::graph::{Graph, Work};
use super::identity::Kind;

/// Builds a graph of this many objects: pods, in ReplicaSets of 40, in Deployments of 5 ReplicaSets. Dependents are
/// added first, as when lists arrive in the order of groups. Returns the number of objects, and of those still to be
/// checked.
#[doc(hidden)]
#[must_use]
pub fn sample_graph(objects: usize) -> SampleGraph {
    const PODS: usize = 40;
    const SETS: usize = 5;
    let kind = |api_version: &str, kind: &str| Kind { api_version: api_version.into(), kind: kind.into() };
    let kinds = [kind("v1", "Pod"), kind("apps/v1", "ReplicaSet"), kind("apps/v1", "Deployment")];
    let uid = |level: usize, n: usize| Uid::from_bytes(((level as u128) << 64 | n as u128).to_be_bytes());
    let name =
        |level: usize, n: usize| Istr::new(&format!("{}-{n:012}-5f8d7c9b6d", ["pod", "set", "deployment"][level]));
    let sizes = [PODS, SETS, usize::MAX];
    let sets = objects / (PODS + 1);
    let deployments = sets / (SETS + 1);
    let counts = [objects - sets - deployments, sets, deployments];
    let mut graph = Graph::default();
    let mut work = Work::default();
    for level in 0..3 {
        for n in 0..counts[level] {
            let parent = (n / sizes[level]).min(counts.get(level + 1).map_or(0, |count| count.saturating_sub(1)));
            let owner = |above: &Kind| OwnerRef {
                api_version: above.api_version.clone(),
                kind: above.kind.clone(),
                name: name(level + 1, parent),
                uid: uid(level + 1, parent),
                controller: Some(true),
                block_owner_deletion: Some(true),
            };
            let owners = Owners::new(kinds.get(level + 1).map(owner).into_iter().collect());
            let namespace = format!("namespace-{:04}", n / 1000);
            let meta = Meta {
                name: name(level, n),
                namespace: Istr::interned(&namespace),
                uid: uid(level, n),
                owner_references: owners,
                ..Meta::default()
            };
            graph.observed(&kinds[level], &meta, None, &mut work);
            work = Work::default();
        }
    }
    SampleGraph(graph)
}

/// See [`sample_graph`].
#[doc(hidden)]
#[derive(Debug)]
pub struct SampleGraph(Graph);

// === impl SampleGraph ===

impl SampleGraph {
    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
