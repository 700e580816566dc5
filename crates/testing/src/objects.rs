//! Small objects to begin scenarios with.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};

/// The one label that [`replica_set`] selects by and [`pod`] has.
pub const APP: &str = "app";

/// A ReplicaSet that wants this many pods labelled `app=<name>`.
#[must_use]
pub fn replica_set(name: &str, replicas: i32) -> ReplicaSet {
    ReplicaSet {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        spec: in_any_version(ReplicaSetSpec {
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: Some(labels(name)), ..LabelSelector::default() },
            template: Some(PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(name)), ..ObjectMeta::default() }),
                spec: Some(one_container()),
            }),
            ..ReplicaSetSpec::default()
        }),
        ..ReplicaSet::default()
    }
}

/// A pod without owner, labelled `app=<app>`.
#[must_use]
pub fn pod(name: &str, app: &str) -> Pod {
    Pod {
        metadata: ObjectMeta { name: Some(name.into()), labels: Some(labels(app)), ..ObjectMeta::default() },
        spec: Some(one_container()),
        ..Pod::default()
    }
}

/// A field that is optional in some versions of k8s-openapi and required in others.
fn in_any_version<T, Field: From<T>>(value: T) -> Field {
    value.into()
}

fn labels(app: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(APP.to_owned(), app.to_owned())])
}

fn one_container() -> PodSpec {
    PodSpec {
        containers: vec![Container {
            name: "main".into(),
            image: Some("example/main:1".into()),
            ..Container::default()
        }],
        ..PodSpec::default()
    }
}

/// Metadata with a name.
#[must_use]
pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

/// The reference to an owner that controls its object.
#[must_use]
pub fn controller_ref<K: kube::Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    owner.controller_owner_ref(&()).unwrap_or_default()
}
