//! The runner: one migration of a resource runs at a time, and its definition says so.

use serde_json::Value;
use steersman_base::{Istr, ObjectKey, condition};
use steersman_informer::{Index, Selection};
use steersman_model::View;
use steersman_model::storagemigration::StorageVersionMigrationView;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler};

use super::super::definition::{self, DEFINITIONS};
use super::super::map::definition_name;
use super::super::plan::{self, Turn};
use super::super::status::{self, SUCCEEDED};
use super::{Why, write};

/// Upstream's field manager of the condition of definitions.
const MANAGER: &str = "migration-runner-controller";

/// The shell of the runner. Its keys are resources.
pub(in super::super) struct Runner {
    /// Migrations by their resource.
    pub(in super::super) by_resource: Index<Istr, StorageVersionMigrationView>,
}

// === impl Runner ===

impl Reconciler for Runner {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let cached = plan::turn(&self.by_resource.get(&key.name));
        if cached.ended.is_empty() && cached.next.is_none() {
            return Ok(Action::Done);
        }
        // The cache may not show that another migration runs already.
        let all = cx.live.list::<StorageVersionMigrationView>(Selection::everything()).await?;
        let of_resource: Vec<_> = all.into_iter().filter(|it| *definition_name(it) == *key.name).collect();
        let Turn { ended, next } = plan::turn(&of_resource);
        for migration in ended {
            let is_success = condition::is_true(&migration.status.conditions, SUCCEEDED);
            let now = cx.clock.now();
            update_definition(cx, key, |definition| definition::migrated(definition, is_success, now)).await?;
            write(cx, &migration, &status::stopped(&migration, now), &Why::Stopped).await?;
        }
        if let Some(migration) = next {
            let now = cx.clock.now();
            let name = &migration.meta().name;
            update_definition(cx, key, |definition| Some(definition::migrating(definition, name, now))).await?;
            write(cx, &migration, &status::started(&migration, now), &Why::Started).await?;
        }
        Ok(Action::Done)
    }
}

/// Applies a status to the definition of a resource, if it has one. A definition that changes meanwhile is a conflict, which
/// is retried: its generation is part of the status.
async fn update_definition(
    cx: &Context,
    key: &ObjectKey,
    status: impl FnOnce(&Value) -> Option<Value>,
) -> Result<(), Error> {
    // Resources of the core group have none, and their keys are no names.
    if key.name.ends_with('.') {
        return Ok(());
    }
    let Some(definition) = cx.live.get_json(&DEFINITIONS, key).await? else { return Ok(()) };
    let Some(object) = status(&definition) else { return Ok(()) };
    let apply = Patch::Apply { object: &object, manager: MANAGER, force: true };
    let write = cx.writer.unowned();
    let applied = write.patch_subresource(&DEFINITIONS, key, "status", apply, &Why::DefinitionUpdated).await;
    Ok(applied.ok_if_gone()?)
}
