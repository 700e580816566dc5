//! Jobs whose pods are scheduled together, behind `WorkloadWithJob`: on the rig with the gates, on the embedded server with
//! definitions of custom resources.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_controllers::job;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use super::controllers;
use super::gated::{definition, groups};
use crate::scenarios::job::{active, exit, job as sums, until_conditions};

/// With the gate.
pub(crate) fn on() -> Builder {
    TestCluster::builder().controllers(&[controllers::JOB_WITH_WORKLOADS])
}

/// Without the gate, which is the default.
pub(crate) fn off() -> Builder {
    TestCluster::builder().controllers(&[controllers::JOB])
}

/// The gate, as the controller has it.
pub(crate) fn options() -> job::Options {
    job::Options::default().workloads(true)
}

/// The Workload is made from what the Job asks for, the group from the Workload, and the pods are in the group. The number
/// of pods that are scheduled together follows the Job.
pub(crate) async fn the_pods_of_a_job_are_scheduled_together(cluster: &TestCluster) -> Result<(), Failure> {
    let gang = json!({ "schedulingPolicy": { "gang": {} } });
    let spec = json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed", "scheduling": gang });
    let job = cluster.create(sums(spec)).await?;
    let pods = active(cluster, &job, 3).await?;
    let found = list(&workloads(cluster)).await?;
    let [workload] = &*found else { return Err(Failure::new(format!("one Workload: {found:?}"))) };
    let name = workload.metadata.name.clone().unwrap_or_default();
    expect(name.starts_with("sums-"), "the name of the Workload", &name)?;
    let reference = json!({ "apiGroup": "batch", "kind": "Job", "name": "sums" });
    expect_eq("what it describes", &workload.data["spec"]["controllerRef"], &reference)?;
    expect_eq("its owners", &owners(workload), &vec!["Job sums controls".to_owned()])?;
    let template = &workload.data["spec"]["podGroupTemplates"][0];
    expect_eq("the name of its template", &template["name"], &json!("sums-pgt-0"))?;
    expect_eq("its size", &template["schedulingPolicy"]["gang"]["minCount"], &json!(3))?;

    let found = list(&groups(cluster)).await?;
    let [group] = &*found else { return Err(Failure::new(format!("one PodGroup: {found:?}"))) };
    let group_name = group.metadata.name.clone().unwrap_or_default();
    expect(group_name.starts_with(&format!("{name}-sums-pgt-0-")), "the name of the group", &group_name)?;
    expect_eq("its owners", &owners(group), &vec!["Job sums controls".to_owned(), format!("Workload {name}")])?;
    let origin = json!({ "workloadName": name, "templateName": "sums-pgt-0" });
    expect_eq("its origin", &group.data["spec"]["workloadRef"], &origin)?;
    expect_eq("its size", &size(group), &json!(3))?;
    let of_pods: Vec<_> = pods.iter().map(group_of).collect();
    expect_eq("the group of the pods", &of_pods, &vec![Some(group_name.clone()); 3])?;
    let pod_owners: Vec<_> = pods[0].metadata.owner_references.iter().flatten().map(|owner| &*owner.kind).collect();
    expect_eq("the owners of a pod", &pod_owners, &vec!["Job"])?;

    let patch = json!({ "spec": { "scheduling": { "schedulingPolicy": { "gang": { "minCount": 2 } } } } });
    cluster.api::<Job>().patch("sums", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let sizes = async || {
        let workload = workloads(cluster).get(&name).await?;
        let of_workload = workload.data["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"].clone();
        Ok((of_workload, size(&groups(cluster).get(&group_name).await?)))
    };
    cluster.until_eq("the sizes follow", sizes, (json!(2), json!(2))).await?;
    // A pod that replaces another one is in the group, too.
    exit(cluster, &pods[0], 1).await?;
    let again = async || {
        let running = active(cluster, &job, 3).await?;
        let is_new = running.iter().any(|pod| pods.iter().all(|old| old.metadata.uid != pod.metadata.uid));
        Ok((is_new, running.iter().map(group_of).collect::<Vec<_>>()))
    };
    cluster.until_eq("a replacement", again, (true, vec![Some(group_name.clone()); 3])).await?;
    for pod in active(cluster, &job, 3).await? {
        exit(cluster, &pod, 0).await?;
    }
    until_conditions(cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await?;
    expect_eq("Workloads at the end", &list(&workloads(cluster)).await?.len(), &1)?;
    expect_eq("groups at the end", &list(&groups(cluster)).await?.len(), &1)?;
    let reported = async || notes(cluster).await;
    let want =
        vec![format!("Created PodGroup {group_name} for Job sums"), format!("Created Workload {name} for Job sums")];
    cluster.until_eq("the events", reported, want).await
}

/// A Job that asks for nothing has both objects, too: each of its pods is scheduled by itself.
pub(crate) async fn a_job_without_a_wish_has_a_basic_group(cluster: &TestCluster) -> Result<(), Failure> {
    let job = cluster.create(sums(json!({}))).await?;
    let pods = active(cluster, &job, 1).await?;
    let found = list(&groups(cluster)).await?;
    expect_eq("groups", &found.len(), &1)?;
    let policy = &found[0].data["spec"]["schedulingPolicy"];
    expect(policy["basic"].is_object() && policy["gang"].is_null(), "its policy", policy)?;
    expect_eq("the group of the pod", &group_of(&pods[0]), &found[0].metadata.name)?;
    exit(cluster, &pods[0], 0).await?;
    until_conditions(cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await
}

/// The parent has the Workload; the group is made from the template that the annotation names, and follows its size. A
/// child without the annotation, and a Job whose pods name a group, get nothing.
pub(crate) async fn a_parent_can_delegate_the_group(cluster: &TestCluster) -> Result<(), Failure> {
    let parent =
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "parent", "uid": "p", "controller": true });
    let template =
        |name: &str, count: i32| json!({ "name": name, "schedulingPolicy": { "gang": { "minCount": count } } });
    let reference = json!({ "apiGroup": "apps", "kind": "Deployment", "name": "parent" });
    let spec =
        json!({ "controllerRef": reference, "podGroupTemplates": [template("drivers", 1), template("workers", 2)] });
    let workload = DynamicObject::new("of-parent", &workload_resource()).data(json!({ "spec": spec }));
    workloads(cluster).create(&PostParams::default(), &workload).await?;
    let named = |name: &str, more: Value| objects::job(name).with(json!({ "spec": { "parallelism": 2 } })).with(more);
    let owned = json!({ "metadata": { "ownerReferences": [parent] } });
    let annotated = json!({ "metadata": { "annotations": { (job::TEMPLATE_ANNOTATION): "workers" } } });
    let child = cluster.create(named("child", objects::merged(owned.clone(), annotated))).await?;
    let pods = active(cluster, &child, 2).await?;
    let found = list(&groups(cluster)).await?;
    let [group] = &*found else { return Err(Failure::new(format!("one PodGroup: {found:?}"))) };
    expect_eq("its owners", &owners(group), &vec!["Job child controls".to_owned()])?;
    let origin = json!({ "workloadName": "of-parent", "templateName": "workers" });
    expect_eq("its origin", &group.data["spec"]["workloadRef"], &origin)?;
    let of_pods: Vec<_> = pods.iter().map(group_of).collect();
    expect_eq("the group of the pods", &of_pods, &vec![group.metadata.name.clone(); 2])?;

    let smaller = json!([template("drivers", 1), template("workers", 1)]);
    let patch = Patch::Merge(json!({ "spec": { "podGroupTemplates": smaller } }));
    workloads(cluster).patch("of-parent", &PatchParams::default(), &patch).await?;
    let name = group.metadata.name.clone().unwrap_or_default();
    let look = async || Ok(size(&groups(cluster).get(&name).await?));
    cluster.until_eq("its size follows", look, json!(1)).await?;

    let plain = cluster.create(named("plain", owned)).await?;
    let mine = json!({ "spec": { "template": { "spec": { "schedulingGroup": { "podGroupName": "mine" } } } } });
    let mine = cluster.create(named("mine", mine)).await?;
    expect_eq("no group", &group_of(&active(cluster, &plain, 2).await?[0]), &None)?;
    expect_eq("the user's group", &group_of(&active(cluster, &mine, 2).await?[0]), &Some("mine".to_owned()))?;
    expect_eq("Workloads", &list(&workloads(cluster)).await?.len(), &1)?;
    expect_eq("groups", &list(&groups(cluster)).await?.len(), &1)
}

/// The gate is off: nothing is made, and the pods are in no group.
pub(crate) async fn without_the_gate_a_job_has_no_workload(cluster: &TestCluster) -> Result<(), Failure> {
    let spec = json!({ "parallelism": 2, "completions": 2 });
    let job = cluster.create(sums(spec)).await?;
    let pods = active(cluster, &job, 2).await?;
    expect_eq("no group", &group_of(&pods[0]), &None)?;
    for pod in &pods {
        exit(cluster, pod, 0).await?;
    }
    until_conditions(cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await?;
    expect_eq("Workloads", &list(&workloads(cluster)).await?.len(), &0)?;
    expect_eq("groups", &list(&groups(cluster)).await?.len(), &0)
}

// === objects ===

pub(crate) fn workloads(cluster: &TestCluster) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client(), cluster.namespace(), &workload_resource())
}

fn workload_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "Workload"))
}

pub(crate) fn workloads_defined() -> Value {
    definition("scheduling.k8s.io", "v1beta1", "workloads", "Workload", "Namespaced")
}

pub(crate) async fn list(api: &Api<DynamicObject>) -> Result<Vec<DynamicObject>, Failure> {
    Ok(api.list(&ListParams::default()).await?.items)
}

pub(crate) fn group_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.clone()
}

fn size(group: &DynamicObject) -> Value {
    group.data["spec"]["schedulingPolicy"]["gang"]["minCount"].clone()
}

fn owners(object: &DynamicObject) -> Vec<String> {
    let owners = object.metadata.owner_references.iter().flatten();
    let text = |owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference| {
        let controls = if owner.controller == Some(true) { " controls" } else { "" };
        format!("{} {}{controls}", owner.kind, owner.name)
    };
    owners.map(text).collect()
}

/// The events about Workloads and groups.
async fn notes(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let events = cluster.api::<Event>().list(&ListParams::default()).await?.items;
    let is_meant = |event: &&Event| matches!(event.reason.as_deref(), Some("WorkloadCreated" | "PodGroupCreated"));
    let mut notes: Vec<_> = events.iter().filter(is_meant).filter_map(|event| event.message.clone()).collect();
    notes.sort_unstable();
    Ok(notes)
}
