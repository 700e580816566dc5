//! One manager, step by step: its CPU, and its API calls by the audit log.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::Process;
use crate::{report, report_time};

/// The variable with the path of the rig's audit log, if there is one.
const AUDIT_LOG: &str = "STEERSMAN_BENCH_AUDIT_LOG";

/// A manager and what it had used before the step that is being measured.
pub(crate) struct Measured {
    pub(crate) process: Process,
    audit: AuditLog,
    cpu: Duration,
    calls: usize,
}

/// The audit log of the rig, which has the calls of the manager and no others. A watch is in it when it has ended.
pub(crate) struct AuditLog(Option<PathBuf>);

// === impl Measured ===

impl Measured {
    pub(crate) fn new(process: Process) -> Self {
        Self { process, audit: AuditLog::of_rig(), cpu: Duration::ZERO, calls: 0 }
    }

    pub(crate) fn begin(&mut self) {
        self.cpu = self.process.usage().cpu;
        self.calls = self.audit.calls().unwrap_or_default();
    }

    /// Counts what the manager still does after the cluster is as wanted.
    pub(crate) async fn finish(&mut self, step: &str, took: Duration) {
        self.process.quiet().await;
        report_time(&format!("{step}, wall"), took);
        self.used(step);
    }

    /// Reports what it has used since the step began.
    pub(crate) fn used(&mut self, step: &str) {
        report_time(&format!("{step}, CPU"), self.process.usage().cpu - self.cpu);
        if let Some(calls) = self.audit.calls() {
            report(&format!("{step}, API calls"), (calls - self.calls) as f64, "calls");
        }
    }
}

// === impl AuditLog ===

impl AuditLog {
    pub(crate) fn of_rig() -> Self {
        Self(std::env::var_os(AUDIT_LOG).map(PathBuf::from))
    }

    /// Returns the number of calls up to now; none without a log.
    pub(crate) fn calls(&self) -> Option<usize> {
        // There is no file before the first call.
        let log = std::fs::read(self.0.as_ref()?).unwrap_or_default();
        Some(log.iter().filter(|byte| **byte == b'\n').count())
    }
}
