//! Finalizers: something is cleaned up before an object goes.
//!
//! 1. The finalizer is on the object before the first [`Event::Apply`]: whatever `Apply` makes elsewhere will be cleaned
//!    up.
//! 2. It goes after [`Event::Cleanup`] succeeded, and never before.
//! 3. It is added and removed under the condition that the object is the one that was seen, in the state that was seen;
//!    finalizers of others stay.
//! 4. An object that is going and does not have it is left alone.
//!
//! As `kube_runtime::finalizer` and controller-runtime's `finalizer`.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use steersman_runtime::client::{CachedClient, ClientError};
//! # use steersman_runtime::finalizer::{Event, FinalizerError, finalizer};
//! # use steersman_runtime::Action;
//! # async fn make_bucket(_: &ConfigMap) -> Result<(), ClientError> { Ok(()) }
//! # async fn delete_bucket(_: &ConfigMap) -> Result<(), ClientError> { Ok(()) }
//! # async fn reconcile(client: &CachedClient, config: &ConfigMap) -> Result<Action, FinalizerError<ClientError>> {
//! finalizer(&client.objects(), "example.com/bucket", config, |event| async move {
//!     match event {
//!         Event::Apply(config) => make_bucket(config).await?,
//!         Event::Cleanup(config) => delete_bucket(config).await?,
//!     }
//!     Ok(Action::Done)
//! })
//! .await
//! # }
//! ```

use std::future::Future;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::{Value, json};

use crate::Action;
use crate::client::{AnyObject, ClientError, Objects, Patch, key_of};

/// What is to be done about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// Make it so: the object is there, and the finalizer is on it.
    Apply(T),
    /// Clean up after it: the object is going. May come more than once.
    Cleanup(T),
}

/// Why an object was not seen to.
#[derive(Debug, thiserror::Error)]
pub enum FinalizerError<E> {
    /// Applying failed.
    #[error("cannot apply the object: {0}")]
    Apply(E),
    /// Cleaning up failed; the finalizer stays.
    #[error("cannot clean up after the object: {0}")]
    Cleanup(E),
    /// The finalizer could not be added. Nothing was applied.
    #[error("cannot add the finalizer: {0}")]
    Add(ClientError),
    /// The finalizer could not be removed. Cleaning up succeeded, and will be asked for again.
    #[error("cannot remove the finalizer: {0}")]
    Remove(ClientError),
    /// A finalizer is `domain/name`.
    #[error("{0:?} is no name of a finalizer: use one like example.com/cleanup")]
    Name(String),
}

/// What a finalizer means for an object in its present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add,
    Apply,
    Cleanup,
    LeaveAlone,
}

/// Sees to an object that needs cleaning up: see the module.
///
/// # Errors
/// See [`FinalizerError`]. A conflict on adding or removing means that the object has changed: the change leads here again.
pub async fn finalizer<'a, T, E, F>(
    objects: &Objects<T>,
    name: &str,
    object: &'a T,
    reconcile: impl FnOnce(Event<&'a T>) -> F,
) -> Result<Action, FinalizerError<E>>
where
    T: AnyObject,
    F: Future<Output = Result<Action, E>>,
{
    let is_qualified = name.split_once('/').is_some_and(|(domain, rest)| !domain.is_empty() && !rest.is_empty());
    if !is_qualified {
        return Err(FinalizerError::Name(name.to_owned()));
    }
    let meta = object.meta();
    match step(meta, name) {
        Step::LeaveAlone => Ok(Action::Done),
        Step::Add => {
            let mut wanted = finalizers(meta).to_vec();
            wanted.push(name.to_owned());
            let patched = objects.patch(&key_of(object), Patch::Merge(&set_finalizers(meta, &wanted))).await;
            // The change leads here again, with the finalizer.
            patched.map(|_| Action::Done).map_err(FinalizerError::Add)
        }
        Step::Apply => reconcile(Event::Apply(object)).await.map_err(FinalizerError::Apply),
        Step::Cleanup => {
            let action = reconcile(Event::Cleanup(object)).await.map_err(FinalizerError::Cleanup)?;
            let wanted: Vec<_> = finalizers(meta).iter().filter(|held| *held != name).cloned().collect();
            match objects.patch(&key_of(object), Patch::Merge(&set_finalizers(meta, &wanted))).await {
                // Gone is what was wanted.
                Ok(_) | Err(ClientError::NotFound(_)) => Ok(action),
                Err(error) => Err(FinalizerError::Remove(error)),
            }
        }
    }
}

/// Whether a finalizer is on an object.
#[must_use]
pub fn contains_finalizer(object: &impl Resource, name: &str) -> bool {
    finalizers(object.meta()).iter().any(|held| held == name)
}

/// Puts a finalizer on an object, unless it is there; answers whether it was not.
pub fn add_finalizer(object: &mut impl Resource, name: &str) -> bool {
    if contains_finalizer(object, name) {
        return false;
    }
    object.meta_mut().finalizers.get_or_insert_default().push(name.to_owned());
    true
}

/// Takes a finalizer off an object; answers whether it was there.
pub fn remove_finalizer(object: &mut impl Resource, name: &str) -> bool {
    let Some(held) = &mut object.meta_mut().finalizers else { return false };
    let before = held.len();
    held.retain(|held| held != name);
    held.len() != before
}

fn step(meta: &ObjectMeta, name: &str) -> Step {
    let has = finalizers(meta).iter().any(|held| held == name);
    match (has, meta.deletion_timestamp.is_some()) {
        (true, false) => Step::Apply,
        (true, true) => Step::Cleanup,
        (false, false) => Step::Add,
        (false, true) => Step::LeaveAlone,
    }
}

fn finalizers(meta: &ObjectMeta) -> &[String] {
    meta.finalizers.as_deref().unwrap_or_default()
}

/// The whole list, for this object in this state: the server answers a conflict to anybody who saw another one.
fn set_finalizers(meta: &ObjectMeta, wanted: &[String]) -> Value {
    let list = if wanted.is_empty() { Value::Null } else { json!(wanted) };
    json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "finalizers": list,
    }})
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    const NAME: &str = "example.com/x";

    #[test]
    fn a_finalizer_is_there_before_the_work_and_after_the_cleaning() {
        let check = |held: &[&str], going: bool, want: Step| {
            let meta = ObjectMeta {
                finalizers: Some(held.iter().map(|name| (*name).to_owned()).collect()),
                deletion_timestamp: going.then_some(Time(Timestamp::UNIX_EPOCH)),
                ..ObjectMeta::default()
            };
            assert_eq!(step(&meta, NAME), want, "{held:?} {going}");
        };
        check(&[], false, Step::Add);
        check(&["other/y"], false, Step::Add);
        check(&[NAME], false, Step::Apply);
        check(&["other/y", NAME], true, Step::Cleanup);
        check(&["other/y"], true, Step::LeaveAlone);
    }

    #[test]
    fn finalizers_of_others_stay() {
        let mut object = ConfigMap::default();
        assert!(!remove_finalizer(&mut object, NAME));
        assert!(add_finalizer(&mut object, "other/y"));
        assert!(add_finalizer(&mut object, NAME));
        assert!(!add_finalizer(&mut object, NAME), "it is there");
        assert!(contains_finalizer(&object, NAME));
        assert!(remove_finalizer(&mut object, NAME));
        assert_eq!(object.metadata.finalizers, Some(vec!["other/y".to_owned()]));
    }

    #[test]
    fn a_change_names_the_state_that_was_seen() {
        let meta = ObjectMeta { uid: Some("u".into()), resource_version: Some("7".into()), ..ObjectMeta::default() };
        let want = json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": [NAME]}});
        assert_eq!(set_finalizers(&meta, &[NAME.to_owned()]), want);
        let want = json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": null}});
        assert_eq!(set_finalizers(&meta, &[]), want);
    }
}
