//! Claims of ephemeral volumes.

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::protection::{claim, end};
use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    an_ephemeral_volume_gets_a_claim_and_gets_it_back on cluster,
    a_claim_of_another_is_not_taken on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::EPHEMERAL_VOLUME, controllers::CLAIM_PROTECTION];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// The claim has what the template says, and is the pod's.
pub(crate) async fn an_ephemeral_volume_gets_a_claim_and_gets_it_back(cluster: &TestCluster) -> Result<(), Failure> {
    let pod = cluster.create(pod_with_scratch("web")).await?;
    let made = cluster.until_exists::<PersistentVolumeClaim>("web-scratch").await?;
    let owners: Vec<_> = made.metadata.owner_references.into_iter().flatten().map(|owner| owner.uid).collect();
    expect_eq("its owner", &owners, &pod.metadata.uid.into_iter().collect())?;
    let labels = made.metadata.labels.unwrap_or_default();
    expect_eq("its label", &labels.get("of").map(String::as_str), &Some("template"))?;
    let requests = made.spec.and_then(|spec| spec.resources).and_then(|resources| resources.requests);
    expect(requests.is_some_and(|requests| requests["storage"].0 == "1Gi"), "its size", &"another one")?;

    cluster.delete::<PersistentVolumeClaim>("web-scratch").await?;
    let uid = async || {
        let claim = cluster.api::<PersistentVolumeClaim>().get_opt("web-scratch").await?;
        Ok(claim.and_then(|claim| claim.metadata.uid))
    };
    let first = made.metadata.uid;
    cluster.until_right("there is another one", uid, |uid| uid.is_some() && *uid != first).await?;
    end(cluster, "web").await?;
    // The garbage collector would.
    cluster.delete::<PersistentVolumeClaim>("web-scratch").await?;
    cluster.until_gone::<PersistentVolumeClaim>("web-scratch").await
}

/// The pod waits, and says why; when the claim goes, it gets its own.
pub(crate) async fn a_claim_of_another_is_not_taken(cluster: &TestCluster) -> Result<(), Failure> {
    let others = cluster.create(claim("web-scratch")).await?;
    let pod = cluster.create(pod_with_scratch("web")).await?;
    let namespace = cluster.namespace();
    let want = format!(
        "ephemeral volume scratch: PVC {namespace}/web-scratch was not created for pod {namespace}/web (pod is not owner)"
    );
    let notes = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?.items.into_iter();
        let of_reason = events.filter(|event| event.reason.as_deref() == Some("FailedBinding"));
        Ok(of_reason.filter_map(|event| event.message).next())
    };
    cluster.until_eq("the pod gets a warning", notes, Some(want)).await?;
    let held = cluster.api::<PersistentVolumeClaim>().get("web-scratch").await?;
    expect_eq("the claim stays as it is", &held.metadata.uid, &others.metadata.uid)?;
    cluster.delete::<PersistentVolumeClaim>("web-scratch").await?;
    let owner = async || {
        let claim = cluster.api::<PersistentVolumeClaim>().get_opt("web-scratch").await?;
        let owners = claim.and_then(|claim| claim.metadata.owner_references).unwrap_or_default();
        Ok(owners.into_iter().next().map(|owner| owner.uid))
    };
    cluster.until_eq("the pod has its own", owner, pod.metadata.uid).await?;
    cluster.api::<Pod>().delete("web", &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

fn pod_with_scratch(name: &str) -> Pod {
    let template = json!({
        "metadata": { "labels": { "of": "template" } },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let volume = json!({ "name": "scratch", "ephemeral": { "volumeClaimTemplate": template } });
    objects::pod(name).with(json!({ "spec": { "volumes": [volume] } }))
}
