//! The file by which others find the cluster.
//!
//! 1. It replaces only a file that an earlier `up` left behind: other kubeconfigs are never overwritten.
//! 2. It is removed when the cluster stops, however that happens, unless it was replaced meanwhile.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use steersman_apiserver::listener::Listening;

use super::super::CommandError;

/// A kubeconfig that is there as long as this is.
pub(super) struct Kubeconfig {
    path: PathBuf,
    text: String,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// Writes it; only its owner can read it.
    ///
    /// # Errors
    /// The file cannot be written, or was not written by `up`.
    pub(super) fn write(listening: &Listening, path: PathBuf) -> Result<Self, CommandError> {
        // It is printed for a shell that may be in another directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        let problem = |what: &str| {
            let path = path.display();
            CommandError(format!("cannot write the kubeconfig {path}: {what}; --kubeconfig-out takes another path"))
        };
        match fs::read_to_string(&path) {
            Ok(text) if !is_ours(&text) => return Err(problem("there is a file that `steersman up` did not write")),
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound) => return Err(problem(&error.to_string())),
            _ => {}
        }
        listening.write_kubeconfig(&path).map_err(|error| problem(&error.to_string()))?;
        Ok(Self { path, text: listening.kubeconfig() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let is_this = fs::read_to_string(&self.path).is_ok_and(|text| text == self.text);
        if is_this {
            // It is of no use any more; if it cannot be removed, it only shows where a cluster was.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the default path of the kubeconfig: in the user's own directory, if there is one. In the directory for
/// temporary files another user could replace it once it is removed.
pub(super) fn default_path(port: u16) -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|own| own.is_absolute() && own.is_dir());
    own.unwrap_or_else(std::env::temp_dir).join(format!("steersman-{port}.kubeconfig"))
}

/// Whether an `up` has written this: our cluster, our context, our user, and no other.
fn is_ours(text: &str) -> bool {
    let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("- name: ")).collect();
    names == ["steersman", "steersman", "admin"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_up_has_written_is_ours() {
        let check = |text: &str, want: bool| assert_eq!(is_ours(text), want, "{text}");
        check("clusters:\n- name: steersman\ncontexts:\n- name: steersman\nusers:\n- name: admin\n", true);
        check("clusters:\n- name: prod\ncontexts:\n- name: prod\nusers:\n- name: admin\n", false);
        check(
            "clusters:\n- name: steersman\n- name: prod\ncontexts:\n- name: steersman\n- name: prod\nusers:\n- name: admin\n",
            false,
        );
        check("{}", false);
        check("", false);
    }
}
