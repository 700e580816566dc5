//! Claims, under upstream's names.

use prometheus::{IntCounterVec, IntGaugeVec, Opts};
use steersman_base::names::annotations;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::resource::ResourceClaimView;
use steersman_runtime::metrics::{Families, FamilyError};

use super::plan::{Holder, is_for_administration};

/// The number of claims, and of requests to create one.
#[derive(Clone)]
pub(super) struct Metrics {
    created: IntCounterVec,
    claims: IntGaugeVec,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let options = |name: &str, help: &str| Opts::new(name, help).subsystem("dynamic_resource_allocation");
        let created = options(
            "resourceclaim_creates_total",
            "[ALPHA] Number of ResourceClaims creation requests, categorized by creation status, admin access, and owning \
             API group and kind (either Pod or scheduling.k8s.io/PodGroup)",
        );
        let claims = options(
            "resource_claims",
            "[ALPHA] Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can be \
             'resource_claim_template' (created from a template), 'extended_resource' (extended resources), or empty \
             (manually created by a user).",
        );
        Ok(Self {
            created: families.counters(created, &["status", "admin_access", "owner_api_group", "owner_api_kind"])?,
            claims: families.gauges(claims, &["allocated", "admin_access", "source"])?,
        })
    }

    /// Counts a request to create a claim.
    pub(super) fn created(&self, holder: &Holder<'_>, spec: &str, failed: bool) {
        let status = if failed { "failure" } else { "success" };
        let admin = text(is_for_administration(spec));
        let labels = [status, admin, &*holder.resource.group, &*holder.resource.kind];
        self.created.with_label_values(&labels).inc();
    }

    /// Counts the claims that there are.
    pub(super) fn claim_changed(&self, change: &Change<ResourceClaimView>) {
        if change.is_resync() {
            return;
        }
        if let Some(before) = change.before() {
            self.claims.with_label_values(&labels(before)).dec();
        }
        let now = self.claims.with_label_values(&labels(change.object()));
        match change {
            Change::Added { .. } | Change::Updated { .. } => now.inc(),
            Change::Deleted { .. } => now.dec(),
        }
    }
}

fn labels(claim: &ResourceClaimView) -> [&'static str; 3] {
    let given = &claim.meta().annotations;
    let source = if given.get(annotations::EXTENDED_RESOURCE_CLAIM).is_some_and(|value| *value == "true") {
        "extended_resource"
    } else if given.get(annotations::POD_RESOURCE_CLAIM).is_some_and(|value| !value.is_empty()) {
        "resource_claim_template"
    } else {
        ""
    };
    let mut requests = claim.spec.devices.requests.iter();
    let is_admin = requests.any(|request| request.exactly.as_ref().is_some_and(|it| it.admin_access == Some(true)));
    [text(claim.status.allocation.is_some()), text(is_admin), source]
}

fn text(is_true: bool) -> &'static str {
    if is_true { "true" } else { "false" }
}
