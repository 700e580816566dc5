//! Prometheus' text format 0.0.4, as Go's `expfmt` writes it.

use std::fmt::Write as _;

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::Stability;

/// The `Content-Type` of the text, with the escaping of names that client_golang states since 1.20.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// The name of a sample: the family's, and a suffix.
struct Name<'a> {
    family: &'a str,
    suffix: &'static str,
}

/// Encodes families as text, in this order. Families without series are left out.
#[must_use]
pub(crate) fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::new();
    for family in families.iter().filter(|family| !family.get_metric().is_empty()) {
        encode_family(&mut out, family);
    }
    out
}

/// Formats a number as Go's `strconv.FormatFloat(value, 'g', -1, 64)`: the fewest digits that read back as the same
/// number; with an exponent of at least two digits if it is below -4, or 6 and more.
#[must_use]
pub(crate) fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        // Of either sign, as in `expfmt`.
        return "0".to_owned();
    }
    let shortest = format!("{value:e}");
    let Some((digits, exponent)) = shortest.split_once('e').and_then(|(m, e)| Some((m, e.parse::<i32>().ok()?))) else {
        return shortest;
    };
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn encode_family(out: &mut String, family: &MetricFamily) {
    let name = family.name();
    out.push_str("# HELP ");
    out.push_str(name);
    out.push(' ');
    if let Some(level) = Stability::of(name).filter(|_| !family.help().starts_with('[')) {
        out.push_str(level.mark());
    }
    escape(out, family.help(), false);
    let kind = match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
        MetricType::HISTOGRAM => "histogram",
    };
    let _ = writeln!(out, "\n# TYPE {name} {kind}");
    for metric in family.get_metric() {
        encode_metric(out, name, family.get_field_type(), metric);
    }
}

fn encode_metric(out: &mut String, family: &str, kind: MetricType, metric: &Metric) {
    let plain = Name { family, suffix: "" };
    let one = |out: &mut String, value: f64| sample(out, &plain, metric, None, &go_float(value));
    match kind {
        MetricType::COUNTER => one(out, metric.get_counter().get_value()),
        MetricType::GAUGE => one(out, metric.get_gauge().get_value()),
        // The registry has no untyped metrics; the type is for metrics that were read from elsewhere.
        MetricType::UNTYPED => one(out, 0.0),
        MetricType::SUMMARY => {
            let summary = metric.get_summary();
            for quantile in summary.get_quantile() {
                let of = go_float(quantile.quantile());
                sample(out, &plain, metric, Some(("quantile", &of)), &go_float(quantile.value()));
            }
            sum_and_count(out, family, metric, summary.sample_sum(), summary.sample_count());
        }
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            let bucket = Name { family, suffix: "_bucket" };
            let mut infinite = false;
            for each in histogram.get_bucket() {
                let bound = each.upper_bound();
                infinite |= bound == f64::INFINITY;
                let le = go_float(bound);
                sample(out, &bucket, metric, Some(("le", &le)), &each.cumulative_count().to_string());
            }
            if !infinite {
                let le = Some(("le", "+Inf"));
                sample(out, &bucket, metric, le, &histogram.get_sample_count().to_string());
            }
            sum_and_count(out, family, metric, histogram.get_sample_sum(), histogram.get_sample_count());
        }
    }
}

fn sum_and_count(out: &mut String, family: &str, metric: &Metric, sum: f64, count: u64) {
    sample(out, &Name { family, suffix: "_sum" }, metric, None, &go_float(sum));
    sample(out, &Name { family, suffix: "_count" }, metric, None, &count.to_string());
}

fn sample(out: &mut String, name: &Name<'_>, metric: &Metric, extra: Option<(&str, &str)>, value: &str) {
    out.push_str(name.family);
    out.push_str(name.suffix);
    let own = metric.get_label().iter().map(|pair| (pair.name(), pair.value()));
    let mut gap = '{';
    for (name, value) in own.chain(extra) {
        out.push(gap);
        gap = ',';
        out.push_str(name);
        out.push_str("=\"");
        escape(out, value, true);
        out.push('"');
    }
    if gap == ',' {
        out.push('}');
    }
    out.push(' ');
    out.push_str(value);
    if metric.timestamp_ms() != 0 {
        let _ = write!(out, " {}", metric.timestamp_ms());
    }
    out.push('\n');
}

fn escape(out: &mut String, text: &str, quotes: bool) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}
