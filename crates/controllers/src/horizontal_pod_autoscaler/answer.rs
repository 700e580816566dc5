//! Pure: what the metrics APIs answer.
//!
//! Lists and maps may be `null`, as Go writes those that are empty: a pod without readings must not cost the others theirs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use steersman_base::{Istr, Quantity, Time};

use super::readiness::{Reading, Readings};

/// The resource usage of pods: `metrics.k8s.io/v1beta1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodMetricsList {
    items: Option<Vec<PodMetrics>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodMetrics {
    metadata: Named,
    timestamp: Option<Time>,
    window: Option<String>,
    containers: Option<Vec<ContainerMetrics>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerMetrics {
    name: Istr,
    usage: Option<BTreeMap<Istr, Quantity>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: Istr,
}

/// Values of a custom metric, of both versions: the older one calls the window differently.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetricValueList {
    items: Option<Vec<MetricValue>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetricValue {
    described_object: Named,
    timestamp: Option<Time>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Quantity,
}

/// Values of an external metric: `external.metrics.k8s.io/v1beta1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExternalMetricValueList {
    items: Option<Vec<ExternalMetricValue>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ExternalMetricValue {
    value: Quantity,
}

/// The window of a custom metric that has none.
const CUSTOM_WINDOW: Duration = Duration::from_secs(60);

// === impl PodMetricsList ===

impl PodMetricsList {
    /// Returns the usage of a resource by one container of each pod, or by all: a pod counts only if all its containers
    /// have a reading.
    pub(super) fn readings(&self, resource: &str, container: Option<&str>) -> Result<Readings, String> {
        let items = self.items.as_deref().unwrap_or_default();
        if items.is_empty() {
            return Err("no metrics returned from resource metrics API".to_owned());
        }
        let reading = |item: &PodMetrics| {
            let containers = item.containers.as_deref().unwrap_or_default();
            let value = match container {
                Some(name) => containers.iter().find(|container| container.name == name)?.usage_of(resource)?,
                None if containers.is_empty() => return None,
                None => {
                    let usages = containers.iter().map(|container| container.usage_of(resource));
                    usages.sum::<Option<i64>>()?
                }
            };
            let reading =
                Reading { value, at: item.timestamp, window: window(item.window.as_deref().unwrap_or_default()) };
            Some((item.metadata.name.clone(), reading))
        };
        Ok(items.iter().filter_map(reading).collect())
    }
}

// === impl ContainerMetrics ===

impl ContainerMetrics {
    fn usage_of(&self, resource: &str) -> Option<i64> {
        self.usage.as_ref()?.get(resource).map(|usage| usage.milli_value())
    }
}

// === impl MetricValueList ===

impl MetricValueList {
    /// Returns the values of pods.
    pub(super) fn readings(&self) -> Result<Readings, String> {
        let items = self.items.as_deref().unwrap_or_default();
        if items.is_empty() {
            return Err("no metrics returned from custom metrics API".to_owned());
        }
        let reading = |item: &MetricValue| {
            let seconds = item.window_seconds.map(|seconds| u64::try_from(seconds).unwrap_or_default());
            let window = seconds.map_or(CUSTOM_WINDOW, Duration::from_secs);
            let reading = Reading { value: item.value.milli_value(), at: item.timestamp, window };
            (item.described_object.name.clone(), reading)
        };
        Ok(items.iter().map(reading).collect())
    }

    /// Returns the value of one object.
    pub(super) fn value(&self) -> Result<i64, String> {
        match self.items.as_deref().unwrap_or_default() {
            [only] => Ok(only.value.milli_value()),
            items => {
                let count = items.len();
                Err(format!("the custom metrics API server returned {count} results when we asked for exactly one"))
            }
        }
    }
}

// === impl ExternalMetricValueList ===

impl ExternalMetricValueList {
    /// Returns the values of all series.
    pub(super) fn values(&self) -> Result<Vec<i64>, String> {
        let items = self.items.as_deref().unwrap_or_default();
        if items.is_empty() {
            return Err("no metrics returned from external metrics API".to_owned());
        }
        Ok(items.iter().map(|item| item.value.milli_value()).collect())
    }
}

/// Parses a duration as Go writes it, such as `1m0s` or `10.062s`; zero, if it is none.
fn window(text: &str) -> Duration {
    let mut sum = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let Ok(amount) = rest[..digits].parse::<f64>() else { return Duration::ZERO };
        rest = &rest[digits..];
        let letters = rest.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Duration::ZERO,
        };
        rest = &rest[letters..];
        sum = sum.saturating_add(Duration::try_from_secs_f64(amount * unit).unwrap_or_default());
    }
    sum
}

/// Returns the message of a refusal: the server's, or client-go's for the status code. `what` is the resource and, if
/// there is one, the name.
pub(super) fn refusal(code: u16, body: &[u8], what: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        kind: String,
        message: String,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    if status.kind == "Status" && !status.message.is_empty() {
        return status.message;
    }
    let said = String::from_utf8_lossy(&body[..body.len().min(SHOWN_MAX)]).trim().to_owned();
    let message = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => &*said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => &*format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        _ => &*format!("the server responded with the status code {code} but did not return more information"),
    };
    format!("{message} (get {what})")
}

/// The bytes of a refusal that are shown.
const SHOWN_MAX: usize = 200;
