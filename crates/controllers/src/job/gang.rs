//! Pure: the Workload and the PodGroup of a Job, so that a scheduler can start its pods together. Follows
//! `job_scheduling_manager.go`.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use steersman_base::{Istr, Meta, ObjectKey, condition};
use steersman_informer::Change;
use steersman_model::batch::JobView;
use steersman_model::core::PodView;
use steersman_model::scheduling::{PodGroupView, WorkloadView};
use steersman_model::{Kind, View};

use super::spec;
use crate::claim::owner_ref;

/// The annotation of a Job that names the template in its parent's Workload from which its PodGroup is made.
pub const TEMPLATE_ANNOTATION: &str = "scheduling.k8s.io/group-template-name";

/// Letters and digits that form no words: upstream's.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The maximum length of the name of an object.
const NAME_MAX: usize = 253;
/// The fields that a group copies from its template.
const COPIED: [&str; 6] =
    ["schedulingPolicy", "schedulingConstraints", "disruptionMode", "priorityClassName", "resourceClaims", "priority"];

/// The objects that the controller manages for a Job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Managed {
    /// None: its pods name a group of the user's, or its parent manages both.
    Nothing,
    /// A Workload and a PodGroup.
    Both,
    /// A PodGroup, of this template in the parent's Workload.
    GroupOf { template: Istr },
}

/// The object that a Workload describes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Described {
    namespace: Istr,
    group: Istr,
    kind: Istr,
    name: Istr,
}

/// The fields of a pod's spec that matter here.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    scheduling_group: Option<IgnoredAny>,
    priority_class_name: Option<String>,
}

/// Returns what the controller manages for a Job.
pub(super) fn managed(job: &JobView) -> Managed {
    if pod_spec(job).scheduling_group.is_some() {
        return Managed::Nothing;
    }
    match (job.meta().controller(), job.meta().annotations.get(TEMPLATE_ANNOTATION)) {
        (None, _) => Managed::Both,
        (Some(_), Some(template)) => Managed::GroupOf { template: template.clone() },
        (Some(_), None) => Managed::Nothing,
    }
}

/// Whether the Job was never started. Nothing is created for others: they may be older than the gate.
pub(super) fn is_new(job: &JobView, pods: &[Arc<PodView>]) -> bool {
    let status = &job.status;
    pods.is_empty()
        && status.start_time.is_none()
        && status.succeeded == 0
        && status.failed == 0
        && condition::find(&status.conditions, "Suspended").is_none()
}

/// Returns the object that a Workload describes.
pub(super) fn described(workload: &WorkloadView) -> Option<Described> {
    let controller = workload.spec.controller_ref.as_ref()?;
    Some(Described {
        namespace: workload.meta().namespace.clone(),
        group: controller.api_group.clone(),
        kind: controller.kind.clone(),
        name: controller.name.clone(),
    })
}

/// Whether a Workload describes this Job.
pub(super) fn describes(workload: &WorkloadView, job: &JobView) -> bool {
    let resource = JobView::RESOURCE;
    workload.spec.controller_ref.as_ref().is_some_and(|controller| {
        controller.api_group == *resource.group
            && controller.kind == *resource.kind
            && controller.name == job.meta().name
    })
}

/// Whether a group was made from this Workload.
pub(super) fn is_of(group: &PodGroupView, workload: &Meta) -> bool {
    group.spec.workload_ref.as_ref().is_some_and(|origin| origin.workload_name == workload.name)
}

/// Index function: the parent of a Job whose PodGroup the controller makes from the parent's Workload.
pub(super) fn delegating(job: &JobView) -> Option<Described> {
    let parent = job.meta().controller()?;
    job.meta().annotations.get(TEMPLATE_ANNOTATION)?;
    // The core group has no name.
    let group = parent.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(Described {
        namespace: job.meta().namespace.clone(),
        group: Istr::new(group),
        kind: parent.kind.clone(),
        name: parent.name.clone(),
    })
}

/// Returns the Jobs of a parent whose Workload has changed. `jobs_of` returns the Jobs whose parent delegates to us.
pub(super) fn delegated<J: AsRef<JobView>>(
    change: &Change<WorkloadView>,
    jobs_of: impl Fn(&Described) -> Vec<J>,
) -> Vec<ObjectKey> {
    let jobs = described(change.object()).map(|parent| jobs_of(&parent)).unwrap_or_default();
    jobs.iter().map(|job| job.as_ref().meta().key()).filter(|_| !matches!(change, Change::Deleted { .. })).collect()
}

/// Returns the template of the group of a Job, as its Workload has it.
pub(super) fn template(job: &JobView) -> Value {
    // What the API server has accepted is JSON.
    let wanted: Value = serde_json::from_str(job.spec.scheduling.as_str()).unwrap_or_default();
    let mut template = Map::new();
    template.insert("name".to_owned(), json!(format!("{}-pgt-0", job.meta().name)));
    template.insert("schedulingPolicy".to_owned(), policy(job, &wanted["schedulingPolicy"]));
    let is_given = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    let topology = &wanted["schedulingConstraints"]["topology"];
    if is_given(topology) {
        template.insert("schedulingConstraints".to_owned(), json!({ "topology": topology }));
    }
    let mode = ["single", "all"].into_iter().find(|mode| wanted["disruptionMode"][mode].is_object());
    if let Some(mode) = mode {
        template.insert("disruptionMode".to_owned(), json!({ mode: {} }));
    }
    if is_given(&wanted["resourceClaims"]) {
        template.insert("resourceClaims".to_owned(), wanted["resourceClaims"].clone());
    }
    if let Some(class) = pod_spec(job).priority_class_name.filter(|class| !class.is_empty()) {
        template.insert("priorityClassName".to_owned(), json!(class));
    }
    Value::Object(template)
}

/// Returns the policy of a group: by itself each pod, unless the Job asks for a gang. A gang is of all pods that run in
/// parallel, if the Job does not say of how many.
fn policy(job: &JobView, wanted: &Value) -> Value {
    if wanted["basic"].is_object() || !wanted["gang"].is_object() {
        return json!({ "basic": {} });
    }
    let count = wanted["gang"]["minCount"].as_i64().unwrap_or_else(|| spec::parallelism(job).max(1).into());
    json!({ "gang": { "minCount": count } })
}

/// Returns the Workload of a Job.
pub(super) fn new_workload(job: &JobView) -> Value {
    let resource = JobView::RESOURCE;
    let reference = json!({ "apiGroup": &*resource.group, "kind": &*resource.kind, "name": job.meta().name });
    json!({
        "apiVersion": WorkloadView::RESOURCE.api_version(),
        "kind": &*WorkloadView::RESOURCE.kind,
        "metadata": {
            "name": workload_name(job.meta()),
            "namespace": job.meta().namespace,
            "ownerReferences": [owner_ref(job)],
        },
        "spec": { "controllerRef": reference, "podGroupTemplates": [template(job)] },
    })
}

/// Returns the PodGroup of a Job, from a template of a Workload. A Workload that is the Job's own is an owner, too.
pub(super) fn new_group(job: &JobView, workload: &Meta, template: &Value, is_own: bool) -> Value {
    let name = template["name"].as_str().unwrap_or_default();
    let mut spec = Map::new();
    spec.insert("workloadRef".to_owned(), json!({ "workloadName": workload.name, "templateName": name }));
    for field in COPIED {
        if let Some(value) = template.get(field).filter(|value| !value.is_null()) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    let resource = WorkloadView::RESOURCE;
    let own = is_own.then(|| {
        json!({
            "apiVersion": resource.api_version(), "kind": &*resource.kind, "name": workload.name, "uid": workload.uid,
        })
    });
    let owners: Vec<Value> = [json!(owner_ref(job))].into_iter().chain(own).collect();
    json!({
        "apiVersion": PodGroupView::RESOURCE.api_version(),
        "kind": &*PodGroupView::RESOURCE.kind,
        "metadata": {
            "name": group_name(&workload.name, name),
            "namespace": job.meta().namespace,
            "ownerReferences": owners,
        },
        "spec": spec,
    })
}

/// Returns a template of a Workload by its name.
pub(super) fn template_of(workload: &WorkloadView, name: &str) -> Option<Value> {
    let mut templates =
        workload.spec.pod_group_templates.iter().filter_map(|template| serde_json::from_str(template.as_str()).ok());
    templates.find(|template: &Value| template["name"] == *name)
}

/// Returns the number of pods that a template asks to be scheduled together; `None` if each is by itself.
pub(super) fn min_count(template: &Value) -> Option<i32> {
    i32::try_from(template["schedulingPolicy"]["gang"]["minCount"].as_i64()?).ok()
}

/// Returns the number of pods of a group that are scheduled together; `None` if each is by itself.
pub(super) fn min_count_of(group: &PodGroupView) -> Option<i32> {
    group.spec.scheduling_policy.gang.as_ref().map(|gang| gang.min_count)
}

/// Returns the name of the Workload of a Job: upstream's, which is the same after a restart.
pub(super) fn workload_name(job: &Meta) -> String {
    // Go's name of the type is a part of what upstream hashes.
    let hash = hash(&["(types.UID)", &job.uid.to_string()]);
    let room = NAME_MAX - hash.len() - 1;
    format!("{}-{hash}", job.name.get(..room).unwrap_or(&job.name))
}

/// Returns the name of the PodGroup of a template: upstream's. Of two long names each is cut to a half.
pub(super) fn group_name(workload: &str, template: &str) -> String {
    let hash = hash(&[workload, template]);
    let room = NAME_MAX - hash.len() - 2;
    let half = room / 2;
    let (workload_room, template_room) = match (workload.len(), template.len()) {
        (one, two) if one + two <= room => (one, two),
        (one, _) if one <= half => (one, room - one),
        (_, two) if two <= half => (room - two, two),
        _ => (room - half, half),
    };
    let cut = |text: &str, room: usize| text.get(..room).unwrap_or(text).to_owned();
    format!("{}-{}-{hash}", cut(workload, workload_room), cut(template, template_room))
}

/// FNV-1a of 32 bits, in upstream's letters.
fn hash(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    let sum = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let letter = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    sum.to_string().bytes().map(letter).collect()
}

fn pod_spec(job: &JobView) -> PodSpec {
    serde_json::from_str(job.spec.template.spec().as_str()).unwrap_or_default()
}
