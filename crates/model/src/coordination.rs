//! The group `coordination.k8s.io`.

use steersman_base::{Istr, Meta, MicroTime};

use crate::view;

view! {
    /// A lease, whole: leader election reads it, changes it and PUTs it.
    pub struct LeaseView: Serialize for namespaced("coordination.k8s.io", "v1", "leases", "Lease") {
        /// Its metadata.
        metadata: Meta = 1,
        /// Who holds it, and for how long.
        spec: LeaseSpec = 2,
    }
}

view! {
    /// Who holds a lease, and for how long.
    #[derive(Eq, Hash)]
    pub struct LeaseSpec: Serialize {
        /// Who holds it.
        holder_identity: Option<Istr> = 1,
        /// For how long after its renewal others leave it alone.
        lease_duration_seconds: Option<i32> = 2,
        /// Since when it is held.
        acquire_time: Option<MicroTime> = 3,
        /// When its holder last renewed it.
        renew_time: Option<MicroTime> = 4,
        /// How often it went from one holder to another.
        lease_transitions: Option<i32> = 5,
        /// How a holder is chosen, for coordinated leader election.
        strategy: Option<Istr> = 6,
        /// Who should hold it, for coordinated leader election.
        preferred_holder: Option<Istr> = 7,
    }
}
