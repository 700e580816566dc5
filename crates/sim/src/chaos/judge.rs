//! What was seen, judged by the invariants of the simulator.
//!
//! Pure: a recording and an audit log in, counts out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_base::{Istr, ObjectKey, Time};

use super::audit::Audit;
use super::recorder::Seen;
use crate::invariants::{Count, Options, Suite, Violation};
use crate::record::{Actor, Change};
use crate::world::World;

/// What came of a recording.
#[derive(Debug)]
pub struct Judged {
    /// What did not hold at a write.
    pub violations: Vec<Violation>,
    /// How often each invariant was judged.
    pub counts: BTreeMap<&'static str, Count>,
    /// How many changes were judged.
    pub changes: u64,
    /// The number of changes without a known author.
    pub unknown: u64,
}

/// Objects that existed before the recording have no author.
fn is_old(seen: &Seen, begin: u64) -> bool {
    seen.revision <= begin
}

/// Judges every change after the revision `begin`, and then what there is at the end.
#[must_use]
pub fn judge(seen: &[Seen], audit: &mut Audit, begin: u64) -> Judged {
    let mut world = World::default();
    let mut suite = Suite::new(Options::default());
    let mut before: BTreeMap<(Istr, ObjectKey), Arc<Value>> = BTreeMap::new();
    let mut violations = Vec::new();
    let mut changes = 0;
    let mut unknown = 0;
    let mut now = Time::from_unix(0);
    for seen in seen {
        let by = if is_old(seen, begin) {
            Actor::Server
        } else {
            let author = audit.author(&seen.resource, &seen.key, seen.revision, seen.at);
            unknown += u64::from(author.is_none() && !is_servers(seen));
            author.unwrap_or(Actor::Server)
        };
        // Two watches need not be equally fast.
        now = now.max(seen.at.to_seconds());
        let place = (seen.resource.clone(), seen.key.clone());
        let change = Change {
            revision: seen.revision,
            at: now,
            resource: seen.resource.clone(),
            key: seen.key.clone(),
            before: before.remove(&place),
            after: seen.after.clone(),
            by,
            shown: None,
        };
        if let Some(after) = &seen.after {
            before.insert(place, Arc::clone(after));
        }
        world.apply(&change);
        if !is_old(seen, begin) {
            violations.extend(suite.check(&world, &change));
            changes += 1;
        }
    }
    violations.extend(suite.healed(&world));
    Judged { violations, counts: suite.counts().clone(), changes, unknown }
}

/// Those of the server itself: its leases, its own service, what it publishes about itself, the budgets that it charges for
/// evictions, and the quotas that it charges for what it admits.
fn is_servers(seen: &Seen) -> bool {
    seen.resource == "leases.coordination.k8s.io"
        || seen.resource == "poddisruptionbudgets.policy"
        || seen.resource == "resourcequotas"
        || (seen.key.namespace == "default" && seen.key.name == "kubernetes")
        || (seen.key.namespace == "kube-system" && seen.resource == "configmaps")
}

/// Returns what does not match the specs yet.
#[must_use]
pub fn unhealed(now: &[Seen]) -> Vec<Violation> {
    let mut world = World::default();
    for seen in now {
        world.apply(&Change {
            revision: seen.revision,
            at: seen.at.to_seconds(),
            resource: seen.resource.clone(),
            key: seen.key.clone(),
            before: None,
            after: seen.after.clone(),
            by: Actor::Server,
            shown: None,
        });
    }
    Suite::new(Options::default()).healed(&world)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman_base::MicroTime;

    use super::*;

    fn seen(revision: u64, resource: &str, name: &str, after: Option<Value>) -> Seen {
        let at = MicroTime::from_unix_micros(1_700_000_000_000_000 + i64::try_from(revision).unwrap() * 1_000_000);
        let resource = Istr::interned(resource);
        let key = ObjectKey::new("a", name);
        Seen { revision, at, resource, key, after: after.map(Arc::new) }
    }

    fn created(manager: usize, name: &str, revision: u64) -> String {
        let about = json!({"resource": "pods", "namespace": "a"});
        let answer = json!({"kind": "Pod", "metadata": {"name": name, "namespace": "a", "resourceVersion": revision.to_string()}});
        json!({
            "userAgent": format!("x chaos-manager-{manager}"), "verb": "create", "objectRef": about,
            "user": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
            "responseStatus": {"code": 201}, "responseObject": answer,
            "requestReceivedTimestamp": "2023-11-14T22:13:20.000000Z", "stageTimestamp": "2023-11-14T22:13:20.000000Z",
        })
        .to_string()
    }

    /// A ReplicaSet of one pod, for which two are created.
    #[test]
    fn a_recording_with_one_pod_too_many_violates_the_ledger_and_one_without_does_not() {
        let set = json!({
            "kind": "ReplicaSet", "metadata": {"name": "set", "namespace": "a", "uid": "set", "generation": 1},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}}},
        });
        let pod = |name: &str| {
            json!({
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "a", "uid": name, "labels": {"app": "a"}, "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set", "controller": true}]},
                "spec": {}, "status": {"phase": "Pending"},
            })
        };
        let log = [created(0, "p", 2), created(0, "q", 3)].join("\n");
        let story = [
            seen(1, "replicasets.apps", "set", Some(set)),
            seen(2, "pods", "p", Some(pod("p"))),
            seen(3, "pods", "q", Some(pod("q"))),
        ];
        let violated = |story: &[Seen]| {
            let judged = judge(story, &mut Audit::read(&log), 0);
            judged.counts["at_most_the_needed_pods_are_created"].violated
        };
        assert_eq!(violated(&story[..2]), 0);
        assert_eq!(violated(&story), 1);
    }
}
