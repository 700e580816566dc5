//! LocalSubjectAccessReviews: whether a user may do something in a namespace.

use super::subject_access_review::{Of, status};
use crate::kinds::Rules;
use crate::kinds::shared::review;

/// The rules of LocalSubjectAccessReviews.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    review::answer(registry, call, body, kind, |review| status(registry, call, review, Of::Namespace))
});
