//! The pages of the secure port.

use std::collections::BTreeMap;

use http::StatusCode;
use prometheus::Registry;
use serde_json::Value;
use steersman_base::Clock;
use steersman_runtime::__internal::admin::{StatusInfo, json};
use steersman_runtime::__internal::metrics::{
    BuildInfo, ProcessMetrics, register_build_info, register_features, register_version_info,
};
use steersman_runtime::admin::{Admin, PathTaken};

use super::super::CommandError;
use super::super::flags::Parsed;
use super::super::gates::{self, Gates};
use super::super::log::Verbosity;
use super::super::version;
use super::config;
use super::roster::Roster;

/// The oldest version beside which 1.37 can work, as upstream's `version_info` says.
const MIN_COMPATIBILITY: &str = "1.36";
const EMULATED: &str = "1.37";

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
        .and_then(|()| register_version_info(registry, "kube", binary_version(), EMULATED, MIN_COMPATIBILITY))
        .and_then(|()| ProcessMetrics::register(registry));
    registered.map_err(|error| CommandError(format!("metrics: {error}")))
}

/// Adds to a manager's pages what the program knows: flags, configuration, version, and the level of the log. Two of them
/// have a feature gate.
pub(super) fn serve(
    admin: &Admin,
    clock: &Clock,
    flags: &Parsed,
    config: Value,
    gates: &Gates,
    verbosity: &Verbosity,
) -> Result<(), PathTaken> {
    if gates.enabled("CBORServingAndStorage") {
        admin.offer_cbor();
    }
    admin.serve_config(config::NAME, config)?;
    if gates.enabled("ComponentFlagz") {
        let shown: BTreeMap<_, _> = flags.all().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        admin.serve_flags(move || shown.clone())?;
    }
    if gates.enabled("ComponentStatusz") {
        admin.serve_status(status(clock))?;
    }
    let verbosity = verbosity.clone();
    admin.serve_log_level(move |level| verbosity.set(level))?;
    if !flags.is_on("profiling") {
        admin.withhold("/debug/profile");
        admin.withhold("/debug/pprof");
    }
    Ok(())
}

/// Shows which controllers run, and why the others do not.
pub(super) fn serve_roster(admin: &Admin, roster: &Roster) -> Result<(), PathTaken> {
    let page = roster.to_json();
    admin.handle("/debug/controllers", move |_| json(StatusCode::OK, &page))
}

fn binary_version() -> &'static str {
    version::KUBERNETES.trim_start_matches('v')
}

fn status(clock: &Clock) -> StatusInfo {
    StatusInfo {
        started: clock.now(),
        language_version: format!("Rust {} or later", env!("CARGO_PKG_RUST_VERSION")),
        binary_version: binary_version().to_owned(),
        emulation_version: EMULATED.to_owned(),
        // In addition to upstream's `/healthz`, for probes that use them.
        unlisted: vec!["/livez", "/readyz"],
    }
}
