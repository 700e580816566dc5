//! The programs to build, their sources, and their cache keys.
//!
//! Versions are written in one place, `rig/go.mod` and `rig/etcd/go.mod`, and read from there.

use std::path::PathBuf;

use super::cache::Key;
use crate::failure::{Failure, Result};
use crate::workspace;

/// A program that the rig builds.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// The directory of its module, relative to the root.
    pub(crate) module: &'static str,
    /// The argument of `go build`; `./` is in the module and part of the key.
    pub(crate) package: &'static str,
}

const fn kubernetes(name: &'static str, package: &'static str) -> Target {
    Target { name, module: "rig", package }
}

/// In the order of building: what others wait for first.
pub(crate) const TARGETS: [Target; 8] = [
    Target { name: "etcd", module: "rig/etcd", package: "go.etcd.io/etcd/server/v3" },
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    kubernetes("rigd", "./cmd/rigd"),
    kubernetes("bench-workqueue", "./bench/workqueue"),
    Target { name: "bench-runtime", module: "rig/bench-runtime", package: "./" },
];

/// The versions that the rig is pinned to.
#[derive(Debug)]
pub(crate) struct Versions {
    pub(crate) kubernetes: String,
    pub(crate) etcd: String,
}

pub(crate) fn versions() -> Result<Versions> {
    Ok(Versions {
        kubernetes: pinned("rig/go.mod", "k8s.io/kubernetes")?,
        etcd: pinned("rig/etcd/go.mod", "go.etcd.io/etcd/server/v3")?,
    })
}

/// The version of a module that a manifest requires.
pub(crate) fn pinned(manifest: &str, module: &str) -> Result<String> {
    required_version(&workspace::read(manifest)?, module)
        .ok_or_else(|| Failure::error(format!("{manifest} does not require {module}")))
}

/// The version in the `require` line of a module, alone or in a block.
fn required_version(manifest: &str, module: &str) -> Option<String> {
    manifest.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next()? == module).then(|| words.next())?.filter(|word| word.starts_with('v')).map(str::to_owned)
    })
}

// === impl Target ===

impl Target {
    /// Arguments of `go build` that change the result.
    pub(crate) fn flags(&self, versions: &Versions) -> Vec<String> {
        let mut link = String::from("-s -w");
        if self.module == "rig" {
            // As hack/lib/version.sh of Kubernetes does; without it /version would be v0.0.0-master.
            let minor = versions.kubernetes.split('.').nth(1).unwrap_or_default();
            for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                for (name, value) in [
                    ("gitMajor", "1"),
                    ("gitMinor", minor),
                    ("gitVersion", &versions.kubernetes),
                    // A module does not know its commit; this names its origin.
                    ("gitCommit", &format!("k8s.io/kubernetes@{}", versions.kubernetes)),
                    ("gitTreeState", "clean"),
                ] {
                    link += &format!(" -X {package}.{name}={value}");
                }
            }
        }
        // The tags are those of Kubernetes' own release build (hack/lib/golang.sh).
        let tags = "-tags=selinux,notest,grpcnotrace".to_owned();
        vec!["-trimpath".to_owned(), tags, format!("-ldflags={link}")]
    }

    /// Changes with everything that the binary is made of, except the Go toolchain.
    pub(crate) fn key(&self, versions: &Versions) -> Result<Key> {
        let mut key = Key::new();
        key.add(std::env::consts::OS.as_bytes());
        key.add(std::env::consts::ARCH.as_bytes());
        key.add(self.package.as_bytes());
        for flag in self.flags(versions) {
            key.add(flag.as_bytes());
        }
        for file in ["go.mod", "go.sum"] {
            key.add(workspace::read(format!("{}/{file}", self.module))?.as_bytes());
        }
        if let Some(sources) = self.sources() {
            key.add_dir(&sources)?;
        }
        Ok(key)
    }

    /// The directory of its sources, if it is our own program.
    fn sources(&self) -> Option<PathBuf> {
        let local = self.package.strip_prefix("./")?;
        Some(workspace::root().join(self.module).join(local))
    }
}

#[cfg(test)]
mod tests {
    use super::required_version;

    #[test]
    fn versions_are_read_from_require_lines_and_not_from_replace_or_tool_lines() {
        let manifest = "tool k8s.io/kubernetes/cmd/kubectl\nreplace k8s.io/api => k8s.io/api v0.37.1\n\
                        require (\n\tk8s.io/kubernetes v1.37.1 // indirect\n)\nrequire k8s.io/utils v0.2.0\n";
        assert_eq!(required_version(manifest, "k8s.io/kubernetes").as_deref(), Some("v1.37.1"));
        assert_eq!(required_version(manifest, "k8s.io/utils").as_deref(), Some("v0.2.0"));
        assert_eq!(required_version(manifest, "k8s.io/api"), None);
    }
}
