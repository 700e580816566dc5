//! `cargo xtask crates`: checks that others can depend on the crates.
//!
//! 1. Every crate that can be published is packaged, so nothing that a registry would refuse gets in unseen.
//! 2. Every library compiles without default features, and the facade with each feature alone.
//! 3. A program outside of the workspace, with the oldest version of Kubernetes that k8s-openapi offers, is built and run. It depends
//!    on every library. The workspace itself is built with the newest.
//! 4. An operator from `steersman new operator`, with the same version, is generated and its tests pass.

use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::{self, Package};

/// The crate outside of the workspace.
const OUTSIDE: &str = "rig/outside";

/// The feature of k8s-openapi for its oldest version of Kubernetes.
const OLDEST: &str = "earliest";

/// Not a feature of its own: it stands for others.
const DEFAULT: &str = "default";

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        return Err(Failure::usage("`crates` takes no arguments", "usage: cargo xtask crates"));
    }
    let packages = workspace::packages()?;
    let published: Vec<_> = packages.iter().filter(|package| package.published).collect();
    process::run(&mut package(&published))?;
    for mut check in checks(&published) {
        process::run(&mut check)?;
    }
    outside()?;
    operator()
}

/// Packages all at once: cargo then takes what they need of each other from the workspace, not from the registry.
fn package(published: &[&Package]) -> Command {
    let mut command = process::cargo(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    chosen(&mut command, published);
    command
}

/// One check for all without features, and one for each feature alone.
fn checks(published: &[&Package]) -> Vec<Command> {
    let mut all = process::cargo(["check", "--quiet", "--lib", "--no-default-features"]);
    chosen(&mut all, published);
    let alone = published.iter().flat_map(|package| {
        let features = package.features.iter().filter(|feature| *feature != DEFAULT);
        features.map(|feature| {
            let package = package.name.as_str();
            let check = ["check", "--quiet", "--lib", "--package", package, "--no-default-features", "--features"];
            process::cargo(check.into_iter().chain([feature.as_str()]))
        })
    });
    std::iter::once(all).chain(alone).collect()
}

fn chosen(command: &mut Command, packages: &[&Package]) {
    for package in packages {
        command.args(["--package", &package.name]);
    }
}

/// Builds and runs the program outside, with the versions of our dependencies that are tested here.
fn outside() -> Result<()> {
    process::run(&mut elsewhere("run", &workspace::root().join(OUTSIDE))?)
}

/// Generates an operator, and runs its tests.
fn operator() -> Result<()> {
    let root = workspace::root();
    let directory = std::env::temp_dir().join(format!("steersman-operator-{}", std::process::id()));
    let mut generate = process::cargo(["run", "--quiet", "--package", "steersman-cli", "--", "new", "operator"]);
    generate.args(["web-site", "--kubernetes", OLDEST, "--steersman"]).arg(&root).arg("--directory").arg(&directory);
    let outcome = process::run(&mut generate).and_then(|()| process::run(&mut elsewhere("test", &directory)?));
    // What is left behind in the directory for temporary files does no harm.
    let _ = std::fs::remove_dir_all(&directory);
    outcome
}

/// Returns a cargo command for a crate outside of the workspace, with our lock file.
fn elsewhere(command: &str, directory: &Path) -> Result<Command> {
    let root = workspace::root();
    let lock = directory.join("Cargo.lock");
    std::fs::copy(root.join("Cargo.lock"), &lock).map_err(Failure::io("writing", &lock))?;
    let mut command = process::cargo([command, "--quiet", "--manifest-path"]);
    command.arg(directory.join("Cargo.toml"));
    // Artifacts of the workspace are reused.
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        command.env("CARGO_TARGET_DIR", root.join("target"));
    }
    // Elsewhere, `.cargo/config.toml` of this repository is not there to choose a version of Kubernetes.
    command.env_remove("K8S_OPENAPI_ENABLED_VERSION").current_dir(std::env::temp_dir());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::checks;
    use crate::process::shown;
    use crate::workspace::Package;

    #[test]
    fn each_feature_is_checked_alone() {
        let package = |name: &str, features: &[&str]| Package {
            name: name.to_owned(),
            features: features.iter().map(ToString::to_string).collect(),
            published: true,
            ..Package::default()
        };
        let packages = [package("a", &["default"]), package("b", &["default", "x", "y"])];
        let seen: Vec<_> = checks(&packages.each_ref()).iter().map(shown).collect();
        let alone =
            |feature: &str| format!("check --quiet --lib --package b --no-default-features --features {feature}");
        assert_eq!(seen.len(), 3);
        assert!(seen[0].ends_with("check --quiet --lib --no-default-features --package a --package b"), "{}", seen[0]);
        assert!(seen[1].ends_with(&alone("x")), "{}", seen[1]);
        assert!(seen[2].ends_with(&alone("y")), "{}", seen[2]);
    }
}
