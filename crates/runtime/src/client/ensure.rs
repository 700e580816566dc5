//! Making sure that an object is as wanted.

use std::fmt;

use serde_json::Value;
use steersman_base::ObjectKey;

use super::diff::merge_patch;
use super::object::{AnyObject, key_of};
use super::{ClientError, Objects, Patch};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What was done to make an object as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ensured {
    /// It was as wanted; nothing was written.
    Unchanged,
    /// It was not there, and was made.
    Created,
    /// It was changed.
    Updated,
    /// It was changed, and so was its status.
    UpdatedStatus,
    /// Only its status was changed.
    UpdatedStatusOnly,
}

// === impl Objects ===

impl<T: AnyObject + Clone> Objects<T> {
    /// Makes sure that an object is as `mutate` leaves it: creates it if it is not there, patches it if `mutate` changes
    /// it, and writes nothing if it does not. Only the name and namespace of `object` count where it is there already;
    /// `mutate` sees what the cache shows then, and `object` otherwise.
    ///
    /// The patch is a JSON merge patch of the difference: fields that `mutate` does not touch stay as others set them, and
    /// lists are replaced whole. A changed status is patched apart, if the object is there already. What `mutate` resets
    /// and the server sets to a default again is written every time.
    ///
    /// # Errors
    /// See [`ClientError`]; [`AlreadyExists`](ClientError::AlreadyExists) if somebody else was quicker to create it.
    pub async fn create_or_patch(
        &self,
        object: T,
        mutate: impl FnOnce(&mut T) -> Result<(), BoxError> + Send,
    ) -> Result<(T, Ensured), ClientError> {
        let key = key_of(&object);
        let Some(held) = self.get_opt(&key).await? else { return self.create_mutated(object, mutate).await };
        let mut wanted = held.object().clone();
        self.mutate(&key, &mut wanted, mutate)?;
        let (mut before, mut after) = (self.json(&key, held.object())?, self.json(&key, &wanted)?);
        let (status_before, status_after) = (take_status(&mut before), take_status(&mut after));
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

    /// As [`create_or_patch`](Self::create_or_patch), but replaces the whole object, under the condition that nobody has
    /// changed it since the cache saw it. A changed status is not written where the kind has a status subresource.
    ///
    /// # Errors
    /// See [`ClientError`]; [`Conflict`](ClientError::Conflict) if somebody has.
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

    /// Lets a function change the object, but not into another one.
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
