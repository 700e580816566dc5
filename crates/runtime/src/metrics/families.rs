//! Metric families that several controllers may share.
//!
//! 1. A repeated request returns the existing family, if its type, labels and help are the same.
//! 2. A family that differs is an error, and so is one that was registered directly with the registry.
//! 3. Without a registry, families count nowhere, and their users need not know.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// The metric families of one manager. Cheap to clone; clones are the same.
#[derive(Clone, Default)]
pub struct Families(Arc<Shared>);

#[derive(Default)]
struct Shared {
    registry: Option<Registry>,
    by_name: Mutex<BTreeMap<String, Family>>,
}

struct Family {
    /// Help and labels, which must be the same for all users.
    says: String,
    metric: Box<dyn Any + Send + Sync>,
}

/// An error of a metric family.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// A family of this name exists with another type, other labels or another help.
    #[error("the metric {0} exists already and is another one")]
    Clash(String),
    /// The family is invalid, or is in the registry already.
    #[error("the metric cannot be registered: {0}")]
    Prometheus(#[from] prometheus::Error),
}

// === impl Families ===

impl Families {
    /// Creates families that count in a registry; nowhere, if there is none.
    #[must_use]
    pub fn of(registry: Option<&Registry>) -> Self {
        Self(Arc::new(Shared { registry: registry.cloned(), by_name: Mutex::default() }))
    }

    /// Returns a counter.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn counter(&self, options: Opts) -> Result<IntCounter, FamilyError> {
        self.family(IntCounter::with_opts(options)?)
    }

    /// Returns a counter with labels.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn counters(&self, options: Opts, labels: &[&str]) -> Result<IntCounterVec, FamilyError> {
        self.family(IntCounterVec::new(options, labels)?)
    }

    /// Returns a gauge.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn gauge(&self, options: Opts) -> Result<IntGauge, FamilyError> {
        self.family(IntGauge::with_opts(options)?)
    }

    /// Returns a gauge with labels.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn gauges(&self, options: Opts, labels: &[&str]) -> Result<IntGaugeVec, FamilyError> {
        self.family(IntGaugeVec::new(options, labels)?)
    }

    /// Returns a gauge of fractions, with labels.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn float_gauges(&self, options: Opts, labels: &[&str]) -> Result<GaugeVec, FamilyError> {
        self.family(GaugeVec::new(options, labels)?)
    }

    /// Returns a histogram.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn histogram(&self, options: HistogramOpts) -> Result<Histogram, FamilyError> {
        self.family(Histogram::with_opts(options)?)
    }

    /// Returns a histogram with labels.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn histograms(&self, options: HistogramOpts, labels: &[&str]) -> Result<HistogramVec, FamilyError> {
        self.family(HistogramVec::new(options, labels)?)
    }

    /// Registers a collector, which computes its values when metrics are read. The existing one of its first name stays, if
    /// it is of the same type.
    ///
    /// # Errors
    /// See [`FamilyError`].
    pub fn collector<M: Collector + Clone + 'static>(&self, collector: M) -> Result<(), FamilyError> {
        self.family(collector).map(drop)
    }

    /// Returns the existing family of this name, or registers this one.
    fn family<M: Collector + Clone + 'static>(&self, metric: M) -> Result<M, FamilyError> {
        let descriptions = metric.desc();
        let name = descriptions.first().map(|description| description.fq_name.clone()).unwrap_or_default();
        let says = format!("{descriptions:?}");
        let mut by_name = self.0.by_name.lock();
        if let Some(family) = by_name.get(&name) {
            let same = family.metric.downcast_ref::<M>().filter(|_| family.says == says);
            return same.cloned().ok_or(FamilyError::Clash(name));
        }
        if let Some(registry) = &self.0.registry {
            registry.register(Box::new(metric.clone()))?;
        }
        by_name.insert(name, Family { says, metric: Box::new(metric.clone()) });
        Ok(metric)
    }
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Families").field("names", &self.0.by_name.lock().keys().collect::<Vec<_>>()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(registry: &Registry, name: &str) -> f64 {
        let families = registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        family.map_or(-1.0, |family| family.get_metric()[0].get_counter().get_value())
    }

    #[test]
    fn a_family_that_is_asked_for_twice_is_one() {
        let registry = Registry::new();
        let families = Families::of(Some(&registry));
        let options = || Opts::new("passes_total", "How many.");
        families.counter(options()).unwrap().inc();
        families.clone().counter(options()).unwrap().inc_by(2);
        assert!((value(&registry, "passes_total") - 3.0).abs() < f64::EPSILON);
        assert_eq!(registry.gather().len(), 1);
    }

    #[test]
    fn a_family_that_differs_is_an_error() {
        let registry = Registry::new();
        let families = Families::of(Some(&registry));
        families.counters(Opts::new("passes_total", "How many."), &["code"]).unwrap();
        let clash = |outcome: Result<(), FamilyError>| assert!(matches!(outcome, Err(FamilyError::Clash(_))));
        clash(families.counter(Opts::new("passes_total", "How many.")).map(drop));
        clash(families.counters(Opts::new("passes_total", "How many."), &["result"]).map(drop));
        clash(families.counters(Opts::new("passes_total", "How often."), &["code"]).map(drop));
        clash(families.gauges(Opts::new("passes_total", "How many."), &["code"]).map(drop));

        registry.register(Box::new(IntCounter::new("others_total", "Not ours.").unwrap())).unwrap();
        let taken = families.counter(Opts::new("others_total", "Not ours."));
        assert!(matches!(taken, Err(FamilyError::Prometheus(prometheus::Error::AlreadyReg))), "{taken:?}");
    }

    #[test]
    fn without_a_registry_everybody_counts_nowhere() {
        let families = Families::of(None);
        let counter = families.counter(Opts::new("passes_total", "How many.")).unwrap();
        counter.inc();
        assert_eq!(families.counter(Opts::new("passes_total", "How many.")).unwrap().get(), 1, "and it is one");
    }
}
