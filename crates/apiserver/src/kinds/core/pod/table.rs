//! The cells of Pods. The status is what users look at, and it is put together from everything the kubelet reports:
//! `printPod` of `pkg/printers/internalversion/printers.go`.

use serde_json::{Value, json};
use steersman_base::Time;

use crate::table::{Cell, TableRow, cell};

/// The cells of Pods.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Name,
    Cell::Made(|row| Summary::of(row).ready_text()),
    Cell::Made(|row| Summary::of(row).reason),
    Cell::Made(|row| Summary::of(row).restarts_text(row.now)),
    Cell::Age,
    Cell::TextOr("/status/podIPs/0/ip", "<none>"),
    Cell::TextOr("/spec/nodeName", "<none>"),
    Cell::TextOr("/status/nominatedNodeName", "<none>"),
    Cell::Made(readiness_gates),
];

/// Returns the condition of a row whose pod has ended, for clients that hide those.
pub(crate) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod.pointer("/status/phase").and_then(Value::as_str)? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// The totals of a pod's containers.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: Restarts,
}

/// The number of restarts of containers, and the time at which the last one ended.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<i64>,
}

fn readiness_gates(row: &TableRow<'_>) -> String {
    let gates = row.list_at("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let is_true = |gate: &&Value| {
        let condition = row.condition("/status/conditions", cell::text(gate, "conditionType"));
        condition.is_some_and(|condition| cell::text(condition, "status") == "True")
    };
    format!("{}/{}", gates.iter().filter(is_true).count(), gates.len())
}

impl Summary {
    fn of(row: &TableRow<'_>) -> Self {
        let phase = row.text("/status/phase");
        let init_containers = row.list_at("/spec/initContainers");
        let sidecars = init_containers.iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Self {
            reason: [row.text("/status/reason"), phase]
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or("")
                .to_owned(),
            ready: 0,
            total: row.list_at("/spec/containers").len() + sidecars,
            restarts: Restarts::default(),
        };
        let scheduled = row.condition("/status/conditions", "PodScheduled");
        if scheduled.is_some_and(|condition| cell::text(condition, "reason") == "SchedulingGated") {
            summary.reason = "SchedulingGated".to_owned();
        }
        let (is_initializing, sidecar_restarts) = summary.add_init_containers(row, init_containers);
        let initialized = row.condition("/status/conditions", "Initialized");
        if !is_initializing || initialized.is_some_and(|condition| cell::text(condition, "status") == "True") {
            summary.restarts = sidecar_restarts;
            summary.add_containers(row);
        }
        if row.is_terminating() {
            if row.text("/status/reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Succeeded" | "Failed") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Goes through the init containers up to the first that has not ended well, which is the pod's reason; returns
    /// whether there is one, and the restarts of those that stay.
    fn add_init_containers(&mut self, row: &TableRow<'_>, containers: &[Value]) -> (bool, Restarts) {
        let mut sidecar_restarts = Restarts::default();
        for (index, status) in row.list_at("/status/initContainerStatuses").iter().enumerate() {
            let is_sidecar = containers
                .iter()
                .any(|container| cell::text(container, "name") == cell::text(status, "name") && is_sidecar(container));
            self.restarts.add(status);
            if is_sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = status.pointer("/state/terminated");
            let waiting = status.pointer("/state/waiting/reason").and_then(Value::as_str).unwrap_or_default();
            let is_started = status.get("started").and_then(Value::as_bool).unwrap_or_default();
            match terminated {
                Some(terminated) if exit_code(terminated) == 0 => continue,
                _ if is_sidecar && is_started => {
                    self.ready += usize::from(is_ready(status));
                    continue;
                }
                Some(terminated) => self.reason = format!("Init:{}", end_reason(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => self.reason = format!("Init:{waiting}"),
                None => self.reason = format!("Init:{index}/{}", containers.len()),
            }
            return (true, sidecar_restarts);
        }
        (false, sidecar_restarts)
    }

    fn add_containers(&mut self, row: &TableRow<'_>) {
        let mut has_running = false;
        let mut error = None;
        for status in row.list_at("/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = status.pointer("/state/waiting/reason").and_then(Value::as_str).unwrap_or_default();
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status.pointer("/state/terminated") {
                self.reason = end_reason(terminated);
                if exit_code(terminated) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if is_ready(status) && status.pointer("/state/running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        // A pod is not complete while one of its containers runs.
        if self.reason == "Completed" {
            let ready = row.condition("/status/conditions", "Ready");
            let is_pod_ready = ready.is_some_and(|condition| cell::text(condition, "status") == "True");
            match (has_running, is_pod_ready, error) {
                (true, true, _) => self.reason = "Running".to_owned(),
                (_, _, Some(error)) => self.reason = error,
                (true, false, None) => self.reason = "NotReady".to_owned(),
                (false, _, None) => {}
            }
        }
    }

    fn ready_text(&self) -> String {
        format!("{}/{}", self.ready, self.total)
    }

    fn restarts_text(&self, now: Time) -> String {
        match self.restarts {
            Restarts { count, last: Some(last) } if count != 0 => {
                format!("{count} ({} ago)", cell::since(now, &Time::from_unix(last).to_string()))
            }
            Restarts { count, .. } => count.to_string(),
        }
    }
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status.get("restartCount").and_then(Value::as_i64).unwrap_or_default();
        let ended =
            status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str).and_then(cell::seconds_of);
        self.last = self.last.max(ended);
    }
}

/// Whether an init container stays beside the others.
fn is_sidecar(container: &Value) -> bool {
    cell::text(container, "restartPolicy") == "Always"
}

fn is_ready(status: &Value) -> bool {
    status.get("ready").and_then(Value::as_bool).unwrap_or_default()
}

fn exit_code(terminated: &Value) -> i64 {
    terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default()
}

fn end_reason(terminated: &Value) -> String {
    let reason = cell::text(terminated, "reason");
    let signal = terminated.get("signal").and_then(Value::as_i64).unwrap_or_default();
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", exit_code(terminated)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
