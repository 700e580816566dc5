//! Where a webhook is: the `clientConfig` of a configuration, and the address it stands for.
//!
//! A cluster without a network has no cluster IPs to connect to. So a `service` is found by the first of these:
//!
//! 1. the annotation [`ADDRESS_ANNOTATION`] of the Service, `host:port`;
//! 2. its `externalName`, if it is of that type, and the port of the webhook;
//! 3. an address and port of a ready endpoint in its EndpointSlices, then in its Endpoints.
//!
//! The certificate must be valid for `<name>.<namespace>.svc`, as upstream.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_base::ObjectKey;

use super::trust;
use crate::kinds::shared::json::{items, number, text};
use crate::registry::Registry;
use crate::registry::admission::Lookup;

/// The annotation of a Service that says where its webhooks are.
const ADDRESS_ANNOTATION: &str = "webhooks.steersman.dev/address";
/// The label by which EndpointSlices name their Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const PORT: u16 = 443;

/// The `clientConfig` of a webhook.
#[derive(Debug)]
pub(crate) struct ClientConfig {
    place: Place,
    authorities: Vec<u8>,
    tls: OnceLock<Result<Arc<rustls::ClientConfig>, String>>,
}

#[derive(Debug)]
enum Place {
    Nowhere,
    Url(String),
    Service { namespace: String, name: String, path: String, port: u16 },
}

/// The server of a webhook, and the path of the request.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The URL, as errors show it.
    pub(crate) url: String,
    /// The host and port to connect to, or why there is none.
    pub(super) address: Result<(String, u16), String>,
    /// The value of the `Host` header.
    pub(super) authority: String,
    /// The path and the query.
    pub(super) target: String,
    /// The name that the certificate must have.
    pub(super) server_name: String,
    pub(super) tls: Arc<rustls::ClientConfig>,
}

// === impl ClientConfig ===

impl ClientConfig {
    /// Reads a `clientConfig`.
    pub(crate) fn read(config: &Value) -> Self {
        let service = &config["service"];
        let place = match config["url"].as_str() {
            Some(url) => Place::Url(url.to_owned()),
            None if service.is_object() => Place::Service {
                namespace: text(&service["namespace"]).to_owned(),
                name: text(&service["name"]).to_owned(),
                path: text(&service["path"]).to_owned(),
                port: u16::try_from(number(&service["port"])).ok().filter(|port| *port > 0).unwrap_or(PORT),
            },
            None => Place::Nowhere,
        };
        let authorities = STANDARD.decode(text(&config["caBundle"])).unwrap_or_default();
        Self { place, authorities, tls: OnceLock::new() }
    }

    /// Returns where to connect to now.
    ///
    /// # Errors
    /// The configuration makes no sense: the rest of a sentence that begins with `could not get REST client: `.
    pub(crate) fn endpoint(&self, registry: &Registry, timeout: Duration) -> Result<Arc<Endpoint>, String> {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        self.endpoint_with(registry, &format!("?timeout={seconds}s"))
    }

    /// Returns where to connect to now, for a call without a deadline for the webhook: upstream has none.
    pub(crate) fn endpoint_without_deadline(&self, registry: &Registry) -> Result<Arc<Endpoint>, String> {
        // client-go always says how long it waits.
        self.endpoint_with(registry, "?timeout=30s")
    }

    fn endpoint_with(&self, registry: &Registry, query: &str) -> Result<Arc<Endpoint>, String> {
        let tls = self.tls.get_or_init(|| trust::client_config(&self.authorities)).clone()?;
        let (authority, path, server_name, address) = match &self.place {
            Place::Nowhere => return Err("webhook configuration must have either service or URL".to_owned()),
            Place::Url(url) => {
                let uri: http::Uri = url.parse().map_err(|error| format!("Unparsable URL: {error}"))?;
                let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                let port = uri.port_u16().unwrap_or(PORT);
                let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
                (authority, uri.path().to_owned(), host.clone(), Ok((host, port)))
            }
            Place::Service { namespace, name, path, port } => {
                let host = format!("{name}.{namespace}.svc");
                (format!("{host}:{port}"), path.clone(), host, resolve(registry, namespace, name, *port))
            }
        };
        // client-go joins the parts of the path anew.
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let target = format!("/{}{query}", parts.join("/"));
        let url = format!("https://{authority}{target}");
        Ok(Arc::new(Endpoint { url, address, authority, target, server_name, tls }))
    }
}

/// Returns the address of a Service.
fn resolve(registry: &Registry, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
    let stored = registry.stored("", "v1", "services", &ObjectKey::new(namespace, name));
    let service = stored.ok_or_else(|| format!("service {name:?} not found"))?;
    if let Some(address) = service["metadata"]["annotations"][ADDRESS_ANNOTATION].as_str() {
        let (host, port) =
            address.rsplit_once(':').ok_or_else(|| format!("address {address}: missing port in address"))?;
        let port = port.parse().map_err(|_| format!("address {address}: invalid port"))?;
        return Ok((host.trim_matches(['[', ']']).to_owned(), port));
    }
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return Ok((text(&spec["externalName"]).to_owned(), port));
    }
    let ports = items(&spec["ports"]);
    let Some(declared) = ports.iter().find(|declared| number(&declared["port"]) == i64::from(port)) else {
        return Err(format!("no service port {port} found for service {name:?}"));
    };
    let port_name = text(&declared["name"]);
    in_slices(registry, namespace, name, port_name)
        .or_else(|| in_endpoints(registry, namespace, name, port_name))
        .ok_or_else(|| format!("no endpoints available for service {name:?}"))
}

fn in_slices(registry: &Registry, namespace: &str, name: &str, port_name: &str) -> Option<(String, u16)> {
    let slices = Lookup::list(registry, "discovery.k8s.io", "endpointslices", namespace);
    let mut own = slices.iter().filter(|slice| slice["metadata"]["labels"][SERVICE_LABEL] == name);
    own.find_map(|slice| {
        let is_ready = |endpoint: &&Value| endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
        let endpoint = items(&slice["endpoints"]).iter().find(is_ready)?;
        Some((text(items(&endpoint["addresses"]).first()?).to_owned(), port_of(&slice["ports"], port_name)?))
    })
}

fn in_endpoints(registry: &Registry, namespace: &str, name: &str, port_name: &str) -> Option<(String, u16)> {
    let endpoints = Lookup::get(registry, "", "endpoints", namespace, name)?;
    items(&endpoints["subsets"]).iter().find_map(|subset| {
        let address = items(&subset["addresses"]).first()?;
        Some((text(&address["ip"]).to_owned(), port_of(&subset["ports"], port_name)?))
    })
}

fn port_of(ports: &Value, name: &str) -> Option<u16> {
    let port = items(ports).iter().find(|port| text(&port["name"]) == name)?;
    u16::try_from(number(&port["port"])).ok()
}
