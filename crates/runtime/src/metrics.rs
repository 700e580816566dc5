//! The metrics of a manager, and their text format.
//!
//! 1. The text is Go's, byte for byte: families by name, series by label values, numbers as `strconv` prints them
//!    (`1e-08`, `9.999999999999999e-06`, `+Inf`). A comparison of two controller managers' scrapes shows different
//!    values, not different formats.
//! 2. Several registries are one page: families of one name are joined. Series that two registries both have are shown
//!    once, the first registry's; a family whose type differs is left out and logged, so that the page stays valid.
//! 3. Names, labels, help (with its stability level) and buckets are upstream's where upstream has the metric. Metrics
//!    of reconciles are controller-runtime's, those of the process client_golang's.
//! 4. Nothing is global: a registry belongs to a manager.
//! 5. The worker loop has one handle for metrics, health and profile, which costs a few atomic additions per pass.
//!
//! Text version 0.0.4 is the only format: kube-controller-manager has no OpenMetrics either, and every Prometheus
//! accepts it.

mod activity;
pub(crate) mod build;
mod families;
pub(crate) mod process;
mod reconcile;
mod reflector;
mod stability;
pub(crate) mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus::Registry;
use prometheus::proto::{Metric, MetricFamily};

pub(crate) use activity::Activity;
pub use families::{Families, FamilyError};
pub(crate) use process::process_cpu;
pub(crate) use reconcile::{ControllerMetrics, Outcome, ReconcileMetrics};
pub(crate) use reflector::ReflectorCounters;
pub(crate) use stability::Stability;

/// Registries that are shown on one page. Cheap to clone; clones are the same page.
#[derive(Clone, Default)]
pub struct Exposition(Arc<RwLock<Vec<Registry>>>);

// === impl Exposition ===

impl Exposition {
    /// Creates a page with one registry.
    #[must_use]
    pub fn of(registry: &Registry) -> Self {
        let page = Self::default();
        page.add(registry);
        page
    }

    /// Adds a registry.
    pub fn add(&self, registry: &Registry) {
        self.0.write().push(registry.clone());
    }

    /// Returns all current families, by name.
    #[must_use]
    pub fn gather(&self) -> Vec<MetricFamily> {
        // Collectors may take locks of their own: they run with ours released.
        let registries = self.0.read().clone();
        join(registries.iter().map(Registry::gather))
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn text(&self) -> String {
        text::encode(&self.gather())
    }
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposition").field("registries", &self.0.read().len()).finish()
    }
}

/// Joins families of one name.
fn join(gathered: impl IntoIterator<Item = Vec<MetricFamily>>) -> Vec<MetricFamily> {
    let mut families: BTreeMap<String, MetricFamily> = BTreeMap::new();
    for mut family in gathered.into_iter().flatten() {
        match families.entry(family.name().to_owned()) {
            Entry::Vacant(free) => drop(free.insert(family)),
            Entry::Occupied(mut taken) if taken.get().get_field_type() == family.get_field_type() => {
                let series = taken.get_mut().mut_metric();
                series.extend(family.take_metric());
                // Stable, so that of two equal ones the first registry's is kept.
                series.sort_by(|a, b| labels(a).cmp(labels(b)));
                series.dedup_by(|b, a| labels(a).eq(labels(b)));
            }
            Entry::Occupied(taken) => {
                let name = taken.key();
                tracing::warn!(metric = name, "two registries have this metric with different types; one is shown");
            }
        }
    }
    families.into_values().collect()
}

fn labels(metric: &Metric) -> impl Iterator<Item = (&str, &str)> {
    metric.get_label().iter().map(|pair| (pair.name(), pair.value()))
}
