//! The plug-in ResourceQuota: a write that exceeds a quota of its namespace is refused, and one that does not is charged.
//!
//! 1. The usage in the status of the quotas and the object are stored together, or neither is: a write that fails later
//!    costs nothing, and no two writes use the same rest of a quota.
//! 2. A dry run is checked and not charged. An update is charged for what it adds; what is freed, by deletions too, is the
//!    resourcequota controller's to count.
//! 3. A quota is enforced once its status says what is counted: until then, writes that it counts are refused.
//! 4. In a namespace without quotas nothing is computed.
//!
//! Follows `apiserver/pkg/admission/plugin/resourcequota` of Kubernetes 1.37.1.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use steersman_base::ObjectKey;
use steersman_base::quota::{Amounts, DeviceClaim, DeviceClasses, Facts, Quota, Requirement, Subject, Tracker, charge};

use super::{Lookup, Refused, forbidden};
use crate::kinds::shared::json::{items, text};
use crate::registry::checked::Checked;
use crate::registry::list::list_all;
use crate::registry::object_meta::meta_text;
use crate::registry::write::{Owners, Part};
use crate::registry::{Call, Registry, Row};
use crate::status::Status;
use crate::store::{Change, Expect, NewState, Object, Write, WriteConflict};

/// The maximum number of times that a write is charged again because the status of a quota is written meanwhile. Only
/// others than this plug-in do that, and they count in seconds.
const ATTEMPTS_MAX: usize = 64;

/// A write that quotas may count.
struct Charged {
    quotas: Arc<Row>,
    tracker: Tracker,
    new: Subject,
    old: Option<Subject>,
    classes: DeviceClasses,
    name: String,
}

impl Registry {
    /// Stores an object, and charges the quotas of its namespace for it. The outer error is that of a quota, the inner one
    /// that of the object.
    pub(in crate::registry) fn commit_charged(
        &self,
        call: &Call,
        write: (&ObjectKey, Expect, NewState),
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Result<Arc<Object>, WriteConflict>, Status> {
        let (key, expect, state) = write;
        let collection = &call.row.collection;
        let Some(charged) = self.charged(call, object, old) else {
            return Ok(self.store.commit(collection, key, expect, Change::Put(state)));
        };
        // One at a time: otherwise many would compute the same charge, and all but one in vain.
        let _turn = self.quotas.lock();
        for _ in 0..ATTEMPTS_MAX {
            let mut writes = self.charges(call, &charged)?;
            if writes.is_empty() {
                return Ok(self.store.commit(collection, key, expect, Change::Put(state)));
            }
            let quotas = writes.len();
            let change = Change::Put(state.clone());
            writes.push(Write { collection: collection.clone(), key: key.clone(), expect, change });
            match self.store.commit_all(writes) {
                Ok(mut stored) => return Ok(stored.pop().ok_or(WriteConflict::Gone)),
                Err((at, conflict)) if at == quotas => return Ok(Err(conflict)),
                // The status of a quota has been written meanwhile.
                Err(_) => {}
            }
        }
        Err(Status::internal("the quotas of the namespace change all the time; try again"))
    }

    /// Checks a write that is not stored against the quotas of its namespace.
    pub(in crate::registry) fn check_quotas(
        &self,
        call: &Call,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        match self.charged(call, object, old) {
            Some(charged) => self.charges(call, &charged).map(drop),
            None => Ok(()),
        }
    }

    /// Returns a write, if its namespace has quotas and they may count it. The objects are in the stored form.
    fn charged(&self, call: &Call, object: &Value, old: Option<&Value>) -> Option<Charged> {
        if call.namespace.is_empty() || !(call.row.rules.admission.is_counted)(&call.subresource, object, old) {
            return None;
        }
        let quotas = self.row("", "v1", "resourcequotas")?;
        if list_all(self, &quotas, &call.namespace).is_empty() {
            return None;
        }
        let tracker = Tracker::of(&call.row.resource.group, &call.row.resource.plural)?;
        let classes = if tracker == Tracker::DeviceClaims { self.device_classes() } else { DeviceClasses::default() };
        let subject = |object: &Value| match tracker.subject(object) {
            Subject::DeviceClaim(claim, _) => {
                let covered = self.covered(&claim, &call.namespace, &tracker);
                Subject::DeviceClaim(claim, covered)
            }
            subject => subject,
        };
        let new = subject(object);
        let old = old.map(subject);
        Some(Charged { quotas, tracker, new, old, classes, name: meta_text(object, "name").to_owned() })
    }

    /// Returns the writes of the quotas that a write is charged to.
    fn charges(&self, call: &Call, charged: &Charged) -> Result<Vec<Write>, Status> {
        let row = &charged.quotas;
        let stored = list_all(self, row, &call.namespace);
        let parsed: Vec<Value> = stored.iter().map(|stored| stored.parse().unwrap_or_default()).collect();
        let quotas: Vec<Quota> = parsed.iter().map(quota).collect();
        let facts = Facts { now: self.clock.now(), classes: &charged.classes };
        let write = charge::Write {
            tracker: &charged.tracker,
            new: &charged.new,
            old: charged.old.as_ref(),
            is_status: call.subresource == "status",
        };
        let changed = charge(&quotas, write, facts)
            .map_err(|problem| forbidden(call, &charged.name, &Refused::because(problem)))?;
        let write = |(at, used): (usize, Amounts)| {
            let name = &quotas[at].name;
            let mut object = parsed[at].clone();
            object["status"]["used"] = serde_json::to_value(used).map_err(Status::internal)?;
            let call = Call::by_server(Arc::clone(row), &call.namespace, name, "status");
            let checked = Checked::composed(row, object)?;
            let processed = self.process(&call, checked, Owners::Changes, Some(&parsed[at]), Part::Status)?;
            Ok(Write {
                collection: row.collection.clone(),
                key: call.key(),
                expect: Expect::Revision(stored[at].revision),
                change: Change::Put(processed.state(row)),
            })
        };
        changed.into_iter().map(write).collect()
    }

    fn device_classes(&self) -> DeviceClasses {
        let classes = Lookup::list(self, "resource.k8s.io", "deviceclasses", "");
        let class = |class: &Value| {
            let extended = class["spec"]["extendedResourceName"].as_str().map(Into::into);
            (text(&class["metadata"]["name"]).into(), extended)
        };
        classes.iter().map(class).collect()
    }

    /// Returns the usage of the pod that is charged for a claim of its extended resources, if there is one.
    fn covered(&self, claim: &DeviceClaim, namespace: &str, tracker: &Tracker) -> Amounts {
        let pod = claim.pod().and_then(|owner| {
            let pod = Lookup::get(self, "", "pods", namespace, &owner.name)?;
            (serde_json::json!(owner.uid) == pod["metadata"]["uid"]).then_some(pod)
        });
        let Some(pod) = pod else { return Amounts::new() };
        let named = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"].as_str();
        let others = if named.is_none() {
            Lookup::list(self, "resource.k8s.io", "resourceclaims", namespace)
        } else {
            Vec::new()
        };
        let others: Vec<DeviceClaim> = others
            .iter()
            .filter_map(|other| match tracker.subject(other) {
                Subject::DeviceClaim(other, _) => Some(*other),
                _ => None,
            })
            .collect();
        if !claim.is_covered(named, &others) {
            return Amounts::new();
        }
        let facts = Facts { now: self.clock.now(), classes: &DeviceClasses::default() };
        Tracker::Pods.subject(&pod).usage(facts)
    }
}

/// Returns a stored quota, as it is enforced.
fn quota(object: &Value) -> Quota {
    let amounts = |field: &str| Amounts::deserialize(&object["status"][field]).unwrap_or_default();
    let named = items(&object["spec"]["scopes"]).iter().map(|scope| Requirement::exists(&text(scope).into()));
    let selected = items(&object["spec"]["scopeSelector"]["matchExpressions"]).iter();
    let selected = selected.map(|requirement| Requirement::deserialize(requirement).unwrap_or_default());
    Quota {
        name: text(&object["metadata"]["name"]).into(),
        hard: amounts("hard"),
        used: amounts("used"),
        scopes: named.chain(selected).collect(),
    }
}
