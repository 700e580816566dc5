//! A certificate with its key, read from files, and read again when they change.
//!
//! The content decides: files that are mounted from a Secret are links that change their target, and their times say
//! little.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// An error of a certificate and its key: one sentence that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// There is no certificate.
    #[error("{certificate} holds no certificate in PEM ({reason})")]
    Certificate {
        /// The file.
        certificate: String,
        /// The reason.
        reason: String,
    },
    /// There is no key.
    #[error("{key} holds no private key in PEM ({reason})")]
    Key {
        /// The file.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The two do not belong together, or are of an unsupported kind.
    #[error("the certificate of {certificate} and the key of {key} cannot be used together: {cause}")]
    Mismatch {
        /// The source of the certificate.
        certificate: String,
        /// The source of the key.
        key: String,
        /// The cause.
        cause: rustls::Error,
    },
}

/// The last contents of the files; `None` for a file that could not be read.
type Seen<const N: usize> = [Option<Vec<u8>>; N];

/// A value that is created from files, and created anew when they change.
pub(super) struct Watched<T, const N: usize> {
    /// `None`: the value was created in memory, and stays.
    files: Option<[PathBuf; N]>,
    state: Mutex<State<T, N>>,
}

struct State<T, const N: usize> {
    current: Arc<T>,
    seen: Seen<N>,
    /// The problem with the last contents, if it was not logged yet.
    unsaid: Option<String>,
}

/// A pair in PEM. Not to be printed: it contains a key.
pub(super) struct PemPair {
    pub(super) certificate: String,
    pub(super) key: String,
}

// === impl PairError ===

impl PairError {
    pub(super) fn read(file: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::Read { file: file.to_owned(), cause }
    }
}

/// Parses a pair.
pub(super) fn parse(certificate: &[u8], key: &[u8], names: [&Path; 2]) -> Result<CertifiedKey, PairError> {
    let [certificate_name, key_name] = names.map(|name| name.display().to_string());
    let no_certificate = |reason: String| PairError::Certificate { certificate: certificate_name.clone(), reason };
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| no_certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(no_certificate("there is no BEGIN CERTIFICATE".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| PairError::Key { key: key_name.clone(), reason: error.to_string() })?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|cause| PairError::Mismatch {
        certificate: certificate_name,
        key: key_name,
        cause,
    })
}

// === impl Watched ===

impl<T, const N: usize> Watched<T, N> {
    /// Creates a value without files.
    pub(super) fn fixed(value: T) -> Self {
        Self::new(value, None, std::array::from_fn(|_| None))
    }

    /// Creates a value from these contents of these files.
    pub(super) fn from_files(value: T, files: [PathBuf; N], held: [Vec<u8>; N]) -> Self {
        Self::new(value, Some(files), held.map(Some))
    }

    fn new(value: T, files: Option<[PathBuf; N]>, seen: Seen<N>) -> Self {
        Self { files, state: Mutex::new(State { current: Arc::new(value), seen, unsaid: None }) }
    }

    pub(super) fn current(&self) -> Arc<T> {
        Arc::clone(&self.state.lock().current)
    }

    /// Reads the files, and creates the value anew if they changed. Problems are logged.
    pub(super) async fn look<E: fmt::Display>(&self, make: impl Fn([&[u8]; N], &[PathBuf; N]) -> Result<T, E>) {
        let Some(files) = &self.files else { return };
        let mut now: Seen<N> = std::array::from_fn(|_| None);
        for (held, file) in now.iter_mut().zip(files) {
            *held = tokio::fs::read(file).await.ok();
        }
        if let Some(reason) = self.saw(now, |held| make(held, files)) {
            let files = files.each_ref().map(|file| file.display().to_string()).join(", ");
            tracing::error!(files, reason, "changed certificate files cannot be used; the old ones stay");
        }
    }

    /// Returns the problem to log, if there is one.
    ///
    /// Files are written one after the other, so a pair that does not fit may be half of a change: it is logged only if
    /// it still does not fit at the next read.
    fn saw<E: fmt::Display>(&self, now: Seen<N>, make: impl Fn([&[u8]; N]) -> Result<T, E>) -> Option<String> {
        let mut state = self.state.lock();
        if now == state.seen {
            return state.unsaid.take();
        }
        let made = match now.iter().all(Option::is_some) {
            true => {
                make(now.each_ref().map(|held| held.as_deref().unwrap_or_default())).map_err(|error| error.to_string())
            }
            false => Err("a file cannot be read".to_owned()),
        };
        state.seen = now;
        match made {
            Ok(value) => {
                state.current = Arc::new(value);
                state.unsaid = None;
            }
            Err(reason) => state.unsaid = Some(reason),
        }
        None
    }
}

impl<T, const N: usize> fmt::Debug for Watched<T, N> {
    /// The contents of the files are not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("files", &self.files).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(held: [&[u8]; 2]) -> Result<u32, String> {
        let text = String::from_utf8_lossy(&held.concat()).into_owned();
        text.parse().map_err(|_| format!("{text} is no number"))
    }

    #[test]
    fn what_cannot_be_used_is_said_once_and_the_old_stays() {
        let watched = Watched::from_files(1, ["a".into(), "b".into()], [b"0".to_vec(), b"1".to_vec()]);
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        // name, what the files hold, what is said, what is current
        let rows = [
            ("unchanged", [bytes("0"), bytes("1")], None, 1),
            ("half of a change", [bytes("x"), bytes("1")], None, 1),
            ("the other half", [bytes("2"), bytes("3")], None, 23),
            ("broken", [bytes("2"), bytes("y")], None, 23),
            ("still broken", [bytes("2"), bytes("y")], Some("2y is no number"), 23),
            ("broken as before", [bytes("2"), bytes("y")], None, 23),
            ("gone", [bytes("2"), None], None, 23),
            ("still gone", [bytes("2"), None], Some("a file cannot be read"), 23),
            ("mended", [bytes("2"), bytes("4")], None, 24),
            ("as it is", [bytes("2"), bytes("4")], None, 24),
        ];
        for (name, held, said, current) in rows {
            assert_eq!(watched.saw(held, number).as_deref(), said, "{name}");
            assert_eq!(*watched.current(), current, "{name}");
        }
    }
}
