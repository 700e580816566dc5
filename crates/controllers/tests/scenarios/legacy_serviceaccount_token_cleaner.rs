//! Old tokens that nobody uses.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Pod, Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use steersman_controllers::legacy_serviceaccount_token_cleaner;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::accounts::token_secret;
use crate::scenarios::support::controllers;

scenarios! {
    an_old_token_is_marked_and_then_deleted_unless_it_is_used on cluster alone,
}

const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Tokens are old after a second, which is looked for every second.
pub(crate) fn cluster() -> Builder {
    let second = Duration::from_secs(1);
    let options = legacy_serviceaccount_token_cleaner::Options::default().clean_up_period(second).every(second);
    TestCluster::builder().controllers(&[controllers::LEGACY_TOKEN_CLEANER]).options(options)
}

/// A token that its account lists is marked; one that a pod uses, or that nobody lists, is not. After another period it goes.
pub(crate) async fn an_old_token_is_marked_and_then_deleted_unless_it_is_used(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    track_since(cluster, "2020-01-01").await?;
    let listed = |name: &str| ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
    let secrets = Some(vec![listed("old"), listed("mounted")]);
    cluster.create(ServiceAccount { secrets, ..objects::service_account("robot") }).await?;
    let volume = json!({ "name": "token", "secret": { "secretName": "mounted" } });
    cluster.create(objects::pod("user").with(json!({ "spec": { "volumes": [volume] } }))).await?;
    for name in ["old", "mounted", "manual"] {
        cluster.create(token_secret(name, "robot", None)).await?;
    }
    let mark = async |name: &str| {
        let labels = cluster.api::<Secret>().get(name).await?.metadata.labels.unwrap_or_default();
        Ok::<_, Failure>(labels.get(INVALID_SINCE).cloned())
    };
    cluster.until_right("the token is marked", async || mark("old").await, Option::is_some).await?;
    // The mark is a date: another period has passed when the date is another one.
    let patch = Patch::Merge(json!({ "metadata": { "labels": { INVALID_SINCE: "2021-01-01" } } }));
    cluster.api::<Secret>().patch("old", &PatchParams::default(), &patch).await?;
    cluster.until_gone::<Secret>("old").await?;
    for name in ["mounted", "manual"] {
        expect_eq(&format!("the mark of {name}"), &mark(name).await?, &None)?;
    }
    cluster.api::<Pod>().delete("user", &DeleteParams::default().grace_period(0)).await?;
    cluster.until_right("the other is marked, too", async || mark("mounted").await, Option::is_some).await?;
    Ok(())
}

/// Says that the use of tokens has been tracked since then.
async fn track_since(cluster: &TestCluster, date: &str) -> Result<(), Failure> {
    const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
    let maps = Api::<ConfigMap>::namespaced(cluster.client(), "kube-system");
    let exists = async || Ok(maps.get_opt(NAME).await?.is_some());
    cluster.until_eq("the server says since when it tracks tokens", exists, true).await?;
    maps.patch(NAME, &PatchParams::default(), &Patch::Merge(json!({ "data": { "since": date } }))).await?;
    Ok(())
}
