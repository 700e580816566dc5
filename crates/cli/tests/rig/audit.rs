//! Every controller at work with an account of its own, and the rights that upstream's roles give it: the API server refuses
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, PersistentVolumeClaim};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use steersman_controllers::{ALL, table};
use steersman_testing::rig::{Process, Rig, Setup, programs, request};
use steersman_testing::{Failure, TestCluster, expect, expect_eq};
use tokio::time::Instant;

use crate::everything::{kubectl, names, start, start_manager, start_ours, until_answered};
use crate::metrics::{Family, differences, families, recorded};

const OBJECTS: &str = include_str!("../data/one-of-each.yaml");
const ROOT: &str = "system:kube-controller-manager";
const ACCOUNTS: &str = "system:serviceaccount:kube-system:";
/// For a CronJob, which waits for the next minute, and a pod of a node that is gone, which has forty seconds.
const WITHIN: Duration = Duration::from_secs(150);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Those that write nothing in minutes, because what they delete must be hours or a year old; and those that write only
/// events, which are the manager's own here: the expander writes more for in-tree volumes alone.
const WRITES_NOTHING_SOON: [&str; 4] = [
    "podcertificaterequest-cleaner-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "selinux-warning-controller",
    "persistentvolume-expander-controller",
];

/// What each user has asked for, and what was refused to whom.
#[derive(Debug, Default)]
struct Asked {
    writes: BTreeMap<String, BTreeSet<String>>,
    refused: BTreeSet<String>,
}

// === impl Asked ===

impl Asked {
    fn of(rig: &Rig) -> Result<Self, Failure> {
        let mut asked = Self::default();
        for entry in rig.entries()? {
            let user = entry["user"]["username"].as_str().unwrap_or_default();
            let Some(name) = user.strip_prefix(ACCOUNTS).or_else(|| (user == ROOT).then_some(ROOT)) else { continue };
            let what = request(&entry);
            // A quota or a terminating namespace answers 403, too; this is about rights.
            if entry["annotations"]["authorization.k8s.io/decision"] == "forbid" {
                let group = entry["objectRef"]["apiGroup"].as_str().unwrap_or_default();
                asked.refused.insert(format!("{name}: {what} {group} {}", entry["requestURI"]));
            }
            if matches!(entry["verb"].as_str(), Some("create" | "update" | "patch" | "delete" | "deletecollection")) {
                asked.writes.entry(name.to_owned()).or_default().insert(what);
            }
        }
        Ok(asked)
    }

    /// The accounts of those controllers that have written nothing yet.
    fn idle(&self, controllers: &BTreeSet<&str>) -> BTreeSet<&'static str> {
        let here = table::rows().iter().filter(|row| controllers.contains(row.name));
        let may_write = here.filter(|row| !WRITES_NOTHING_SOON.contains(&row.name));
        // That of tokens has the account of the manager itself.
        let account = |name: &'static str| if name == "tokens-controller" { ROOT } else { name };
        may_write.map(|row| account(row.account)).filter(|account| !self.writes.contains_key(*account)).collect()
    }
}

#[tokio::test]
async fn every_controller_of_ours_has_the_rights_that_it_needs() -> Result<(), Failure> {
    let rig = start("audit-of-ours", Setup::ALL_CONTROLLERS.auditing_requests()).await?;
    let manager = start_ours(&rig).await?;
    let page = at_work(&rig, manager, &ALL.iter().map(|controller| controller.name).collect()).await?;
    expect_eq("metrics", &differences(&recorded(), &page), &Vec::new())
}

/// The yardstick: the objects do give every controller something to write, and the roles are those of this version.
#[tokio::test]
async fn every_controller_of_the_go_program_has_the_rights_that_it_needs() -> Result<(), Failure> {
    let rig = start("audit-of-go", Setup::ALL_CONTROLLERS.auditing_requests()).await?;
    let program = programs()?.join("kube-controller-manager");
    let manager = start_manager(&rig, "go", &program, &[], rig.manager_flags()).await?;
    let page = at_work(&rig, manager, &names()).await?;
    expect_eq("metrics that are not as they were recorded", &differences(&page, &recorded()), &Vec::new())
}

/// Lets a manager work until each of these controllers has written something, and returns its metrics; nothing is refused to
/// them.
async fn at_work(
    rig: &Rig,
    (process, port): (Process, Client),
    controllers: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Family>, Failure> {
    let cluster = TestCluster::builder().nodes(2).start_on(rig.kubeconfig()).await?;
    until_answered(&process, &port, "/healthz").await?;
    apply(rig, &cluster)?;
    act(&cluster).await?;

    let began = Instant::now();
    let asked = loop {
        let asked = Asked::of(rig)?;
        if asked.idle(controllers).is_empty() || began.elapsed() > WITHIN {
            break asked;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    expect_eq("refused", &asked.refused, &BTreeSet::new())?;
    let idle = asked.idle(controllers);
    expect(idle.is_empty(), "every controller has written something", &(idle.clone(), &asked.writes))?;
    let refusals: Vec<_> =
        process.said()?.lines().filter(|line| line.contains("forbidden: User")).map(str::to_owned).collect();
    expect_eq("refusals in the log", &refusals, &Vec::new())?;
    let page = until_answered(&process, &port, "/metrics").await?;
    cluster.stop().await?;
    Ok(families(&page))
}

/// Creates something to do for every controller, in the test's namespace unless it names another.
fn apply(rig: &Rig, cluster: &TestCluster) -> Result<(), Failure> {
    let objects = OBJECTS.replace("NODE", &format!("{}-0", cluster.namespace()));
    let (placed, others): (Vec<_>, Vec<_>) = objects.split("\n---\n").partition(|text| text.contains("namespace: "));
    let namespace = format!("--namespace={}", cluster.namespace());
    for (name, documents, more) in [("placed", placed, None), ("others", others, Some(namespace.as_str()))] {
        let file = rig.scratch().join(format!("{name}.yaml"));
        std::fs::write(&file, documents.join("\n---\n"))?;
        let file = file.display().to_string();
        let mut args = vec!["create", "-f", &file];
        args.extend(more);
        kubectl(rig, &args)?;
    }
    // A version that a server which is gone has written.
    let status = json!({ "status": {
        "commonEncodingVersion": "v1",
        "storageVersions": [{ "apiServerID": "gone", "encodingVersion": "v1", "decodableVersions": ["v1"] }],
    } });
    let patch = format!("--patch={status}");
    let about = ["patch", "storageversions.internal.apiserver.k8s.io", "bakery.example.com.cakes"];
    kubectl(rig, &[&about[..], &["--subresource=status", "--type=merge", &patch]].concat())?;
    // Those that protect objects write when one is deleted.
    for (resource, name, more) in [
        ("persistentvolumes", "spare", None),
        ("persistentvolumeclaims", "spare", Some(namespace.as_str())),
        ("volumeattributesclasses", "fast", None),
        ("podgroups.scheduling.k8s.io", "gang", Some(namespace.as_str())),
    ] {
        let mut args = vec!["delete", resource, name, "--wait=false"];
        args.extend(more);
        kubectl(rig, &args)?;
    }
    Ok(())
}

/// What is not created, but done: deletions, a taint, an approval, a larger claim.
async fn act(cluster: &TestCluster) -> Result<(), Failure> {
    let owner: ConfigMap = cluster.create(object(json!({ "metadata": { "name": "owner" } }))?).await?;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid.unwrap_or_default(),
    });
    let owned = json!({ "metadata": { "name": "owned", "ownerReferences": [reference] } });
    cluster.create::<ConfigMap>(object(owned)?).await?;
    cluster.delete::<ConfigMap>("owner").await?;

    let namespaces: Api<Namespace> = Api::all(cluster.client());
    namespaces.create(&PostParams::default(), &object(json!({ "metadata": { "name": "to-go" } }))?).await?;
    namespaces.delete("to-go", &DeleteParams::default()).await?;

    let nodes: Api<Node> = Api::all(cluster.client());
    let taint = json!({ "spec": { "taints": [{ "key": "broken", "effect": "NoExecute" }] } });
    nodes.patch(&format!("{}-0", cluster.namespace()), &PatchParams::default(), &Patch::Merge(taint)).await?;

    approved_request(cluster).await?;
    // It is larger than its volume once that is bound; without a binder it never is.
    let claims = cluster.api::<PersistentVolumeClaim>();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let phase = claims.get("data").await?.status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Bound") {
            let larger = json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
            claims.patch("data", &PatchParams::default(), &Patch::Merge(larger)).await?;
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// A request for a certificate, which is approved as by `kubectl certificate approve`.
async fn approved_request(cluster: &TestCluster) -> Result<(), Failure> {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "ann");
    let pem = ByteString(params.serialize_request(&key)?.pem()?.into_bytes());
    let request: CertificateSigningRequest = object(json!({
        "metadata": { "name": "ann" },
        "spec": { "request": pem, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"] },
    }))?;
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client());
    requests.create(&PostParams::default(), &request).await?;
    let approved = json!({ "type": "Approved", "status": "True", "reason": "Test", "message": "by a test" });
    let patch = Patch::Merge(json!({ "status": { "conditions": [approved] } }));
    requests.patch_subresource("approval", "ann", &PatchParams::default(), &patch).await?;
    Ok(())
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    Ok(serde_json::from_value(value)?)
}
