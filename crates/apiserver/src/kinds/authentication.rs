//! The group `authentication.k8s.io`: reviews of users and tokens.

mod self_subject_review;
mod token_review;

use crate::kinds::Kinds;

/// The kinds of the group `authentication.k8s.io`.
pub(super) const KINDS: Kinds =
    &[("SelfSubjectReview", &self_subject_review::RULES), ("TokenReview", &token_review::RULES)];
