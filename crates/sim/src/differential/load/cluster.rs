//! Owners, namespaces, accounts, roles, certificates, nodes, ranges of Services, devices, and the upkeep of the API.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Act, Step, delete, delete_with, of, path, pick, template};

/// Trees of owned objects: cascades of each policy, absent owners, owners in other namespaces, two owners, finalizers.
pub(super) fn owners(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("v1", ns, "configmaps", name);
    let reference = |name: &str, blocks: bool| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": format!("$uid:{}", at(name)), "blockOwnerDeletion": blocks });
    let map = |name: &str, owners: Value| {
        of("v1", "ConfigMap", ns, name, json!({ "metadata": { "ownerReferences": owners } }))
    };
    let absent = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "00000000-0000-4000-8000-000000000000" }]);
    let strange = json!([{ "apiVersion": "example.com/v1", "kind": "Unheard", "name": "of", "uid": "00000000-0000-4000-8000-000000000001" }]);
    let cluster_wide = json!({ "metadata": { "ownerReferences": [reference("other-root", false)] } });
    vec![
        vec![map("root", json!([])), map("other-root", json!([])), map("orphaner", json!([]))],
        vec![
            map("child-one", json!([reference("root", true)])),
            map("child-two", json!([reference("root", true), reference("other-root", false)])),
            map("child-orphan", json!([reference("orphaner", true)])),
            of(
                "v1",
                "ConfigMap",
                ns,
                "held-child",
                json!({ "metadata": {
                "ownerReferences": [reference("root", true)], "finalizers": ["example.com/hold"],
            } }),
            ),
            map("parentless", absent),
            map("of-strangers", strange),
            of("rbac.authorization.k8s.io/v1", "ClusterRole", "", &format!("{ns}-owned"), cluster_wide),
        ],
        vec![map("grand-child", json!([reference("child-one", true)]))],
        vec![
            delete_with(at("root"), pick(random, &["Foreground", "Background"])),
            delete_with(at("orphaner"), "Orphan"),
        ],
        vec![Act::Patch(at("held-child"), json!({ "metadata": { "finalizers": null } }))],
        vec![delete_with(at("other-root"), "Background")],
    ]
}

/// Namespaces that end: full ones, empty ones, one with an object that a finalizer keeps.
pub(super) fn namespaces(random: &mut Rng, ns: &str) -> Vec<Step> {
    let named = |name: &str| format!("{ns}-{name}");
    let full = named("full");
    let held = named("held");
    let ends = |name: &str| delete(path("v1", "", "namespaces", name));
    let made = |name: &str| of("v1", "Namespace", "", name, json!({}));
    let set = of(
        "apps/v1",
        "Deployment",
        &full,
        "web",
        json!({ "spec": {
        "replicas": random.usize(1..4), "selector": { "matchLabels": { "app": "web" } }, "template": template("web", "web:1"),
    } }),
    );
    vec![
        vec![made(&full), made(&held), made(&named("empty"))],
        vec![
            set,
            of("v1", "Secret", &full, "secret", json!({})),
            of("v1", "ConfigMap", &held, "held", json!({ "metadata": { "finalizers": ["example.com/hold"] } })),
        ],
        vec![ends(&full), ends(&held), ends(&named("empty"))],
        vec![],
        vec![Act::Patch(path("v1", &held, "configmaps", "held"), json!({ "metadata": { "finalizers": null } }))],
    ]
}

/// Accounts: deleted ones that come back, tokens in secrets, root certificates that are changed.
pub(super) fn accounts(_: &mut Rng, ns: &str) -> Vec<Step> {
    let secret = |name: &str, account: &str| {
        of(
            "v1",
            "Secret",
            ns,
            name,
            json!({
                "metadata": { "annotations": { "kubernetes.io/service-account.name": account } },
                "type": "kubernetes.io/service-account-token",
            }),
        )
    };
    let account_at = |name: &str| path("v1", ns, "serviceaccounts", name);
    vec![
        vec![of("v1", "ServiceAccount", ns, "robot", json!({}))],
        vec![secret("robot-token", "robot"), secret("nobody-token", "absent-robot"), delete(account_at("default"))],
        vec![Act::Patch(path("v1", ns, "configmaps", "kube-root-ca.crt"), json!({ "data": { "ca.crt": "forged" } }))],
        vec![
            Act::Patch(path("v1", ns, "secrets", "robot-token"), json!({ "data": { "token": null } })),
            delete(path("v1", ns, "configmaps", "kube-root-ca.crt")),
        ],
        vec![delete(account_at("robot"))],
    ]
}

/// ClusterRoles that are sums of others.
pub(super) fn roles(random: &mut Rng, ns: &str) -> Vec<Step> {
    let role =
        |name: &str, more: Value| of("rbac.authorization.k8s.io/v1", "ClusterRole", "", &format!("{ns}-{name}"), more);
    let part = |name: &str, verbs: &[&str]| {
        role(
            name,
            json!({
                "metadata": { "labels": { format!("sum-{ns}"): "yes" } },
                "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": verbs }],
            }),
        )
    };
    let at = |name: &str| path("rbac.authorization.k8s.io/v1", "", "clusterroles", &format!("{ns}-{name}"));
    vec![
        vec![
            role(
                "sum",
                json!({ "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { format!("sum-{ns}"): "yes" } }] } }),
            ),
            part("one", &["get"]),
            part("two", &["list", "watch"]),
        ],
        vec![
            part("three", &[pick(random, &["get", "delete", "patch"])]),
            Act::Patch(at("one"), json!({ "rules": [] })),
        ],
        vec![
            delete(at("two")),
            Act::Patch(at("sum"), json!({ "rules": [{ "apiGroups": ["x"], "resources": ["y"], "verbs": ["z"] }] })),
        ],
    ]
}

/// Requests for certificates: approved, denied, refused by their signer, of kubelets.
pub(super) fn certificates(random: &mut Rng, ns: &str) -> Vec<Step> {
    let request = |name: &str, common: &str, organisation: &str, signer: &str, usages: &[&str]| {
        of(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            "",
            &format!("{ns}-{name}"),
            json!({ "spec": {
            "request": pem(common, organisation), "signerName": signer, "usages": usages, "expirationSeconds": 3600,
        } }),
        )
    };
    let decide = |name: &str, kind: &str| {
        Act::Patch(
            format!(
                "{}/approval",
                path("certificates.k8s.io/v1", "", "certificatesigningrequests", &format!("{ns}-{name}"))
            ),
            json!({ "status": { "conditions": [
                { "type": kind, "status": "True", "reason": "ByTheLoad", "message": "so it was decided" },
            ] } }),
        )
    };
    let client = "kubernetes.io/kube-apiserver-client";
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    vec![
        vec![
            request("ann", "ann", "people", client, &["client auth"]),
            request("eve", "eve", "system:masters", client, &["client auth"]),
            request("idle", "idle", "people", client, &["client auth"]),
            request(
                "node",
                "system:node:node-9",
                "system:nodes",
                kubelet,
                &["client auth", pick(random, &["digital signature", "key encipherment"])],
            ),
            request("serving", "system:node:node-9", "system:nodes", "kubernetes.io/kubelet-serving", &["server auth"]),
            request("foreign", "ann", "people", "example.com/signer", &["client auth"]),
            request("wrong", "ann", "people", client, &["server auth"]),
        ],
        vec![
            decide("ann", "Approved"),
            decide("eve", "Approved"),
            decide("idle", "Denied"),
            decide("foreign", "Approved"),
            decide("wrong", "Approved"),
            decide("serving", "Approved"),
        ],
        vec![delete(path("certificates.k8s.io/v1", "", "certificatesigningrequests", &format!("{ns}-idle")))],
    ]
}

fn pem(common: &str, organisation: &str) -> Value {
    let made = || -> Result<String, rcgen::Error> {
        let key = rcgen::KeyPair::generate()?;
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, organisation);
        params.distinguished_name.push(rcgen::DnType::CommonName, common);
        params.serialize_request(&key)?.pem()
    };
    let pem = made().unwrap_or_default();
    serde_json::to_value(k8s_openapi::ByteString(pem.into_bytes())).unwrap_or_default()
}

/// Nodes: taints that evict, with tolerations of each kind; a bare one that has no kubelet; pods of one that is gone.
pub(super) fn nodes(random: &mut Rng, ns: &str) -> Vec<Step> {
    let key = format!("broken-{ns}");
    let pod = |name: &str, tolerations: Value| {
        of(
            "v1",
            "Pod",
            ns,
            name,
            json!({ "spec": {
            "nodeName": "$node:3", "tolerations": tolerations, "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "main", "image": "web:1" }],
        } }),
        )
    };
    let tolerates = |seconds: Value| json!([{ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }]);
    let taints = |effects: &[&str]| {
        // The scheduler and DaemonSets leave it alone, so that the same pods are evicted on both sides.
        let mut taints = vec![json!({ "key": "reserved", "effect": "NoSchedule" })];
        taints.extend(effects.iter().map(|effect| json!({ "key": key, "effect": effect })));
        Act::Patch("/api/v1/nodes/$node:3".to_owned(), json!({ "spec": { "taints": taints } }))
    };
    let bare = format!("{ns}-bare");
    vec![
        vec![
            pod("intolerant", json!([])),
            pod("patient", tolerates(json!(3))),
            pod("lenient", tolerates(Value::Null)),
            of(
                "v1",
                "Node",
                "",
                &bare,
                json!({
                    // DaemonSets leave it alone: what becomes of their pods when it goes depends on when it goes.
                    "spec": { "taints": [{ "key": "bare", "effect": "NoSchedule" }] },
                }),
            ),
        ],
        vec![taints(&[pick(random, &["NoExecute", "NoSchedule"]), "NoExecute"][..random.usize(1..2)])],
        vec![taints(&["NoExecute"])],
        vec![taints(&[]), Act::Patch(path("v1", "", "nodes", &bare), json!({ "spec": { "unschedulable": true } }))],
        vec![delete(path("v1", "", "nodes", &bare))],
    ]
}

/// A node that stops its heartbeats and comes back, and a pod of a node that does not exist.
pub(super) fn lost_node(random: &mut Rng, ns: &str) -> Vec<Step> {
    let pod = |name: &str, node: &str, seconds: usize| {
        let tolerates = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds });
        of(
            "v1",
            "Pod",
            ns,
            name,
            json!({ "metadata": { "labels": { "app": "lost" } }, "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 1,
            "tolerations": [tolerates("node.kubernetes.io/unreachable"), tolerates("node.kubernetes.io/not-ready")],
            "containers": [{ "name": "main", "image": "web:1" }],
        } }),
        )
    };
    let service = of(
        "v1",
        "Service",
        ns,
        "lost",
        json!({ "spec": { "selector": { "app": "lost" }, "ports": [{ "port": 80 }] } }),
    );
    let beats = |are_sent: bool| vec![Act::Heartbeats { node: LOST, are_sent }];
    let node = format!("$node:{LOST}");
    vec![
        vec![
            service,
            pod("hasty", &node, random.usize(..3)),
            pod("stoic", &node, 3600),
            pod("nowhere", "gone-node", 3600),
        ],
        beats(false),
        vec![],
        vec![],
        vec![],
        beats(true),
    ]
}

/// The node that is lost; nothing else is scheduled there.
const LOST: usize = 2;

/// Ranges of Services: an additional one, addresses from it, and its end.
pub(super) fn service_cidrs(random: &mut Rng, ns: &str) -> Vec<Step> {
    let name = format!("{ns}-more");
    let number: usize = ns.bytes().map(usize::from).sum();
    let range = format!("10.{}.0.0/24", 100 + number % 20);
    let address = range.replace(".0/24", ".9");
    let at = path("networking.k8s.io/v1", "", "servicecidrs", &name);
    vec![
        vec![of("networking.k8s.io/v1", "ServiceCIDR", "", &name, json!({ "spec": { "cidrs": [range] } }))],
        vec![of(
            "v1",
            "Service",
            ns,
            "in-range",
            json!({ "spec": { "clusterIP": address, "ports": [{ "port": 80 }] } }),
        )],
        vec![delete(at)],
        if random.bool() { vec![] } else { vec![delete(path("v1", ns, "services", "in-range"))] },
        vec![delete(path("v1", ns, "services", "in-range"))],
    ]
}

/// Claims of devices: from templates and shared, pods that end, taints of devices, the state of pools.
pub(super) fn devices(random: &mut Rng, ns: &str) -> Vec<Step> {
    let api = "resource.k8s.io/v1";
    let spec = json!({ "devices": { "requests": [{ "name": "device", "exactly": { "deviceClassName": "simulated.steersman.dev" } }] } });
    let pod = |name: &str, source: Value, command: &[&str]| {
        let mut claim = source;
        claim["name"] = Value::from("device");
        of(
            "v1",
            "Pod",
            ns,
            name,
            json!({ "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "resourceClaims": [claim],
            "containers": [{ "name": "main", "image": "web:1", "command": command, "resources": { "claims": [{ "name": "device" }] } }],
        } }),
        )
    };
    let from_template = json!({ "resourceClaimTemplateName": "device" });
    let shared = json!({ "resourceClaimName": "shared" });
    vec![
        vec![
            of(api, "ResourceClaimTemplate", ns, "device", json!({ "spec": { "spec": spec } })),
            of(api, "ResourceClaim", ns, "shared", json!({ "spec": spec })),
        ],
        vec![
            pod("with-own", from_template.clone(), &[]),
            pod("brief-own", from_template, &["sleep", "1"]),
            // It must not end: the Go manager then reserves the claim for it and releases it again, without pause.
            pod("with-shared", shared.clone(), &[]),
            pod("without", json!({ "resourceClaimTemplateName": "absent" }), &[]),
        ],
        vec![pod("also-shared", shared, &[])],
        vec![of(
            "resource.k8s.io/v1alpha3",
            "ResourcePoolStatusRequest",
            "",
            &format!("{ns}-pools"),
            json!({ "spec": { "driver": "nodes.steersman.dev" } }),
        )],
        vec![delete(path("v1", ns, "pods", pick(random, &["with-own", "also-shared"])))],
    ]
}

/// Bootstrap tokens and the signed cluster information.
pub(super) fn bootstrap(_: &mut Rng, ns: &str) -> Vec<Step> {
    // Six letters that follow from the namespace.
    let letters: String = ns.chars().filter(char::is_ascii_alphanumeric).collect();
    let id = format!("{letters:a<6}").chars().take(6).collect::<String>();
    let gone = format!("{letters:z<6}").chars().take(6).collect::<String>();
    let token = |id: &str, more: Value| {
        let mut data = json!({ "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true" });
        for (field, value) in more.as_object().into_iter().flatten() {
            data[field] = value.clone();
        }
        of(
            "v1",
            "Secret",
            "kube-system",
            &format!("bootstrap-token-{id}"),
            json!({ "type": "bootstrap.kubernetes.io/token", "stringData": data }),
        )
    };
    vec![
        vec![
            of("v1", "ConfigMap", "kube-public", "cluster-info", json!({ "data": { "kubeconfig": "to be signed" } })),
            token(&id, json!({})),
            token(&gone, json!({ "expiration": "2020-01-01T00:00:00Z" })),
        ],
        vec![Act::Patch(
            path("v1", "kube-public", "configmaps", "cluster-info"),
            json!({ "data": { "kubeconfig": format!("for {ns}") } }),
        )],
        vec![delete(path("v1", "kube-system", "secrets", &format!("bootstrap-token-{id}")))],
    ]
}

/// Storage versions and migrations, and groups of pods that are protected.
pub(super) fn upkeep(_: &mut Rng, ns: &str) -> Vec<Step> {
    let migration = |name: &str, group: &str, resource: &str| {
        of(
            "storagemigration.k8s.io/v1",
            "StorageVersionMigration",
            "",
            &format!("{ns}-{name}"),
            json!({ "spec": {
            "resource": { "group": group, "resource": resource },
        } }),
        )
    };
    let group = of(
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        ns,
        "gang",
        json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } }),
    );
    vec![
        vec![
            migration("classes", "scheduling.k8s.io", "priorityclasses"),
            migration("unknown", "example.com", "cakes"),
            group,
        ],
        vec![],
        vec![delete(path("scheduling.k8s.io/v1beta1", ns, "podgroups", "gang"))],
    ]
}
