//! `pods/eviction`: a deletion that asks the disruption budgets first.
//!
//! Follows `pkg/registry/core/pod/storage/eviction.go` of Kubernetes 1.37.

use serde_json::{Value, json};
use steersman_base::{LabelSelector, StringMap};

use super::set_condition;
use crate::decode::ContentType;
use crate::registry::checked::Checked;
use crate::registry::delete::DeleteOptions;
use crate::registry::list::list_all;
use crate::registry::object_meta::meta_text;
use crate::registry::owners::SERVER_ITSELF;
use crate::registry::query::Query;
use crate::registry::subresource::read_body;
use crate::registry::write::{Computed, Owners, Part};
use crate::registry::{Answer, Call, Content, Registry};
use crate::schema::FieldValidation;
use crate::status::{Cause, Details, GroupResource, Status};

/// The seconds after which a refused client should retry, if the budget is about to be computed.
const RETRY_SECONDS: u32 = 10;

/// The most unconfirmed evictions of a budget: upstream's `MaxDisruptedPodSize`.
const DISRUPTED_PODS_MAX: usize = 2000;

/// Answers the POST of an Eviction: asks the pod's budget, then deletes the pod.
pub(crate) fn create(registry: &Registry, call: &Call, body: &[u8], kind: ContentType) -> Result<Answer, Status> {
    let eviction = read_body(body, kind, "policy", "v1", "Eviction", call)?;
    let eviction = registry.ask_about_body(call, eviction, None)?;
    let row = &*call.row;
    let missing = || Status::not_found(row.target(), &call.name);
    let pod = registry.store.get(&row.collection, &call.key()).ok_or_else(missing)?;
    let pod = pod.parse().map_err(Status::internal)?;
    if meta_text(&eviction, "name") != call.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = eviction["deleteOptions"].to_string();
    let options = if eviction["deleteOptions"].is_object() { options.as_bytes() } else { &[] };
    let mut options = DeleteOptions::read(&call.query, options, ContentType::Json)?;
    let is_dry = call.dry_run || options.dry_run;
    if !needs_no_budget(&pod) {
        ask_budget(registry, call, &pod, is_dry)?;
    }
    if !is_dry {
        let marked = mark_as_target(registry, call, &options)?;
        // The version that the client saw is the one before the mark.
        options.saw(&marked);
    }
    registry.delete_object(row, &call.key(), &options, is_dry, None)?;
    Ok(Answer::from(Status::new(201, "", "")))
}

/// Sets the condition that says why the pod is deleted, if the preconditions hold; returns the new resource version.
fn mark_as_target(registry: &Registry, call: &Call, options: &DeleteOptions) -> Result<String, Status> {
    let now = registry.clock.now().to_string();
    let updated = registry.update(call, Part::Composed, &mut |old| {
        let Some(old) = old else { return Err(Status::not_found(call.row.target(), &call.name)) };
        options.check_preconditions(&call.row, old)?;
        let mut pod = old.clone();
        let target = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
        });
        set_condition(&mut pod, target);
        Ok(Computed { owners: Owners::Recorded, ..Checked::composed(&call.row, pod)?.into() })
    })?;
    Ok(match updated.content {
        Content::Stored(stored) => stored.revision.to_string(),
        Content::Value(pod) => meta_text(&pod, "resourceVersion").to_owned(),
        _ => String::new(),
    })
}

/// Takes one disruption from the pod's budget, if it has one.
fn ask_budget(registry: &Registry, call: &Call, pod: &Value, is_dry: bool) -> Result<(), Status> {
    let Some(row) = registry.row("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
    let stored = list_all(registry, &row, &call.namespace);
    let budgets: Vec<Value> = stored.iter().filter_map(|stored| stored.parse().ok()).collect();
    let mut budgets = budgets.iter().filter(|budget| selects(budget, pod));
    let Some(budget) = budgets.next() else { return Ok(()) };
    if budgets.next().is_some() {
        let message =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::plain(message));
    }
    if allows_unhealthy(pod, budget) {
        return Ok(());
    }
    let asked = Call {
        row,
        namespace: call.namespace.clone(),
        name: meta_text(budget, "name").to_owned(),
        subresource: "status".to_owned(),
        user: call.user.clone(),
        query: Query::default(),
        dry_run: is_dry,
        field_validation: FieldValidation::Ignore,
        manager: SERVER_ITSELF.to_owned(),
        force: false,
        session: None,
    };
    registry.update(&asked, Part::Status, &mut |old| {
        let Some(old) = old else { return Err(Status::not_found(asked.row.target(), &asked.name)) };
        check(old)?;
        let taken = take_one(old.clone(), &call.name, &registry.clock.now().to_string());
        Ok(Checked::composed(&asked.row, taken)?.into())
    })?;
    Ok(())
}

/// Returns the budget after one more disruption.
fn take_one(mut budget: Value, pod: &str, now: &str) -> Value {
    let left = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
    budget["status"]["disruptionsAllowed"] = left.into();
    if left == 0 {
        set_exhausted(&mut budget, now);
    }
    if !budget["status"]["disruptedPods"].is_object() {
        budget["status"]["disruptedPods"] = json!({});
    }
    budget["status"]["disruptedPods"][pod] = now.into();
    budget
}

/// Whether no budget counts the pod: it has ended, has not started, or is terminating.
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

/// Whether a pod that is not ready can be evicted whatever the budget says.
fn allows_unhealthy(pod: &Value, budget: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|stored| stored["type"] == "Ready" && stored["status"] == "True") {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0
}

/// Refuses an eviction that the budget does not allow.
fn check(budget: &Value) -> Result<(), Status> {
    let name = meta_text(budget, "name");
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if number("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, RETRY_SECONDS));
    }
    let forbidden = |why: &str, cause: &str| {
        let target = GroupResource { group: "policy", resource: "poddisruptionbudget" };
        let mut status = Status::forbidden(target, name, why);
        let message = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
        if let Some(details) = &mut status.details {
            details.causes.push(Cause { reason: "DisruptionBudget", message, field: String::new() });
        }
        status
    };
    if number("disruptionsAllowed") < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(forbidden(why, why));
    }
    if budget["status"]["disruptedPods"].as_object().is_some_and(|pods| pods.len() > DISRUPTED_PODS_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(why, "too many pending evictions not confirmed by PDB controller"));
    }
    if number("disruptionsAllowed") == 0 {
        return Err(refused(why_exhausted(budget, name), 0));
    }
    Ok(())
}

/// Returns why a budget allows no disruption.
fn why_exhausted(budget: &Value, name: &str) -> String {
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let needed = number("desiredHealthy");
    let there = number("currentHealthy");
    let mut conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|stored| stored["type"] == "DisruptionAllowed" && stored["status"] == "False");
    let text = |field: &str| condition.and_then(|stored| stored[field].as_str()).unwrap_or_default();
    let reason = text("reason");
    match text("message") {
        // What a failed sync has counted cannot be trusted.
        message if !message.is_empty() && reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if there <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {there} currently")
        }
        "" => format!("The disruption budget {name} does not allow evicting pods currently"),
        message => format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"),
    }
}

/// Sets the condition of a budget that allows no more disruptions.
fn set_exhausted(budget: &mut Value, now: &str) {
    let generation = budget["status"]["observedGeneration"].clone();
    if !budget["status"]["conditions"].is_array() {
        budget["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = budget["status"]["conditions"].as_array_mut() else { return };
    let mut condition = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": generation, "lastTransitionTime": now,
    });
    match conditions.iter_mut().find(|stored| stored["type"] == "DisruptionAllowed") {
        Some(stored) => {
            if stored["status"] == "False" {
                condition["lastTransitionTime"] = stored["lastTransitionTime"].clone();
            }
            *stored = condition;
        }
        None => conditions.push(condition),
    }
}

fn refused(why: String, retry_after_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::new(429, "TooManyRequests", message);
    let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
    status.details = Some(Box::new(Details { causes: vec![cause], retry_after_seconds, ..Details::default() }));
    status
}
