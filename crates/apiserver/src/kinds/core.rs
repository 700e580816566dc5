//! The core group.

mod binding;
mod component_status;
mod config_map;
mod endpoints;
pub(crate) mod event;
mod limit_range;
pub(crate) mod namespace;
mod node;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub(crate) mod service;
mod service_account;

use crate::kinds::Kinds;

/// The kinds of the core group.
pub(super) const KINDS: Kinds = &[
    ("Binding", &binding::RULES),
    ("ComponentStatus", &component_status::RULES),
    ("ConfigMap", &config_map::RULES),
    ("Endpoints", &endpoints::RULES),
    ("Event", &event::RULES),
    ("LimitRange", &limit_range::RULES),
    ("Namespace", &namespace::RULES),
    ("Node", &node::RULES),
    ("PersistentVolume", &persistent_volume::RULES),
    ("PersistentVolumeClaim", &persistent_volume_claim::RULES),
    ("Pod", &pod::RULES),
    ("PodTemplate", &pod_template::RULES),
    ("ReplicationController", &replication_controller::RULES),
    ("ResourceQuota", &resource_quota::RULES),
    ("Secret", &secret::RULES),
    ("Service", &service::RULES),
    ("ServiceAccount", &service_account::RULES),
];
