//! `serviceaccounts/token`: a signed token for a service account.
//!
//! Follows `pkg/registry/core/serviceaccount/storage/token.go` of Kubernetes 1.37.

use std::sync::LazyLock;

use serde_json::{Value, json};
use steersman_base::ObjectKey;
use steersman_structured_merge::{FieldManager, OneVersion, Schema, Writer};

use crate::auth::{Bound, ISSUER};
use crate::decode::ContentType;
use crate::field::{FieldError, Path};
use crate::registry::object_meta::meta_text;
use crate::registry::owners::built_in_schema;
use crate::registry::query::strings;
use crate::registry::subresource::read_body;
use crate::registry::{Answer, Call, Content, Registry};
use crate::schema;
use crate::status::{GroupResource, Status};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest";
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;
const SECONDS_DEFAULT: i64 = 3600;
/// The objects that a token can be bound to: kind, resource, and the name of the claim.
const BINDABLE: [(&str, &str, &str); 3] =
    [("Pod", "pods", "pod"), ("Secret", "secrets", "secret"), ("Node", "nodes", "node")];

/// Answers the POST of a TokenRequest.
pub(crate) fn create(registry: &Registry, call: &Call, body: &[u8], kind: ContentType) -> Result<Answer, Status> {
    let request = read_body(body, kind, "authentication.k8s.io", "v1", "TokenRequest", call)?;
    let mut request = registry.ask_about_body(call, request, None)?;
    let row = &*call.row;
    let account = registry.store.get(&row.collection, &call.key()).and_then(|stored| stored.parse().ok());
    let account: Value = account.ok_or_else(|| Status::not_found(row.target(), &call.name))?;
    check_names(call, &request)?;
    if request["spec"]["expirationSeconds"].is_null() {
        request["spec"]["expirationSeconds"] = SECONDS_DEFAULT.into();
    }
    let owners = owners_of(registry, call, &request);
    if strings(&request["spec"]["audiences"]).is_empty() {
        request["spec"]["audiences"] = json!([ISSUER]);
    }
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(0);
    check_seconds(seconds)?;
    let mut bound = Bound {
        namespace: call.namespace.clone(),
        account: call.name.clone(),
        account_uid: meta_text(&account, "uid").to_owned(),
        objects: Vec::new(),
    };
    let reference = request["spec"]["boundObjectRef"].clone();
    if reference.is_object() {
        bind(registry, call, &reference, &mut bound)?;
    } else {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    let now = registry.clock.now();
    let expires = now.plus_seconds(seconds);
    let keys = registry.auth.keys().ok_or_else(|| Status::internal("no signing key"))?;
    let audiences = strings(&request["spec"]["audiences"]);
    let token = keys.sign(&bound, &audiences, now, expires).map_err(Status::internal)?;
    let mut answer = json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": call.name,
            "namespace": call.namespace,
            "uid": meta_text(&account, "uid"),
            "creationTimestamp": now.to_string(),
        },
        "spec": request["spec"],
        "status": {"token": token, "expirationTimestamp": expires.to_string()},
    });
    answer["metadata"]["managedFields"] = owners;
    Ok(Answer::created(Content::Value(answer)))
}

/// Returns the owners of the fields of a request: its sender.
fn owners_of(registry: &Registry, call: &Call, request: &Value) -> Value {
    static VERSIONS: LazyLock<OneVersion> = LazyLock::new(|| OneVersion {
        api_version: API_VERSION.to_owned(),
        schema: built_in_schema("authentication.k8s.io", "v1", KIND).unwrap_or_else(Schema::deduced),
    });
    let mut object = request.clone();
    schema::complete("authentication.k8s.io", "v1", KIND, &mut object);
    let versions: &OneVersion = &VERSIONS;
    let managers = FieldManager { api_version: API_VERSION, kind: KIND, subresource: "token", versions, filters: &[] };
    let now = registry.clock.now().to_string();
    // The schema has accepted the request, so it can be compared.
    let _ = managers.update(None, &mut object, Writer { manager: &call.manager, now: &now });
    object["metadata"]["managedFields"].take()
}

/// Binds a token to a pod, a secret or a node: it is invalid once that is deleted.
fn bind(registry: &Registry, call: &Call, reference: &Value, bound: &mut Bound) -> Result<(), Status> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let kind = text("kind");
    let name = text("name");
    let Some((_, plural, claim)) = BINDABLE.iter().find(|(held, ..)| *held == kind) else {
        let group_version = group_version(text("apiVersion"));
        let message = format!("cannot bind token to object of type {group_version}, Kind={kind}");
        return Err(Status::bad_request(message));
    };
    let namespace = if *plural == "nodes" { "" } else { &call.namespace };
    let object = registry.stored("", "v1", plural, &ObjectKey::new(namespace, name));
    let object = object.ok_or_else(|| Status::not_found(GroupResource { group: "", resource: plural }, name))?;
    if *plural == "pods" && object["spec"]["serviceAccountName"].as_str().unwrap_or_default() != call.name {
        let message = format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name
        );
        return Err(Status::bad_request(message));
    }
    let uid = meta_text(&object, "uid").to_owned();
    if !text("uid").is_empty() && text("uid") != uid {
        let target = GroupResource { group: "", resource: plural };
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        return Err(Status::conflict(target, name, &why));
    }
    let node = object["spec"]["nodeName"].as_str().filter(|node| *plural == "pods" && !node.is_empty());
    if let Some(node) = node {
        let node_uid = registry.stored("", "v1", "nodes", &ObjectKey::cluster(node));
        let node_uid = node_uid.map(|node| meta_text(&node, "uid").to_owned()).unwrap_or_default();
        bound.objects.push(("node", node.to_owned(), node_uid));
    }
    bound.objects.push((claim, name.to_owned(), uid));
    Ok(())
}

/// Refuses a request that names another service account.
fn check_names(call: &Call, request: &Value) -> Result<(), Status> {
    let path = Path::new("metadata");
    let kind = GroupResource { group: "authentication.k8s.io", resource: "TokenRequest" };
    let fields = [("name", &call.name, "name"), ("namespace", &call.namespace, "namespace")];
    for (field, want, word) in fields {
        let named = meta_text(request, field);
        if !named.is_empty() && named != want {
            let detail = format!("must match the service account {word} if specified");
            let error = FieldError::invalid(&path.child(field), named, detail);
            return Err(Status::invalid(kind, &call.name, &[error]));
        }
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<(), Status> {
    let detail = if seconds < SECONDS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if seconds > SECONDS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let path = Path::new("spec").child("expirationSeconds");
    let kind = GroupResource { group: "authentication.k8s.io", resource: "TokenRequest" };
    Err(Status::invalid(kind, "", &[FieldError::invalid(&path, seconds, detail)]))
}

/// Returns a version with its group, as Go prints it: `/v1`, `apps/v1`.
fn group_version(api_version: &str) -> String {
    if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") }
}
