//! The shell: observe → decide when a pod leaves → set its condition → delete it; and the conditions of rules.

mod observed;
mod pods;
mod rules;

use steersman_runtime::reasons;

pub(super) use observed::Observed;
pub(super) use pods::Pods;
pub(super) use rules::Rules;

reasons! {
    /// Why the device taint eviction controller writes.
    pub enum Why {
        /// The pod does not tolerate the taints of its devices, or not any more.
        Evict => "it does not tolerate the taints of its devices any longer",
        /// The condition of a rule is out of date.
        RuleStatus { pending: usize, evicted: u64 } => "{pending} pods are to be evicted, {evicted} were",
    }
}
