//! The group `authorization.k8s.io`: reviews of access.

mod local_subject_access_review;
mod self_subject_access_review;
mod self_subject_rules_review;
mod subject_access_review;

use crate::kinds::Kinds;

/// The kinds of the group `authorization.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("LocalSubjectAccessReview", &local_subject_access_review::RULES),
    ("SelfSubjectAccessReview", &self_subject_access_review::RULES),
    ("SelfSubjectRulesReview", &self_subject_rules_review::RULES),
    ("SubjectAccessReview", &subject_access_review::RULES),
];
