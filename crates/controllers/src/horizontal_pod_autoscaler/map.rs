//! Pure: which changes of an autoscaler start a pass. All others are seen by the next periodic pass.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::autoscaling::HorizontalPodAutoscalerView;

/// Returns the key of the autoscaler, unless only its status or metadata has changed. Without `by_generation`, and on a
/// server that does not count generations, a change of the spec waits for the next pass, too.
pub(super) fn concerns(change: &Change<HorizontalPodAutoscalerView>, by_generation: bool) -> Option<ObjectKey> {
    match change {
        Change::Added { new, .. } => Some(new.meta().key()),
        Change::Updated { old, new } => {
            let is_news = by_generation && old.meta().generation != new.meta().generation;
            is_news.then(|| new.meta().key())
        }
        // What is remembered of it is dropped.
        Change::Deleted { last, .. } => Some(last.meta().key()),
    }
}
