//! The shell: make the claims of pods and pod groups, reserve them, and release those that nothing uses.

mod claims;
mod groups;
mod make;
mod pods;

use steersman_base::Istr;
use steersman_runtime::reasons;

pub(super) use claims::Claims;
pub(super) use groups::Groups;
pub(super) use make::Maker;
pub(super) use pods::{Known, Pods};

/// The reason of the warning about a claim that cannot be made.
const FAILED: &str = "FailedResourceClaimCreation";
/// The field manager of the statuses of pods and groups.
const MANAGER: &str = "ResourceClaimController";

reasons! {
    /// Why the resource claim controller writes.
    pub enum Why {
        /// A claim is to be made from a template.
        NoClaim { kind: &'static str, entry: Istr } => "{entry} has no claim yet"
            or "FailedResourceClaimCreation" |error| "{kind} {entry}: create ResourceClaim : {error}",
        /// The status does not name the claims that were made.
        Made { count: usize } => "{count} claims were made",
        /// A scheduled pod uses an allocated claim that is not reserved for it.
        Unreserved => "the claim is in use, and not reserved",
        /// Users of the claim are gone.
        UsersGone { left: usize } => "users of the claim are gone, {left} are left",
        /// The claim is being deleted, and nothing uses it.
        Unused => "the claim is being deleted, and nothing uses it",
        /// The claim is not allocated any more.
        Unprotected => "the claim is not allocated any more",
        /// The pod that the claim was made for has ended.
        OwnerDone => "the pod that the claim was made for has ended",
    }
}
