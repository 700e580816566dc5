//! Rules of fields that no recorded answer has: the words are those of upstream's validation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::judged;

/// Checks that an object is refused for these reasons, in this order.
#[track_caller]
pub(super) fn refused(object: &Value, want: &[&str]) {
    let errors: Vec<String> = judged(object.clone()).0.iter().map(ToString::to_string).collect();
    assert_eq!(errors, want, "{object}");
}

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
    }
    pod
}

#[test]
fn the_end_of_a_container_may_restart_it_or_all_of_its_pod() {
    let rules =
        |action: &str, operator: &str| json!([{"action": action, "exitCodes": {"operator": operator, "values": [42]}}]);
    let with = |list: &str, policy: Value, rules: Value| {
        let container = json!({"name": "d", "image": "i", "restartPolicy": policy, "restartPolicyRules": rules});
        let mut pod = pod(&json!({}));
        pod["spec"][list] = json!([container]);
        pod
    };
    for list in ["containers", "initContainers"] {
        for policy in ["Always", "Never", "OnFailure"] {
            refused(&with(list, policy.into(), rules("Restart", "In")), &[]);
            refused(&with(list, policy.into(), rules("RestartAllContainers", "NotIn")), &[]);
            let action = format!(
                "spec.{list}[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \"Restart\", \
                 \"RestartAllContainers\""
            );
            let operator = format!(
                "spec.{list}[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: \"Is\": supported values: \
                 \"In\", \"NotIn\""
            );
            refused(&with(list, policy.into(), rules("Stop", "Is")), &[&action, &operator]);
        }
        let missing = format!(
            "spec.{list}[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"
        );
        refused(&with(list, Value::Null, rules("RestartAllContainers", "In")), &[&missing]);
    }
}

/// A certificate as PEM, of an authority or not.
fn certificate(is_authority: bool) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    if is_authority {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    params.self_signed(&rcgen::KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

#[test]
fn a_trust_bundle_has_certificates_of_authorities_and_nothing_else() {
    let bundle = |text: &str| {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "metadata": {"name": "b"},
            "spec": {"trustBundle": text},
        })
    };
    let invalid = |detail: &str| format!("spec.trustBundle: Invalid value: \"<value omitted>\": {detail}");
    let one = certificate(true);
    let other = certificate(true);
    let leaf = certificate(false);
    let key = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let headed = one.replacen("CERTIFICATE-----", "CERTIFICATE-----\na: b\n", 1);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let unended = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END KEY-----\n";
    let none = invalid("at least one trust anchor must be provided");
    for (text, want) in [
        (one.clone(), vec![]),
        (format!("of two\n{one}\n# and\n{other}"), vec![]),
        (String::new(), vec![none.clone()]),
        ("no certificate".to_owned(), vec![none.clone()]),
        (unended.to_owned(), vec![none]),
        (format!("{one}{key}"), vec![invalid("entry 1 has bad block type: PRIVATE KEY")]),
        (
            format!("{broken}{one}{leaf}"),
            vec![invalid("entry 0 does not parse as X.509"), invalid("entry 2 does not have the CA bit set")],
        ),
        (headed, vec![invalid("entry 0 has PEM block headers")]),
        (format!("{one}{other}{one}"), vec![invalid("duplicate trust anchor (indices [0 2])")]),
        ("a".repeat((1 << 20) + 1), vec!["spec.trustBundle: Too long: may not be more than 1048576 bytes".to_owned()]),
    ] {
        refused(&bundle(&text), &want.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // A bundle that does not change may be older than the rules.
    let old = bundle("of before");
    assert_eq!(*super::validate("certificates.k8s.io", "ClusterTrustBundle", &old, Some(&old)), []);
    let errors = super::validate("certificates.k8s.io", "ClusterTrustBundle", &bundle("of now"), Some(&old));
    assert_eq!(errors[0].to_string(), invalid("at least one trust anchor must be provided"));
}

/// A PodCertificateRequest for a new key.
fn pod_request(key: &rcgen::KeyPair) -> Value {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    let stub = STANDARD.encode(params.serialize_request(key).expect("a request").der());
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "PodCertificateRequest", "metadata": {"name": "r"},
        "spec": {
            "signerName": "example.com/a", "podName": "p", "podUID": "1", "serviceAccountName": "s",
            "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": stub,
        },
    })
}

#[test]
fn the_request_of_a_pod_says_whose_key_is_certified_and_proves_it() {
    const GROUP: &str = "certificates.k8s.io";
    const KIND: &str = "PodCertificateRequest";
    let base = pod_request(&rcgen::KeyPair::generate().expect("a key"));
    refused(&base, &[]);
    assert_eq!(judged(base.clone()).1["spec"]["maxExpirationSeconds"], 86_400);
    let mut forged = STANDARD.decode(base["spec"]["stubPKCS10Request"].as_str().expect("text")).expect("Base64");
    *forged.last_mut().expect("a signature") ^= 1;
    let long = "u".repeat(129);
    let name = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
                and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let name = format!("spec.nodeName: Invalid value: \"N\": {name}");
    let rows: &[(&str, Value, &str)] = &[
        ("signerName", json!(""), "spec.signerName: Required value"),
        ("nodeName", json!("N"), &name),
        ("podUID", json!(""), "spec.podUID: Invalid value: \"\": must not be empty"),
        ("serviceAccountUID", json!(long), "spec.serviceAccountUID: Too long: may not be more than 128 bytes"),
        (
            "maxExpirationSeconds",
            json!(3599),
            "spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]",
        ),
        (
            "unverifiedUserAnnotations",
            json!({"plain": "x"}),
            "spec.unverifiedUserAnnotations: Invalid value: \"plain\": must be a domain-prefixed key (such as \"acme.io/foo\")",
        ),
        (
            "stubPKCS10Request",
            Value::Null,
            "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
        ),
        ("stubPKCS10Request", json!("AAAA"), "spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"),
        (
            "stubPKCS10Request",
            json!(STANDARD.encode(forged)),
            "spec.stubPKCS10Request: Invalid value: invalid signature",
        ),
        (
            "stubPKCS10Request",
            json!(STANDARD.encode([0; (10 << 10) + 1])),
            "spec.stubPKCS10Request: Too long: may not be more than 10240 bytes",
        ),
    ];
    for (field, value, want) in rows {
        let mut object = base.clone();
        object["spec"][*field] = value.clone();
        refused(&object, &[want]);
    }
    let mut long = base.clone();
    long["spec"]["signerName"] = "node.kubernetes.io/a".into();
    long["spec"]["maxExpirationSeconds"] = 86_401.into();
    refused(&long, &["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"]);
    let mut other = base.clone();
    other["spec"]["podName"] = "q".into();
    let errors = super::validate(GROUP, KIND, &other, Some(&base));
    assert!(
        errors[0].to_string().starts_with("spec: Invalid value: {\"SignerName\":\"example.com/a\",\"PodName\":\"q\"")
    );
    assert!(errors[0].to_string().ends_with(": field is immutable"), "{}", errors[0]);
}

#[test]
fn the_status_of_a_pods_request_is_written_once_and_fits_its_certificate() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut old = judged(pod_request(&key)).1;
    old["status"] = json!({});
    let issue = |key: &rcgen::KeyPair, hours: i64| {
        let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2026, 11, 15);
        params.not_after =
            params.not_before + std::time::Duration::from_secs(3600 * u64::try_from(hours).expect("some"));
        params.self_signed(key).expect("a certificate").pem()
    };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "lastTransitionTime": "2026-11-15T00:00:00Z"});
    let issued = |chain: String, ends: &str, refresh: &str| {
        json!({
            "conditions": [condition("Issued", "True")], "certificateChain": chain,
            "notBefore": "2026-11-15T00:00:00Z", "notAfter": ends, "beginRefreshAt": refresh,
        })
    };
    let errors = |status: &Value, before: &Value| {
        let with = |status: &Value| {
            let mut object = old.clone();
            object["status"] = status.clone();
            object
        };
        let found =
            super::validate_status("certificates.k8s.io", "PodCertificateRequest", &with(status), &with(before));
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let day = "2026-11-16T00:00:00Z";
    let noon = "2026-11-15T12:00:00Z";
    let good = issued(issue(&key, 24), day, noon);
    let other = issue(&rcgen::KeyPair::generate().expect("a key"), 24);
    let unset = json!({"conditions": [condition("Issued", "True")], "certificateChain": issue(&key, 24)});
    let denied = json!({"conditions": [condition("Denied", "True")]});
    let mut both = denied.clone();
    both["certificateChain"] = "x".into();
    let chain = "status.certificateChain: Invalid value: ";
    for (status, want) in [
        (good.clone(), vec![]),
        (denied, vec![]),
        (
            json!({"conditions": [condition("Ready", "True")]}),
            vec![
                "status.conditions.[0].type: Unsupported value: \"Ready\": supported values: \"Issued\", \"Denied\", \"Failed\"",
            ],
        ),
        (
            json!({"conditions": [condition("Failed", "False"), condition("Issued", "True")]}),
            vec![
                "status.conditions.[0].status: Unsupported value: \"False\": supported values: \"True\"",
                "status.conditions.[1].type: Invalid value: \"Issued\": There may be at most one condition with type \"Issued\", \
                 \"Denied\", or \"Failed\"",
            ],
        ),
        (
            both,
            vec![
                "status: Invalid value: non-condition status fields must be empty when denying or failing the \
                  PodCertificateRequest",
            ],
        ),
        (
            json!({"certificateChain": "x"}),
            vec![
                "status: Invalid value: status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
            ],
        ),
        (
            issued("x".to_owned(), day, noon),
            vec!["\"x\": issued certificate chain must contain at least one certificate"],
        ),
        (issued(other, day, noon), vec!["leaf certificate was not issued to the requested public key"]),
        (
            unset,
            vec![
                "status.notBefore: Required value: must be present and consistent with the issued certificate",
                "status.notAfter: Required value: must be present and consistent with the issued certificate",
                "status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]",
            ],
        ),
        (
            issued(issue(&key, 24), noon, noon),
            vec![
                "status.notAfter: Invalid value: \"2026-11-15T12:00:00Z\": must be set to the NotAfter time encoded in the leaf \
                  certificate",
            ],
        ),
        (
            issued(issue(&key, 25), "2026-11-16T01:00:00Z", noon),
            vec!["90000000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)"],
        ),
        (
            issued(issue(&key, 24), day, "2026-11-15T00:09:59Z"),
            vec![
                "status.beginRefreshAt: Invalid value: \"2026-11-15T00:09:59Z\": must be at least 10 minutes after \
                  status.notBefore",
            ],
        ),
        (
            issued(issue(&key, 24), day, day),
            vec![
                "status.beginRefreshAt: Invalid value: \"2026-11-16T00:00:00Z\": must be at least 10 minutes before \
                  status.notAfter",
            ],
        ),
    ] {
        let found = errors(&status, &json!({}));
        let is_it = |(found, want): (&String, &&str)| {
            found == want || (found.starts_with(chain) && found.ends_with(want) && !want.starts_with("status"))
        };
        assert!(found.len() == want.len() && found.iter().zip(&want).all(is_it), "{found:#?} instead of {want:#?}");
    }
    let mut changed = good.clone();
    changed["beginRefreshAt"] = "2026-11-15T13:00:00Z".into();
    let done = "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed";
    assert_eq!(errors(&changed, &good), [done]);
}

/// Checks a pod with these sources of a projected volume; paths of errors are those below the volume.
#[track_caller]
fn projection_refused(sources: &Value, want: &[&str]) {
    let pod = pod(&json!({"volumes": [{"name": "v", "projected": {"sources": sources}}]}));
    let at = |error: &crate::field::FieldError| error.to_string().replace("spec.volumes[0].projected", "");
    let errors: Vec<String> = judged(pod.clone()).0.iter().map(at).collect();
    assert_eq!(errors, want, "{pod}");
}

#[test]
fn a_projected_trust_bundle_is_one_by_name_or_those_of_a_signer() {
    let source = |source: Value| json!([{"clusterTrustBundle": source}]);
    let at = ".sources[0].clusterTrustBundle";
    let labels = json!({"matchLabels": {"a": "b"}});
    projection_refused(&source(json!({"name": "b", "path": "p"})), &[]);
    projection_refused(&source(json!({"name": "example.com:mine:b", "path": "p"})), &[]);
    projection_refused(&source(json!({"signerName": "example.com/mine", "labelSelector": labels, "path": "p"})), &[]);
    let neither = format!("{at}: Required value: either name or signerName must be specified");
    projection_refused(&source(json!({"path": "p"})), &[&neither]);
    let both = format!(
        "{at}: Invalid value: {{\"Name\":\"b\",\"SignerName\":\"example.com/a\",\"LabelSelector\":null,\"Optional\":null,\
         \"Path\":\"p\",\"User\":null}}: only one of name and signerName may be used"
    );
    projection_refused(&source(json!({"name": "b", "signerName": "example.com/a", "path": "p"})), &[&both]);
    let selector = format!(
        "{at}.labelSelector: Invalid value: {{\"matchLabels\":{{\"a\":\"b\"}}}}: labelSelector must be unset if name is specified"
    );
    let path = format!("{at}.path: Required value");
    projection_refused(&source(json!({"name": "b", "labelSelector": labels})), &[&selector, &path]);
    let signer = format!(
        "{at}.signerName: Invalid value: \"plain\": must be a fully qualified domain and path of the form \
         'example.com/signer-name'"
    );
    let reserved = format!("{at}.path: Invalid value: \"../p\": must not contain '..'");
    projection_refused(&source(json!({"signerName": "plain", "path": "../p"})), &[&signer, &reserved]);
    let two = json!([
        {"clusterTrustBundle": {"name": "a", "path": "p"}},
        {"clusterTrustBundle": {"name": "b", "path": "p"}, "downwardAPI": {}},
    ]);
    let conflict = ": Invalid value: \"p\": conflicting duplicate paths";
    let types = ".sources[1]: Forbidden: may not specify more than 1 volume type per source";
    projection_refused(&two, &[conflict, types]);
}

#[test]
fn a_projected_certificate_has_a_key_of_a_known_type_and_a_file() {
    let with = |change: Value| {
        let mut source = json!({"signerName": "example.com/a", "keyType": "ED25519", "credentialBundlePath": "p"});
        for (field, value) in change.as_object().expect("fields") {
            source[field] = value.clone();
        }
        json!([{"podCertificate": source}])
    };
    let at = ".sources[0].podCertificate";
    projection_refused(&with(json!({"maxExpirationSeconds": 3600, "userAnnotations": {"a.b/c": "d"}})), &[]);
    projection_refused(&with(json!({"credentialBundlePath": "", "keyPath": "k", "certificateChainPath": "c"})), &[]);
    for (change, want) in [
        (
            json!({"keyType": "DSA"}),
            ".keyType: Unsupported value: \"DSA\": supported values: \"RSA3072\", \"RSA4096\", \"ECDSAP256\", \"ECDSAP384\", \
             \"ECDSAP521\", \"ED25519\"",
        ),
        (
            json!({"maxExpirationSeconds": 3599}),
            ".maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600",
        ),
        (
            json!({"signerName": "kubernetes.io/a", "maxExpirationSeconds": 86_401}),
            ".maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400",
        ),
        (
            json!({"userAnnotations": {"a": "b"}}),
            ".userAnnotations: Invalid value: \"a\": must be a domain-prefixed key (such as \"acme.io/foo\")",
        ),
        (
            json!({"credentialBundlePath": ""}),
            ": Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
        ),
        (json!({"keyPath": "/k"}), ".keyPath: Invalid value: \"/k\": must be a relative path"),
    ] {
        projection_refused(&with(change), &[&format!("{at}{want}")]);
    }
    projection_refused(&with(json!({"keyPath": "p"})), &[": Invalid value: \"p\": conflicting duplicate paths"]);
}
