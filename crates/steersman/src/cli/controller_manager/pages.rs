//! What the secure port shows.

use std::collections::BTreeMap;

use prometheus::Registry;
use serde_json::{Value, json};
use steersman_base::Clock;
use steersman_runtime::admin::{Admin, PathTaken, StatusInfo};
use steersman_runtime::metrics::{BuildInfo, ProcessMetrics, register_build_info, register_features};

use super::super::CommandError;
use super::super::flags::Parsed;
use super::super::gates::{self, Gates};
use super::super::log::Verbosity;
use super::super::version;

/// The name of our configuration on `/configz`, as upstream's.
const CONFIG: &str = "kubecontrollermanager.config.k8s.io";

/// Counts what the program is, beside what it does.
pub(super) fn register_metrics(registry: &Registry, gates: &Gates) -> Result<(), CommandError> {
    let stage = |stage: &'static str| if stage == "GA" { "" } else { stage };
    let features = gates::table().iter().map(|gate| (gate.name, stage(gate.stage), gates.enabled(gate.name)));
    let info = BuildInfo {
        major: "1".into(),
        minor: "37".into(),
        git_version: version::KUBERNETES.into(),
        compiler: "rustc".into(),
        platform: version::platform(),
        ..BuildInfo::default()
    };
    let registered = register_build_info(registry, &info)
        .and_then(|()| register_features(registry, features))
        .and_then(|()| ProcessMetrics::register(registry));
    registered.map_err(|error| CommandError(format!("metrics: {error}")))
}

/// Adds to a manager's pages what the program knows: flags, configuration, version, and the level of the log.
pub(super) fn serve(admin: &Admin, clock: &Clock, flags: &Parsed, verbosity: &Verbosity) -> Result<(), PathTaken> {
    admin.serve_config(CONFIG, config(flags))?;
    let shown: BTreeMap<_, _> = flags.all().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    admin.serve_flags(move || shown.clone())?;
    admin.serve_status(status(clock))?;
    let verbosity = verbosity.clone();
    admin.serve_log_level(move |level| verbosity.set(level))?;
    if !flags.is_on("profiling") {
        admin.withhold("/debug/profile");
    }
    Ok(())
}

fn status(clock: &Clock) -> StatusInfo {
    StatusInfo {
        started: clock.now(),
        language_version: format!("Rust {} or later", env!("CARGO_PKG_RUST_VERSION")),
        binary_version: version::KUBERNETES.trim_start_matches('v').to_owned(),
        emulation_version: "1.37".to_owned(),
    }
}

/// The part of upstream's configuration that acts here, under upstream's names.
fn config(flags: &Parsed) -> Value {
    let shown = |name: &str| flags.value(name).to_string();
    json!({
        "kind": "KubeControllerManagerConfiguration",
        "apiVersion": format!("{CONFIG}/v1alpha1"),
        "Generic": {
            "Controllers": flags.texts("controllers"),
            "ClientConnection": { "QPS": flags.float("kube-api-qps"), "Burst": flags.int("kube-api-burst") },
            "LeaderElection": {
                "LeaderElect": flags.is_on("leader-elect"),
                "LeaseDuration": shown("leader-elect-lease-duration"),
                "RenewDeadline": shown("leader-elect-renew-deadline"),
                "RetryPeriod": shown("leader-elect-retry-period"),
                "ResourceLock": shown("leader-elect-resource-lock"),
                "ResourceName": shown("leader-elect-resource-name"),
                "ResourceNamespace": shown("leader-elect-resource-namespace"),
            },
        },
        "KubeCloudShared": { "UseServiceAccountCredentials": flags.is_on("use-service-account-credentials") },
        "ReplicaSetController": { "ConcurrentRSSyncs": flags.int("concurrent-replicaset-syncs") },
    })
}
