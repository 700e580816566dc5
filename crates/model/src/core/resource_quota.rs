//! Quotas.

use steersman_base::{Istr, Meta};

use crate::view;
use crate::wire::Quantities;

view! {
    /// A quota, whole: its status is PUT.
    pub struct ResourceQuotaView: Serialize for namespaced("", "v1", "resourcequotas", "ResourceQuota") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: ResourceQuotaSpec = 2,
        /// The status.
        status: ResourceQuotaStatus = 3,
    }
}

view! {
    /// The spec of a quota.
    pub struct ResourceQuotaSpec: Serialize {
        /// The limits, by resource.
        hard: Quantities = 1,
        /// The scopes: only objects in all of them are counted.
        scopes: Box<[Istr]> = 2,
        /// Further scopes, with values.
        scope_selector: Option<ScopeSelector> = 3,
    }
}

view! {
    /// The scopes of a quota: all must match.
    #[derive(Eq)]
    pub struct ScopeSelector: Serialize {
        /// The scopes.
        match_expressions: Box<[ScopeRequirement]> = 1,
    }
}

view! {
    /// A scope of a quota, and how an object is in it.
    #[derive(Eq)]
    pub struct ScopeRequirement: Serialize {
        /// `BestEffort`, `PriorityClass`, …
        scope_name: Istr = 1,
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        operator: Istr = 2,
        /// The values, for `In` and `NotIn`.
        values: Box<[Istr]> = 3,
    }
}

view! {
    /// The status of a quota.
    pub struct ResourceQuotaStatus: Serialize {
        /// The limits that are enforced.
        hard: Quantities = 1,
        /// The usage of them.
        used: Quantities = 2,
    }
}
