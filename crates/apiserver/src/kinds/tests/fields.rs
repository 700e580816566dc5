//! Rules of fields that no recorded answer has: the words are those of upstream's validation.

use serde_json::{Value, json};

use super::judged;

/// Checks that an object is refused for these reasons, in this order.
#[track_caller]
fn refused(object: &Value, want: &[&str]) {
    let errors: Vec<String> = judged(object.clone()).0.iter().map(ToString::to_string).collect();
    assert_eq!(errors, want, "{object}");
}

fn pod(spec: Value) -> Value {
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
        let mut pod = pod(json!({}));
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
