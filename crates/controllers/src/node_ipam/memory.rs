//! What the controller remembers between passes: which ranges are in use.

use ipnet::IpNet;
use parking_lot::Mutex;
use steersman_base::Meta;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::NodeView;

use super::allocator::{Allocator, AllocatorError, Effect};
use super::cidr_set::CidrError;
use super::map;
use super::metrics::Metrics;
use super::plan::Ranges;

/// The ranges of all nodes.
pub(super) struct Memory {
    allocator: Mutex<Allocator>,
    metrics: Metrics,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(ranges: &Ranges, metrics: Metrics) -> Result<Self, CidrError> {
        let allocator = Allocator::new(ranges)?;
        metrics.begin(allocator.sets());
        Ok(Self { allocator: Mutex::new(allocator), metrics })
    }

    /// Applies a change of a node: its ranges are in use, or free.
    pub(super) fn note(&self, change: &Change<NodeView>) {
        let node = change.object();
        match change {
            Change::Deleted { .. } => {
                let mut allocator = self.allocator.lock();
                let effects = allocator.release(node.meta());
                self.metrics.record(allocator.sets(), &effects);
            }
            Change::Added { .. } | Change::Updated { .. } => {
                if let Ok(ranges) = map::ranges(node)
                    && !ranges.is_empty()
                    && let Err(error) = self.occupy(node.meta(), &ranges)
                {
                    tracing::warn!(%error, "the range of the node is not one of the cluster's");
                }
            }
        }
    }

    /// Returns the ranges that are reserved for a node.
    pub(super) fn reserve(&self, node: &Meta) -> Result<Vec<IpNet>, AllocatorError> {
        let mut allocator = self.allocator.lock();
        let (ranges, effects) = allocator.reserve(node)?;
        self.metrics.record(allocator.sets(), &effects);
        Ok(ranges)
    }

    fn occupy(&self, node: &Meta, ranges: &[IpNet]) -> Result<(), AllocatorError> {
        let mut allocator = self.allocator.lock();
        let effects: Vec<Effect> = allocator.occupy(node, ranges)?;
        self.metrics.record(allocator.sets(), &effects);
        Ok(())
    }
}
