//! The metrics APIs of simulated nodes: `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io`.
//!
//! 1. A running pod uses what its annotations `nodes.steersman.dev/cpu-usage` and `…/memory-usage` say, with
//!    `.<container>` behind the name for one container; without them, half of its requests. A node uses what its pods use.
//! 2. Custom metrics of pods are annotations too, `nodes.steersman.dev/metric.<name>`. Metrics of other objects, and
//!    external ones, are entries of the ConfigMap [`CONFIG_MAP`] of their namespace.
//! 3. What a test sets ([`Metrics::set_usage`], [`Metrics::set_external`], [`Metrics::set_object`]) comes before both.
//! 4. Every response is computed from the caches when it is requested: nothing is sampled, nothing is stored, and a
//!    change is visible at once.
//! 5. A ConfigMap that cannot be parsed is the response to every request for custom and external metrics of its namespace: an
//!    autoscaler shows it in its condition.
//!
//! [`Aggregated::get`] is the whole API; an API server asks it directly, or through an `APIService` and a socket. Follows
//! `k8s.io/metrics` 0.37.1 and, in what `metrics.k8s.io` lists, metrics-server.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use steersman_base::aggregated::{Aggregated, AggregatedVersion};
use steersman_base::{Clock, Istr, ObjectKey, Quantity};
use steersman_informer::{Index, Lister, Selection, SharedInformer};
use steersman_model::core::{ConfigMapView, NodeView};
use steersman_runtime::BuildContext;

use crate::fleet::Fleet;
use crate::kubelet::node_of;
use crate::view::SimPodView;

mod api;
mod discovery;
mod path;
mod script;
#[cfg(test)]
mod tests;
mod usage;

pub(crate) use usage::is_usage;

use api::World;
use path::{Asked, Pods};
use script::{Script, Series, Subject};

/// The name of the ConfigMaps that script metrics: each value is a list of entries in YAML.
pub const CONFIG_MAP: &str = "simulated-metrics";

/// The source of the metrics APIs. Cheap to clone; clones share one state. It is empty until nodes are built with it
/// ([`NodesOptions::metrics`](crate::NodesOptions)).
#[derive(Clone, Default)]
pub struct Metrics(Arc<Shared>);

#[derive(Default)]
struct Shared {
    caches: OnceLock<Caches>,
    script: Mutex<Arc<Script>>,
}

/// The caches of the cluster's state.
struct Caches {
    pods: Lister<SimPodView>,
    pods_by_node: Index<Istr, SimPodView>,
    /// The pods whose annotations set custom metrics.
    pods_with_metrics: Index<(), SimPodView>,
    nodes: Lister<NodeView>,
    config_maps: Lister<ConfigMapView>,
    fleet: Fleet,
    clock: Clock,
}

/// A text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no quantity; write one as 42, 500m or 64Mi")]
pub struct NoQuantity(String);

// === impl Metrics ===

impl Metrics {
    /// Reads from the caches of these nodes. The first ones count.
    pub(crate) fn read_from(&self, cx: &BuildContext, pods: &SharedInformer<SimPodView>, fleet: &Fleet) {
        let mut selection = Selection::default();
        selection.fields = Some(Istr::interned(&format!("metadata.name={CONFIG_MAP}")));
        let caches = Caches {
            pods: pods.lister(),
            pods_by_node: pods.shared_index(node_of),
            pods_with_metrics: pods.shared_index(usage::with_metrics),
            nodes: cx.informers.informer::<NodeView>().lister(),
            config_maps: cx.informers.informer_in::<ConfigMapView>(selection).lister(),
            fleet: fleet.clone(),
            clock: cx.clock.clone(),
        };
        // Another set of nodes may have been first.
        let _ = self.0.caches.set(caches);
    }

    /// Sets the usage of each container of a pod, whatever its annotations say.
    ///
    /// # Errors
    /// A text is no quantity.
    pub fn set_usage(&self, namespace: &str, pod: &str, cpu: &str, memory: &str) -> Result<(), NoQuantity> {
        let used = (quantity(cpu)?, quantity(memory)?);
        Arc::make_mut(&mut self.0.script.lock()).usage.insert(ObjectKey::new(namespace, pod), used);
        Ok(())
    }

    /// Sets whether a pod whose usage nobody has set, by annotation or here, has one. If not, its metrics are missing, as they
    /// are from a kubelet that has not been scraped. By default it has.
    pub fn set_default_usage(&self, exists: bool) {
        Arc::make_mut(&mut self.0.script.lock()).no_defaults = !exists;
    }

    /// Sets an external metric of a namespace; one for each set of labels.
    ///
    /// # Errors
    /// The value is no quantity.
    pub fn set_external(
        &self,
        namespace: &str,
        metric: &str,
        labels: &[(&str, &str)],
        value: &str,
    ) -> Result<(), NoQuantity> {
        self.set(Series::new(namespace, Subject::External, metric, labels, quantity(value)?));
        Ok(())
    }

    /// Sets a custom metric of an object. The resource is written as `services` or `ingresses.networking.k8s.io`; that of
    /// the namespace itself is `namespaces`.
    ///
    /// # Errors
    /// The value is no quantity.
    pub fn set_object(
        &self,
        namespace: &str,
        (resource, name): (&str, &str),
        metric: &str,
        value: &str,
    ) -> Result<(), NoQuantity> {
        let subject = Subject::Object { resource: resource.to_owned(), name: name.to_owned() };
        self.set(Series::new(namespace, subject, metric, &[], quantity(value)?));
        Ok(())
    }

    fn set(&self, series: Series) {
        Arc::make_mut(&mut self.0.script.lock()).set(series);
    }

    /// Removes everything that was set here.
    pub fn reset(&self) {
        *self.0.script.lock() = Arc::default();
    }

    /// Returns what is known now, with these pods and nodes.
    fn world(&self, pods: Pods<'_>, nodes: Vec<Arc<NodeView>>) -> World {
        let script = Arc::clone(&self.0.script.lock());
        let Some(caches) = self.0.caches.get() else { return World { script, ..World::default() } };
        World {
            pods: caches.pods(pods),
            nodes,
            config_maps: caches.config_maps.list(),
            script,
            now: caches.clock.now(),
        }
    }
}

/// A path of discovery is responded to as well.
impl Aggregated for Metrics {
    fn versions(&self) -> Vec<AggregatedVersion> {
        discovery::versions(&self.world(Pods::WithMetrics, Vec::new()))
    }

    fn get(&self, path: &str, query: &str) -> (u16, Value) {
        let asked = path::parse(path);
        let nodes = match (&asked, self.0.caches.get()) {
            (Asked::Nodes { name }, Some(caches)) => caches.nodes(name.as_deref()),
            _ => Vec::new(),
        };
        api::get(&self.world(asked.pods(), nodes), &asked, query)
    }
}

// === impl Caches ===

impl Caches {
    /// Returns the pods on simulated nodes that are meant.
    fn pods(&self, meant: Pods<'_>) -> Vec<Arc<SimPodView>> {
        let is_simulated = |pod: &SimPodView| self.fleet.get(&pod.spec.node_name).is_some();
        let mut pods = match meant {
            Pods::None => Vec::new(),
            Pods::One(namespace, name) => self.pods.namespace(namespace).get(name).into_iter().collect(),
            Pods::Namespace(namespace) => self.pods.namespace(namespace).list(),
            Pods::Node(node) => self.pods_by_node.get(node),
            Pods::WithMetrics => self.pods_with_metrics.get(&()),
            Pods::All => return self.pods.filter(is_simulated),
        };
        pods.retain(|pod| is_simulated(pod));
        pods
    }

    /// Returns the working nodes: the one with this name, or all.
    fn nodes(&self, name: Option<&str>) -> Vec<Arc<NodeView>> {
        let is_working = |node: &NodeView| self.fleet.working(&node.metadata.name).is_some();
        match name {
            Some(name) => {
                let node = self.nodes.get(&ObjectKey::cluster(name));
                node.filter(|node| is_working(node)).into_iter().collect()
            }
            None => self.nodes.filter(is_working),
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn quantity(text: &str) -> Result<Quantity, NoQuantity> {
    text.parse().map_err(|_| NoQuantity(text.to_owned()))
}
