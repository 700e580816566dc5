//! Pure: the pods of a Job: their marks, and new ones.

use serde_json::{Value, json};
use steersman_base::names::{annotations, finalizers};
use steersman_base::{Istr, StringMap};
use steersman_model::batch::JobView;
use steersman_model::core::PodView;
use steersman_model::template::raw_body;
use steersman_model::{NewPodMeta, PodName, View};

use super::plan::Replacement;
use super::spec;
use crate::claim::owner_ref;
use crate::pod;

/// The environment variable with the index of a pod.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The maximum length of a prefix to which the server appends five letters.
const PREFIX_LENGTH_MAX: usize = 58;

/// A pod that is to be created.
pub(super) struct NewPod<'a> {
    /// The prefix of its name.
    pub(super) prefix: String,
    metadata: NewPodMeta<'a>,
    spec: String,
}

/// Whether the pod is not counted yet: it has the tracking finalizer.
pub(super) fn is_tracked(pod: &PodView) -> bool {
    pod.meta().has_finalizer(finalizers::JOB_TRACKING)
}

/// Returns the completion index of a pod, if it has one.
pub(super) fn index(pod: &PodView) -> Option<i32> {
    let index: i64 = pod.meta().annotations.get(annotations::JOB_COMPLETION_INDEX)?.parse().ok()?;
    (index >= 0).then(|| i32::try_from(index).unwrap_or(i32::MAX))
}

/// Returns the completion index of a pod, if it is one of the Job's.
pub(super) fn valid_index(job: &JobView, pod: &PodView) -> Option<i32> {
    index(pod).filter(|index| spec::indexes(job).is_some_and(|end| *index < end))
}

/// Whether the end of the pod can count for the Job: every pod's does, except of indexed Jobs that of a pod without one of
/// its indexes.
pub(super) fn is_valid(job: &JobView, pod: &PodView) -> bool {
    spec::indexes(job).is_none() || valid_index(job, pod).is_some()
}

/// Returns how many earlier pods of the index have failed.
pub(super) fn earlier_failures(pod: &PodView) -> i32 {
    count(pod, annotations::JOB_INDEX_FAILURE_COUNT)
}

/// Returns how many failures of earlier pods of the index were ignored.
pub(super) fn earlier_ignored(pod: &PodView) -> i32 {
    count(pod, annotations::JOB_INDEX_IGNORED_FAILURE_COUNT)
}

fn count(pod: &PodView, annotation: &str) -> i32 {
    let count = pod.meta().annotations.get(annotation).and_then(|count| count.parse().ok());
    count.filter(|count| *count >= 0).unwrap_or(0)
}

/// Returns `count` new pods of a Job that has no indexes, in a PodGroup if there is one.
pub(super) fn new_pods<'a>(job: &'a JobView, count: usize, group: Option<&str>) -> Vec<NewPod<'a>> {
    let spec = job.spec.template.spec().as_str();
    let spec = if spec.is_empty() { "{}" } else { spec };
    let spec = in_group(spec, group);
    let prefix = pod::name_prefix(&job.meta().name);
    let new = || NewPod { prefix: prefix.clone(), metadata: metadata(job), spec: spec.clone() };
    std::iter::repeat_with(new).take(count).collect()
}

/// Returns new pods for these indexes: the index is an annotation, a label, a part of name and hostname, and an
/// environment variable. They are in a PodGroup if there is one.
pub(super) fn new_indexed_pods<'a>(job: &'a JobView, indexes: &[Replacement], group: Option<&str>) -> Vec<NewPod<'a>> {
    let spec = in_group(&indexed_spec(job.spec.template.spec().as_str()), group);
    let name = &job.meta().name;
    let new = |replacement: &Replacement| {
        let index = replacement.index;
        let metadata = metadata(job);
        let mut notes = vec![(annotations::JOB_COMPLETION_INDEX, index)];
        if spec::limit_per_index(job).is_some() {
            notes.push((annotations::JOB_INDEX_FAILURE_COUNT, replacement.failures));
        }
        if replacement.ignored > 0 {
            notes.push((annotations::JOB_INDEX_IGNORED_FAILURE_COUNT, replacement.ignored));
        }
        let labels = with(&metadata.labels, &[(annotations::JOB_COMPLETION_INDEX, index)]);
        let annotations = with(&metadata.annotations, &notes);
        // The rest of the spec is the same for all.
        NewPod {
            prefix: indexed_prefix(name, index),
            metadata: NewPodMeta { labels, annotations, ..metadata },
            spec: with_field(&spec, &format!(r#""hostname":"{name}-{index}""#)),
        }
    };
    indexes.iter().map(new).collect()
}

/// Returns the spec of a pod in a group. The group is no owner of the pod: upstream's controller asks for that in its
/// template, where it gets lost.
fn in_group(spec: &str, group: Option<&str>) -> String {
    group.map_or_else(
        || spec.to_owned(),
        |group| with_field(spec, &format!(r#""schedulingGroup":{{"podGroupName":"{group}"}}"#)),
    )
}

/// Returns an object with a field: an object with a field in front is that object with the field.
fn with_field(object: &str, field: &str) -> String {
    let rest = object.trim_start().strip_prefix('{').unwrap_or("}");
    let comma = if rest.trim_start() == "}" { "" } else { "," };
    format!("{{{field}{comma}{rest}")
}

/// Returns the metadata that all pods of a Job have.
fn metadata(job: &JobView) -> NewPodMeta<'_> {
    let template = &job.spec.template;
    let mut metadata = template.new_pod(PodName::Prefix(""), &job.meta().namespace, &owner_ref(job));
    if !metadata.finalizers.iter().any(|finalizer| *finalizer == finalizers::JOB_TRACKING) {
        let tracked = metadata.finalizers.iter().cloned().chain([Istr::interned(finalizers::JOB_TRACKING)]);
        metadata.finalizers = tracked.collect();
    }
    metadata
}

fn with(map: &StringMap, more: &[(&str, i32)]) -> StringMap {
    let kept = map.iter().filter(|(key, _)| !more.iter().any(|(name, _)| **key == **name));
    let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
    let more = more.iter().map(|(key, value)| (Istr::interned(key), Istr::from(value.to_string())));
    StringMap::new(kept.chain(more).collect())
}

/// Returns the prefix of the name of a pod with an index. A long name of the Job is cut, the index never is.
fn indexed_prefix(job: &str, index: i32) -> String {
    let end = format!("-{index}-");
    let room = PREFIX_LENGTH_MAX - end.len();
    let name = if job.len() > room { job.get(..room).unwrap_or(job) } else { job };
    format!("{name}{end}")
}

/// Returns the spec of a template with the variable of the index in each container, and without a hostname.
fn indexed_spec(spec: &str) -> String {
    let mut spec: Value = serde_json::from_str(spec).unwrap_or_else(|_| json!({}));
    let Some(fields) = spec.as_object_mut() else { return "{}".to_owned() };
    fields.remove("hostname");
    for list in ["initContainers", "containers"] {
        let containers = fields.get_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().for_each(add_variable);
    }
    spec.to_string()
}

fn add_variable(container: &mut Value) {
    let Some(container) = container.as_object_mut() else { return };
    let variables = container.entry("env").or_insert_with(|| json!([]));
    if variables.is_null() {
        *variables = json!([]);
    }
    let Some(variables) = variables.as_array_mut() else { return };
    if variables.iter().all(|variable| variable["name"] != INDEX_VARIABLE) {
        let path = format!("metadata.labels['{}']", annotations::JOB_COMPLETION_INDEX);
        variables.push(json!({ "name": INDEX_VARIABLE, "valueFrom": { "fieldRef": { "fieldPath": path } } }));
    }
}

// === impl NewPod ===

impl NewPod<'_> {
    /// Returns the body that creates the pod under a name.
    pub(super) fn body(&self, name: &str) -> Vec<u8> {
        let metadata = self.metadata.under(PodName::Chosen { name, prefix: &self.prefix });
        raw_body("v1", "Pod", &metadata, &self.spec)
    }
}
