//! Authorization checks: `authorizer`, and what its functions make of it. Follows `apiserver/pkg/cel/library/authz.go`.

use std::fmt;

use crate::types::Type;

/// The authority that answers authorization checks.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides a check.
    fn authorize(&self, check: &AuthorizationCheck) -> AuthorizationDecision;
}

/// The subject of an authorization check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationCheck {
    /// The namespace and the name of the service account that is asked about, if it is not the user of the request.
    pub service_account: Option<(String, String)>,
    /// The path, if it is not about a resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The field selector, as it is written.
    pub field_selector: String,
    /// The label selector, as it is written.
    pub label_selector: String,
    /// The verb.
    pub verb: String,
}

/// The answer to a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizationDecision {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Why.
    pub reason: String,
    /// The message of the error.
    pub error: Option<String>,
}

/// A value of the authorizer's types.
#[derive(Clone, Debug)]
pub(crate) struct Authz<'a> {
    pub(crate) authorizer: &'a dyn Authorizer,
    pub(crate) check: AuthorizationCheck,
    pub(crate) stage: Stage,
}

/// The type of the value: how much of a check is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision(AuthorizationDecision),
}

// === impl Authz ===

impl<'a> Authz<'a> {
    pub(crate) fn authorizer(authorizer: &'a dyn Authorizer) -> Self {
        Self { authorizer, check: AuthorizationCheck::default(), stage: Stage::Authorizer }
    }

    pub(crate) fn resource(authorizer: &'a dyn Authorizer, check: AuthorizationCheck) -> Self {
        Self { authorizer, check, stage: Stage::Resource }
    }

    pub(crate) fn runtime_type(&self) -> Type {
        let name = match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision(_) => "kubernetes.authorization.Decision",
        };
        Type::Struct(name.into())
    }

    /// The name of the Go type that upstream has for such values.
    pub(crate) fn go_type(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "library.authorizerVal",
            Stage::Path => "library.pathCheckVal",
            Stage::Group => "library.groupCheckVal",
            Stage::Resource => "library.resourceCheckVal",
            Stage::Decision(_) => "library.decisionVal",
        }
    }
}
