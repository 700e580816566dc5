//! `pods/eviction`: a deletion that asks the disruption budgets first.
//!
//! Follows `pkg/registry/core/pod/storage/eviction.go` of Kubernetes 1.37.

use serde_json::{Value, json};
use steersman_base::{LabelSelector, ObjectKey, StringMap};

use super::delete::DeleteOptions;
use super::life::meta_text;
use super::list::everything;
use super::subresource::set_condition;
use super::write::{Part, new_state};
use super::{Answer, Call, Registry, Row};
use crate::decode::ContentType;
use crate::status::{Cause, Details, Status};
use crate::store::{Change, Expect};

/// When a client that was refused should ask again, if the budget is about to be worked out.
const RETRY_SECONDS: u32 = 10;

impl Registry {
    /// POST of an Eviction.
    pub(super) fn evict(&self, call: &Call, eviction: &Value) -> Result<Answer, Status> {
        let row = &*call.row;
        let missing = || Status::not_found(row.target(), &call.name);
        let pod = self.store.get(&row.shelf, &call.key()).ok_or_else(missing)?.parse().map_err(Status::internal)?;
        if meta_text(eviction, "name") != call.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let options = eviction["deleteOptions"].to_string();
        let options = if eviction["deleteOptions"].is_object() { options.as_bytes() } else { &[] };
        let options = DeleteOptions::read(&call.query, options, ContentType::Json)?;
        let is_dry = call.dry_run || options.dry_run;
        if !needs_no_budget(&pod) {
            self.ask_budget(call, &pod, is_dry)?;
        }
        if !is_dry {
            self.mark_as_target(call)?;
        }
        self.delete_object(row, &call.key(), &options, is_dry)?;
        Ok(Answer::from(Status::new(201, "", "")))
    }

    /// Says on the pod why it goes.
    fn mark_as_target(&self, call: &Call) -> Result<(), Status> {
        let now = self.clock.now().to_string();
        self.update(call, Part::Raw, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(call.row.target(), &call.name)) };
            let mut pod = old.clone();
            let target = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
            });
            set_condition(&mut pod, target);
            Ok((pod, Vec::new()))
        })?;
        Ok(())
    }

    /// Takes one disruption from the pod's budget, if it has one.
    fn ask_budget(&self, call: &Call, pod: &Value, is_dry: bool) -> Result<(), Status> {
        let Some(row) = self.any_version("policy", "poddisruptionbudgets") else { return Ok(()) };
        loop {
            let stored = everything(self, &row, &call.namespace);
            let budgets = stored.iter().filter_map(|stored| Some((stored, stored.parse().ok()?)));
            let budgets: Vec<(_, Value)> = budgets.filter(|(_, budget)| selects(budget, pod)).collect();
            let (stored, mut budget) = match budgets.len() {
                0 => return Ok(()),
                1 => budgets.into_iter().next().ok_or_else(|| Status::internal("a budget got lost"))?,
                _ => {
                    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
                                   not support.";
                    return Err(Status::plain(message));
                }
            };
            if allows_unhealthy(pod, &budget) {
                return Ok(());
            }
            check(&budget)?;
            let left = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
            budget["status"]["disruptionsAllowed"] = left.into();
            if !budget["status"]["disruptedPods"].is_object() {
                budget["status"]["disruptedPods"] = json!({});
            }
            budget["status"]["disruptedPods"][&call.name] = self.clock.now().to_string().into();
            if is_dry || self.write_budget(&row, &stored.key, stored.revision, &budget) {
                return Ok(());
            }
        }
    }

    fn write_budget(&self, row: &Row, key: &ObjectKey, revision: u64, budget: &Value) -> bool {
        let change = Change::Put(new_state(row, budget));
        self.store.commit(&row.shelf, key, Expect::Revision(revision), change).is_ok()
    }
}

/// Whether nobody would miss the pod: it is over, has not begun, or is going anyway.
fn needs_no_budget(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || !pod["metadata"]["deletionTimestamp"].is_null()
}

fn selects(budget: &Value, pod: &Value) -> bool {
    let declared: Option<LabelSelector> = serde_json::from_value(budget["spec"]["selector"].clone()).ok();
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: StringMap = labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    let selector = declared.and_then(|declared| declared.compile().ok());
    selector.is_some_and(|selector| selector.matches(&labels))
}

/// Whether a pod that is not ready can go whatever the budget says.
fn allows_unhealthy(pod: &Value, budget: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|held| held["type"] == "Ready" && held["status"] == "True") {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0
}

fn check(budget: &Value) -> Result<(), Status> {
    let name = meta_text(budget, "name");
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if number("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, RETRY_SECONDS));
    }
    if number("disruptionsAllowed") <= 0 {
        let (needed, there) = (number("desiredHealthy"), number("currentHealthy"));
        let why = format!("The disruption budget {name} needs {needed} healthy pods and has {there} currently");
        return Err(refused(why, 0));
    }
    Ok(())
}

fn refused(why: String, retry_after_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::new(429, "TooManyRequests", message);
    let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
    status.details = Some(Box::new(Details { causes: vec![cause], retry_after_seconds, ..Details::default() }));
    status
}
