//! The shell: observe → plan → apply the rules.

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::rbac::ClusterRoleView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, reasons};

use super::plan;

const ROLES: &Resource = &ClusterRoleView::RESOURCE;
/// Upstream's field manager: it owns the rules, and takes them over.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller's shell: the cache that it reads from.
pub(super) struct Aggregation {
    pub(super) roles: Lister<ClusterRoleView>,
}

reasons! {
    /// Why the role aggregation controller writes.
    pub enum Why {
        /// The rules of a role are not those of the roles that it selects.
        OtherRules { count: usize } => "the roles that it selects have {count} rules, and it has others",
    }
}

// === impl Aggregation ===

impl Reconciler for Aggregation {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(role) = self.roles.get(key) else { return Ok(Action::Done) };
        let mut roles = self.roles.list();
        roles.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        // A selector that is invalid stays so until the role changes.
        let Some(rules) = plan::plan(&role, &roles).map_err(|error| Error::terminal(error.to_string()))? else {
            return Ok(Action::Done);
        };
        let object = plan::applied(&role, &rules);
        let write = cx.writer.on_behalf_of(role.meta());
        let apply = Patch::Apply { object: &object, manager: MANAGER, force: true };
        let applied = write.patch(ROLES, key, apply, &Why::OtherRules { count: rules.len() }).await;
        // A role that was deleted or replaced has an event of its own.
        applied.ok_if_gone().ok_if_replaced()?;
        Ok(Action::Done)
    }
}
