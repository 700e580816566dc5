//! Workloads about nodes, devices, certificates and tokens.

use serde_json::{Value, json};
use steersman_base::Time;

use super::{Workload, create, edit, here, patch, pod, pods, post, remove, work};
use crate::managers::EPOCH;
use crate::plan::{Edit, Operation, minutes};

const NODES: &str = "/api/v1/nodes";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/alpha/resourceclaims";
const TEMPLATES: &str = "/apis/resource.k8s.io/v1/namespaces/alpha/resourceclaimtemplates";
const RULES: &str = "/apis/resource.k8s.io/v1/devicetaintrules";
const TOKENS: &str = "/api/v1/namespaces/kube-system/secrets";
const PUBLIC: &str = "/api/v1/namespaces/kube-public/configmaps";
const POD_REQUESTS: &str = "/apis/certificates.k8s.io/v1/namespaces/alpha/podcertificaterequests";
/// The bundle of the certificate that worlds publish.
const BUNDLE: &str =
    "/apis/certificates.k8s.io/v1/clustertrustbundles/kubernetes.io:kube-apiserver-serving:3f045bc82e240487813b1b63";
/// The request of a pod's key, as it is in the spec: signed with that key, and otherwise empty.
const STUB: &str = "MH8wMwIBADAAMCowBQYDK2VwAyEAA8LN2Wdq+6TLpdw2bKN0oalAfOd5lDOkQhzUKBl/3dSgADAFBgMrZXADQQA7VXwUuAQviBTX\
                    2MvbLm6UpvoLU4OaBxc1j2/RXMjAeT/xM+3zUfDMT9yYcR/huyZXhz99570Ijdy4iFKKF8kN";
const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";

pub(super) fn workloads() -> Vec<Workload> {
    let mut all = of_nodes();
    all.extend(of_devices());
    all.extend(of_certificates());
    all.extend(of_tokens());
    all
}

/// A node without a kubelet and without a range.
fn bare(name: &str) -> Operation {
    post(NODES, json!({"metadata": {"name": name}}))
}

fn of_nodes() -> Vec<Workload> {
    let leaves_and_returns = || vec![Operation::RemoveNode { node: 0 }, Operation::ResumeNode { node: 0 }];
    vec![
        work("ttl-controller", &["nodes"], leaves_and_returns()).ends_with(&["nodes"]),
        // Simulated nodes have ranges of their own.
        work(
            "node-ipam-controller",
            &["nodes"],
            vec![bare("one"), bare("two"), remove(&format!("{NODES}/one")), bare("three")],
        ),
        work(
            "node-lifecycle-controller",
            &["nodes", "pods"],
            vec![
                create(7, pods(2)),
                Operation::SilenceNode { node: 0 },
                Operation::LabelNode { node: 1, slow: true },
                Operation::Drain { node: 1 },
                Operation::Uncordon { node: 1 },
                Operation::ResumeNode { node: 0 },
            ],
        )
        .ends_with(&["nodes"]),
        work(
            "taint-eviction-controller",
            &["nodes", "pods"],
            vec![
                create(7, pods(3)),
                Operation::TaintNode { node: 0, ends_pods: Some(true) },
                Operation::TaintNode { node: 0, ends_pods: None },
                Operation::TaintNode { node: 1, ends_pods: Some(true) },
                Operation::TaintNode { node: 1, ends_pods: None },
            ],
        ),
    ]
}

/// A request of one simulated device.
fn devices() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "simulated.steersman.dev"}}]}})
}

fn of_devices() -> Vec<Workload> {
    let claim = post(CLAIMS, json!({"metadata": {"name": "gpu"}, "spec": devices()}));
    let user = |name: &str| pod(name, &json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}));
    let rule = json!({
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": "nodes.steersman.dev"},
            "taint": {"key": "example.com/broken", "effect": "NoExecute"},
        },
    });
    let template = json!({"metadata": {"name": "gpus"}, "spec": {"spec": devices()}});
    let of_template = json!({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]});
    vec![
        work(
            "device-taint-eviction-controller",
            &["resourceclaims.resource.k8s.io", "pods", "devicetaintrules.resource.k8s.io"],
            vec![claim.clone(), user("one"), post(RULES, rule), remove(&format!("{RULES}/broken")), user("two")],
        )
        .ends_with(&["devicetaintrules.resource.k8s.io"]),
        work(
            "resourceclaim-controller",
            &["resourceclaims.resource.k8s.io", "pods", "resourceclaimtemplates.resource.k8s.io"],
            vec![
                claim,
                user("one"),
                post(TEMPLATES, template),
                pod("two", &of_template),
                remove(&format!("{}/one", here("pods"))),
                remove(&format!("{}/two", here("pods"))),
            ],
        )
        .ends_with(&["resourceclaims.resource.k8s.io"]),
    ]
}

fn of_certificates() -> Vec<Workload> {
    let asked = |approved| {
        vec![create(36, vec![Edit::Asks(0)]), create(37, vec![Edit::Asks(1)]), edit(37, vec![Edit::Approved(approved)])]
    };
    let pod_request = json!({
        "metadata": {"name": "a"},
        "spec": {
            "signerName": "example.com/a", "podName": "a", "podUID": "1", "serviceAccountName": "a",
            "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": STUB,
        },
    });
    vec![
        work("certificatesigningrequest-approving-controller", &[REQUESTS], asked(true)).ends_with(&[REQUESTS]),
        work("certificatesigningrequest-signing-controller", &[REQUESTS], asked(true)).ends_with(&[REQUESTS]),
        work("certificatesigningrequest-cleaner-controller", &[REQUESTS], asked(false))
            .ends_with(&[REQUESTS])
            .settling_for(minutes(10)),
        work(
            "podcertificaterequest-cleaner-controller",
            &["podcertificaterequests.certificates.k8s.io"],
            vec![post(POD_REQUESTS, pod_request)],
        )
        .ends_with(&["podcertificaterequests.certificates.k8s.io"])
        .settling_for(minutes(25)),
        work(
            "kube-apiserver-serving-clustertrustbundle-publisher-controller",
            &["clustertrustbundles.certificates.k8s.io"],
            vec![remove(BUNDLE), remove(BUNDLE)],
        )
        .ends_with(&["clustertrustbundles.certificates.k8s.io"]),
    ]
}

/// A token that signs, and expires after so many minutes of the world.
fn token(id: &str, minutes: i64) -> Operation {
    let expiration = Time::from_unix(EPOCH).plus_seconds(60 * minutes).to_string();
    let data = json!({
        "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", "expiration": expiration,
    });
    let name = format!("bootstrap-token-{id}");
    post(TOKENS, json!({"type": "bootstrap.kubernetes.io/token", "metadata": {"name": name}, "stringData": data}))
}

fn of_tokens() -> Vec<Workload> {
    let info = json!({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "of a world"}});
    let forged = json!({"data": {"jws-kubeconfig-abcdef": "forged"}});
    let tracking = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
    let account = "/api/v1/namespaces/alpha/serviceaccounts/robot";
    vec![
        work(
            "bootstrap-signer-controller",
            &["secrets", "configmaps"],
            vec![
                post(PUBLIC, info),
                token("abcdef", 100_000),
                token("ghijkl", 100_000),
                patch(&format!("{PUBLIC}/cluster-info"), forged),
                remove(&format!("{TOKENS}/bootstrap-token-ghijkl")),
            ],
        )
        .ends_with(&["configmaps"]),
        work("token-cleaner-controller", &["secrets"], vec![token("abcdef", 3), token("ghijkl", 100_000)])
            .ends_with(&["secrets"]),
        work(
            "legacy-serviceaccount-token-cleaner-controller",
            &["secrets", "serviceaccounts"],
            vec![
                patch(tracking, json!({"data": {"since": "2020-01-01"}})),
                create(15, Vec::new()),
                patch(account, json!({"secrets": [{"name": "robot-token"}]})),
            ],
        )
        .ends_with(&["secrets"])
        .settling_for(minutes(6)),
    ]
}
