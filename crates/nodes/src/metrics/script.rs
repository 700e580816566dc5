//! Pure: metrics that are set by a test, or by ConfigMaps.

use std::collections::BTreeMap;

use serde::Deserialize;
use steersman_base::{Istr, ObjectKey, Quantity, StringMap};
use steersman_model::core::ConfigMapView;

/// The values that a test has set.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// CPU and memory of each container of a pod.
    pub(super) usage: BTreeMap<ObjectKey, (Quantity, Quantity)>,
    /// Whether pods have no usage but the one that is set.
    pub(super) no_defaults: bool,
    pub(super) series: Vec<Series>,
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) namespace: String,
    pub(super) subject: Subject,
    pub(super) metric: String,
    pub(super) labels: StringMap,
    pub(super) value: Quantity,
}

/// The subject of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Nothing in the cluster.
    External,
    /// An object; the resource is written with its group, if it has one.
    Object { resource: String, name: String },
}

/// An entry of a ConfigMap.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The name of an external metric.
    external: Option<String>,
    /// An object, as `<resource>/<name>`.
    object: Option<String>,
    /// The name of the metric of the object.
    metric: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    value: Written,
}

/// A quantity, as people write it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Written {
    Integer(i64),
    Fraction(f64),
    Text(String),
}

// === impl Script ===

impl Script {
    /// Sets a value, in place of an earlier one.
    pub(super) fn set(&mut self, series: Series) {
        let is_same = |held: &Series| {
            (&held.namespace, &held.subject, &held.metric, &held.labels)
                == (&series.namespace, &series.subject, &series.metric, &series.labels)
        };
        match self.series.iter_mut().find(|held| is_same(held)) {
            Some(held) => *held = series,
            None => self.series.push(series),
        }
    }
}

// === impl Series ===

impl Series {
    pub(super) fn new(
        namespace: &str,
        subject: Subject,
        metric: &str,
        labels: &[(&str, &str)],
        value: Quantity,
    ) -> Self {
        let labels = labels.iter().map(|(key, value)| (Istr::new(key), Istr::new(value)));
        let labels = StringMap::new(labels.collect::<Vec<_>>());
        Self { namespace: namespace.to_owned(), subject, metric: metric.to_owned(), labels, value }
    }
}

/// Parses the entries of a ConfigMap. The error is a sentence.
pub(super) fn parse(config_map: &ConfigMapView) -> Result<Vec<Series>, String> {
    let namespace = &config_map.metadata.namespace;
    let mut series = Vec::new();
    for (key, text) in config_map.data.iter() {
        let wrong =
            |problem: String| format!("configmap {namespace}/{}, key {key}: {problem}", config_map.metadata.name);
        let entries: Vec<Entry> = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for entry in entries {
            series.push(read(namespace, entry).map_err(wrong)?);
        }
    }
    Ok(series)
}

fn read(namespace: &str, entry: Entry) -> Result<Series, String> {
    let (subject, metric) = match (entry.external, entry.object, entry.metric) {
        (Some(metric), None, None) => (Subject::External, metric),
        (None, Some(object), Some(metric)) => {
            let Some((resource, name)) = object.split_once('/') else {
                return Err(format!("object {object:?} must be written as <resource>/<name>"));
            };
            (Subject::Object { resource: resource.to_owned(), name: name.to_owned() }, metric)
        }
        _ => return Err("an entry has either `external`, or `object` and `metric`".to_owned()),
    };
    let text = match entry.value {
        Written::Integer(number) => number.to_string(),
        Written::Fraction(number) => number.to_string(),
        Written::Text(text) => text,
    };
    let value = text.parse().map_err(|_| super::NoQuantity(text).to_string())?;
    let labels: Vec<_> = entry.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    Ok(Series::new(namespace, subject, &metric, &labels, value))
}
