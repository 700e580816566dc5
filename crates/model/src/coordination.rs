//! The group `coordination.k8s.io`.

use steersman_base::{Istr, Meta, MicroTime};

use crate::meta::BareMeta;
use crate::view;

view! {
    /// A lease, whole: leader election reads it, changes it and PUTs it.
    pub struct LeaseView: Serialize for namespaced("coordination.k8s.io", "v1", "leases", "Lease") {
        /// The metadata.
        metadata: Meta = 1,
        /// The holder, and the duration.
        spec: LeaseSpec = 2,
    }
}

view! {
    /// The spec of a lease.
    #[derive(Eq, Hash)]
    pub struct LeaseSpec: Serialize {
        /// The identity of the holder.
        holder_identity: Option<Istr> = 1,
        /// For how long after its renewal others leave it alone.
        lease_duration_seconds: Option<i32> = 2,
        /// Since when it is held.
        acquire_time: Option<MicroTime> = 3,
        /// The time at which its holder last renewed it.
        renew_time: Option<MicroTime> = 4,
        /// The number of times the holder changed.
        lease_transitions: Option<i32> = 5,
        /// The strategy for choosing a holder, for coordinated leader election.
        strategy: Option<Istr> = 6,
        /// The preferred holder, for coordinated leader election.
        preferred_holder: Option<Istr> = 7,
    }
}

view! {
    /// The part of a node's lease that is a heartbeat: thousands of them change every few seconds.
    ///
    /// The metadata is that of a metadata watch: the garbage collector reads it from the same cache, so that a heartbeat is received
    /// and decoded once.
    pub struct NodeLeaseView for namespaced("coordination.k8s.io", "v1", "leases", "Lease") {
        /// The metadata.
        metadata: Meta as BareMeta = 1,
        /// The time of the renewal.
        spec: NodeLeaseSpec = 2,
    }
}

view! {
    /// The spec of a node's lease.
    pub struct NodeLeaseSpec {
        /// The time at which the kubelet last renewed it, by the clock of the node.
        renew_time: Option<MicroTime> = 4,
    }
}
