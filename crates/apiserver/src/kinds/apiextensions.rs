//! The group `apiextensions.k8s.io`: CustomResourceDefinitions.

mod custom_resource_definition;

use crate::kinds::Kinds;

/// The kinds of the group `apiextensions.k8s.io`.
pub(super) const KINDS: Kinds = &[("CustomResourceDefinition", &custom_resource_definition::RULES)];
