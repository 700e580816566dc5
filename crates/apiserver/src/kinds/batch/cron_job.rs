//! CronJobs. Follows `pkg/apis/batch/v1/defaults.go` and `pkg/apis/batch/validation/validation.go`.

use serde_json::Value;
use steersman_base::cron::{Schedule, Zone};

use super::job;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::gated::drop_disabled;
use crate::kinds::core::pod::warnings;
use crate::kinds::shared::check;
use crate::kinds::shared::json::{default_to, default_zero_to, flag, is_set, text, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, labels};

/// The rules of CronJobs.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(default)
    .prepared(|new, old| drop_disabled(new, old, "/spec/jobTemplate/spec/template/spec"))
    .warned(|new, old, warnings| {
        if old.is_none() {
            warnings::name(new, "Pod names and hostnames", warnings);
        }
        let path = "spec.jobTemplate.spec.template";
        warnings::template_at(path, &new["spec"]["jobTemplate"]["spec"]["template"], (new, old), warnings);
    })
    .admitted(Admission::of_template("/spec/jobTemplate/spec/template"))
    .validated(|new, old, errors| {
        /// A job is named after its cron job with `-` and ten digits, and must fit into a label.
        const NAME_LENGTH_MAX: usize = 52;
        spec(&new["spec"], old.map(|old| &old["spec"]), &Path::new("spec"), errors);
        let name = text(&new["metadata"]["name"]);
        if old.is_none() && name.len() > NAME_LENGTH_MAX {
            let path = Path::new("metadata").child("name");
            errors.push(FieldError::invalid(&path, name, "must be no more than 52 characters"));
        }
    })
    .with_strategy(Strategy::GENERATION)
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/schedule"),
        Cell::TextOr("/spec/timeZone", "<none>"),
        Cell::Made(suspended),
        Cell::Count("/status/active"),
        Cell::Made(last_schedule),
        Cell::Age,
        Cell::Joined("/spec/jobTemplate/spec/template/spec/containers", "name"),
        Cell::Joined("/spec/jobTemplate/spec/template/spec/containers", "image"),
        Cell::Made(|row| labels::selector(row.at("/spec/jobTemplate/spec/selector"))),
    ]);

fn default(object: &mut Value) {
    with(object, "spec", |spec| {
        default_zero_to(spec, "concurrencyPolicy", "Allow");
        default_to(spec, "suspend", false);
        default_to(spec, "successfulJobsHistoryLimit", 3);
        default_to(spec, "failedJobsHistoryLimit", 1);
        with(spec, "jobTemplate", |template| with(template, "spec", job::template_defaults));
    });
}

fn spec(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    let at = path.child("schedule");
    let schedule = text(&spec["schedule"]);
    if !schedule.is_empty() {
        if let Err(problem) = Schedule::parse(schedule, &Zone::utc()) {
            errors.push(FieldError::invalid(&at, schedule, problem.to_string()));
        }
        let had_zone = old.is_some_and(|old| text(&old["schedule"]).contains("TZ"));
        if schedule.contains("TZ") && !had_zone {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(&at, schedule, detail));
        } else if schedule.contains("TZ") && is_set(&spec["timeZone"]) {
            let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            errors.push(FieldError::invalid(&at, schedule, detail));
        }
    }
    check::non_negative(&spec["startingDeadlineSeconds"], &path.child("startingDeadlineSeconds"), errors);
    if old.is_none_or(|old| old["timeZone"] != spec["timeZone"]) {
        time_zone(&spec["timeZone"], &path.child("timeZone"), errors);
    }
    check::one_of(
        &spec["concurrencyPolicy"],
        &["Allow", "Forbid", "Replace"],
        &path.child("concurrencyPolicy"),
        errors,
    );
    let template = &spec["jobTemplate"]["spec"];
    let at = path.child("jobTemplate").child("spec");
    job::spec(template, &at, errors);
    if is_set(&template["selector"]) {
        let shown = check::shown_selector(&template["selector"]);
        errors.push(FieldError::invalid(&at.child("selector"), shown, "`selector` will be auto-generated"));
    }
    if flag(&template["manualSelector"]) {
        errors.push(FieldError::not_supported(&at.child("manualSelector"), true, &["nil", "false"]));
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        check::non_negative(&spec[field], &path.child(field), errors);
    }
    if schedule.is_empty() {
        // Checked declaratively upstream, after what is checked by hand.
        errors.push(FieldError::required(&path.child("schedule"), ""));
    }
}

fn time_zone(value: &Value, path: &Path, errors: &mut Errors) {
    let Some(zone) = value.as_str() else { return };
    if zone.is_empty() {
        errors.push(FieldError::invalid(path, zone, "timeZone must be nil or non-empty string"));
        return;
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    let good = |part: &str| !matches!(part, "." | ".." | "") && !part.starts_with('-') && part.bytes().all(known);
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(path, zone, detail));
    } else if !zone.split('/').all(good) || Zone::find(zone).is_err() {
        errors.push(FieldError::invalid(path, zone, format!("unknown time zone {zone}")));
    }
}

fn suspended(row: &TableRow<'_>) -> String {
    match row.at("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
    .to_owned()
}

fn last_schedule(row: &TableRow<'_>) -> String {
    let path = "/status/lastScheduleTime";
    if row.at(path).is_some() { row.since(path) } else { "<none>".to_owned() }
}
