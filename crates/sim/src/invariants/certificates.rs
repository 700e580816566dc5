//! Certificates: who gets one, and what is in it.

use base64::Engine as _;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage};

use super::{Case, Findings, Rest, SIGNING, Verdict};
use crate::world::Request;

const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
/// The default of `--cluster-signing-duration`, in seconds.
const YEAR_SECONDS: u64 = 365 * 24 * 3600;
/// By how much certificates are backdated, in seconds.
const BACKDATED_SECONDS: u64 = 300;
/// The object identifiers of two usages.
const CLIENT_AUTH: &str = "1.3.6.1.5.5.7.3.2";
const SERVER_AUTH: &str = "1.3.6.1.5.5.7.3.1";

/// "Permitted usages …; Expiration/certificate lifetime: … set to the minimum of the --cluster-signing-duration option or, if
/// specified, the spec.expirationSeconds field of the CSR object. CA bit allowed/disallowed - not allowed." (website: Certificates
/// and Certificate Signing Requests, Kubernetes signers)
///
/// Asked when the signing controller writes a certificate: the request was approved and nobody refused it, it had none before, and
/// what is in it is what its signer may give. Judged against the store alone: nothing is given back.
pub(super) fn a_certificate_has_no_more_than_its_signer_may_give(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.is(REQUESTS) && case.by(&[SIGNING])) else {
        return Verdict::NotMine;
    };
    let Some((was, is)) = before.request().zip(after.request()) else { return Verdict::NotMine };
    if was.certificate == is.certificate {
        return Verdict::NotMine;
    }
    let problem = if !was.certificate.is_empty() {
        Some("it had one before".to_owned())
    } else if !is.is_approved || is.is_refused {
        Some("nobody approved the request, or somebody refused it".to_owned())
    } else {
        beyond(is).err()
    };
    Verdict::at_store(problem.is_none(), || format!("{after} gets a certificate: {}", problem.unwrap_or_default()))
}

/// What a certificate has beyond what its signer may give.
fn beyond(request: &Request) -> Result<(), String> {
    let certificate = read(&request.certificate).ok_or("it cannot be read")?;
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    let seconds = validity.not_after.to_unix_duration().as_secs() - validity.not_before.to_unix_duration().as_secs();
    let asked = request.seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(YEAR_SECONDS);
    if seconds > asked.min(YEAR_SECONDS) + BACKDATED_SECONDS {
        return Err(format!("it is valid for {seconds} seconds, {asked} were asked for"));
    }
    let constraints = certificate.get_extension::<BasicConstraints>().ok().flatten();
    if constraints.is_some_and(|(_, constraints)| constraints.ca) {
        return Err("it is one of an authority".to_owned());
    }
    let usages = certificate.get_extension::<ExtendedKeyUsage>().ok().flatten();
    let usages: Vec<String> =
        usages.map(|(_, usages)| usages.0.iter().map(ToString::to_string).collect()).unwrap_or_default();
    let permitted: &[&str] = match &*request.signer {
        "kubernetes.io/kubelet-serving" => &[SERVER_AUTH],
        "kubernetes.io/legacy-unknown" => &[CLIENT_AUTH, SERVER_AUTH],
        _ => &[CLIENT_AUTH],
    };
    if !usages.iter().all(|usage| permitted.contains(&usage.as_str())) {
        return Err(format!("its usages are {usages:?}"));
    }
    let subject = certificate.subject().to_string();
    let is_of_node = subject.contains("CN=system:node:") && subject.contains("O=system:nodes");
    let wants_node =
        matches!(&*request.signer, "kubernetes.io/kubelet-serving" | "kubernetes.io/kube-apiserver-client-kubelet");
    if wants_node && !is_of_node {
        return Err(format!("its subject is {subject}"));
    }
    Ok(())
}

fn read(text: &str) -> Option<Certificate> {
    let pem = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    let der = CertificateDer::from_pem_slice(&pem).ok()?;
    Certificate::from_der(&der).ok()
}

/// "Approved requests: automatically deleted after 1 hour. Denied requests: automatically deleted after 1 hour. Failed requests:
/// automatically deleted after 1 hour. Pending requests: automatically deleted after 24 hours." (website: Certificates and
/// Certificate Signing Requests; worlds have shorter times)
///
/// At rest: none is left.
pub(super) fn no_old_request_is_left(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs("certificatesigningrequest-cleaner-controller") {
        return;
    }
    let made = rest.world.all_histories(REQUESTS).filter_map(|history| history.last());
    for version in made {
        found.expect(version.object.is_none(), || match &version.object {
            Some(request) => format!("{request} is left"),
            None => String::new(),
        });
    }
}
