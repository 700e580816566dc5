//! The patches that were made of templates.
//!
//! Making one costs more than the rest of a pass over a StatefulSet that has nothing to do, and a template seldom changes.

use std::collections::HashMap;

use parking_lot::Mutex;
use steersman_base::{Meta, ObjectKey, Uid};
use steersman_model::template::{RawJson, Template};

use super::data;

/// The last patch of each owner. It is one allocation with the revision in the cache, so that it takes no memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Patches(Mutex<HashMap<ObjectKey, Made>>);

#[derive(Debug)]
struct Made {
    owner: Uid,
    template: Template,
    patch: RawJson,
}

// === impl Patches ===

impl Patches {
    /// Returns the patch that restores a template of an owner.
    pub(crate) fn of(&self, owner: &Meta, template: &Template) -> RawJson {
        let key = owner.key();
        let is_of = |made: &&Made| made.owner == owner.uid && made.template.same_allocation(template);
        let known = self.0.lock().get(&key).filter(is_of).map(|made| made.patch.clone());
        known.unwrap_or_else(|| {
            let patch = RawJson::from_text(&data::patch(template));
            let made = Made { owner: owner.uid.clone(), template: template.clone(), patch: patch.clone() };
            self.0.lock().insert(key, made);
            patch
        })
    }

    /// Forgets an owner that is gone.
    pub(crate) fn forget(&self, owner: &ObjectKey) {
        self.0.lock().remove(owner);
    }
}
