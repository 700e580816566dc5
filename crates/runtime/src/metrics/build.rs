//! Constant metrics of a binary, for dashboards that join on them.

use prometheus::core::Collector;
use prometheus::{IntGaugeVec, Opts, Registry};

/// The build of a binary. Unknown fields stay empty, as in upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildInfo {
    /// The major version of the Kubernetes release that is followed: `1`.
    pub major: String,
    /// The minor version: `37`.
    pub minor: String,
    /// `v1.37.1`, or the version of the build.
    pub git_version: String,
    /// The commit.
    pub git_commit: String,
    /// `clean` or `dirty`.
    pub git_tree_state: String,
    /// The time of the build, RFC 3339.
    pub build_date: String,
    /// The version of the language; upstream's label is `go_version`.
    pub language_version: String,
    /// The compiler.
    pub compiler: String,
    /// The platform, such as `linux/amd64`.
    pub platform: String,
}

const BUILD_LABELS: [&str; 9] = [
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
];

/// Registers `kubernetes_build_info`.
///
/// # Errors
/// The registry has it already.
pub fn register_build_info(registry: &Registry, info: &BuildInfo) -> Result<(), prometheus::Error> {
    let help = "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree \
                state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it \
                is running.";
    let family = IntGaugeVec::new(Opts::new("kubernetes_build_info", help), &BUILD_LABELS)?;
    let BuildInfo { major, minor, git_version, git_commit, git_tree_state, .. } = info;
    let BuildInfo { build_date, language_version, compiler, platform, .. } = info;
    family
        .with_label_values(&[
            major,
            minor,
            git_version,
            git_commit,
            git_tree_state,
            build_date,
            language_version,
            compiler,
            platform,
        ])
        .set(1);
    register(registry, family)
}

/// Registers `kubernetes_feature_enabled`: name, stage (`ALPHA`, `BETA`, `DEPRECATED`; empty once a feature is
/// generally available), and whether it is on.
///
/// # Errors
/// The registry has it already.
pub fn register_features<'a>(
    registry: &Registry,
    features: impl IntoIterator<Item = (&'a str, &'a str, bool)>,
) -> Result<(), prometheus::Error> {
    let help = "[BETA] This metric records the data about the stage and enablement of a k8s feature.";
    let family = IntGaugeVec::new(Opts::new("kubernetes_feature_enabled", help), &["name", "stage"])?;
    for (name, stage, enabled) in features {
        family.with_label_values(&[name, stage]).set(i64::from(enabled));
    }
    register(registry, family)
}

/// Registers `version_info`: the versions of Kubernetes that a component is built for, emulates, and is compatible
/// with, such as `1.37`.
///
/// # Errors
/// The registry has it already.
pub fn register_version_info(
    registry: &Registry,
    component: &str,
    binary: &str,
    emulation: &str,
    min_compat: &str,
) -> Result<(), prometheus::Error> {
    let help = "[ALPHA] Provides the compatibility version info of the component. The component label is the name of \
                the component, usually kube, but is relevant for aggregated-apiservers.";
    let family =
        IntGaugeVec::new(Opts::new("version_info", help), &["component", "binary", "emulation", "min_compat"])?;
    family.with_label_values(&[component, binary, emulation, min_compat]).set(1);
    register(registry, family)
}

fn register(registry: &Registry, family: impl Collector + 'static) -> Result<(), prometheus::Error> {
    registry.register(Box::new(family))
}
