//! The revisions of a DaemonSet: the one of its template is found, renumbered or created, and duplicates are merged.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use steersman_base::meta::Owners;
use steersman_base::names::labels;
use steersman_base::{Istr, Meta, StringMap};
use steersman_model::apps::{ControllerRevisionView, DaemonSetStatus, DaemonSetView};
use steersman_model::core::PodView;
use steersman_model::template::RawJson;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Context, Error, Patch, WriteError};

use super::Why;
use crate::claim::owner_ref;
use crate::deployment;
use crate::history::memory::Patches;
use crate::history::plan::{forgotten_of_old, sort};
use crate::history::{data, sync};

/// The history of a DaemonSet.
pub(super) struct History {
    /// The hash of the newest revision, which the pods have as a label.
    pub(super) hash: Istr,
    /// The other revisions, oldest first.
    old: Vec<Arc<ControllerRevisionView>>,
}

/// Returns the history, with the revision of the template as the newest. `None` if nothing can be created, because the
/// namespace is terminating.
pub(super) async fn history(
    cx: &Context,
    set: &DaemonSetView,
    held: Vec<Arc<ControllerRevisionView>>,
    pods: &[Arc<PodView>],
    patches: &Patches,
) -> Result<Option<History>, Error> {
    let patch = patches.of(set.meta(), &set.spec.template);
    let patch = patch.as_str();
    let mut held = labelled(cx, set, held).await?;
    sort(&mut held);
    let is_newest = |revision: &Arc<ControllerRevisionView>| data::is_same(revision.data.as_str(), patch);
    let (mut newest, old): (Vec<_>, Vec<_>) = held.into_iter().partition(is_newest);
    let next = old.iter().map(|revision| revision.revision).max().unwrap_or(0).max(0).saturating_add(1);
    let Some(kept) = newest.pop() else {
        let hash = create(cx, set, patch, next).await?;
        return Ok(hash.map(|hash| History { hash, old }));
    };
    let hash = hash_of(&kept);
    if !newest.is_empty() {
        merge(cx, set, &kept, &newest, pods).await?;
    }
    if kept.revision < next {
        sync::renumber(cx, set.meta(), &kept, next).await?;
    }
    Ok(Some(History { hash, old }))
}

fn hash_of(revision: &ControllerRevisionView) -> Istr {
    revision.meta().labels.get(labels::CONTROLLER_REVISION_HASH).cloned().unwrap_or_default()
}

fn with_hash(labels: &StringMap, hash: Istr) -> StringMap {
    let label = (Istr::interned(labels::CONTROLLER_REVISION_HASH), hash);
    labels.iter().map(|(key, value)| (key.clone(), value.clone())).chain([label]).collect()
}

/// Gives revisions without a hash their name as one: it is unique.
async fn labelled(
    cx: &Context,
    set: &DaemonSetView,
    held: Vec<Arc<ControllerRevisionView>>,
) -> Result<Vec<Arc<ControllerRevisionView>>, Error> {
    let mut labelled = Vec::with_capacity(held.len());
    for revision in held {
        if revision.meta().labels.contains_key(labels::CONTROLLER_REVISION_HASH) {
            labelled.push(revision);
            continue;
        }
        let mut wanted = ControllerRevisionView::clone(&revision);
        wanted.metadata.labels = with_hash(&wanted.metadata.labels, wanted.metadata.name.clone());
        sync::put(cx, set.meta(), &wanted, &sync::Why::Label).await?;
        // Its version is another by now: if it has to be renumbered, the next pass does it.
        labelled.push(Arc::new(wanted));
    }
    Ok(labelled)
}

/// Creates the revision of the template; returns its hash, or `None` if the namespace is terminating.
async fn create(cx: &Context, set: &DaemonSetView, patch: &str, number: i64) -> Result<Option<Istr>, Error> {
    let hash = Istr::new(&deployment::template_hash(&set.spec.template, set.status.collision_count));
    let revision = ControllerRevisionView {
        metadata: Meta {
            name: Istr::new(&format!("{}-{hash}", set.meta().name)),
            namespace: set.meta().namespace.clone(),
            labels: with_hash(set.spec.template.labels(), hash.clone()),
            annotations: set.meta().annotations.clone(),
            owner_references: Owners::new(vec![owner_ref(set)]),
            ..Meta::default()
        },
        data: RawJson::from_text(patch),
        revision: number,
    };
    match sync::create(cx, set.meta(), &revision).await {
        Ok(_) => return Ok(Some(hash)),
        Err(WriteError::NamespaceTerminating) => return Ok(None),
        Err(WriteError::AlreadyExists) => {}
        Err(error) => return Err(error.into()),
    }
    let key = revision.meta().key();
    let taken = sync::taken(cx, &revision).await?;
    if data::is_same(taken.data.as_str(), patch) {
        return Ok(Some(hash));
    }
    let count = set.status.collision_count.unwrap_or(0).saturating_add(1);
    let status = DaemonSetStatus { collision_count: Some(count), ..set.status.clone() };
    let write = cx.writer.on_behalf_of(set.meta());
    // The write fails if the count is out of date.
    write.put_status_of::<DaemonSetView>(set.meta(), &status, &Why::Collision { count }).await?;
    Err(Error::message(format!("the name {key} is taken by another revision: another name is tried")))
}

/// Deletes duplicates of the newest revision, after their pods have got its hash.
async fn merge(
    cx: &Context,
    set: &DaemonSetView,
    kept: &ControllerRevisionView,
    duplicates: &[Arc<ControllerRevisionView>],
    pods: &[Arc<PodView>],
) -> Result<(), Error> {
    let hash = hash_of(kept);
    let write = cx.writer.on_behalf_of(set.meta());
    let is_of_duplicate = |pod: &&Arc<PodView>| {
        let held = pod.meta().labels.get(labels::CONTROLLER_REVISION_HASH);
        held.is_some_and(|held| *held != hash && duplicates.iter().any(|duplicate| hash_of(duplicate) == *held))
    };
    for pod in pods.iter().filter(is_of_duplicate) {
        let labels = json!({ labels::CONTROLLER_REVISION_HASH: hash });
        let patch = json!({ "metadata": { "uid": pod.meta().uid, "labels": labels } });
        let why = Why::Relabel { hash: hash.clone() };
        let patched = write.patch(&PodView::RESOURCE, &pod.meta().key(), Patch::Merge(&patch), &why).await;
        patched.ok_if_gone().ok_if_replaced()?;
    }
    for duplicate in duplicates {
        let why = sync::Why::Duplicate { of: kept.meta().name.clone() };
        sync::delete(cx, set.meta(), duplicate.meta(), &why).await?;
    }
    Ok(())
}

/// Deletes revisions beyond the limit, but for those whose hash is `live`.
pub(super) async fn truncate(
    cx: &Context,
    set: &DaemonSetView,
    history: &History,
    live: &HashSet<Istr>,
) -> Result<(), Error> {
    let limit = set.spec.revision_history_limit.unwrap_or(DEFAULT_LIMIT);
    let is_live = |revision: &ControllerRevisionView| live.contains(&hash_of(revision));
    for revision in forgotten_of_old(&history.old, is_live, limit) {
        sync::delete(cx, set.meta(), revision.meta(), &sync::Why::Forget { limit }).await?;
    }
    Ok(())
}

/// The API server's default.
const DEFAULT_LIMIT: i32 = 10;
