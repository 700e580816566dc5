//! Roles that are made of others.

use k8s_openapi::api::rbac::v1::{AggregationRule, ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    a_role_has_the_rules_of_the_roles_that_it_selects on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::ROLE_AGGREGATION])
}

/// Roles come, change, stop being selected, and go.
pub(crate) async fn a_role_has_the_rules_of_the_roles_that_it_selects(cluster: &TestCluster) -> Result<(), Failure> {
    let name = |of: &str| format!("{}-{of}", cluster.namespace());
    let label = format!("example.com/to-{}", cluster.namespace());
    let api: Api<ClusterRole> = Api::all(cluster.client());
    let create = async |role: ClusterRole| api.create(&PostParams::default(), &role).await;
    let part = |of: &str, resource: &str| ClusterRole {
        metadata: objects::named(&name(of)),
        rules: Some(vec![rule(resource)]),
        aggregation_rule: None,
    };
    let selector =
        LabelSelector { match_labels: Some([(label.clone(), "yes".to_owned())].into()), ..Default::default() };
    let whole = ClusterRole {
        aggregation_rule: Some(AggregationRule { cluster_role_selectors: Some(vec![selector]) }),
        ..part("whole", "nonsense")
    };
    create(part("b", "pods").label(&label, "yes")).await?;
    create(part("c", "nodes").label(&label, "no")).await?;
    create(whole.annotation("example.com/mine", "stays")).await?;
    let resources = async || {
        let rules = api.get(&name("whole")).await?.rules.unwrap_or_default();
        Ok(rules.into_iter().flat_map(|rule| rule.resources.unwrap_or_default()).collect::<Vec<_>>())
    };
    cluster.until_eq("the rules of one", resources, ["pods"]).await?;
    create(part("a", "secrets").label(&label, "yes")).await?;
    cluster.until_eq("the rules of two, by name", resources, ["secrets", "pods"]).await?;
    let patch = Patch::Merge(json!({ "metadata": { "labels": { &label: "no" } } }));
    api.patch(&name("b"), &PatchParams::default(), &patch).await?;
    cluster.until_eq("the rules of the other", resources, ["secrets"]).await?;
    let patch = Patch::Merge(json!({ "rules": [rule("jobs"), rule("cronjobs")] }));
    api.patch(&name("a"), &PatchParams::default(), &patch).await?;
    cluster.until_eq("its other rules", resources, ["jobs", "cronjobs"]).await?;
    let patch = Patch::Merge(json!({ "rules": [] }));
    api.patch(&name("whole"), &PatchParams::default(), &patch).await?;
    cluster.until_eq("the rules come back", resources, ["jobs", "cronjobs"]).await?;
    let mine = api.get(&name("whole")).await?.metadata.annotations.unwrap_or_default().remove("example.com/mine");
    expect_eq("somebody else's annotation", &mine.as_deref(), &Some("stays"))?;
    for of in ["whole", "a", "b", "c"] {
        api.delete(&name(of), &DeleteParams::default()).await?;
    }
    Ok(())
}

fn rule(resource: &str) -> PolicyRule {
    let verbs = vec!["get".to_owned()];
    let resources = Some(vec![resource.to_owned()]);
    PolicyRule { verbs, resources, api_groups: Some(vec![String::new()]), ..PolicyRule::default() }
}
