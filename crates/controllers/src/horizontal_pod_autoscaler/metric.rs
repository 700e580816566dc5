//! Pure: one metric of an autoscaler: what is asked of the metrics APIs, and what follows from the answer.

use steersman_base::quantity::Format;
use steersman_base::{Istr, LabelSelector, Quantity, Selector};
use steersman_model::autoscaling::{
    ContainerResourceMetricSource, ContainerResourceMetricStatus, ExternalMetricSource, ExternalMetricStatus,
    MetricIdentifier, MetricSpec, MetricStatus, MetricTarget, MetricValue, ObjectMetricSource, ObjectMetricStatus,
    PodsMetricSource, PodsMetricStatus, ResourceMetricSource, ResourceMetricStatus, TargetReference,
};

use super::calculator::{Pods, Proposal, Target, total};
use super::path::shown;
use super::readiness::Readings;
use super::requests::requests;

/// A metric of an autoscaler, by its type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Object(&'a ObjectMetricSource),
    Pods(&'a PodsMetricSource),
    Resource(&'a ResourceMetricSource),
    Container(&'a ContainerResourceMetricSource),
    External(&'a ExternalMetricSource),
}

/// A request to the metrics APIs.
#[derive(Clone, Debug)]
pub(super) enum Question<'a> {
    /// The usage of a resource by pods, or by one container of each.
    Resource { resource: &'a str, container: Option<&'a str> },
    /// A custom metric of pods.
    Pods { metric: &'a str, series: Selector },
    /// A custom metric of an object.
    Object { object: &'a TargetReference, metric: &'a str, series: Selector },
    /// An external metric.
    External { metric: &'a str, series: Selector },
}

/// The answer of the metrics APIs.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// Of pods.
    Readings(Readings),
    /// Of an object, or of each series of an external metric.
    Values(Vec<i64>),
}

/// The observed state besides the metrics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    pub(super) namespace: &'a str,
    pub(super) pods: Pods<'a>,
    /// The number of replicas in the status of the target.
    pub(super) counted: i32,
    /// Whether requests at pod level count.
    pub(super) pod_level: bool,
}

/// The result of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Computed {
    pub(super) replicas: i32,
    /// The name in messages.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why nothing follows from a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// The reason of the event, and of the condition `ScalingActive`.
    pub(super) reason: &'static str,
    /// The message of the event.
    pub(super) note: String,
    /// The error of the pass.
    pub(super) error: String,
    /// Whether the spec is at fault.
    pub(super) is_spec: bool,
}

const NO_RESOURCE_TARGET: &str = "invalid resource metric source: neither an average utilization target nor an average \
    value (usage) target was set";
const NO_OBJECT_TARGET: &str =
    "invalid object metric source: neither a value target nor an average value target was set";
const NO_EXTERNAL_TARGET: &str =
    "invalid external metric source: neither a value target nor an average value target was set";
const NO_PODS_TARGET: &str = "invalid pods metric source: no average value target was set";

/// Returns the field that the type of the metric names.
pub(super) fn source(spec: &MetricSpec) -> Result<Source<'_>, Problem> {
    let source = match &*spec.type_ {
        "Object" => spec.object.as_deref().map(Source::Object),
        "Pods" => spec.pods.as_deref().map(Source::Pods),
        "Resource" => spec.resource.as_deref().map(Source::Resource),
        "ContainerResource" => spec.container_resource.as_deref().map(Source::Container),
        "External" => spec.external.as_deref().map(Source::External),
        _ => None,
    };
    source.ok_or_else(|| {
        let note = format!("unknown metric source type {:?}", &*spec.type_);
        Problem { reason: "InvalidMetricSourceType", error: note.clone(), note, is_spec: true }
    })
}

// === impl Source ===

impl<'a> Source<'a> {
    /// Returns what is asked of the metrics APIs.
    pub(super) fn question(self) -> Result<Question<'a>, Problem> {
        match self {
            Self::Resource(source) => self.resource_question(&source.name, &source.target, None),
            Self::Container(source) => self.resource_question(&source.name, &source.target, Some(&source.container)),
            Self::Pods(source) => {
                let series = series(&source.metric).map_err(|error| self.problem(error))?;
                match source.target.average_value {
                    Some(_) => Ok(Question::Pods { metric: &source.metric.name, series }),
                    None => Err(self.problem(NO_PODS_TARGET)),
                }
            }
            Self::Object(source) => {
                let series = series(&source.metric).map_err(|error| self.problem(error))?;
                match object_target(&source.target) {
                    Some(_) => {
                        let object = &source.described_object;
                        Ok(Question::Object { object, metric: &source.metric.name, series })
                    }
                    None => Err(self.problem(NO_OBJECT_TARGET)),
                }
            }
            Self::External(source) => {
                if source.target.average_value.or(source.target.value).is_none() {
                    return Err(self.problem(NO_EXTERNAL_TARGET));
                }
                let series = series(&source.metric).map_err(|error| self.failed(error))?;
                Ok(Question::External { metric: &source.metric.name, series })
            }
        }
    }

    fn resource_question(
        self,
        resource: &'a str,
        target: &MetricTarget,
        container: Option<&'a str>,
    ) -> Result<Question<'a>, Problem> {
        if target.average_value.is_none() && target.average_utilization.is_none() {
            return Err(self.problem(NO_RESOURCE_TARGET));
        }
        Ok(Question::Resource { resource, container })
    }

    /// Returns what follows from the answer.
    pub(super) fn conclude(self, answer: Result<Answer, String>, given: &Given<'_>) -> Result<Computed, Problem> {
        match self {
            Self::Resource(source) => {
                let (proposal, name) = self.resource(&source.name, &source.target, None, answer, given)?;
                let current = resource_value(&source.name, &proposal);
                let status = ResourceMetricStatus { name: source.name.clone(), current };
                Ok(proposal.computed(name, of_type("Resource", |to| to.resource = Some(Box::new(status)))))
            }
            Self::Container(source) => {
                let container = source.container.clone();
                let (proposal, name) = self.resource(&source.name, &source.target, Some(&container), answer, given)?;
                let current = resource_value(&source.name, &proposal);
                let status = ContainerResourceMetricStatus { name: source.name.clone(), current, container };
                let set = |to: &mut MetricStatus| to.container_resource = Some(Box::new(status));
                Ok(proposal.computed(name, of_type("ContainerResource", set)))
            }
            Self::Pods(source) => self.pods(source, answer, given),
            Self::Object(source) => self.object(source, answer, given),
            Self::External(source) => self.external(source, answer, given),
        }
    }

    /// Returns the number of pods by the usage of a resource, and the name of the metric.
    fn resource(
        self,
        resource: &str,
        target: &MetricTarget,
        container: Option<&str>,
        answer: Result<Answer, String>,
        given: &Given<'_>,
    ) -> Result<(Proposal, String), Problem> {
        let kind = if target.average_value.is_some() { "usage" } else { "utilization" };
        let failed = |error: String| self.problem(format!("failed to get {resource} {kind}: {error}"));
        let unread = |error: String| failed(format!("unable to get metrics for resource {resource}: {error}"));
        let readings = answer.map_err(unread)?.into_readings();
        let requested = || -> Result<Target, String> {
            if let Some(average) = target.average_value {
                return Ok(Target::Average(average.milli_value()));
            }
            let requests = requests(given.pods.pods, container, resource, given.pod_level)?;
            Ok(Target::Utilization { percent: target.average_utilization.unwrap_or_default(), requests })
        };
        let proposal = given.pods.by_readings(readings, resource, requested).map_err(failed)?;
        let name = match (target.average_value, container) {
            (Some(_), _) => format!("{resource} resource"),
            (None, None) => format!("{resource} resource utilization (percentage of request)"),
            (None, Some(_)) => format!("{resource} container resource utilization (percentage of request)"),
        };
        Ok((proposal, name))
    }

    fn pods(
        self,
        source: &PodsMetricSource,
        answer: Result<Answer, String>,
        given: &Given<'_>,
    ) -> Result<Computed, Problem> {
        let metric = &source.metric;
        let unread = |error: String| self.problem(format!("unable to get metric {}: {error}", metric.name));
        let readings = answer.map_err(unread)?.into_readings();
        let target = Target::Average(milli(source.target.average_value));
        let proposal = given.pods.by_readings(readings, "", || Ok(target)).map_err(|error| self.problem(error))?;
        let status = PodsMetricStatus { metric: metric.clone(), current: average(proposal.usage) };
        let name = format!("pods metric {}", metric.name);
        Ok(proposal.computed(name, of_type("Pods", |to| to.pods = Some(Box::new(status)))))
    }

    fn object(
        self,
        source: &ObjectMetricSource,
        answer: Result<Answer, String>,
        given: &Given<'_>,
    ) -> Result<Computed, Problem> {
        let metric = &source.metric;
        let object = &source.described_object;
        let is_average = matches!(object_target(&source.target), Some(ObjectTarget::Average(_)));
        let failed = |error: String| if is_average { self.failed(error) } else { self.problem(error) };
        let unread = |error: String| {
            let of = format!("{} {}/{}", object.kind, given.namespace, object.name);
            failed(format!("unable to get metric {} on {of}: {error}", metric.name))
        };
        let usage = answer.map_err(unread)?.into_total();
        let (proposal, current, name) = match object_target(&source.target) {
            Some(ObjectTarget::Value(target)) => {
                let proposal = given.pods.by_value(usage, target).map_err(failed)?;
                (proposal, value(proposal.usage), format!("{} metric {}", object.kind, metric.name))
            }
            Some(ObjectTarget::Average(target)) => {
                let proposal = given.pods.by_share(usage, target, given.counted);
                (proposal, average(proposal.usage), external_name(metric))
            }
            None => return Err(self.problem(NO_OBJECT_TARGET)),
        };
        let status = ObjectMetricStatus { metric: metric.clone(), current, described_object: object.clone() };
        Ok(proposal.computed(name, of_type("Object", |to| to.object = Some(Box::new(status)))))
    }

    fn external(
        self,
        source: &ExternalMetricSource,
        answer: Result<Answer, String>,
        given: &Given<'_>,
    ) -> Result<Computed, Problem> {
        let metric = &source.metric;
        let unread = |error: String| {
            let of = format!("{}/{}/{}", given.namespace, metric.name, shown(metric.selector.as_ref()));
            self.failed(format!("unable to get external metric {of}: {error}"))
        };
        let usage = answer.map_err(unread)?.into_total();
        let (proposal, current) = match source.target.average_value {
            Some(target) => {
                let proposal = given.pods.by_share(usage, target.milli_value(), given.counted);
                (proposal, average(proposal.usage))
            }
            None => {
                let target = milli(source.target.value);
                let proposal = given.pods.by_value(usage, target).map_err(|error| self.failed(error))?;
                (proposal, value(proposal.usage))
            }
        };
        let status = ExternalMetricStatus { metric: metric.clone(), current };
        let name = external_name(metric);
        Ok(proposal.computed(name, of_type("External", |to| to.external = Some(Box::new(status)))))
    }

    /// Returns a problem: the event and the error say the same, the error for which metric.
    fn problem(self, note: impl Into<String>) -> Problem {
        let note = note.into();
        self.problem_as(note.clone(), &note)
    }

    /// As [`problem`](Self::problem), for metrics whose error names the metric twice, as upstream's does.
    fn failed(self, note: impl Into<String>) -> Problem {
        let note = note.into();
        let error = match self {
            Self::Object(source) => format!("failed to get {} object metric: {note}", source.metric.name),
            Self::External(source) if source.target.average_value.is_some() => {
                format!("failed to get {} external metric: {note}", source.metric.name)
            }
            Self::External(source) => format!("failed to get external metric {}: {note}", source.metric.name),
            _ => note.clone(),
        };
        self.problem_as(note, &error)
    }

    fn problem_as(self, note: String, error: &str) -> Problem {
        let (reason, of) = match self {
            Self::Object(_) => ("FailedGetObjectMetric", "object metric".to_owned()),
            Self::Pods(_) => ("FailedGetPodsMetric", "pods metric".to_owned()),
            Self::Resource(source) => ("FailedGetResourceMetric", format!("{} resource metric", source.name)),
            Self::Container(source) => {
                ("FailedGetContainerResourceMetric", format!("{} container metric", source.container))
            }
            Self::External(source) => ("FailedGetExternalMetric", format!("{} external metric", source.metric.name)),
        };
        Problem { reason, note, error: format!("failed to get {of} value: {error}"), is_spec: false }
    }
}

// === impl Answer ===

impl Answer {
    fn into_readings(self) -> Readings {
        match self {
            Self::Readings(readings) => readings,
            Self::Values(_) => Readings::default(),
        }
    }

    fn into_total(self) -> i64 {
        match self {
            Self::Readings(_) => 0,
            Self::Values(values) => total(&values),
        }
    }
}

// === impl Proposal ===

impl Proposal {
    fn computed(self, name: String, status: MetricStatus) -> Computed {
        Computed { replicas: self.replicas, name, status }
    }
}

enum ObjectTarget {
    Value(i64),
    Average(i64),
}

/// Returns the target that the type of the target names.
fn object_target(target: &MetricTarget) -> Option<ObjectTarget> {
    match &*target.type_ {
        "Value" => target.value.map(|value| ObjectTarget::Value(value.milli_value())),
        "AverageValue" => target.average_value.map(|value| ObjectTarget::Average(value.milli_value())),
        _ => None,
    }
}

/// Returns the series that a metric selects.
fn series(metric: &MetricIdentifier) -> Result<Selector, String> {
    let compile = LabelSelector::compile;
    metric.selector.as_ref().map_or(Ok(Selector::nothing()), |declared| compile(declared).map_err(|e| e.to_string()))
}

fn milli(quantity: Option<Quantity>) -> i64 {
    quantity.unwrap_or_default().milli_value()
}

fn external_name(metric: &MetricIdentifier) -> String {
    format!("external metric {}({})", metric.name, shown(metric.selector.as_ref()))
}

fn value(usage: i64) -> MetricValue {
    MetricValue { value: Some(Quantity::from_milli(usage, Format::DecimalSi)), ..MetricValue::default() }
}

fn average(usage: i64) -> MetricValue {
    MetricValue { average_value: Some(Quantity::from_milli(usage, Format::DecimalSi)), ..MetricValue::default() }
}

/// Returns the usage of a resource. Memory is shown in powers of 1024, as it is measured.
fn resource_value(resource: &str, proposal: &Proposal) -> MetricValue {
    let format = if resource == "memory" { Format::BinarySi } else { Format::DecimalSi };
    MetricValue {
        average_value: Some(Quantity::from_milli(proposal.usage, format)),
        average_utilization: proposal.utilization,
        value: None,
    }
}

fn of_type(type_: &str, set: impl FnOnce(&mut MetricStatus)) -> MetricStatus {
    let mut status = MetricStatus { type_: Istr::interned(type_), ..MetricStatus::default() };
    set(&mut status);
    status
}
