//! Table tests of the pure functions. What is signed is read back with Go's rules by hand, and verified with webpki, which
//! has no part in signing.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType, SignatureAlgorithm,
};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use serde_json::{Value, json};
use steersman_base::{Istr, Time};
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_model::{Encoded, View};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::authority::Authority;
use super::certificate::{issue, pem};
use super::memory::Keys;
use super::plan::{Asked, Step, issued, refused, step};
use super::policy::{Signer, lifetime, validity};
use super::usages::Usages;
use super::{Options, Pair, Source};
use crate::certificates::request::Request;

/// A certificate authority, in PEM.
struct Made {
    certificate: String,
    key: String,
}

const HOUR: i64 = 3600;

fn now() -> Time {
    "2026-11-17T12:00:00Z".parse().unwrap()
}

fn authority_of(algorithm: &'static SignatureAlgorithm) -> Made {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "test-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    Made { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// A request in PEM.
fn request(name: &str, groups: &[&str], names: &[SanType], key: &KeyPair) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    // rcgen keeps one value of an attribute.
    groups.iter().for_each(|group| params.distinguished_name.push(DnType::OrganizationName, *group));
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = names.to_vec();
    params.serialize_request(key).unwrap().pem().unwrap()
}

fn p256() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn usages(names: &[&str]) -> Vec<Istr> {
    names.iter().map(|name| Istr::new(name)).collect()
}

fn view(signer: &str, request: &str, usages: &[&str], conditions: &Value) -> CertificateSigningRequestView {
    let object = json!({
        "metadata": { "name": "a", "uid": "1" },
        "spec": { "request": STANDARD.encode(request), "signerName": signer, "usages": usages },
        "status": { "conditions": conditions },
    });
    CertificateSigningRequestView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

fn approved() -> Value {
    json!([{ "type": "Approved", "status": "True" }])
}

/// Signs without any policy, and returns the certificate in DER.
fn sign(authority: &Made, request: &str, names: &[&str], seconds: u64) -> Vec<u8> {
    let ca = Authority::from_pem(authority.certificate.as_bytes(), authority.key.as_bytes()).unwrap();
    let asked = Request::from_pem(request.as_bytes()).unwrap();
    asked.check_signature().unwrap();
    let validity = validity(now(), Duration::from_secs(seconds), ca.not_after).unwrap();
    issue(&ca, &asked, &Usages::parse(&usages(names)).unwrap(), validity, [0xff; 16]).unwrap()
}

fn roots(authority: &Made) -> Arc<RootCertStore> {
    use rustls_pki_types::pem::PemObject as _;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
    Arc::new(roots)
}

/// Whether webpki takes it as a client certificate at a time.
fn is_valid_at(authority: &Made, der: &[u8], time: Time) -> bool {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(authority), provider).build().unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.unix()).unwrap()));
    verifier.verify_client_cert(&CertificateDer::from(der.to_vec()), &[], time).is_ok()
}

/// Upstream's `TestHandle`, and the messages of its conditions.
#[test]
fn each_signer_signs_what_upstreams_signs_and_refuses_the_rest_with_its_words() {
    const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
    const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
    const SERVING: &str = "kubernetes.io/kubelet-serving";
    const LEGACY: &str = "kubernetes.io/legacy-unknown";
    const CLIENT_USAGES: &[&str] = &["client auth", "digital signature", "key encipherment"];
    const SERVER_USAGES: &[&str] = &["server auth", "digital signature", "key encipherment"];
    const NODE: &str = "system:node:a";
    const NODES: &[&str] = &["system:nodes"];
    let key = p256();
    let check = |signer: &str, user: &str, groups: &[&str], names: &[SanType], usages: &[&str], want: Option<&str>| {
        let request = view(signer, &request(user, groups, names, &key), usages, &approved());
        match (step(&request, |_| true), want) {
            (Step::Sign(asked), None) => assert_eq!(asked.signer.name(), signer),
            (Step::Refuse(message), Some(want)) => assert_eq!(message, want),
            (got, want) => panic!("{signer} {user} {groups:?} {usages:?}: {got:?}, not {want:?}"),
        }
    };
    check(CLIENT, "hello-world", &["some-org"], &[], CLIENT_USAGES, None);
    check(CLIENT, "hello-world", &["some-org"], &[], &CLIENT_USAGES[..2], None);
    check(CLIENT, "hello-world", &[], &[dns("a.example")], &["client auth"], None);
    let wrong = "invalid usage for client certificate: server auth";
    check(CLIENT, "hello-world", &[], &[], &["server auth", "client auth"], Some(wrong));
    let missing = "missing required usage for client certificate: client auth";
    check(CLIENT, "hello-world", &[], &[], &["digital signature"], Some(missing));

    check(KUBELET, NODE, NODES, &[], CLIENT_USAGES, None);
    check(KUBELET, NODE, NODES, &[], &CLIENT_USAGES[..2], None);
    check(KUBELET, NODE, &["other"], &[], CLIENT_USAGES, Some("subject organization is not system:nodes"));
    check(KUBELET, NODE, &[], &[], CLIENT_USAGES, Some("subject organization is not system:nodes"));
    let not_a_node = "subject common name does not begin with system:node:";
    check(KUBELET, "ann", NODES, &[], CLIENT_USAGES, Some(not_a_node));
    check(KUBELET, NODE, NODES, &[dns("a")], CLIENT_USAGES, Some("DNS subjectAltNames are not allowed"));
    let ip = SanType::IpAddress([10, 0, 0, 1].into());
    check(KUBELET, NODE, NODES, from_ref(&ip), CLIENT_USAGES, Some("IP subjectAltNames are not allowed"));
    let uri = SanType::URI("https://a.example/".try_into().unwrap());
    check(KUBELET, NODE, NODES, from_ref(&uri), CLIENT_USAGES, Some("URI subjectAltNames are not allowed"));
    let email = SanType::Rfc822Name("a@b.example".try_into().unwrap());
    check(KUBELET, NODE, NODES, from_ref(&email), CLIENT_USAGES, Some("Email subjectAltNames are not allowed"));
    let usages = "usages did not match [client auth digital signature key encipherment]";
    check(KUBELET, NODE, NODES, &[], SERVER_USAGES, Some(usages));
    check(KUBELET, NODE, NODES, &[], &["client auth"], Some(usages));

    check(SERVING, NODE, NODES, &[dns("a")], SERVER_USAGES, None);
    check(SERVING, NODE, NODES, &[ip], &SERVER_USAGES[..2], None);
    check(SERVING, NODE, NODES, &[], SERVER_USAGES, Some("DNS or IP subjectAltName is required"));
    check(SERVING, NODE, NODES, &[dns("a"), uri], SERVER_USAGES, Some("URI subjectAltNames are not allowed"));
    check(SERVING, NODE, NODES, &[dns("a"), email], SERVER_USAGES, Some("Email subjectAltNames are not allowed"));
    check(SERVING, "ann", NODES, &[dns("a")], SERVER_USAGES, Some(not_a_node));
    check(SERVING, NODE, &["a"], &[dns("a")], SERVER_USAGES, Some("subject organization is not system:nodes"));
    let usages = "usages did not match [digital signature key encipherment server auth]";
    check(SERVING, NODE, NODES, &[dns("a")], CLIENT_USAGES, Some(usages));

    check(LEGACY, "anybody", &["system:masters"], &[dns("a")], &["cert sign", "any"], None);
    check(LEGACY, "", &[], &[], &[], None);
    check(LEGACY, "a", &[], &[], &["fishing"], Some(r#"unrecognized usage values: ["fishing"]"#));
}

#[test]
fn only_approved_requests_of_signers_with_keys_are_signed_and_only_once() {
    let text = request("ann", &[], &[], &p256());
    let nothing = |name: &str, signer: &str, conditions: Value, has_keys: bool| {
        let request = view(signer, &text, &["client auth"], &conditions);
        assert!(matches!(step(&request, |_| has_keys), Step::Nothing), "{name}");
    };
    let signer = Signer::KubeApiserverClient.name();
    nothing("pending", signer, json!([]), true);
    nothing("denied", signer, json!([{ "type": "Denied", "status": "True" }]), true);
    let both = json!([{ "type": "Approved", "status": "True" }, { "type": "Denied", "status": "True" }]);
    nothing("both", signer, both, true);
    let failed = json!([{ "type": "Approved", "status": "True" }, { "type": "Failed", "status": "True" }]);
    nothing("failed", signer, failed, true);
    nothing("somebody else's", "example.com/mine", approved(), true);
    nothing("unknown", "kubernetes.io/not-a-real-signer", approved(), true);
    nothing("without keys", signer, approved(), false);
    let request = view(signer, &text, &["client auth"], &approved());
    let signed = CertificateSigningRequestView { status: issued(&request, "PEM"), ..request.clone() };
    assert!(matches!(step(&signed, |_| true), Step::Nothing));
    assert_eq!(serde_json::to_value(&signed.status).unwrap()["conditions"][0]["type"], "Approved");
    let status = refused(&request, "no", now());
    let shown = serde_json::to_value(&status).unwrap();
    let want = json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": "no",
        "lastUpdateTime": "2026-11-17T12:00:00Z",
    });
    assert_eq!(shown["conditions"][1], want);
    let refused = CertificateSigningRequestView { status, ..request };
    assert!(matches!(step(&refused, |_| true), Step::Nothing));
}

#[test]
fn what_is_no_request_or_is_not_signed_by_its_key_is_refused() {
    let check = |pem: &str, want: &str| {
        let request = view(Signer::LegacyUnknown.name(), pem, &["client auth"], &approved());
        match step(&request, |_| true) {
            Step::Refuse(message) => assert!(message.contains(want), "{message}"),
            other => panic!("{want}: {other:?}"),
        }
    };
    check("", "PEM block type must be CERTIFICATE REQUEST");
    let other = authority_of(&PKCS_ECDSA_P256_SHA256);
    check(&other.certificate, "PEM block type must be CERTIFICATE REQUEST");
    let broken = format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", "MAA=");
    check(&broken, "asn1: structure error");
    // The subject of one request under the signature of another.
    let key = p256();
    let ours = request("ann", &[], &[], &key);
    let der =
        |pem: &str| STANDARD.decode(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>()).unwrap();
    let at = der(&ours).windows(3).position(|bytes| bytes == b"ann").unwrap();
    let mut forged = der(&ours);
    forged[at..at + 3].copy_from_slice(b"bob");
    let lines = STANDARD.encode(&forged);
    let forged = format!("-----BEGIN CERTIFICATE REQUEST-----\n{lines}\n-----END CERTIFICATE REQUEST-----\n");
    check(&forged, "unable to verify certificate request signature: x509: the signature does not fit the key");
}

/// Upstream's `Test_signer_duration`.
#[test]
fn lifetimes_are_the_requested_ones_within_limits() {
    let check = |requested: Option<i32>, want: u64| {
        assert_eq!(lifetime(Duration::from_secs(3600), requested), Duration::from_secs(want), "{requested:?}");
    };
    check(Some(30 * 60), 30 * 60);
    check(Some(3 * 3600), 3600);
    check(Some(-60), 600);
    check(Some(599), 600);
    check(Some(600), 600);
    check(Some(3600), 3600);
    check(None, 3600);
    assert_eq!(lifetime(Duration::from_secs(60), Some(0)), Duration::from_secs(600), "as upstream");
}

/// Upstream's `TestCertificateAuthority`, with a backdate.
#[test]
fn certificates_begin_earlier_and_end_with_their_authority_at_the_latest() {
    let ends = now().plus_seconds(24 * HOUR);
    let check = |seconds: i64, want: i64| {
        let got = validity(now(), Duration::from_secs(u64::try_from(seconds).unwrap()), ends).unwrap();
        assert_eq!(got.not_before, now().plus_seconds(-300), "{seconds}");
        assert_eq!(got.not_after, now().plus_seconds(want), "{seconds}");
    };
    check(HOUR, HOUR);
    check(60, 60);
    check(8 * HOUR - 1, 8 * HOUR - 1);
    check(8 * HOUR, 8 * HOUR - 300);
    check(24 * HOUR, 24 * HOUR - 300);
    check(48 * HOUR, 24 * HOUR);
    let expired = |ends: Time| validity(now(), Duration::from_secs(3600), ends).unwrap_err();
    let text = "refusing to sign a certificate that expired in the past: NotAfter=2026-11-17T12:00:00Z";
    assert_eq!(expired(now()), text);
    assert_eq!(expired(now().plus_seconds(-300)), "the signer has expired: NotAfter=2026-11-17T11:55:00Z");
}

/// Upstream's `TestKeyUsagesFromStrings`: `digitalSignature` is the first bit.
#[test]
fn usages_are_read_as_in_upstream() {
    let check = |names: &[&str], bits: u16, extended: &[usize]| {
        let got = Usages::parse(&usages(names)).unwrap();
        let got = (got.bits, got.extended.into_iter().collect::<Vec<_>>());
        assert_eq!(got, (bits, extended.to_vec()), "{names:?}");
    };
    check(&["signing"], 1, &[]);
    check(&["client auth"], 0, &[2]);
    check(&["client auth", "client auth"], 0, &[2]);
    check(&["cert sign", "encipher only"], 0b1010_0000, &[]);
    check(&["ocsp signing", "crl sign", "s/mime", "content commitment"], 0b0100_0010, &[4, 9]);
    check(&["decipher only"], 0b1_0000_0000, &[]);
    assert!(Usages::parse(&usages(&["unsupported string"])).is_err());
    let bytes = |names: &[&str]| Usages::parse(&usages(names)).unwrap().key_usage();
    assert_eq!(bytes(&["digital signature", "key encipherment"]), Some(vec![3, 2, 5, 0xa0]));
    assert_eq!(bytes(&["decipher only"]), Some(vec![3, 3, 7, 0, 0x80]));
    assert_eq!(bytes(&["client auth"]), None);
}

#[test]
fn every_kind_of_key_signs_and_is_signed_and_webpki_agrees() {
    let algorithms = [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519, &rcgen::PKCS_RSA_SHA256];
    let authorities = algorithms.map(authority_of);
    let keys = algorithms.map(|algorithm| KeyPair::generate_for(algorithm).unwrap());
    for authority in &authorities {
        for key in &keys {
            let der =
                sign(authority, &request("ann", &["devs"], &[], key), &["client auth", "digital signature"], 3600);
            assert!(is_valid_at(authority, &der, now()));
            assert!(is_valid_at(authority, &der, now().plus_seconds(-300)));
            assert!(!is_valid_at(authority, &der, now().plus_seconds(-301)));
            assert!(is_valid_at(authority, &der, now().plus_seconds(HOUR)));
            assert!(!is_valid_at(authority, &der, now().plus_seconds(HOUR + 1)));
            assert!(!is_valid_at(&authorities[0], &der, now()) || std::ptr::eq(authority, &raw const authorities[0]));
        }
    }
    let server = sign(&authorities[0], &request("ann", &[], &[], &keys[0]), &["server auth"], 3600);
    assert!(!is_valid_at(&authorities[0], &server, now()), "a certificate of a server is none of a client");
}

#[test]
fn a_certificate_has_the_names_of_its_request_and_no_other_extension_of_it() {
    let authority = authority_of(&PKCS_ECDSA_P256_SHA256);
    let key = p256();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Äpfel");
    params.distinguished_name.push(DnType::CountryName, "DE");
    params.distinguished_name.push(DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]), "a uid");
    params.subject_alt_names = vec![
        dns("a.example"),
        SanType::Rfc822Name("a@b.example".try_into().unwrap()),
        SanType::IpAddress("::ffff:10.0.0.1".parse().unwrap()),
        SanType::URI("spiffe://a/b".try_into().unwrap()),
    ];
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.custom_extensions = vec![rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0])];
    let text = params.serialize_request(&key).unwrap().pem().unwrap();
    let der = sign(&authority, &text, &["client auth"], 3600);
    let parsed = Certificate::from_der(&der).unwrap();
    let signed = parsed.tbs_certificate();
    assert_eq!(signed.subject().to_string(), "CN=Äpfel,C=DE", "the uid is not passed on, as in upstream");
    assert_eq!(signed.issuer().to_string(), "CN=test-ca");
    let ids: Vec<_> = signed.extensions().unwrap().iter().map(|it| (it.extn_id.to_string(), it.critical)).collect();
    let want = [("2.5.29.37", false), ("2.5.29.19", true), ("2.5.29.35", false), ("2.5.29.17", false)];
    assert_eq!(ids, want.map(|(id, critical)| (id.to_owned(), critical)));
    let names = &signed.extensions().unwrap()[3].extn_value;
    let want = [&b"\x82\x09a.example\x81\x0ba@b.example\x87\x04\x0a\0\0\x01\x86\x0cspiffe://a/b"[..]].concat();
    assert_eq!(names.as_bytes()[2..], want);
    assert_eq!(signed.serial_number().as_bytes().len(), 17, "positive");
    assert!(pem(&der).lines().all(|line| line.len() <= 64));
}

#[test]
fn a_pair_that_does_not_fit_or_cannot_be_read_is_reported_and_others_sign() {
    let one = authority_of(&PKCS_ECDSA_P256_SHA256);
    let other = authority_of(&PKCS_ECDSA_P256_SHA256);
    let text = |text: &str| Source::Text(text.into());
    let pair = |certificate: &str, key: &str| Pair { certificate: text(certificate), key: text(key) };
    let check = |name: &str, pair: Pair, at: Time, want: Option<&str>| {
        let mut options = Options::signed_by(&one.certificate, &one.key);
        options.authorities.insert(Signer::KubeletServing, pair);
        let keys = Keys::load(options.authorities);
        assert!(keys.authority(Signer::KubeletClient).is_ok());
        match (keys.check(at), want) {
            (Ok(()), None) => {}
            (Err(problem), Some(want)) => assert!(problem.to_string().contains(want), "{name}: {problem}"),
            (got, want) => panic!("{name}: {got:?}, not {want:?}"),
        }
    };
    check("good", pair(&other.certificate, &other.key), now(), None);
    let only = "kubernetes.io/kubelet-serving signs nothing: cannot use";
    check("mismatched", pair(&one.certificate, &other.key), now(), Some(only));
    check("two", pair(&format!("{}{}", one.certificate, other.certificate), &one.key), now(), Some("found 2"));
    check("none", pair("", &one.key), now(), Some("expected 1 certificate, found 0"));
    check("no key", pair(&one.certificate, ""), now(), Some("there is no private key in PEM"));
    let missing = Pair { certificate: Source::File("does/not/exist".into()), key: text(&one.key) };
    check("missing", missing, now(), Some("cannot read does/not/exist"));
    let later = "2030-01-01T00:00:00Z".parse().unwrap();
    check("expired", pair(&other.certificate, &other.key), later, Some("has expired, at 2030-01-01T00:00:00Z"));
    assert!(!format!("{:?}", Options::signed_by(&one.certificate, &one.key)).contains("BEGIN"));
}

#[test]
fn changed_files_replace_the_authority_unless_they_cannot_be_used() {
    let one = authority_of(&PKCS_ECDSA_P256_SHA256);
    let other = authority_of(&PKCS_ED25519);
    let keys = Keys::load(Options::signed_by(&one.certificate, &one.key).authorities);
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let signer = Signer::KubeApiserverClient;
    let algorithm = || keys.authority(signer).unwrap().algorithm().len();
    assert!(!keys.saw(signer, [bytes(&one.certificate), bytes(&one.key)]), "nothing new");
    assert!(!keys.saw(signer, [bytes(&other.certificate), bytes(&one.key)]), "half of a change");
    assert!(!keys.saw(signer, [None, bytes(&other.key)]), "gone");
    assert_eq!(algorithm(), 12, "the old one stays");
    assert!(keys.saw(signer, [bytes(&other.certificate), bytes(&other.key)]));
    assert_eq!(algorithm(), 7);
    let broken = Keys::load(Options::signed_by("", "").authorities);
    assert!(broken.authority(signer).is_err() && broken.check(now()).is_err());
    assert!(broken.saw(signer, [bytes(&one.certificate), bytes(&one.key)]));
    assert!(broken.authority(signer).is_ok());
}

/// The asked-for subject is kept in Go's order, whatever the order of the request.
#[test]
fn a_request_is_read_as_go_reads_it() {
    let key = p256();
    let text = request("system:node:a", &["system:nodes"], &[dns("a"), dns("b")], &key);
    let Asked { request, .. } = match step(&view(Signer::LegacyUnknown.name(), &text, &[], &approved()), |_| true) {
        Step::Sign(asked) => *asked,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (request.subject.common_name(), request.subject.organizations()),
        ("system:node:a", &["system:nodes".to_owned()][..])
    );
    assert_eq!(request.dns_names, ["a", "b"]);
}
