//! The version of this program.

/// The version of Kubernetes whose behaviour this is.
pub(super) const KUBERNETES: &str = "v1.37.1";
/// The program's own.
pub(super) const OWN: &str = env!("CARGO_PKG_VERSION");

/// Returns the output of `kube-controller-manager --version`; scripts parse it.
pub(super) fn line() -> String {
    format!("Kubernetes {KUBERNETES}")
}

/// Returns the output of `steersman version` and `--version=raw`: all build information.
pub(super) fn all() -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!(
        "steersman:   {OWN}\nKubernetes:  {KUBERNETES}\nplatform:    {}\nbuild:       {build}, for Rust {} or later",
        platform(),
        env!("CARGO_PKG_RUST_VERSION"),
    )
}

/// Such as `linux/amd64`.
pub(super) fn platform() -> String {
    format!("{}/{}", std::env::consts::OS, arch())
}

/// Go's names, as people know them from Kubernetes.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
