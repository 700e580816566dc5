//! SelfSubjectAccessReviews: whether the sender may do something.

use super::subject_access_review::{Of, status};
use crate::kinds::Rules;
use crate::kinds::shared::review;

/// The rules of SelfSubjectAccessReviews.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    review::answer(registry, call, body, kind, |review| status(registry, call, review, Of::Sender))
});
