//! Table tests of the pure functions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_model::{Encoded, View};

use super::plan::{Right, approved, rights};

const USAGES: &[&str] = &["key encipherment", "digital signature", "client auth"];
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn object() -> Value {
    json!({
        "metadata": { "name": "a", "uid": "1" },
        "spec": {
            "request": STANDARD.encode(request("system:node:a", "system:nodes", &[])),
            "signerName": SIGNER, "usages": USAGES,
            "username": "system:bootstrap:abcdef", "uid": "7", "groups": ["system:bootstrappers"],
            "extra": { "k": ["v"] },
        },
        "status": {},
    })
}

fn request(user: &str, group: &str, names: &[SanType]) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, user);
    params.subject_alt_names = names.to_vec();
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

fn view(object: &Value) -> CertificateSigningRequestView {
    CertificateSigningRequestView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

/// Upstream's `TestRecognizers` and `TestHandle`; and requests for `system:node:` by strangers.
#[test]
fn requests_of_kubelets_are_recognized_and_no_others() {
    let check = |name: &str, place: &str, value: Value, want: &[Right]| {
        let mut object = object();
        object["spec"]["username"] = "stranger".into();
        if !place.is_empty() {
            *object.pointer_mut(place).unwrap() = value;
        }
        assert_eq!(rights(&view(&object)), want, "{name}");
    };
    let csr = |user: &str, group: &str, names: &[SanType]| json!(STANDARD.encode(request(user, group, names)));
    check("by a stranger", "", json!(null), &[Right::NodeClient]);
    let node = json!("system:node:a");
    check("by the node", "/spec/username", node, &[Right::SelfNodeClient, Right::NodeClient]);
    check("by another node", "/spec/username", json!("system:node:b"), &[Right::NodeClient]);
    check(
        "without key encipherment",
        "/spec/usages",
        json!(["digital signature", "client auth"]),
        &[Right::NodeClient],
    );
    check("for a server", "/spec/usages", json!(["digital signature", "server auth"]), &[]);
    check("for anything", "/spec/usages", json!([]), &[]);
    check("of another signer", "/spec/signerName", json!("kubernetes.io/kube-apiserver-client"), &[]);
    check("for serving", "/spec/signerName", json!("kubernetes.io/kubelet-serving"), &[]);
    check("for another group", "/spec/request", csr("system:node:a", "system:masters", &[]), &[]);
    check("for a user", "/spec/request", csr("ann", "system:nodes", &[]), &[]);
    let names = [SanType::DnsName("a".try_into().unwrap())];
    check("with names", "/spec/request", csr("system:node:a", "system:nodes", &names), &[]);
    check("for nothing", "/spec/request", json!("bm90aGluZw=="), &[]);
    for condition in ["Approved", "Denied"] {
        check(condition, "/status", json!({ "conditions": [{ "type": condition, "status": "True" }] }), &[]);
    }
    let failed = json!({ "conditions": [{ "type": "Failed", "status": "True" }] });
    check("failed", "/status", failed, &[Right::NodeClient]);
    check("issued", "/status", json!({ "certificate": "LS0t" }), &[]);
}

#[test]
fn the_server_is_asked_about_the_user_of_the_request() {
    let view = view(&object());
    let want = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "system:bootstrap:abcdef", "uid": "7", "groups": ["system:bootstrappers"], "extra": { "k": ["v"] },
            "resourceAttributes": {
                "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "subresource": "nodeclient",
                "verb": "create", "version": "*",
            },
        },
    });
    assert_eq!(Right::NodeClient.review(&view.spec), want);
    let status = serde_json::to_value(approved(&view, Right::SelfNodeClient)).unwrap();
    let want = json!({ "conditions": [{
        "type": "Approved", "status": "True", "reason": "AutoApproved",
        "message": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    }] });
    assert_eq!(status, want);
}
