#![doc = include_str!("../docs/certificatesigningrequest-signing-controller.md")]
//!
//! Follows `pkg/controller/certificates/signer`, `pkg/controller/certificates/authority` and
//! `cmd/kube-controller-manager/app/certificates.go` of Kubernetes 1.37.1.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steersman_model::Kind;
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::health::Probe;
use steersman_runtime::{Descriptor, source};

use crate::{certificates, table};

mod authority;
mod certificate;
mod memory;
mod plan;
mod policy;
mod sync;
#[cfg(test)]
mod tests;
mod usages;

pub use policy::Signer;
pub use sync::Why;

/// The descriptor of the controller that signs certificates.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "certificatesigningrequest-signing-controller",
    needs: const { &[CertificateSigningRequestView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The certificate authority of each signer: `--cluster-signing-cert-file` and `--cluster-signing-key-file` for all
    /// of them, or a pair of flags for a single one. Without any, the controller does not run.
    pub authorities: BTreeMap<Signer, Pair>,
    /// The maximum lifetime of certificates: `--cluster-signing-duration`.
    pub duration: Duration,
}

/// A certificate authority: its certificate and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: Source,
    /// The private key: RSA, ECDSA or Ed25519.
    pub key: Source,
}

/// A text in PEM, or the file that has it.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, which is read again when it changes.
    File(PathBuf),
    /// The text itself.
    Text(Arc<str>),
}

/// The readiness check that fails while a signer has no usable certificate authority.
const CHECK: &str = "certificatesigningrequest-signing-keys";
/// Upstream's default: a year.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        let mut authorities = BTreeMap::new();
        for signer in Signer::ALL {
            let [certificate, key] = signer.flags();
            authorities.extend(Pair::from_flags(flags, certificate, key).map(|pair| (signer, pair)));
        }
        let common = Pair::from_flags(flags, "cluster-signing-cert-file", "cluster-signing-key-file");
        // A pair for a single signer means that the others have none.
        if let Some(common) = common.filter(|_| authorities.is_empty()) {
            authorities = Signer::ALL.into_iter().map(|signer| (signer, common.clone())).collect();
        }
        Self { authorities, duration: flags.duration("cluster-signing-duration", YEAR) }
    }

    /// Returns the options in which one certificate authority, in PEM, signs for all signers.
    #[must_use]
    pub fn signed_by(certificate: &str, key: &str) -> Self {
        let pair = Pair { certificate: Source::Text(certificate.into()), key: Source::Text(key.into()) };
        let authorities = Signer::ALL.into_iter().map(|signer| (signer, pair.clone())).collect();
        Self { authorities, duration: YEAR }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

// === impl Pair ===

impl Pair {
    fn from_flags(flags: &Flags<'_>, certificate: &'static str, key: &'static str) -> Option<Self> {
        let certificate = Source::from_flag(flags, certificate);
        let key = Source::from_flag(flags, key);
        Some(Self { certificate: certificate?, key: key? })
    }
}

// === impl Source ===

impl Source {
    /// Returns the file that a flag names, or else the cluster's own.
    fn from_flag(flags: &Flags<'_>, name: &'static str) -> Option<Self> {
        let path = flags.text(name, "");
        if path.is_empty() {
            return flags.file(name, |file| Ok(Self::Text(file.text.as_str().into())));
        }
        Some(Self::File(path.into()))
    }
}

/// Keys are not shown.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text(…)"),
        }
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    if options.authorities.is_empty() {
        return Err(Disabled::because(
            "no certificate authority was given: see --cluster-signing-cert-file and --cluster-signing-key-file",
        ));
    }
    let requests = cx.informer::<CertificateSigningRequestView>();
    let keys = Arc::new(memory::Keys::load(options.authorities));
    let clock = cx.manager().clock().clone();
    let checked = Arc::clone(&keys);
    cx.manager().health().add(&[Probe::Readyz], CHECK, move || checked.check(clock.now()));
    let mut builder = cx.controller(&requests).watch_main(certificates::unissued);
    if keys.has_files() {
        let watched = Arc::clone(&keys);
        let waiting = requests.lister();
        builder = builder.source(source::task(move |feed, stop| sync::watch_files(watched, waiting, feed, stop)));
    }
    Ok(builder.reconcile(sync::Signing { requests: requests.lister(), keys, duration: options.duration }))
}
