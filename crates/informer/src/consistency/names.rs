//! Names of objects whose creates may still arrive.
//!
//! A create whose outcome is unknown may still be in flight. A second create under the same name is refused if the
//! first arrived meanwhile, so there are never two objects.

use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use steersman_base::{Istr, Resource, Uid};
use tokio::time::Instant;

/// The names kept for each owner.
#[derive(Default)]
pub(super) struct Names {
    owners: HashMap<Uid, Vec<Name>, FixedState>,
    count: usize,
    swept: Option<Instant>,
}

struct Name {
    resource: Resource,
    /// The purpose of the object; empty if the objects of the owner are interchangeable.
    purpose: Istr,
    name: Istr,
    until: Instant,
}

/// No request is in flight for this long: API servers end a request after a minute, and so do proxies.
pub const NAMES_KEPT_FOR: Duration = Duration::from_secs(600);
/// The maximum number of names of one book; beyond, names are chosen anew. (A ReplicaSet creates 500 pods in a pass.)
pub const NAMES_MAX: usize = 20_000;

// === impl Names ===

impl Names {
    /// Keeps a name for an owner, and for an object with this purpose.
    pub(super) fn keep(&mut self, owner: &Uid, resource: &Resource, purpose: &str, name: &Istr, now: Instant) {
        self.sweep(now);
        if self.count >= NAMES_MAX {
            return;
        }
        let held = self.owners.entry(owner.clone()).or_default();
        let until = now + NAMES_KEPT_FOR;
        match held.iter_mut().find(|held| held.name == *name && held.resource == *resource) {
            Some(held) => held.until = until,
            None => {
                held.push(Name { resource: resource.clone(), purpose: purpose.into(), name: name.clone(), until });
                self.count += 1;
            }
        }
    }

    /// Takes the first name of an owner that was kept for this purpose and fits. Those of existing objects are forgotten.
    pub(super) fn take(
        &mut self,
        owner: &Uid,
        resource: &Resource,
        purpose: &str,
        is_seen: &dyn Fn(&str) -> bool,
        fits: impl Fn(&str) -> bool,
        now: Instant,
    ) -> Option<Istr> {
        let held = self.owners.get_mut(owner)?;
        let before = held.len();
        held.retain(|name| name.until > now && (name.resource != *resource || !is_seen(&name.name)));
        let serves = |name: &Name| name.resource == *resource && *name.purpose == *purpose && fits(&name.name);
        let at = held.iter().position(serves);
        let taken = at.map(|at| held.remove(at).name);
        self.count -= before - held.len();
        if held.is_empty() {
            self.owners.remove(owner);
        }
        taken
    }

    /// Forgets a name: the object exists.
    pub(super) fn found(&mut self, owner: &Uid, resource: &Resource, name: &str) {
        let Some(held) = self.owners.get_mut(owner) else { return };
        let before = held.len();
        held.retain(|held| held.name != *name || held.resource != *resource);
        self.count -= before - held.len();
        if held.is_empty() {
            self.owners.remove(owner);
        }
    }

    /// Forgets an owner.
    pub(super) fn forget(&mut self, owner: &Uid) {
        self.count -= self.owners.remove(owner).map_or(0, |held| held.len());
    }

    /// Drops names that were kept long enough, from time to time.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|swept| now < swept + NAMES_KEPT_FOR) {
            return;
        }
        self.swept = Some(now);
        self.owners.retain(|_, held| {
            held.retain(|name| name.until > now);
            !held.is_empty()
        });
        self.count = self.owners.values().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Resource {
        Resource::namespaced("", "v1", "pods", "Pod")
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_taken_once_by_its_owner_unless_it_is_seen_or_does_not_fit() {
        let mut names = Names::default();
        let now = Instant::now();
        let rs = Uid::from("rs");
        for name in ["web-a", "web-b", "api-c"] {
            names.keep(&rs, &pods(), "", &name.into(), now);
            names.keep(&rs, &pods(), "", &name.into(), now);
        }
        let fits = |name: &str| name.starts_with("web-");
        let unseen: &dyn Fn(&str) -> bool = &|_| false;
        assert_eq!(names.take(&"other".into(), &pods(), "", unseen, fits, now), None);
        let sets = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");
        assert_eq!(names.take(&rs, &sets, "", unseen, fits, now), None, "of another resource");
        assert_eq!(names.take(&rs, &pods(), "", &|name| name == "web-a", fits, now).as_deref(), Some("web-b"));
        assert_eq!(names.take(&rs, &pods(), "", unseen, fits, now), None, "one was seen, and one was taken");
        assert_eq!(names.take(&rs, &pods(), "", unseen, |_| true, now).as_deref(), Some("api-c"));
        assert_eq!((names.count, names.owners.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_taken_for_the_purpose_that_it_was_kept_for() {
        let mut names = Names::default();
        let now = Instant::now();
        let ds = Uid::from("ds");
        for (node, name) in [("node-1", "agent-a"), ("node-2", "agent-b")] {
            names.keep(&ds, &pods(), node, &name.into(), now);
        }
        let mut take = |node: &str| names.take(&ds, &pods(), node, &|_| false, |_| true, now);
        assert_eq!(take("node-3"), None);
        assert_eq!(take(""), None);
        assert_eq!(take("node-2").as_deref(), Some("agent-b"));
        assert_eq!(take("node-2"), None, "the other name is for another node");
        assert_eq!(take("node-1").as_deref(), Some("agent-a"));
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_kept_for_a_while_and_no_more_than_so_many() {
        let mut names = Names::default();
        let now = Instant::now();
        for number in 0..NAMES_MAX + 10 {
            names.keep(
                &Uid::from(&*format!("rs-{}", number % 7)),
                &pods(),
                "",
                &format!("web-{number}").as_str().into(),
                now,
            );
        }
        assert_eq!(names.count, NAMES_MAX);
        let later = now + NAMES_KEPT_FOR;
        assert_eq!(names.take(&"rs-1".into(), &pods(), "", &|_| false, |_| true, later), None);
        names.keep(&"rs".into(), &pods(), "", &"web".into(), later);
        assert_eq!((names.count, names.owners.len()), (1, 1));
        names.forget(&"rs".into());
        assert_eq!(names.count, 0);
    }
}
