//! Create or patch, create or update.

use std::fmt;

use serde_json::Value;
use steersman_base::ObjectKey;

use super::diff::merge_patch;
use super::object::{AnyObject, key_of};
use super::{ClientError, Objects, Patch};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of [`Objects::create_or_patch`] and [`Objects::create_or_update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ensured {
    /// The object was as wanted; nothing was written.
    Unchanged,
    /// The object did not exist and was created.
    Created,
    /// The object was changed.
    Updated,
    /// The object and its status were changed.
    UpdatedStatus,
    /// Only the status was changed.
    UpdatedStatusOnly,
}

// === impl Objects ===

impl<T: AnyObject + Clone> Objects<T> {
    /// Creates an object, or patches it if `mutate` changes it; writes nothing if it does not. If the object exists,
    /// only the name and namespace of `object` count, and `mutate` gets the cached object; otherwise `mutate` gets
    /// `object`.
    ///
    /// The patch is a JSON merge patch of the difference: fields that `mutate` does not touch keep the values that
    /// others set, and lists are replaced as a whole. A changed status is patched separately, if the object exists. A
    /// field that `mutate` resets and the server defaults again is written every time.
    ///
    /// # Errors
    /// See [`ClientError`]; [`AlreadyExists`](ClientError::AlreadyExists) if the object was created by somebody else
    /// meanwhile.
    pub async fn create_or_patch(
        &self,
        object: T,
        mutate: impl FnOnce(&mut T) -> Result<(), BoxError> + Send,
    ) -> Result<(T, Ensured), ClientError> {
        let key = key_of(&object);
        let Some(held) = self.get_opt(&key).await? else { return self.create_mutated(object, mutate).await };
        let mut wanted = held.object().clone();
        self.mutate(&key, &mut wanted, mutate)?;
        let mut before = self.json(&key, held.object())?;
        let mut after = self.json(&key, &wanted)?;
        let status_before = take_status(&mut before);
        let status_after = take_status(&mut after);
        let changed = merge_patch(&before, &after);
        let status = merge_patch(&status_before, &status_after);
        let ensured = match (&changed, &status) {
            (None, None) => return Ok((wanted, Ensured::Unchanged)),
            (Some(_), None) => Ensured::Updated,
            (Some(_), Some(_)) => Ensured::UpdatedStatus,
            (None, Some(_)) => Ensured::UpdatedStatusOnly,
        };
        if let Some(patch) = changed {
            wanted = self.patch(&key, Patch::Merge(&patch)).await?;
        }
        if let Some(patch) = status {
            let patch = serde_json::json!({ "status": patch });
            wanted = self.status().patch(&key, Patch::Merge(&patch)).await?;
        }
        Ok((wanted, ensured))
    }

    /// As [`create_or_patch`](Self::create_or_patch), but replaces the whole object, on condition that it has not
    /// changed since the cache saw it. A changed status is not written if the kind has a status subresource.
    ///
    /// # Errors
    /// See [`ClientError`]; [`Conflict`](ClientError::Conflict) if the object has changed.
    pub async fn create_or_update(
        &self,
        object: T,
        mutate: impl FnOnce(&mut T) -> Result<(), BoxError> + Send,
    ) -> Result<(T, Ensured), ClientError> {
        let key = key_of(&object);
        let Some(held) = self.get_opt(&key).await? else { return self.create_mutated(object, mutate).await };
        let mut wanted = held.object().clone();
        self.mutate(&key, &mut wanted, mutate)?;
        if merge_patch(&self.json(&key, held.object())?, &self.json(&key, &wanted)?).is_none() {
            return Ok((wanted, Ensured::Unchanged));
        }
        Ok((self.update(&wanted).await?, Ensured::Updated))
    }

    async fn create_mutated(
        &self,
        mut object: T,
        mutate: impl FnOnce(&mut T) -> Result<(), BoxError> + Send,
    ) -> Result<(T, Ensured), ClientError> {
        let key = key_of(&object);
        self.mutate(&key, &mut object, mutate)?;
        Ok((self.create(&object).await?, Ensured::Created))
    }

    /// Lets a function change the object, but not its identity.
    fn mutate(
        &self,
        key: &ObjectKey,
        object: &mut T,
        mutate: impl FnOnce(&mut T) -> Result<(), BoxError>,
    ) -> Result<(), ClientError> {
        let outcome = mutate(object).and_then(|()| {
            let same = key_of(object) == *key;
            if same { Ok(()) } else { Err("the function must not change the object's name or namespace".into()) }
        });
        outcome.map_err(|source| ClientError::Mutate { what: format!("{} {key}", self.resource()), source })
    }

    fn json(&self, key: &ObjectKey, object: &T) -> Result<Value, ClientError> {
        serde_json::to_value(object).map_err(|error| ClientError::BadRequest {
            what: format!("compare {} {key}", self.resource()),
            problem: error.to_string(),
        })
    }
}

fn take_status(object: &mut Value) -> Value {
    let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
    status.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

// === impl Ensured ===

/// Completes the sentence "the object is …".
impl fmt::Display for Ensured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "unchanged",
            Self::Created => "created",
            Self::Updated => "updated",
            Self::UpdatedStatus => "updated, with its status",
            Self::UpdatedStatusOnly => "updated in its status only",
        })
    }
}
