//! The revisions of a StatefulSet: the one of its template is found, renumbered or created.

use std::collections::HashSet;
use std::sync::Arc;

use steersman_base::meta::Owners;
use steersman_base::names::labels;
use steersman_base::{Istr, Meta};
use steersman_model::View;
use steersman_model::apps::{ControllerRevisionView, StatefulSetView};
use steersman_model::template::RawJson;
use steersman_runtime::{Context, Error, WriteError};

use super::super::Options;
use super::super::identity::Revision;
use crate::claim::owner_ref;
use crate::history::memory::Patches;
use crate::history::plan::{Newest, forgotten, newest, sort};
use crate::history::{data, sync};

/// The history of a StatefulSet.
pub(super) struct History {
    /// The revisions before this pass, oldest first.
    held: Vec<Arc<ControllerRevisionView>>,
    pub(super) current: Revision,
    pub(super) update: Revision,
    pub(super) collisions: i32,
}

/// The maximum number of names that are tried for one revision in one pass.
const NAMES_TRIED_MAX: i32 = 20;

/// Returns the history, with the revision of the template as the newest. `None` if the StatefulSet is terminating and
/// has no such revision.
pub(super) async fn history(
    cx: &Context,
    set: &StatefulSetView,
    mut held: Vec<Arc<ControllerRevisionView>>,
    patches: &Patches,
    options: Options,
) -> Result<Option<History>, Error> {
    sort(&mut held);
    let patch = patches.of(set.meta(), &set.spec.template);
    let patch = patch.as_str();
    let mut collisions = set.status.collision_count.unwrap_or(0);
    let name = match newest(&held, &set.spec.template, patch, options.semantic_comparison) {
        Newest::Is(revision) => revision.meta().name.clone(),
        _ if set.meta().is_terminating() => return Ok(None),
        Newest::Renumber { revision, to } => {
            sync::renumber(cx, set.meta(), &revision, to).await?;
            revision.meta().name.clone()
        }
        Newest::Create { number } => match create(cx, set, patch, number, &mut collisions).await? {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let update = Revision { name, template: set.spec.template.clone() };
    let current = held.iter().find(|revision| revision.meta().name == set.status.current_revision);
    let current = match current {
        Some(revision) if revision.meta().name != update.name => {
            let name = revision.meta().name.clone();
            let unreadable = || Error::terminal(format!("the data of revision {name} is no patch of a template"));
            Revision { template: revision.template().ok_or_else(unreadable)?, name: name.clone() }
        }
        _ => update.clone(),
    };
    Ok(Some(History { held, current, update, collisions }))
}

/// Creates a revision; returns its name, or `None` if the namespace is terminating. A name that is taken by a revision with other
/// data changes the collision count, and so the hash.
async fn create(
    cx: &Context,
    set: &StatefulSetView,
    patch: &str,
    number: i64,
    collisions: &mut i32,
) -> Result<Option<Istr>, Error> {
    // As upstream, the label keeps the hash of the first name that was tried.
    let label = data::hash(patch, *collisions);
    for _ in 0..NAMES_TRIED_MAX {
        let name = Istr::new(&data::name(&set.meta().name, &data::hash(patch, *collisions)));
        let revision = new_revision(set, patch, number, name.clone(), &label);
        match sync::create(cx, set.meta(), &revision).await {
            Ok(_) => return Ok(Some(name)),
            Err(WriteError::NamespaceTerminating) => return Ok(None),
            Err(WriteError::AlreadyExists) => {}
            Err(error) => return Err(error.into()),
        }
        let taken = sync::taken(cx, &revision).await?;
        if data::is_same(taken.data.as_str(), patch) {
            return Ok(Some(name));
        }
        *collisions = collisions.saturating_add(1);
    }
    Err(WriteError::AlreadyExists.into())
}

fn new_revision(set: &StatefulSetView, patch: &str, number: i64, name: Istr, hash: &str) -> ControllerRevisionView {
    let label = (Istr::interned(labels::CONTROLLER_HASH), Istr::new(hash));
    let labels = set.spec.template.labels().iter().map(|(key, value)| (key.clone(), value.clone()));
    ControllerRevisionView {
        metadata: Meta {
            name,
            namespace: set.meta().namespace.clone(),
            labels: labels.chain([label]).collect(),
            annotations: set.meta().annotations.clone(),
            owner_references: Owners::new(vec![owner_ref(set)]),
            ..Meta::default()
        },
        data: RawJson::from_text(patch),
        revision: number,
    }
}

/// Deletes revisions beyond the limit, but for those that are `live`.
pub(super) async fn truncate(
    cx: &Context,
    set: &StatefulSetView,
    history: &History,
    live: &HashSet<&str>,
) -> Result<(), Error> {
    let limit = set.spec.revision_history_limit.unwrap_or(DEFAULT_LIMIT);
    for revision in forgotten(&history.held, live, limit) {
        sync::delete(cx, set.meta(), revision.meta(), &sync::Why::Forget { limit }).await?;
    }
    Ok(())
}

/// The API server's default.
const DEFAULT_LIMIT: i32 = 10;
