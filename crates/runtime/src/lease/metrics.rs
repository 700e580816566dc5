//! Upstream's metrics of leader election (`component-base/metrics/prometheus/clientgo/leaderelection`).

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

/// The metrics `leader_election_*`. One per registry; several electors may count in it, each under the name of its
/// lease.
#[derive(Clone, Debug)]
pub struct LeaseMetrics {
    master: IntGaugeVec,
    slow_path: IntCounterVec,
}

// === impl LeaseMetrics ===

impl LeaseMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// The registry has metrics of these names already.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let master = IntGaugeVec::new(
            Opts::new(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates \
                 master. 'name' is the string used to identify the lease. Please make sure to group by name.",
            ),
            &["name"],
        )?;
        let slow_path = IntCounterVec::new(
            Opts::new(
                "leader_election_slowpath_total",
                "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify \
                 the lease. Please make sure to group by name.",
            ),
            &["name"],
        )?;
        registry.register(Box::new(master.clone()))?;
        registry.register(Box::new(slow_path.clone()))?;
        Ok(Self { master, slow_path })
    }

    pub(super) fn leads(&self, lease: &str, leads: bool) {
        self.master.with_label_values(&[lease]).set(i64::from(leads));
    }

    /// Counts a renewal that had to read the lease first.
    pub(super) fn slow_path(&self, lease: &str) {
        self.slow_path.with_label_values(&[lease]).inc();
    }
}
