//! Cleaning up after a test.

use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::discovery::{ApiGroup, Discovery, Scope, verbs};
use kube::{Api, Client};
use steersman_nodes::Nodes;

use crate::Failure;

pub(super) async fn delete_namespace(client: &Client, name: &str) -> Result<(), Failure> {
    match Api::<Namespace>::all(client.clone()).delete(name, &DeleteParams::default()).await {
        // The test deleted it.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => outcome.map(drop).map_err(Failure::from),
    }
}

/// Removes a test's namespace and everything in it, as the namespace controller would: the rig runs none for all tests,
/// and leftovers of one test slow down or disturb later ones.
pub(super) async fn remove_namespace(client: &Client, name: &str) -> Result<(), Failure> {
    delete_namespace(client, name).await?;
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let discovered = Discovery::new(client.clone()).run_aggregated().await?;
    for (resource, can) in discovered.groups().flat_map(ApiGroup::recommended_resources) {
        if can.scope == Scope::Namespaced && can.supports_operation(verbs::DELETE_COLLECTION) {
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), name, &resource);
            // A kind that cannot be deleted, such as that of a broken webhook, must not prevent the others.
            let _ = api.delete_collection(&at_once, &ListParams::default()).await;
        }
    }
    let namespaces = Api::<Namespace>::all(client.clone());
    let Some(mut namespace) = namespaces.get_opt(name).await? else { return Ok(()) };
    namespace.spec.get_or_insert_default().finalizers = None;
    let body = serde_json::to_vec(&namespace)?;
    let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize")).body(body);
    match client.request::<serde_json::Value>(request.map_err(kube::Error::HttpError)?).await {
        // A namespace controller was first.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        outcome => outcome.map(drop).map_err(Failure::from),
    }
}

/// Removes the nodes of a test from a cluster that others use, too. Some may be deleted already.
pub(super) async fn unregister(client: &Client, nodes: &Nodes) -> Result<(), Failure> {
    let all = Api::<Node>::all(client.clone());
    for name in nodes.names() {
        match all.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}
