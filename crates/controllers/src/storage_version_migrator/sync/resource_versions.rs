//! The version up to which the objects of a resource are migrated: all that are written later are stored in the current one.

use steersman_base::ObjectKey;
use steersman_informer::{Lister, Target};
use steersman_model::storagemigration::StorageVersionMigrationView;
use steersman_runtime::mapper::RestMapper;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::super::{plan, status};
use super::{Why, not_there_yet, served, write};

/// The verbs that a migration needs.
const VERBS: [&str; 3] = ["update", "patch", "list"];

/// The shell of the queue of resource versions.
pub(in super::super) struct ResourceVersions {
    pub(in super::super) migrations: Lister<StorageVersionMigrationView>,
    pub(in super::super) mapper: RestMapper,
}

// === impl ResourceVersions ===

impl Reconciler for ResourceVersions {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(migration) = self.migrations.get(key).filter(|it| plan::needs_version(it)) else {
            return Ok(Action::Done);
        };
        let now = cx.clock.now();
        let fail = async |why: &str| {
            write(cx, &migration, &status::refused(&migration, why, now), &Why::Failed).await.map(|()| Action::Done)
        };
        let Some(found) = served(&self.mapper, &migration).await? else {
            if plan::may_come(&migration, now) {
                return Err(not_there_yet(&self.mapper));
            }
            return fail("resource does not exist in discovery").await;
        };
        let words = plan::words(&found.resource);
        if !VERBS.iter().all(|verb| found.verbs.iter().any(|held| held == verb)) {
            let needed = VERBS.join(" ");
            return fail(&format!("resource {words:?} does not support discovery operations: [{needed}]")).await;
        }
        let latest = cx.live.latest_version(&Target::all(found.resource)).await;
        let latest = latest.inspect_err(|_| self.mapper.invalidate())?;
        if !plan::is_well_formed(&latest) {
            let why = plan::NotWellFormed(latest.as_str().to_owned());
            return fail(&format!("latest resourceVersion for {words} is not valid: {why}")).await;
        }
        write(cx, &migration, &status::versioned(&migration, latest.as_str()), &Why::VersionKnown).await?;
        Ok(Action::Done)
    }
}
