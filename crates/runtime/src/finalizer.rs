//! Finalizers: cleaning up before an object is deleted.
//!
//! 1. The finalizer is on the object before the first [`Event::Apply`]: everything that `Apply` creates elsewhere will
//!    be cleaned up.
//! 2. It is removed after [`Event::Cleanup`] succeeded, and never before. Every [`Action`] is success, `Again` and `After` too,
//!    as in kube-rs: cleaning up that is not finished returns an error ([`Error::message`]), and is called again.
//! 3. It is added and removed on condition that the object is the one that was read, in that version; finalizers of
//!    others stay. After a conflict the key is requeued.
//! 4. A terminating object without the finalizer is left alone.
//! 5. Both writes go through the [`Writer`](crate::Writer): with a reason in the decision log, in the consistency book,
//!    and only while this process leads. After the finalizer was added, the key is requeued as soon as the cache shows
//!    it, whatever the controller's predicates admit.
//! 6. An error of the function is the error of the reconcile: a [terminal](Error::terminal) error stays terminal.
//! 7. In shadow mode the function is not called to clean up, because that happens outside of Kubernetes, where shadow
//!    mode cannot prevent it: the decision log shows that it would have been called. `Apply` comes without waiting for
//!    the finalizer, which is not written either.
//!
//! The counterpart of `kube_runtime::finalizer` and controller-runtime's `finalizer`.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use steersman_base::ObjectKey;
//! # use steersman_informer::{Lister, Typed};
//! # use steersman_runtime::finalizer::{Event, finalizer};
//! # use steersman_runtime::{Action, Context, Error, Reconciler};
//! # async fn make_bucket(_: &ConfigMap) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn delete_bucket(_: &ConfigMap) -> Result<(), std::io::Error> { Ok(()) }
//! # struct Buckets { configs: Lister<Typed<ConfigMap>> }
//! impl Reconciler for Buckets {
//!     async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
//!         let Some(config) = self.configs.get(key) else { return Ok(Action::Done) };
//!         finalizer(cx, "example.com/bucket", &*config, |event| async move {
//!             match event {
//!                 Event::Apply(config) => make_bucket(config).await?,
//!                 Event::Cleanup(config) => delete_bucket(config).await?,
//!             }
//!             Ok(Action::Done)
//!         })
//!         .await
//!     }
//! }
//! ```

use std::future::Future;

use kube::Resource;
use serde_json::{Value, json};
use steersman_base::{Istr, Meta};
use steersman_model::View;

use crate::decisions::{Decision, Fate};
use crate::{Action, Context, Error, Patch, Reason, WriteError};

/// The action for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// The object exists and has the finalizer: apply it.
    Apply(T),
    /// The object is terminating: clean up. May come more than once. Any action as the result says that it is done.
    Cleanup(T),
}

/// The next step for an object in its current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add,
    Apply,
    Cleanup,
    LeaveAlone,
}

/// The finalizer could not be written.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("cannot add the finalizer {name}, so nothing was applied")]
    Add { name: String, source: WriteError },
    #[error("cannot remove the finalizer {name}; cleaning up succeeded and will be asked for again")]
    Remove { name: String, source: WriteError },
}

crate::reasons! {
    enum Why {
        AddsFinalizer { name: String } => "{name} must clean up after whatever is made for the object from now on",
        RemovesFinalizer { name: String } => "{name} has cleaned up, so the object can go",
        WouldCleanUp { name: String } => "{name} would clean up after the object, which is terminating",
    }
}

/// Runs `reconcile` for the main object of a controller, with a finalizer: see the [module](self).
///
/// # Errors
/// The error of `reconcile`, unchanged; or the finalizer could not be written.
pub async fn finalizer<'a, V, F>(
    cx: &Context,
    name: &str,
    object: &'a V,
    reconcile: impl FnOnce(Event<&'a V>) -> F,
) -> Result<Action, Error>
where
    V: View,
    F: Future<Output = Result<Action, Error>>,
{
    let is_qualified = name.split_once('/').is_some_and(|(domain, rest)| !domain.is_empty() && !rest.is_empty());
    if !is_qualified {
        let problem = format!("{name:?} is no name of a finalizer: use one like example.com/cleanup");
        return Err(Error::terminal(problem));
    }
    let meta = object.meta();
    let shadow = cx.writer.is_shadow();
    match step(meta, name) {
        Step::LeaveAlone => Ok(Action::Done),
        Step::Apply => reconcile(Event::Apply(object)).await,
        Step::Add => {
            let why = Why::AddsFinalizer { name: name.to_owned() };
            match set(cx, meta, &with(meta, name), &why).await? {
                Ok(()) if shadow => reconcile(Event::Apply(object)).await,
                // The next pass waits until the cache shows it.
                Ok(()) | Err(WriteError::Conflict) => Ok(Action::Again),
                Err(WriteError::NotFound) => Ok(Action::Done),
                Err(source) => Err(Failed::Add { name: name.to_owned(), source }.into()),
            }
        }
        Step::Cleanup => {
            let action = if shadow {
                note_cleanup(cx, name);
                Action::Done
            } else {
                reconcile(Event::Cleanup(object)).await?
            };
            let why = Why::RemovesFinalizer { name: name.to_owned() };
            match set(cx, meta, &without(meta, name), &why).await? {
                // A deleted object is what was wanted.
                Ok(()) | Err(WriteError::NotFound) => Ok(action),
                Err(WriteError::Conflict) => Ok(Action::Again),
                Err(source) => Err(Failed::Remove { name: name.to_owned(), source }.into()),
            }
        }
    }
}

/// Writes the whole list, on condition that the object is in this version: otherwise the server returns a conflict.
async fn set(cx: &Context, meta: &Meta, wanted: &[&str], why: &dyn Reason) -> Result<Result<(), WriteError>, Error> {
    let Some(resource) = cx.writer.owner_resource() else {
        return Err(Error::terminal(
            "a finalizer needs the writer of a controller: give it the context of a reconcile",
        ));
    };
    let body = set_finalizers(meta, wanted);
    let written = cx.writer.on_behalf_of(meta).patch(resource, &meta.key(), Patch::Merge(&body), why).await;
    Ok(written.map(drop))
}

fn note_cleanup(cx: &Context, name: &str) {
    let why = Why::WouldCleanUp { name: name.to_owned() };
    tracing::info!(reason = why.code(), shadow = true, "not done: {why}");
    if let Some(pass) = cx.writer.pass() {
        pass.note(Decision { rule: why.code(), why: why.to_string(), write: None, fate: Fate::WouldWrite });
    }
}

/// Whether an object has a finalizer.
#[must_use]
pub fn contains_finalizer(object: &impl Resource, name: &str) -> bool {
    finalizers(object).iter().any(|held| held == name)
}

/// Adds a finalizer to an object. Returns whether it was missing.
pub fn add_finalizer(object: &mut impl Resource, name: &str) -> bool {
    if contains_finalizer(object, name) {
        return false;
    }
    object.meta_mut().finalizers.get_or_insert_default().push(name.to_owned());
    true
}

/// Removes a finalizer from an object. Returns whether it was present.
pub fn remove_finalizer(object: &mut impl Resource, name: &str) -> bool {
    let Some(held) = &mut object.meta_mut().finalizers else { return false };
    let before = held.len();
    held.retain(|held| held != name);
    held.len() != before
}

fn step(meta: &Meta, name: &str) -> Step {
    match (meta.has_finalizer(name), meta.is_terminating()) {
        (true, false) => Step::Apply,
        (true, true) => Step::Cleanup,
        (false, false) => Step::Add,
        (false, true) => Step::LeaveAlone,
    }
}

fn with<'a>(meta: &'a Meta, name: &'a str) -> Vec<&'a str> {
    meta.finalizers().iter().map(Istr::as_str).chain([name]).collect()
}

fn without<'a>(meta: &'a Meta, name: &str) -> Vec<&'a str> {
    meta.finalizers().iter().map(Istr::as_str).filter(|held| *held != name).collect()
}

fn set_finalizers(meta: &Meta, wanted: &[&str]) -> Value {
    let list = if wanted.is_empty() { Value::Null } else { json!(wanted) };
    json!({"metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": list }})
}

fn finalizers(object: &impl Resource) -> &[String] {
    object.meta().finalizers.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use steersman_base::Time;
    use steersman_base::meta::RareMeta;

    use super::*;

    const NAME: &str = "example.com/x";

    #[test]
    fn a_finalizer_is_there_before_the_work_and_after_the_cleaning() {
        let check = |held: &[&str], going: bool, want: Step| {
            let finalizers = held.iter().map(|&name| name.into()).collect();
            let deletion_timestamp = going.then_some(Time::from_unix(1));
            let rare = Some(Box::new(RareMeta { finalizers, deletion_timestamp, ..RareMeta::default() }));
            let meta = Meta { rare, ..Meta::default() };
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
        let rare = Some(Box::new(RareMeta { finalizers: ["other/y".into()].into(), ..RareMeta::default() }));
        let meta = Meta { uid: "u".into(), resource_version: "7".into(), rare, ..Meta::default() };
        let want = json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["other/y", NAME]}});
        assert_eq!(set_finalizers(&meta, &with(&meta, NAME)), want);
        let want = json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": null}});
        assert_eq!(set_finalizers(&meta, &without(&meta, "other/y")), want);
    }
}
