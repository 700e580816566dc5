//! Requests for certificates: who gets one, and what is in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec, ClusterTrustBundle,
};
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer, ServerName, UnixTime};
use serde_json::json;
use steersman_controllers::certificatesigningrequest_cleaner;
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage};
use x509_cert::request::CertReq;

use crate::scenarios::support::controllers::{self, AUTHORITY};

scenarios! {
    an_approved_request_is_signed_once_and_nothing_before on signing,
    a_request_that_its_signer_does_not_give_fails_with_its_reason on signing,
    who_asks_is_recorded_and_the_spec_never_changes on signing,
    a_kubelet_whose_user_may_gets_a_client_certificate_by_itself on approving alone,
    requests_that_are_over_are_deleted on cleaner alone,
    the_trust_bundle_of_the_api_server_is_kept on trust_bundle alone,
}

pub(crate) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(crate) const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";
/// The name of the server that asks for a serving certificate.
const SERVER: &str = "a.example";
/// A year, the default of `--cluster-signing-duration`, and the backdate.
const LIFETIME_MAX: u64 = 365 * 24 * 3600 + 300;

pub(crate) fn signing() -> Builder {
    TestCluster::builder().controllers(&[controllers::CSR_SIGNING_WITH_KEYS])
}

/// Who approves does so for the requests of all tests: it has a server of its own.
pub(crate) fn approving() -> Builder {
    TestCluster::builder().controllers(&[controllers::CSR_SIGNING_WITH_KEYS, controllers::CSR_APPROVING])
}

/// Requests are old after two seconds, or four, which is looked for every second.
pub(crate) fn cleaner() -> Builder {
    let options = certificatesigningrequest_cleaner::Options::default()
        .every(Duration::from_secs(1))
        .ended_for(Duration::from_secs(2))
        .waiting_for(Duration::from_secs(4));
    TestCluster::builder().controllers(&[controllers::CSR_CLEANER]).options(options)
}

pub(crate) fn trust_bundle() -> Builder {
    TestCluster::builder().controllers(&[controllers::TRUST_BUNDLE_WITH_CERTIFICATE])
}

pub(crate) fn requests(cluster: &TestCluster) -> Api<CertificateSigningRequest> {
    Api::all(cluster.client())
}

/// The name of a request that no other test uses: requests have no namespace.
pub(crate) fn named(cluster: &TestCluster, name: &str) -> String {
    format!("{}-{name}", cluster.namespace())
}

/// A request for a new key.
pub(crate) fn request(name: &str, signer: &str, user: &str, group: &str, usages: &[&str]) -> CertificateSigningRequest {
    let key = rcgen::KeyPair::generate().expect("a key");
    request_for(&key, name, signer, user, group, usages)
}

pub(crate) fn request_for(
    key: &rcgen::KeyPair,
    name: &str,
    signer: &str,
    user: &str,
    group: &str,
    usages: &[&str],
) -> CertificateSigningRequest {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    params.distinguished_name.push(rcgen::DnType::CommonName, user);
    if signer == SERVING {
        params.subject_alt_names = vec![rcgen::SanType::DnsName(SERVER.try_into().expect("a name"))];
    }
    let pem = params.serialize_request(key).expect("a request").pem().expect("PEM");
    CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: signer.to_owned(),
            usages: Some(usages.iter().map(ToString::to_string).collect()),
            expiration_seconds: Some(3600),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    }
}

/// As `kubectl certificate approve` and `deny` do.
pub(crate) async fn decide(cluster: &TestCluster, name: &str, decision: &str) -> Result<(), Failure> {
    let condition = json!({ "type": decision, "status": "True", "reason": "Test", "message": "by a test" });
    let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    requests(cluster).patch_subresource("approval", name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_issued(cluster: &TestCluster, name: &str) -> Result<CertificateSigningRequest, Failure> {
    let look = async || Ok(requests(cluster).get(name).await?);
    let is_issued = |request: &CertificateSigningRequest| {
        request.status.as_ref().is_some_and(|status| status.certificate.is_some())
    };
    cluster.until_right(&format!("{name} is issued"), look, is_issued).await
}

/// What a certificate has that its signer must not give, by all that its request says. The certificate is read by a
/// library that has no part in making it.
pub(crate) fn beyond(request: &CertificateSigningRequest, authority: &str) -> Vec<String> {
    let status = request.status.clone().unwrap_or_default();
    let Some(ByteString(pem)) = status.certificate else { return Vec::new() };
    let mut wrong = Vec::new();
    let mut refuse = |is_wrong: bool, what: &str| {
        if is_wrong {
            wrong.push(what.to_owned());
        }
    };
    let conditions = status.conditions.unwrap_or_default();
    let has = |kind: &str| conditions.iter().any(|condition| condition.type_ == kind);
    refuse(!has("Approved") || has("Denied"), "nobody has approved it");
    refuse(has("Failed"), "it has failed");
    let parse = |pem: &[u8]| {
        let der = CertificateDer::from_pem_slice(pem).expect("a certificate");
        Certificate::from_der(&der).expect("a certificate")
    };
    let authority_pem = authority;
    let authority = parse(authority_pem.as_bytes());
    let authority = authority.tbs_certificate();
    let certificate = parse(&pem);
    let certificate = certificate.tbs_certificate();
    let asked = CertificateSigningRequestDer::from_pem_slice(&request.spec.request.0).expect("a request");
    let asked = CertReq::from_der(&asked).expect("a request").info;
    let key = certificate.subject_public_key_info().to_der().ok();
    refuse(key != asked.public_key.to_der().ok(), "it is for another key");
    refuse(certificate.issuer() != authority.subject(), "it is of another authority");
    let names = |name: &x509_cert::name::Name| name.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let subject = names(certificate.subject());
    refuse(!subject.is_subset(&names(&asked.subject)), "its subject has more than was asked for");
    let from = certificate.validity().not_before.to_unix_duration();
    if let Err(problem) = is_trusted(&pem, authority_pem, &request.spec.signer_name, from) {
        refuse(true, &problem);
    }
    let until = certificate.validity().not_after.to_unix_duration();
    refuse(until > authority.validity().not_after.to_unix_duration(), "it outlives its authority");
    refuse(until.saturating_sub(from).as_secs() > LIFETIME_MAX, "it lives too long");
    let lifetime = request.spec.expiration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let too_long = lifetime.is_some_and(|seconds| until.saturating_sub(from).as_secs() > seconds.max(600) + 300);
    refuse(too_long, "it lives longer than was asked for");
    let constraints = certificate.get_extension::<BasicConstraints>().ok().flatten();
    refuse(constraints.is_none_or(|(critical, it)| !critical || it.ca), "it is an authority");
    let purposes = certificate.get_extension::<ExtendedKeyUsage>().ok().flatten();
    let purposes: Vec<String> =
        purposes.map(|(_, it)| it.0.iter().map(ToString::to_string).collect()).unwrap_or_default();
    let wanted: &[&str] = match request.spec.signer_name.as_str() {
        CLIENT | KUBELET => &["1.3.6.1.5.5.7.3.2"],
        SERVING => &["1.3.6.1.5.5.7.3.1"],
        _ => return wrong,
    };
    refuse(purposes != wanted, "it has other purposes");
    let is_node = subject.contains("O=system:nodes") && subject.iter().any(|it| it.starts_with("CN=system:node:"));
    refuse(request.spec.signer_name != CLIENT && !is_node, "it is for no node");
    wrong
}

/// Whether webpki trusts a certificate of an authority at a time, for what its signer signs. It has no part in signing either.
fn is_trusted(pem: &[u8], authority: &str, signer: &str, at: Duration) -> Result<(), String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(|error| error.to_string())?;
    roots.add(root).map_err(|error| error.to_string())?;
    let roots = Arc::new(roots);
    let certificate = CertificateDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    let at = UnixTime::since_unix_epoch(at);
    let untrusted = |error: rustls::Error| format!("it is not trusted: {error}");
    match signer {
        CLIENT | KUBELET => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            verifier.verify_client_cert(&certificate, &[], at).map(drop).map_err(untrusted)
        }
        SERVING => {
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| error.to_string())?;
            let name = ServerName::try_from(SERVER).map_err(|error| error.to_string())?;
            verifier.verify_server_cert(&certificate, &[], &name, &[], at).map(drop).map_err(untrusted)
        }
        _ => Ok(()),
    }
}

pub(crate) async fn an_approved_request_is_signed_once_and_nothing_before(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let usages = ["client auth", "digital signature", "key encipherment"];
    for (name, signer, user, group, usages) in [
        ("ann", CLIENT, "ann", "devs", &usages[..1]),
        ("node", KUBELET, "system:node:a", "system:nodes", &usages[..]),
        ("server", SERVING, "system:node:a", "system:nodes", &["server auth", "digital signature"]),
    ] {
        let name = named(cluster, name);
        requests(cluster).create(&PostParams::default(), &request(&name, signer, user, group, usages)).await?;
        cluster.settle().await?;
        let pending = requests(cluster).get(&name).await?.status.unwrap_or_default();
        expect(pending.certificate.is_none(), "nothing is signed before it is approved", &pending)?;
        decide(cluster, &name, "Approved").await?;
        let issued = until_issued(cluster, &name).await?;
        expect_eq(&format!("what {name} has beyond"), &beyond(&issued, &AUTHORITY.certificate), &Vec::new())?;
        cluster.settle().await?;
        let later = requests(cluster).get(&name).await?;
        expect_eq("the certificate", &later.status, &issued.status)?;
    }
    let name = named(cluster, "denied");
    requests(cluster).create(&PostParams::default(), &request(&name, CLIENT, "bob", "devs", &usages)).await?;
    decide(cluster, &name, "Denied").await?;
    cluster.settle().await?;
    let denied = requests(cluster).get(&name).await?.status.unwrap_or_default();
    expect(denied.certificate.is_none(), "a denied one is not signed", &denied)
}

pub(crate) async fn a_request_that_its_signer_does_not_give_fails_with_its_reason(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let client = ["client auth", "digital signature"];
    for (name, signer, user, group, usages, want) in [
        ("server", CLIENT, "ann", "devs", &["server auth"][..], "invalid usage for client certificate: server auth"),
        ("stranger", KUBELET, "ann", "system:nodes", &client, "subject common name does not begin with system:node:"),
        ("group", KUBELET, "system:node:a", "devs", &client, "subject organization is not system:nodes"),
    ] {
        let name = named(cluster, name);
        requests(cluster).create(&PostParams::default(), &request(&name, signer, user, group, usages)).await?;
        decide(cluster, &name, "Approved").await?;
        let look = async || {
            let status = requests(cluster).get(&name).await?.status.unwrap_or_default();
            let failed = status.conditions.unwrap_or_default().into_iter().find(|it| it.type_ == "Failed");
            Ok(failed.map(|it| (it.status, it.reason.unwrap_or_default(), it.message.unwrap_or_default())))
        };
        let want = Some(("True".to_owned(), "SignerValidationFailure".to_owned(), want.to_owned()));
        cluster.until_eq(&format!("{name} fails"), look, want).await?;
        let status = requests(cluster).get(&name).await?.status.unwrap_or_default();
        expect(status.certificate.is_none(), "it is not signed", &status)?;
    }
    Ok(())
}

pub(crate) async fn who_asks_is_recorded_and_the_spec_never_changes(cluster: &TestCluster) -> Result<(), Failure> {
    let who = Api::<SelfSubjectReview>::all(cluster.client())
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?
        .status
        .and_then(|status| status.user_info)
        .unwrap_or_default();
    let name = named(cluster, "forged");
    let mut forged = request(&name, CLIENT, "ann", "devs", &["client auth"]);
    forged.spec.username = Some("somebody-else".into());
    forged.spec.groups = Some(vec!["system:masters".into()]);
    let made = requests(cluster).create(&PostParams::default(), &forged).await?;
    expect_eq("the user", &made.spec.username, &who.username)?;
    expect_eq("the groups", &made.spec.groups, &who.groups)?;
    let patch = Patch::Merge(json!({ "spec": { "username": "eve", "signerName": KUBELET, "usages": ["any"] } }));
    requests(cluster).patch(&name, &PatchParams::default(), &patch).await?;
    expect_eq("the spec", &requests(cluster).get(&name).await?.spec, &made.spec)?;
    // An approval is not written through the status, nor a certificate through the approval.
    let approved = json!({ "type": "Approved", "status": "True", "reason": "Test" });
    let patch = Patch::Merge(json!({ "status": { "conditions": [approved] } }));
    let refused = requests(cluster).patch_status(&name, &PatchParams::default(), &patch).await;
    expect(refused.is_err(), "an approval is not written through the status", &refused)?;
    let patch = Patch::Merge(json!({ "status": { "certificate": "bm90aGluZw==" } }));
    requests(cluster).patch_subresource("approval", &name, &PatchParams::default(), &patch).await?;
    let status = requests(cluster).get(&name).await?.status.unwrap_or_default();
    expect(status.certificate.is_none() && status.conditions.is_none(), "nothing was written", &status)
}

/// The user of the tests may do everything.
pub(crate) async fn a_kubelet_whose_user_may_gets_a_client_certificate_by_itself(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let usages = ["client auth", "digital signature"];
    let name = named(cluster, "node");
    let node = request(&name, KUBELET, "system:node:a", "system:nodes", &usages);
    requests(cluster).create(&PostParams::default(), &node).await?;
    let issued = until_issued(cluster, &name).await?;
    expect_eq("what it has beyond", &beyond(&issued, &AUTHORITY.certificate), &Vec::new())?;
    let conditions = issued.status.and_then(|status| status.conditions).unwrap_or_default();
    let reported: Vec<_> = conditions.into_iter().map(|it| (it.type_, it.reason, it.message)).collect();
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    let want = ("Approved".to_owned(), Some("AutoApproved".to_owned()), Some(message.to_owned()));
    expect_eq("the conditions", &reported, &vec![want])?;
    for (other, signer) in [("client", CLIENT), ("serving", SERVING)] {
        let name = named(cluster, other);
        let server = ["server auth", "digital signature"];
        let usages = if signer == SERVING { &server } else { &usages };
        let other = request(&name, signer, "system:node:a", "system:nodes", usages);
        requests(cluster).create(&PostParams::default(), &other).await?;
        cluster.settle().await?;
        let status = requests(cluster).get(&name).await?.status.unwrap_or_default();
        expect(status.conditions.is_none(), "nobody else's is approved", &status)?;
    }
    Ok(())
}

pub(crate) async fn requests_that_are_over_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    for (name, decision) in [("pending", None), ("denied", Some("Denied")), ("approved", Some("Approved"))] {
        let made = request(name, CLIENT, "ann", "devs", &["client auth"]);
        requests(cluster).create(&PostParams::default(), &made).await?;
        if let Some(decision) = decision {
            decide(cluster, name, decision).await?;
        }
    }
    let gone = async |name: &str| {
        let look = async || Ok(requests(cluster).get_opt(name).await?.is_none());
        cluster.until_eq(&format!("{name} is deleted"), look, true).await
    };
    gone("denied").await?;
    let left = requests(cluster).list(&ListParams::default()).await?.items.len();
    expect_eq("those that wait are kept longer", &left, &2)?;
    gone("pending").await?;
    gone("approved").await?;
    Ok(())
}

/// Returns the certificate of another authority.
fn another_authority() -> Result<String, Failure> {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    Ok(params.self_signed(&rcgen::KeyPair::generate()?)?.pem())
}

pub(crate) async fn the_trust_bundle_of_the_api_server_is_kept(cluster: &TestCluster) -> Result<(), Failure> {
    const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
    let bundles = Api::<ClusterTrustBundle>::all(cluster.client());
    let content = async || {
        let of_signer = ListParams::default().fields(&format!("spec.signerName={SIGNER}"));
        let all = bundles.list(&of_signer).await?.items;
        Ok(all.into_iter().map(|bundle| bundle.spec.trust_bundle).collect::<Vec<_>>())
    };
    let want = vec![AUTHORITY.certificate.clone()];
    cluster.until_eq("the bundle is there", content, want.clone()).await?;
    let name = bundles.list(&ListParams::default()).await?.items.remove(0).metadata.name.unwrap_or_default();
    expect(name.starts_with("kubernetes.io:kube-apiserver-serving:") && name.len() == 37 + 24, "its name", &name)?;
    bundles.delete(&name, &DeleteParams::default()).await?;
    cluster.until_eq("the bundle is back", content, want.clone()).await?;
    let other = another_authority()?;
    let patch = Patch::Merge(json!({ "spec": { "trustBundle": other } }));
    bundles.patch(&name, &PatchParams::default(), &patch).await?;
    cluster.until_eq("the bundle is corrected", content, want.clone()).await?;
    let old: ClusterTrustBundle = serde_json::from_value(json!({
        "metadata": { "name": "kubernetes.io:kube-apiserver-serving:old" },
        "spec": { "signerName": SIGNER, "trustBundle": other },
    }))?;
    bundles.create(&PostParams::default(), &old).await?;
    cluster.until_eq("the old one is deleted", content, want).await
}
