//! Table tests of the pure functions.

use serde_json::json;
use steersman_base::Meta;

use super::plan::{bundle, name};

/// The hash is that of `printf 'CA' | sha256sum`.
#[test]
fn a_bundle_is_named_after_its_signer_and_its_content() {
    let named = name("CA");
    assert_eq!(named, "kubernetes.io:kube-apiserver-serving:4b650e5c4785025dee7bd65e");
    assert_ne!(named, name("CA\n"));
    let want = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "ClusterTrustBundle",
        "metadata": { "name": named },
        "spec": { "signerName": "kubernetes.io/kube-apiserver-serving", "trustBundle": "CA" },
    });
    assert_eq!(serde_json::to_value(bundle(&named, "CA", None)).unwrap(), want);
    let held = Meta { name: named.as_str().into(), uid: steersman_base::Uid::new("7"), ..Meta::default() };
    let shown = serde_json::to_value(bundle(&named, "CA", Some(&held))).unwrap();
    assert_eq!(shown["metadata"]["uid"], "7");
}
