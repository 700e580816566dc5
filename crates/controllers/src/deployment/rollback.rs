//! Pure: rollbacks that old clients request with an annotation. `kubectl rollout undo` does not need it.

use std::sync::Arc;

use steersman_base::names::{annotations, labels};
use steersman_base::{Meta, StringMap};
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};

use super::history;
use super::sets::Sets;

/// The result of a requested rollback. The annotation is removed in any case.
#[derive(Debug)]
pub(super) enum Rollback {
    /// There is no such revision; an event reports it.
    NotFound(&'static str),
    /// The revision has the template that the Deployment has already.
    Unchanged,
    /// The Deployment gets the template of this ReplicaSet.
    To { set: Arc<ReplicaSetView>, revision: i64 },
}

/// Returns the revision to roll back to, if requested; zero is the last one. A text that is not a number requests
/// nothing.
pub(super) fn asked_for(deployment: &Meta) -> Option<i64> {
    deployment.annotations.get(annotations::DEPLOYMENT_ROLLBACK_TO)?.parse().ok()
}

/// Decides about a requested rollback.
pub(super) fn decide(deployment: &DeploymentView, sets: &Sets, asked_for: i64) -> Rollback {
    let revision = if asked_for == 0 { history::last_revision(sets) } else { asked_for };
    if revision == 0 {
        return Rollback::NotFound("Unable to find last revision.");
    }
    let Some(set) = sets.all().find(|set| history::revision(set.meta()) == Some(revision)) else {
        return Rollback::NotFound("Unable to find the revision to rollback to.");
    };
    if set.spec.template.equals_but_for_hash(&deployment.spec.template) {
        return Rollback::Unchanged;
    }
    Rollback::To { set: Arc::clone(set), revision }
}

/// Returns the Deployment to write.
pub(super) fn rolled_back(deployment: &DeploymentView, rollback: &Rollback) -> DeploymentView {
    let mut deployment = deployment.clone();
    if let Rollback::To { set, .. } = rollback {
        let template = &set.spec.template;
        deployment.spec.template = template.with_labels(without(template.labels(), labels::POD_TEMPLATE_HASH));
        deployment.metadata.annotations = history::annotations_rolled_back(&deployment.metadata, set.meta());
    }
    deployment.metadata.annotations = without(&deployment.metadata.annotations, annotations::DEPLOYMENT_ROLLBACK_TO);
    deployment
}

fn without(map: &StringMap, key: &str) -> StringMap {
    let others = map.iter().filter(|(held, _)| **held != *key);
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}
