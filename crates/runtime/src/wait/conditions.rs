//! Common conditions.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;

use super::Verdict;

const NOT_THERE: &str = "no such object";

/// Whether the object was deleted, or replaced by another one of its name.
pub fn is_deleted<K: Resource>(uid: &str) -> impl Fn(Option<&K>) -> Verdict {
    let uid = uid.to_owned();
    move |object| {
        let Some(meta) = object.map(Resource::meta) else { return Verdict::Met };
        Verdict::when(meta.uid.as_deref() != Some(&uid), || match &meta.deletion_timestamp {
            Some(_) => format!("it is going, and waits for {:?}", meta.finalizers.as_deref().unwrap_or_default()),
            None => "it is there".to_owned(),
        })
    }
}

/// Whether a CustomResourceDefinition is served.
pub fn is_crd_established(object: Option<&CustomResourceDefinition>) -> Verdict {
    let conditions = object.and_then(|crd| crd.status.as_ref()?.conditions.as_deref());
    let conditions = conditions.unwrap_or_default().iter();
    has_condition(
        object.is_some(),
        "Established",
        conditions.map(|held| (&*held.type_, &*held.status, held.message.as_deref())),
    )
}

/// Whether a Deployment has as many available pods as it needs, for its current specification.
pub fn is_deployment_available(object: Option<&Deployment>) -> Verdict {
    if let Some(verdict) = outdated_deployment(object) {
        return verdict;
    }
    let conditions = object.and_then(|deployment| deployment.status.as_ref()?.conditions.as_deref());
    let conditions = conditions.unwrap_or_default().iter();
    has_condition(
        object.is_some(),
        "Available",
        conditions.map(|held| {
            (text(in_any_version(&held.type_)), text(in_any_version(&held.status)), held.message.as_deref())
        }),
    )
}

/// Whether a Deployment is rolled out: all replicas are of its current specification and available, and there are no
/// others. As `kubectl rollout status`.
pub fn is_deployment_rolled_out(object: Option<&Deployment>) -> Verdict {
    if let Some(verdict) = outdated_deployment(object) {
        return verdict;
    }
    let Some(deployment) = object else { return Verdict::NotYet(NOT_THERE.to_owned()) };
    let spec: Option<&DeploymentSpec> = in_any_version(&deployment.spec);
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.as_ref();
    let count = |count: Option<i32>| count.unwrap_or_default();
    let updated = count(status.and_then(|status| status.updated_replicas));
    let available = count(status.and_then(|status| status.available_replicas));
    let all = count(status.and_then(|status| status.replicas));
    Verdict::when(updated >= wanted && all <= updated && available >= updated, || {
        format!("{updated} of {wanted} replicas are updated, {available} available, {} old", all - updated)
    })
}

/// Whether a Job is complete.
pub fn is_job_completed(object: Option<&Job>) -> Verdict {
    let conditions = object.and_then(|job| job.status.as_ref()?.conditions.as_deref());
    let conditions = conditions.unwrap_or_default().iter();
    has_condition(
        object.is_some(),
        "Complete",
        conditions.map(|held| (&*held.type_, &*held.status, held.message.as_deref())),
    )
}

/// Whether a Pod is running.
pub fn is_pod_running(object: Option<&Pod>) -> Verdict {
    let Some(pod) = object else { return Verdict::NotYet(NOT_THERE.to_owned()) };
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("no");
    Verdict::when(phase == "Running", || format!("phase {phase}"))
}

/// Whether a Pod is ready.
pub fn is_pod_ready(object: Option<&Pod>) -> Verdict {
    let conditions = object.and_then(|pod| pod.status.as_ref()?.conditions.as_deref());
    let conditions = conditions.unwrap_or_default().iter();
    has_condition(
        object.is_some(),
        "Ready",
        conditions.map(|held| (&*held.type_, &*held.status, held.message.as_deref())),
    )
}

/// A field that is optional in some versions of k8s-openapi and required in others.
fn in_any_version<'a, T>(field: impl Into<Option<&'a T>>) -> Option<&'a T> {
    field.into()
}

fn text(field: Option<&String>) -> &str {
    field.map(String::as_str).unwrap_or_default()
}

/// Whether the status is about an older specification.
fn outdated_deployment(object: Option<&Deployment>) -> Option<Verdict> {
    let deployment = object?;
    let generation = deployment.metadata.generation;
    let observed = deployment.status.as_ref()?.observed_generation;
    (observed < generation).then(|| Verdict::NotYet("its latest specification was not looked at yet".to_owned()))
}

fn has_condition<'a>(
    is_there: bool,
    wanted: &str,
    mut conditions: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)>,
) -> Verdict {
    if !is_there {
        return Verdict::NotYet(NOT_THERE.to_owned());
    }
    match conditions.find(|(kind, ..)| *kind == wanted) {
        Some((_, "True", _)) => Verdict::Met,
        Some((_, status, message)) => Verdict::NotYet(format!("{wanted} is {status}: {}", message.unwrap_or_default())),
        None => Verdict::NotYet(format!("no condition {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check<K: serde::de::DeserializeOwned>(
        is: impl Fn(Option<&K>) -> Verdict,
        object: Value,
        want: Result<(), &str>,
    ) {
        let object: Option<K> = serde_json::from_value(object).unwrap();
        let want = want.map_or_else(|seen| Verdict::NotYet(seen.to_owned()), |()| Verdict::Met);
        assert_eq!(is(object.as_ref()), want);
    }

    #[test]
    fn what_is_gone_is_deleted() {
        check::<Pod>(is_deleted("u"), json!(null), Ok(()));
        check::<Pod>(is_deleted("u"), json!({"metadata": {"uid": "v"}}), Ok(()));
        check::<Pod>(is_deleted("u"), json!({"metadata": {"uid": "u"}}), Err("it is there"));
        let going =
            json!({"metadata": {"uid": "u", "deletionTimestamp": "2026-11-15T22:04:07Z", "finalizers": ["a/b"]}});
        check::<Pod>(is_deleted("u"), going, Err(r#"it is going, and waits for ["a/b"]"#));
    }

    #[test]
    fn conditions_say_what_is_seen() {
        let pod = |status: Value| json!({"metadata": {}, "status": status});
        check(is_pod_ready, json!(null), Err("no such object"));
        check(is_pod_ready, pod(json!({})), Err("no condition Ready"));
        let ready = |status: &str| pod(json!({"conditions": [{"type": "Ready", "status": status, "message": "m"}]}));
        check(is_pod_ready, ready("False"), Err("Ready is False: m"));
        check(is_pod_ready, ready("True"), Ok(()));
        check(is_pod_running, pod(json!({"phase": "Pending"})), Err("phase Pending"));
        check(is_pod_running, pod(json!({"phase": "Running"})), Ok(()));
        let job = json!({"metadata": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}});
        check(is_job_completed, job, Ok(()));
        let crd = json!({
            "metadata": {}, "spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster", "versions": []},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        check(is_crd_established, crd, Ok(()));
    }

    #[test]
    fn a_deployment_is_judged_by_its_present_specification() {
        let deployment = |observed: i64, status: Value| {
            let mut object = json!({
                "metadata": {"generation": 2},
                "spec": {"replicas": 3, "selector": {}, "template": {}},
                "status": status,
            });
            object["status"]["observedGeneration"] = observed.into();
            object
        };
        let available = json!({"conditions": [{"type": "Available", "status": "True"}]});
        check(is_deployment_available, deployment(2, available.clone()), Ok(()));
        let old = Err("its latest specification was not looked at yet");
        check(is_deployment_available, deployment(1, available), old);
        let half = json!({"replicas": 4, "updatedReplicas": 2, "availableReplicas": 3});
        let seen = Err("2 of 3 replicas are updated, 3 available, 2 old");
        check(is_deployment_rolled_out, deployment(2, half), seen);
        let done = json!({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        check(is_deployment_rolled_out, deployment(2, done), Ok(()));
    }
}
