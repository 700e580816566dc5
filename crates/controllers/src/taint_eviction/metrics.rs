//! Evictions, under upstream's names.

use crate::eviction::metrics::Texts;

/// The names and texts of the metrics.
pub(super) const TEXTS: Texts = Texts {
    prefix: "taint_eviction_controller",
    deleted: "[ALPHA] Total number of Pods deleted by TaintEvictionController since its start.",
    latency: "[ALPHA] Latency, in seconds, between the time when a taint effect has been activated for the Pod and its \
              deletion via TaintEvictionController.",
};
