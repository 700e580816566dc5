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
    url: String,
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
            Ok(text) if server_of(&text).is_none() => {
                return Err(problem("there is a file that `steersman up` did not write"));
            }
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound) => return Err(problem(&error.to_string())),
            _ => {}
        }
        listening.write_kubeconfig(&path).map_err(|error| problem(&error.to_string()))?;
        Ok(Self { path, url: listening.url() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // kubectl may have rewritten it meanwhile, for a namespace of one's own.
        let is_this = |text: String| server_of(&text).is_some_and(|url| url == self.url);
        if fs::read_to_string(&self.path).is_ok_and(is_this) {
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

/// The server of a kubeconfig that an `up` has written, or kubectl after it: our cluster, our context, our user, and no other.
fn server_of(text: &str) -> Option<String> {
    let read = kube::config::Kubeconfig::from_yaml(text).ok()?;
    let [cluster] = &*read.clusters else { return None };
    let [context] = &*read.contexts else { return None };
    let [user] = &*read.auth_infos else { return None };
    let is_ours = cluster.name == "steersman" && context.name == "steersman" && user.name == "admin";
    let server = cluster.cluster.as_ref().and_then(|cluster| cluster.server.clone());
    server.filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cluster: &str, more: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: {cluster}\n  cluster:\n    server: https://127.0.0.1:1\n{more}\
             contexts:\n- name: {cluster}\n  context:\n    cluster: {cluster}\n    user: admin\n\
             users:\n- name: admin\n  user:\n    token: t\n"
        )
    }

    #[test]
    fn only_what_up_has_written_is_ours() {
        let check = |text: &str, want: bool| assert_eq!(server_of(text).is_some(), want, "{text}");
        check(&written("steersman", ""), true);
        check(&written("prod", ""), false);
        check(&written("steersman", "- name: prod\n  cluster:\n    server: https://127.0.0.1:2\n"), false);
        check("{}", false);
        check("", false);
    }

    #[test]
    fn what_kubectl_has_rewritten_is_still_ours() {
        let rewritten = "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: eA==\n    \
                         server: https://127.0.0.1:7\n  name: steersman\ncontexts:\n- context:\n    cluster: steersman\n    \
                         namespace: shop\n    user: admin\n  name: steersman\ncurrent-context: steersman\nkind: Config\n\
                         preferences: {}\nusers:\n- name: admin\n  user:\n    token: t\n";
        assert_eq!(server_of(rewritten).as_deref(), Some("https://127.0.0.1:7"));
    }
}
