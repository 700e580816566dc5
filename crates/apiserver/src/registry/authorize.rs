//! Authorization of requests.

use super::Registry;
use crate::auth::User;
use crate::auth::rbac::{self, Attributes, Decision};
use crate::server::Authorization;
use crate::status::Status;

impl Registry {
    /// Decides whether a user may do something.
    pub(crate) fn decide(&self, user: &User, wanted: &Attributes) -> Decision {
        match self.authorization {
            Authorization::AlwaysAllow => Decision { is_allowed: true, reason: String::new() },
            Authorization::Rbac => rbac::decide(self, user, wanted),
        }
    }

    /// Whether any user may do anything.
    pub(crate) fn allows_everything(&self) -> bool {
        self.authorization == Authorization::AlwaysAllow
    }

    /// Refuses what a user may not do.
    pub(crate) fn authorize(&self, user: &User, wanted: &Attributes) -> Result<(), Status> {
        let decision = self.decide(user, wanted);
        if decision.is_allowed { Ok(()) } else { Err(wanted.refusal(user, &decision)) }
    }
}
