//! Pure: which revision is the template's, and which revisions are deleted.

use std::collections::HashSet;
use std::sync::Arc;

use steersman_model::View;
use steersman_model::apps::ControllerRevisionView;
use steersman_model::template::Template;

use super::data;

/// The revision of a template.
#[derive(Debug, PartialEq)]
pub(crate) enum Newest {
    /// It is the newest already.
    Is(Arc<ControllerRevisionView>),
    /// It is an older one, and becomes the newest.
    Renumber { revision: Arc<ControllerRevisionView>, to: i64 },
    /// There is none: create it.
    Create { number: i64 },
}

/// Sorts revisions, oldest first, as upstream's `SortControllerRevisions`.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevisionView>]) {
    revisions.sort_by(|left, right| {
        let age = |revision: &ControllerRevisionView| revision.meta().creation_timestamp;
        let by_age = || age(left).cmp(&age(right)).then_with(|| left.meta().name.cmp(&right.meta().name));
        left.revision.cmp(&right.revision).then_with(by_age)
    });
}

/// Returns the revision of a template among sorted revisions. If `by_meaning`, the newest revision also counts if it
/// asks for the same pods in other words, such as those of an older version of Kubernetes.
pub(crate) fn newest(
    sorted: &[Arc<ControllerRevisionView>],
    template: &Template,
    patch: &str,
    by_meaning: bool,
) -> Newest {
    let Some(last) = sorted.last() else { return Newest::Create { number: 1 } };
    let next = last.revision.saturating_add(1);
    let is_equal = |revision: &&Arc<ControllerRevisionView>| data::is_same(revision.data.as_str(), patch);
    match sorted.iter().rev().find(is_equal) {
        Some(equal) if Arc::ptr_eq(equal, last) => Newest::Is(Arc::clone(equal)),
        Some(equal) => Newest::Renumber { revision: Arc::clone(equal), to: next },
        None if by_meaning && last.template().is_some_and(|held| held == *template) => Newest::Is(Arc::clone(last)),
        None => Newest::Create { number: next },
    }
}

/// Returns the revisions to delete, oldest first: of those that are not `live`, all but the last `limit`. A negative
/// limit keeps all.
pub(crate) fn forgotten(
    sorted: &[Arc<ControllerRevisionView>],
    live: &HashSet<&str>,
    limit: i32,
) -> Vec<Arc<ControllerRevisionView>> {
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let idle = |revision: &&Arc<ControllerRevisionView>| !live.contains(revision.meta().name.as_str());
    let mut idle: Vec<_> = sorted.iter().filter(idle).cloned().collect();
    idle.truncate(idle.len().saturating_sub(limit));
    idle
}

/// Returns the old revisions of a DaemonSet to delete, oldest first: as many as there are beyond the limit, but none that
/// is live.
pub(crate) fn forgotten_of_old(
    sorted: &[Arc<ControllerRevisionView>],
    is_live: impl Fn(&ControllerRevisionView) -> bool,
    limit: i32,
) -> Vec<Arc<ControllerRevisionView>> {
    let surplus = sorted.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    sorted.iter().filter(|revision| !is_live(revision)).take(surplus).cloned().collect()
}
