//! The recommendation of the metrics: select the pods, ask for each metric, take the largest number.

use std::collections::HashSet;
use std::sync::Arc;

use steersman_base::{MicroTime, Selector};
use steersman_model::View;
use steersman_model::autoscaling::{HorizontalPodAutoscalerView, MetricSpec, MetricStatus};
use steersman_model::core::PodView;
use steersman_runtime::Context;
use tokio::time::Instant;

use super::scale::Scale;
use super::{Autoscalers, warn};
use crate::horizontal_pod_autoscaler::answer::{ExternalMetricValueList, MetricValueList, PodMetricsList};
use crate::horizontal_pod_autoscaler::behavior::tolerances;
use crate::horizontal_pod_autoscaler::calculator::Pods;
use crate::horizontal_pod_autoscaler::metric::{Answer, Computed, Given, Problem, Question, source};
use crate::horizontal_pod_autoscaler::metrics::{Did, Fault};
use crate::horizontal_pod_autoscaler::path;
use crate::horizontal_pod_autoscaler::plan::group_of;
use crate::horizontal_pod_autoscaler::readiness::Youth;
use crate::horizontal_pod_autoscaler::status::{Draft, SCALING_ACTIVE};

/// The recommendation of the metrics.
pub(super) struct Recommended {
    pub(super) replicas: i32,
    /// The metric that it comes from.
    pub(super) metric: String,
    pub(super) statuses: Vec<MetricStatus>,
    /// Metrics that could not be read, though others could.
    pub(super) failure: Option<(Fault, String)>,
}

/// Why there is no recommendation.
pub(super) struct NotRecommended {
    pub(super) statuses: Vec<MetricStatus>,
    pub(super) fault: Fault,
    pub(super) error: String,
}

/// The resource usage of the pods, which is requested once per pass.
type Usage = Option<Result<PodMetricsList, String>>;

/// So many autoscalers are named that select the same pods.
const NAMED_MAX: usize = 2;

// === impl Autoscalers ===

impl Autoscalers {
    /// Returns what the metrics recommend. If some cannot be read, the others count, unless they recommend fewer pods.
    pub(super) async fn recommend(
        &self,
        cx: &Context,
        hpa: &HorizontalPodAutoscalerView,
        scale: &Scale,
        draft: &mut Draft,
        now: MicroTime,
    ) -> Result<Recommended, NotRecommended> {
        let selected = self.select(cx, hpa, scale.selector(), draft);
        let (selector, pods) =
            selected.map_err(|error| NotRecommended { statuses: Vec::new(), fault: Fault::Internal, error })?;
        let given = self.given(hpa, scale, &pods, now);
        let metrics = &hpa.spec.metrics;
        let mut usage = None;
        let mut statuses = Vec::with_capacity(metrics.len());
        let mut best: Option<Computed> = None;
        let mut problems = Vec::new();
        for metric in metrics {
            match self.compute(hpa, metric, &selector, &given, &mut usage).await {
                Ok(computed) => {
                    statuses.push(computed.status.clone());
                    if best.as_ref().is_none_or(|best| best.replicas == 0 || computed.replicas > best.replicas) {
                        best = Some(computed);
                    }
                }
                Err(problem) => {
                    warn(cx, hpa, problem.reason, &problem.note);
                    statuses.push(MetricStatus::default());
                    problems.push(problem);
                }
            }
        }
        let failure = problems.first().map(|first| {
            let count = problems.len();
            let of = metrics.len();
            let fault = if first.is_spec { Fault::Spec } else { Fault::Internal };
            (fault, format!("invalid metrics ({count} invalid out of {of}), first error is: {}", first.error))
        });
        match (best, failure) {
            (Some(best), failure) if failure.is_none() || best.replicas >= given.pods.current => {
                let message = format!("the HPA was able to successfully calculate a replica count from {}", best.name);
                draft.set(SCALING_ACTIVE, true, "ValidMetricFound", &message);
                Ok(Recommended { replicas: best.replicas, metric: best.name, statuses, failure })
            }
            (_, failure) => {
                if let Some(Problem { reason, note, .. }) = problems.first() {
                    let message = format!("the HPA was unable to compute the replica count: {note}");
                    draft.set(SCALING_ACTIVE, false, reason, &message);
                }
                let (fault, error) = failure.unwrap_or((Fault::Spec, "there are no metrics".to_owned()));
                Err(NotRecommended { statuses, fault, error })
            }
        }
    }

    /// Selects the pods, unless another autoscaler selects some of them, too.
    fn select(
        &self,
        cx: &Context,
        hpa: &HorizontalPodAutoscalerView,
        declared: &str,
        draft: &mut Draft,
    ) -> Result<(Selector, Vec<Arc<PodView>>), String> {
        let mut refuse = |event: &str, reason: &str, note: &str, message: &str| {
            warn(cx, hpa, event, note);
            draft.set(SCALING_ACTIVE, false, reason, message);
            note.to_owned()
        };
        if declared.is_empty() {
            let message = "the HPA target's scale is missing a selector";
            return Err(refuse("SelectorRequired", "InvalidSelector", "selector is required", message));
        }
        let selector: Selector = declared.parse().map_err(|error| {
            let note = format!("couldn't convert selector into a corresponding internal selector object: {error}");
            refuse("InvalidSelector", "InvalidSelector", &note, &note)
        })?;
        let meta = hpa.meta();
        self.memory.select(meta, &selector);
        let pods = self.pods.of(&meta.namespace, &selector);
        // Most pods of a target have the same labels.
        let labels: HashSet<_> = pods.iter().map(|pod| &pod.meta().labels).collect();
        let labels: Vec<_> = labels.into_iter().collect();
        let selecting = self.memory.selecting(&meta.namespace, &labels, NAMED_MAX);
        if selecting.len() > 1 {
            let names: Vec<_> = selecting.iter().map(|name| format!("{}/{name}", meta.namespace)).collect();
            let names = names.join(" ");
            let note = format!("pods by selector {declared} are controlled by more than one HPA (e.g. [{names}])");
            return Err(refuse("AmbiguousSelector", "AmbiguousSelector", &note, &note));
        }
        Ok((selector, pods))
    }

    fn given<'a>(
        &self,
        hpa: &'a HorizontalPodAutoscalerView,
        scale: &Scale,
        pods: &'a [Arc<PodView>],
        now: MicroTime,
    ) -> Given<'a> {
        let options = &self.options;
        let behavior = hpa.spec.behavior.as_deref();
        Given {
            namespace: &hpa.meta().namespace,
            pods: Pods {
                current: scale.replicas(),
                pods,
                youth: Youth {
                    cpu_initialization_period: options.cpu_initialization_period,
                    initial_readiness_delay: options.initial_readiness_delay,
                    now,
                },
                tolerances: tolerances(behavior, options.tolerance, options.configurable_tolerance),
            },
            counted: scale.counted(),
            pod_level: options.pod_level_resources,
        }
    }

    /// Asks for a metric, and counts the computation.
    async fn compute(
        &self,
        hpa: &HorizontalPodAutoscalerView,
        metric: &MetricSpec,
        selector: &Selector,
        given: &Given<'_>,
        usage: &mut Usage,
    ) -> Result<Computed, Problem> {
        let began = Instant::now();
        let computed = match source(metric).and_then(|source| Ok((source, source.question()?))) {
            Ok((source, question)) => {
                let answer = self.ask(&hpa.meta().namespace, &question, selector, usage).await;
                source.conclude(answer, given)
            }
            Err(problem) => Err(problem),
        };
        let (did, fault) = match &computed {
            Ok(computed) => (Did::of(hpa.status.current_replicas, computed.replicas), Fault::No),
            Err(problem) => (Did::Nothing, if problem.is_spec { Fault::Spec } else { Fault::Internal }),
        };
        self.metrics.computed(&metric.type_, did, fault, began.elapsed());
        computed
    }

    async fn ask(
        &self,
        namespace: &str,
        question: &Question<'_>,
        selector: &Selector,
        usage: &mut Usage,
    ) -> Result<Answer, String> {
        let custom = |error: String| format!("unable to fetch metrics from custom metrics API: {error}");
        match question {
            Question::Resource { resource, container } => {
                let list = match usage {
                    Some(known) => known,
                    None => usage.insert(self.usage(namespace, selector).await),
                };
                list.as_ref().map_err(Clone::clone)?.readings(resource, *container).map(Answer::Readings)
            }
            Question::Pods { metric, series } => {
                let version = self.custom_version().await.map_err(custom)?;
                let path = path::of_custom_pods(version, namespace, metric, selector, series);
                let answer = self.fetch.json::<MetricValueList>(&path, "pods.custom.metrics.k8s.io *").await;
                answer.map_err(custom)?.readings().map(Answer::Readings)
            }
            Question::Object { object, metric, series } => {
                let version = self.custom_version().await.map_err(custom)?;
                let group = group_of(&object.api_version).map_err(custom)?;
                let (path, what) = if group.is_empty() && object.kind == "Namespace" {
                    // An autoscaler sees no namespace but its own, whatever name it gives.
                    (path::of_custom_namespace(version, namespace, metric, series), "metrics".to_owned())
                } else {
                    let resource = self.resource_of(group, &object.kind).await.map_err(custom)?;
                    let of = (&*resource, &*object.name);
                    (path::of_custom_object(version, namespace, of, metric, series), resource.clone())
                };
                let what = format!("{what}.{} {}", path::CUSTOM_GROUP, object.name);
                let answer = self.fetch.json::<MetricValueList>(&path, &what).await;
                let value = answer.and_then(|list| list.value()).map_err(custom)?;
                Ok(Answer::Values(vec![value]))
            }
            Question::External { metric, series } => {
                let path = path::of_external(namespace, metric, series);
                let what = format!("{metric}.external.metrics.k8s.io");
                let answer = self.fetch.json::<ExternalMetricValueList>(&path, &what).await;
                let note = |error| format!("unable to fetch metrics from external metrics API: {error}");
                answer.map_err(note)?.values().map(Answer::Values)
            }
        }
    }

    /// Reads the resource usage of the selected pods.
    async fn usage(&self, namespace: &str, selector: &Selector) -> Result<PodMetricsList, String> {
        let answer = self.fetch.json(&path::of_pods(namespace, selector), "pods.metrics.k8s.io").await;
        answer.map_err(|error| format!("unable to fetch metrics from resource metrics API: {error}"))
    }

    /// Returns the version of the custom metrics API.
    async fn custom_version(&self) -> Result<&'static str, String> {
        let known = self.mapper.resources().await.map_err(|error| error.to_string())?;
        let group = known.groups().iter().find(|group| group.name == path::CUSTOM_GROUP);
        let Some(group) = group else {
            return Err(format!("no custom metrics API ({}) registered", path::CUSTOM_GROUP));
        };
        let is_known = |name: &str| path::CUSTOM_VERSIONS.into_iter().find(|known| *known == name);
        let version = group.versions.iter().find_map(|version| is_known(&version.name));
        version.ok_or_else(|| "no known available metric versions found".to_owned())
    }

    /// Returns the plural of a kind, with its group.
    async fn resource_of(&self, group: &str, kind: &str) -> Result<String, String> {
        let found = self.mapper.resource_for(group, None, kind).await;
        let of = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let found = found.map_err(|error| format!("unable to map kind {of} to resource: {error}"))?;
        Ok(found.resource.group_resource().into_owned())
    }
}
