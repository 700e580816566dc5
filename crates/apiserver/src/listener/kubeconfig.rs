//! The kubeconfig of the server.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::pki::Certificate;

/// Returns a kubeconfig for the administrator, who has a token and a certificate: some clients know only one of them. The
/// texts are ours and need no escaping.
pub(super) fn text(url: &str, authority_pem: &str, token: &str, admin: &Certificate) -> String {
    let authority = STANDARD.encode(authority_pem);
    let certificate = STANDARD.encode(&admin.certificate_pem);
    let key = STANDARD.encode(&admin.key_pem);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: steersman\n\
         clusters:\n\
         - name: steersman\n  \
           cluster:\n    \
             server: {url}\n    \
             certificate-authority-data: {authority}\n\
         contexts:\n\
         - name: steersman\n  \
           context:\n    \
             cluster: steersman\n    \
             user: admin\n    \
             namespace: default\n\
         users:\n\
         - name: admin\n  \
           user:\n    \
             client-certificate-data: {certificate}\n    \
             client-key-data: {key}\n    \
             token: {token}\n"
    )
}

/// Writes a file that only its owner can read, whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = fs::remove_file(&fresh);
    let mut file = options.open(&fresh)?;
    let written =
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}
