//! The cells of Jobs: `printJob` of `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use crate::table::{TableRow, cell};

/// The conditions of a job that are its status, by rank; a deletion ranks after the second.
const JOB_ENDED: [&str; 2] = ["Complete", "Failed"];

const JOB_UNDER_WAY: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];

/// The cell text of the status: the most important condition.
pub(crate) fn status(row: &TableRow<'_>) -> String {
    let holds = |kind: &&&str| {
        row.condition("/status/conditions", kind).is_some_and(|condition| cell::text(condition, "status") == "True")
    };
    let terminating = row.is_terminating().then_some(&"Terminating");
    let status = JOB_ENDED.iter().find(holds).or(terminating).or_else(|| JOB_UNDER_WAY.iter().find(holds));
    status.map_or("Running", |status| *status).to_owned()
}

/// The cell text of succeeded and desired completions.
pub(crate) fn completions(row: &TableRow<'_>) -> String {
    let succeeded = row.int("/status/succeeded");
    match (row.at("/spec/completions").and_then(Value::as_i64), row.int("/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// The cell text of the duration, up to now if the job runs.
pub(crate) fn duration(row: &TableRow<'_>) -> String {
    let at = |path| cell::seconds_of(row.text(path));
    at("/status/startTime").map_or_else(String::new, |start| {
        crate::table::duration::human(at("/status/completionTime").unwrap_or(row.now.unix()) - start)
    })
}
