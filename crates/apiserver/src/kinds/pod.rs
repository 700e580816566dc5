//! Pods, and the templates of pods that workloads hold.

pub(super) mod affinity;
mod containers;
pub(super) mod defaults;
mod env;
mod handlers;
pub(super) mod prepare;
pub(super) mod resize;
pub(super) mod resources;
mod security;
pub(super) mod update;
pub(super) mod validation;
mod volumes;

use super::{NameRule, Rules};

/// Pod.
pub(super) static POD: Rules =
    Rules::named(NameRule::Subdomain).rechecked().defaulted(defaults::pod).prepared(prepare::pod).validated(
        |new, old, errors| match old {
            None => validation::create(new, errors),
            Some(old) => update::pod(new, old, errors),
        },
    );

/// PodTemplate.
pub(super) static POD_TEMPLATE: Rules =
    Rules::named(NameRule::Subdomain).defaulted(defaults::template).validated(|new, _, errors| {
        validation::template(&new["template"], &crate::field::Path::new("template"), errors);
    });
