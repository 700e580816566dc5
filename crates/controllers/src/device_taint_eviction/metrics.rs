//! Evictions, under upstream's names.

use crate::eviction::metrics::Texts;

/// The names and texts of the metrics.
pub(super) const TEXTS: Texts = Texts {
    prefix: "device_taint_eviction_controller",
    deleted: "[ALPHA] Total number of Pods deleted by DeviceTaintEvictionController since its start.",
    latency: "[ALPHA] Latency, in seconds, between the time when a device taint effect has been activated and a Pod's \
              deletion via DeviceTaintEvictionController.",
};
