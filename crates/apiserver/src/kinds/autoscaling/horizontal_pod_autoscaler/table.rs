//! The cell with the metrics of an autoscaler: `formatHPAMetrics` of `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use super::v1;
use crate::kinds::shared::json::items;
use crate::table::{TableRow, cell};

/// The cell text with the current and the target value of each metric: `cpu: 10%/80%`.
pub(crate) fn metrics(row: &TableRow<'_>) -> String {
    if v1::is_v1(row.object) {
        let stored = v1::stored(row.object);
        return all_metrics(&stored["spec"]["metrics"], &stored["status"]["currentMetrics"]);
    }
    all_metrics(&row.object["spec"]["metrics"], &row.object["status"]["currentMetrics"])
}

fn all_metrics(metrics: &Value, statuses: &Value) -> String {
    const SHOWN_MAX: usize = 2;
    let statuses = items(statuses);
    let all: Vec<String> =
        items(metrics).iter().enumerate().map(|(index, metric)| one_metric(metric, statuses.get(index))).collect();
    if all.is_empty() { "<none>".to_owned() } else { cell::first_of(&all, SHOWN_MAX, ", ") }
}

fn one_metric(metric: &Value, status: Option<&Value>) -> String {
    let source = match cell::text(metric, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| metric.pointer(&format!("/{source}/target/{field}"));
    let current = |field: &str| status.and_then(|status| status.pointer(&format!("/{source}/current/{field}")));
    let amount = |value: Option<&Value>| value.map_or_else(|| "<unknown>".to_owned(), cell::int_or_string);
    let percent = |value: Option<&Value>, otherwise: &str| {
        value.map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
    };
    let name = metric.pointer(&format!("/{source}/name")).and_then(Value::as_str).unwrap_or_default();
    let averages = || format!("{}/{}", amount(current("averageValue")), amount(target("averageValue")));
    match (source, target("averageValue").is_some()) {
        ("resource" | "containerResource", true) => format!("{name}: {}", averages()),
        ("resource" | "containerResource", false) => {
            let current = percent(current("averageUtilization"), "<unknown>");
            format!("{name}: {current}/{}", percent(target("averageUtilization"), "<auto>"))
        }
        ("pods", _) => averages(),
        (_, true) => format!("{} (avg)", averages()),
        (_, false) => format!("{}/{}", amount(current("value")), amount(target("value"))),
    }
}
