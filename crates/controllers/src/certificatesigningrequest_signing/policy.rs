//! Pure: the signers, what each of them signs, and for how long.
//!
//! Follows `pkg/controller/certificates/signer/signer.go` and `PermissiveSigningPolicy` of
//! `pkg/controller/certificates/authority/policies.go`.

use std::time::Duration;

use steersman_base::{Istr, Time};

use crate::certificates::request::Request;
use crate::certificates::{
    KUBE_APISERVER_CLIENT, KUBE_APISERVER_CLIENT_KUBELET, KUBELET_SERVING, LEGACY_UNKNOWN, kubelet,
};

/// A signer of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signer {
    /// `kubernetes.io/kubelet-serving`: serving certificates of kubelets.
    KubeletServing,
    /// `kubernetes.io/kube-apiserver-client-kubelet`: client certificates of kubelets.
    KubeletClient,
    /// `kubernetes.io/kube-apiserver-client`: client certificates.
    KubeApiserverClient,
    /// `kubernetes.io/legacy-unknown`: anything.
    LegacyUnknown,
}

/// The time in which a certificate is valid, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: Time,
    pub(super) not_after: Time,
}

/// Certificates are valid a bit earlier than now, for those whose clocks are slow. It must be less than
/// [`LIFETIME_MIN`].
const BACKDATE_SECONDS: i64 = 5 * 60;
/// The end of a certificate with a shorter life is not moved with its beginning.
const SHORT: Duration = Duration::from_secs(8 * 60 * 60);
/// A lower limit for requested lifetimes; the API server has the same one.
const LIFETIME_MIN: Duration = Duration::from_secs(10 * 60);

// === impl Signer ===

impl Signer {
    /// All signers, in the order in which upstream starts them.
    pub const ALL: [Self; 4] =
        [Self::KubeletServing, Self::KubeletClient, Self::KubeApiserverClient, Self::LegacyUnknown];

    /// Returns the name, as in `spec.signerName`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubeletServing => KUBELET_SERVING,
            Self::KubeletClient => KUBE_APISERVER_CLIENT_KUBELET,
            Self::KubeApiserverClient => KUBE_APISERVER_CLIENT,
            Self::LegacyUnknown => LEGACY_UNKNOWN,
        }
    }

    /// Returns the signer of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signer| signer.name() == name)
    }

    /// Returns the flags that name the files of its certificate and its key.
    pub(super) const fn flags(self) -> [&'static str; 2] {
        match self {
            Self::KubeletServing => {
                ["cluster-signing-kubelet-serving-cert-file", "cluster-signing-kubelet-serving-key-file"]
            }
            Self::KubeletClient => {
                ["cluster-signing-kubelet-client-cert-file", "cluster-signing-kubelet-client-key-file"]
            }
            Self::KubeApiserverClient => {
                ["cluster-signing-kube-apiserver-client-cert-file", "cluster-signing-kube-apiserver-client-key-file"]
            }
            Self::LegacyUnknown => {
                ["cluster-signing-legacy-unknown-cert-file", "cluster-signing-legacy-unknown-key-file"]
            }
        }
    }

    /// Checks whether the signer gives what a request asks for.
    ///
    /// # Errors
    /// It does not; the error is the message of the condition, as in upstream.
    pub(super) fn check(self, request: &Request, usages: &[Istr]) -> Result<(), String> {
        match self {
            Self::KubeletServing => kubelet::check_serving(request, usages),
            Self::KubeletClient => kubelet::check_client(request, usages),
            Self::KubeApiserverClient => check_client_usages(usages),
            // Without restrictions, as before signers had names.
            Self::LegacyUnknown => Ok(()),
        }
    }
}

fn check_client_usages(usages: &[Istr]) -> Result<(), String> {
    const CLIENT: &str = "client auth";
    let allowed = [CLIENT, "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !allowed.contains(&&***usage)) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if usages.iter().any(|usage| *usage == CLIENT) {
        return Ok(());
    }
    Err(format!("missing required usage for client certificate: {CLIENT}"))
}

/// Returns the lifetime of a certificate: the requested one, within limits.
pub(super) fn lifetime(max: Duration, requested_seconds: Option<i32>) -> Duration {
    let Some(seconds) = requested_seconds else { return max };
    let requested = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    if requested > max { max } else { requested.max(LIFETIME_MIN) }
}

/// Returns when a certificate is valid: never longer than that of its authority, which ends at `authority_ends`.
///
/// # Errors
/// The authority's certificate has expired.
pub(super) fn validity(now: Time, lifetime: Duration, authority_ends: Time) -> Result<Validity, String> {
    let seconds = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    let not_before = now.plus_seconds(-BACKDATE_SECONDS);
    let ends = if lifetime < SHORT { seconds } else { seconds.saturating_sub(BACKDATE_SECONDS) };
    if not_before >= authority_ends {
        return Err(format!("the signer has expired: NotAfter={authority_ends}"));
    }
    if now >= authority_ends {
        return Err(format!("refusing to sign a certificate that expired in the past: NotAfter={authority_ends}"));
    }
    Ok(Validity { not_before, not_after: now.plus_seconds(ends).min(authority_ends) })
}
