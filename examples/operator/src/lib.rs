//! An operator: a kind of its own, a controller that acts on it, and webhooks that keep nonsense out.
//!
//! Every `Site` becomes a `Deployment`. The API server asks the operator before it stores a `Site`: the mutating webhook
//! fills in what was left open, the validating webhook refuses what cannot be. Of several processes of the operator one
//! leads and works; all of them answer the API server.
//!
//! `src/main.rs` runs it; `tests/embedded.rs` tests it without a cluster, a socket, or a second of waiting.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::apps::v1::Deployment;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman::prelude::*;
use steersman::runtime::serving::ServeOptions;
use steersman::runtime::webhook::{Admission, Denial, Mutated, Verdict, WebhookServer};

/// A web site.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "web.example.dev", version = "v1", kind = "Site", namespaced, schema = "disabled")]
pub struct SiteSpec {
    /// The image of its web server.
    pub image: String,
    /// How many web servers there are; the webhook fills it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

reasons! {
    /// Why the operator writes.
    pub enum Why {
        /// The deployment is not what the site says.
        SiteNeedsServers => "the site needs web servers" event "Deployed" |name| "Wrote deployment {name}",
    }
}

/// What a site gets that says nothing.
pub const REPLICAS: i32 = 2;
/// What a site gets at most.
pub const REPLICAS_MAX: i32 = 5;

/// The mutating webhook: changes the object, and the runtime makes a patch of it.
async fn fill_in(mut admission: Admission<Site>) -> Result<Mutated<Site>, Denial> {
    let mut site = admission.take_object()?;
    site.spec.replicas.get_or_insert(REPLICAS);
    Ok(site.into())
}

/// The validating webhook: yes, no, or yes with a warning.
async fn check(admission: Admission<Site>) -> Result<Verdict, Denial> {
    match admission.object()?.spec.replicas {
        Some(replicas) if !(0..=REPLICAS_MAX).contains(&replicas) => {
            let wrong = format!("a site has at most {REPLICAS_MAX} replicas, not {replicas}");
            Err(Denial::invalid(&wrong).cause("spec.replicas", "FieldValueInvalid", wrong))
        }
        Some(0) => Ok(Verdict::allow().warn("without replicas nobody is served")),
        _ => Ok(Verdict::allow()),
    }
}

/// The webhooks, ready to be added to a manager.
pub fn webhooks(options: ServeOptions) -> WebhookServer {
    WebhookServer::new(options).mutate("/fill-in", fill_in).validate("/check", check)
}

/// The controller: what it reads from.
struct Operator {
    sites: Lister<Site>,
}

impl Reconciler for Operator {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        // Gone: so will be the deployment, which the garbage collector finds by its owner.
        let Some(site) = self.sites.get(key) else { return Ok(Action::Done) };
        let labels = json!({ "site": &*key.name });
        let wanted: Deployment = serde_json::from_value(json!({
            "metadata": { "name": &*key.name, "namespace": &*key.namespace },
            "spec": {
                "replicas": site.spec.replicas.unwrap_or(REPLICAS),
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "web", "image": site.spec.image }] },
                },
            },
        }))?;
        let wanted = wanted.controlled_by(&*site)?;
        cx.writer.on_behalf_of(&*site).create_or_patch(&wanted, Why::SiteNeedsServers).await?;
        Ok(Action::Done)
    }
}

/// Adds the controller to a manager. It works while this process leads.
pub fn add_operator(manager: &Manager) -> Controller {
    let operator = Operator { sites: manager.lister() };
    manager.controller::<Site>("site").owns::<Deployment>().reconcile_with(operator)
}

/// The definition of the kind.
#[must_use]
pub fn definition() -> Value {
    let schema = json!({ "type": "object", "properties": { "spec": {
        "type": "object",
        "required": ["image"],
        "properties": { "image": { "type": "string" }, "replicas": { "type": "integer" } },
    } } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    let names = json!({ "kind": "Site", "plural": "sites", "singular": "site", "listKind": "SiteList" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "sites.web.example.dev" },
        "spec": { "group": "web.example.dev", "scope": "Namespaced", "names": names, "versions": [version] },
    })
}

/// Registers the webhooks with API servers. In a cluster they are found by a `service`; on one machine a `url` does.
#[must_use]
pub fn registrations(url: &str, authority_pem: &str) -> [Value; 2] {
    let registration = |kind: &str, path: &str| {
        let rule = json!({
            "apiGroups": ["web.example.dev"], "apiVersions": ["v1"], "resources": ["sites"],
            "operations": ["CREATE", "UPDATE"],
        });
        let webhook = json!({
            "name": "sites.web.example.dev",
            "clientConfig": { "url": format!("{url}{path}"), "caBundle": STANDARD.encode(authority_pem) },
            "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": "sites.web.example.dev" }, "webhooks": [webhook],
        })
    };
    [registration("MutatingWebhookConfiguration", "/fill-in"), registration("ValidatingWebhookConfiguration", "/check")]
}
