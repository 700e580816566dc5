//! A real kube-apiserver asks our webhooks.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman_runtime::serving::{CertificateSource, ServeOptions, Tls};
use steersman_runtime::webhook::{Admission, Denial, Mutated, Operation, Verdict, Versions, WebhookServer};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Outcome, PATIENCE, Place};

type Error = Box<dyn std::error::Error>;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A webhook server that runs, as it is registered with the API server.
struct Hooks {
    url: String,
    bundle: String,
    _stop: DropGuard,
}

/// Two versions of a kind.
#[derive(Serialize, Deserialize)]
struct SiteV1 {
    spec: SiteV1Spec,
}

#[derive(Serialize, Deserialize)]
struct SiteV1Spec {
    host: String,
}

#[derive(Serialize, Deserialize)]
struct SiteV2 {
    spec: SiteV2Spec,
}

#[derive(Serialize, Deserialize)]
struct SiteV2Spec {
    hosts: Vec<String>,
}

impl From<SiteV1> for SiteV2 {
    fn from(site: SiteV1) -> Self {
        Self { spec: SiteV2Spec { hosts: vec![site.spec.host] } }
    }
}

impl TryFrom<SiteV2> for SiteV1 {
    type Error = String;
    fn try_from(site: SiteV2) -> Result<Self, String> {
        match <[String; 1]>::try_from(site.spec.hosts) {
            Ok([host]) => Ok(Self { spec: SiteV1Spec { host } }),
            Err(hosts) => Err(format!("v1 has one host, and there are {}", hosts.len())),
        }
    }
}

/// Every ConfigMap gets a label.
async fn label(mut admission: Admission<ConfigMap>) -> Result<Mutated<ConfigMap>, Denial> {
    let user = admission.user.username.clone();
    let mut object = admission.take_object()?;
    object.metadata.labels.get_or_insert_default().insert("seen-by/steersman".to_owned(), "yes".to_owned());
    Ok(Mutated::from(object).annotate("user", user))
}

async fn judge(admission: Admission<ConfigMap>) -> Result<Verdict, Denial> {
    let object = admission.object.as_ref().or(admission.old_object.as_ref());
    let data = |key: &str| object.and_then(|object| object.data.as_ref()?.get(key)).map(String::as_str);
    if admission.operation == Operation::Delete && data("keep").is_some() {
        return Ok(Verdict::deny("it is kept"));
    }
    assert_ne!(data("panic"), Some("yes"), "as asked for");
    match data("mood") {
        Some("bad") => Err(Denial::invalid("no bad moods").cause("data.mood", "FieldValueInvalid", "bad")),
        Some("odd") => Ok(Verdict::allow().warn(format!("odd, dry run {}", admission.dry_run))),
        _ => Ok(Verdict::allow()),
    }
}

impl Hooks {
    async fn start() -> Result<Self, Error> {
        let tls = Tls::new(CertificateSource::SelfSigned { names: Vec::new() });
        let mut server = WebhookServer::new(ServeOptions::default().with_tls(tls))
            .mutate("/label", label)
            .validate("/judge", judge)
            .convert("/convert", Versions::<SiteV2>::hub("example.com/v2").version::<SiteV1>("example.com/v1"));
        let serving = server.bind().await?;
        let url = format!("https://{}", serving.address());
        let bundle = STANDARD.encode(serving.certificate_pem().unwrap_or_default());
        let started = server.started();
        assert!(started.check().await.is_err(), "it does not run yet");
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        timeout(PATIENCE, async {
            while started.check().await.is_err() {
                sleep(LOOK_EVERY).await;
            }
        })
        .await?;
        Ok(Self { url, bundle, _stop: stop.drop_guard() })
    }

    fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("{}{path}", self.url), "caBundle": self.bundle})
    }

    /// Asks about ConfigMaps of this namespace.
    fn configuration(&self, place: &Place, kind: &str, path: &str, failure_policy: &str) -> Value {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]});
        let webhook = json!({
            "name": "webhook.example.com", "clientConfig": self.client_config(path), "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": failure_policy,
        });
        let name = format!("{}{}", place.namespace, path.replace('/', "-"));
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]})
    }
}

impl Place {
    /// Status, warnings and body; a refusal is an answer too.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<(StatusCode, Vec<String>, Value), Error> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let response: Response<Body> = self.client.send(request.body(Body::from(body))?).await?;
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.filter_map(|warning| warning.to_str().ok().map(str::to_owned)).collect();
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, warnings, serde_json::from_slice(&body)?))
    }
}

fn config_map(name: &str, key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value}})
}

#[tokio::test]
async fn a_real_api_server_asks_whether_and_how_to_write() -> Outcome {
    let place = Place::new("admission").await?;
    let hooks = Hooks::start().await?;
    let registration = "/apis/admissionregistration.k8s.io/v1";
    let mutating = hooks.configuration(&place, "MutatingWebhookConfiguration", "/label", "Fail");
    place.post(&format!("{registration}/mutatingwebhookconfigurations"), mutating).await?;
    let validating = hooks.configuration(&place, "ValidatingWebhookConfiguration", "/judge", "Ignore");
    place.post(&format!("{registration}/validatingwebhookconfigurations"), validating).await?;

    let path = place.path("configmaps");
    let dry_run = format!("{path}?dryRun=All");
    // API servers notice new webhooks after a while.
    let odd = config_map("odd", "mood", "odd");
    let noticed = async {
        loop {
            let (_, warnings, body) = place.ask("POST", &dry_run, &odd).await?;
            if !warnings.is_empty() && body["metadata"]["labels"]["seen-by/steersman"] == "yes" {
                return Ok::<_, Error>((warnings, body));
            }
            sleep(LOOK_EVERY).await;
        }
    };
    let (warnings, body) = timeout(PATIENCE, noticed).await??;
    assert!(warnings[0].contains("odd, dry run true"), "{warnings:?}");
    assert_eq!(body["data"], json!({"mood": "odd"}), "the rest is as it was");

    let (status, _, body) = place.ask("POST", &path, &config_map("bad", "mood", "bad")).await?;
    assert_eq!((status.as_u16(), &body["reason"]), (422, &json!("Invalid")), "{body}");
    let message = "admission webhook \"webhook.example.com\" denied the request: no bad moods";
    assert_eq!(body["message"], message);

    let (status, _, body) = place.ask("POST", &path, &config_map("kept", "keep", "yes")).await?;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    let (status, _, body) = place.ask("DELETE", &format!("{path}/kept"), &Value::Null).await?;
    assert_eq!(
        (status.as_u16(), body["message"].as_str().is_some_and(|text| text.ends_with("it is kept"))),
        (403, true)
    );

    // The webhook panics, and its failure is to be ignored.
    let (status, _, body) = place.ask("POST", &path, &config_map("panic", "panic", "yes")).await?;
    assert_eq!(
        (status, &body["metadata"]["labels"]["seen-by/steersman"]),
        (StatusCode::CREATED, &json!("yes")),
        "{body}"
    );
    Ok(())
}

#[tokio::test]
async fn a_real_api_server_reads_objects_in_another_version() -> Outcome {
    let place = Place::new("conversion").await?;
    let hooks = Hooks::start().await?;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v2", "schema": schema});
    let conversion = json!({"clientConfig": hooks.client_config("/convert"), "conversionReviewVersions": ["v1"]});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version("v1"), version("v2")],
            "names": {"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
            "conversion": {"strategy": "Webhook", "webhook": conversion},
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    place.post(definitions, definition).await?;
    let sites = |version: &str| format!("/apis/example.com/{version}/namespaces/{}/sites", place.namespace);
    let site = |version: &str, name: &str, spec: Value| {
        let metadata = json!({"name": name, "labels": {"a": "b"}});
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Site", "metadata": metadata, "spec": spec})
    };
    let one = site("v1", "one", json!({"host": "a.example.com"}));
    let served = async {
        loop {
            match place.ask("POST", &sites("v1"), &one).await {
                Ok((StatusCode::CREATED, ..)) => return,
                // Not JSON yet, but "404 page not found".
                _ => sleep(LOOK_EVERY).await,
            }
        }
    };
    timeout(PATIENCE, served).await?;

    let (_, _, read) = place.ask("GET", &format!("{}/one", sites("v2")), &Value::Null).await?;
    assert_eq!(read["spec"], json!({"hosts": ["a.example.com"]}), "{read}");
    assert_eq!(read["metadata"]["labels"], json!({"a": "b"}), "{read}");
    let two = site("v2", "two", json!({"hosts": ["b.example.com"]}));
    assert_eq!(place.ask("POST", &sites("v2"), &two).await?.0, StatusCode::CREATED);
    let (_, _, list) = place.ask("GET", &sites("v1"), &Value::Null).await?;
    let hosts: Vec<_> = list["items"].as_array().into_iter().flatten().map(|item| &item["spec"]["host"]).collect();
    assert_eq!(hosts, ["a.example.com", "b.example.com"], "{list}");

    let many = site("v2", "many", json!({"hosts": ["c.example.com", "d.example.com"]}));
    assert_eq!(place.ask("POST", &sites("v2"), &many).await?.0, StatusCode::CREATED);
    let (status, _, failed) = place.ask("GET", &format!("{}/many", sites("v1")), &Value::Null).await?;
    let message = failed["message"].as_str().unwrap_or_default();
    assert!(status.is_server_error() && message.contains("v1 has one host, and there are 2"), "{failed}");
    place.ask("DELETE", &format!("{definitions}/sites.example.com"), &Value::Null).await?;
    Ok(())
}
