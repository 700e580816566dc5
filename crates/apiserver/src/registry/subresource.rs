//! Parts of objects with a path of their own.

use serde_json::{Value, json};

use super::checked::Checked;
use super::fit::{wrong_kind, wrong_uid, wrong_version};
use super::life::{meta_text, metadata};
use super::write::Part;
use super::{Answer, Call, Content, Registry, Verb};
use crate::decode::{self, ContentType};
use crate::field::{FieldError, Path};
use crate::kinds;
use crate::logs::{Log, LogOptions};
use crate::patch::PatchType;
use crate::schema;
use crate::status::{GroupResource, Status};

/// The body of a request, by verb.
pub(crate) enum Input<'a> {
    /// There is none.
    None,
    /// An object.
    Object(&'a [u8], ContentType),
    /// A patch.
    Patch(&'a [u8], PatchType),
}

impl Registry {
    /// A request about a part of an object.
    pub(crate) fn subresource(&self, call: &Call, verb: Verb, input: &Input<'_>) -> Result<Answer, Status> {
        match (call.subresource.as_str(), input) {
            ("status" | "approval" | "ephemeralcontainers" | "resize" | "finalize", Input::None) => self.get(call),
            ("status", Input::Object(body, kind)) => self.put(call, Part::Status, body, *kind),
            ("status", Input::Patch(body, kind)) => self.patch(call, Part::Status, *kind, body),
            ("scale", Input::None) => self.get_scale(call),
            ("scale", Input::Object(body, kind)) => self.put_scale(call, body, *kind),
            ("scale", Input::Patch(body, kind)) => self.patch_scale(call, *kind, body),
            ("finalize", Input::Object(body, kind)) => self.put(call, Part::Finalizers, body, *kind),
            ("approval", Input::Object(body, kind)) => self.put(call, Part::Approval, body, *kind),
            ("approval", Input::Patch(body, kind)) => self.patch(call, Part::Approval, *kind, body),
            ("binding", Input::Object(body, kind)) => self.bind_pod(call, body, *kind),
            ("ephemeralcontainers" | "resize", Input::Object(..) | Input::Patch(..)) => self.change_pod(call, input),
            ("token", Input::Object(body, kind)) => {
                self.request_token(call, read(body, *kind, "authentication.k8s.io", "v1", "TokenRequest", call)?)
            }
            ("eviction", Input::Object(body, kind)) => {
                self.evict(call, &read(body, *kind, "policy", "v1", "Eviction", call)?)
            }
            ("log", Input::None) => self.log(call),
            ("exec" | "attach" | "portforward" | "proxy", _) => {
                let message = format!("{} is not supported by this server: its pods are simulated", call.subresource);
                Err(Status::new(405, "MethodNotAllowed", message))
            }
            _ => Err(Status::method_not_supported(call.row.target(), verb.name())),
        }
    }

    /// POST of a Binding: the pod is on a node now. Its uid and its version are preconditions.
    fn bind_pod(&self, call: &Call, body: &[u8], kind: ContentType) -> Result<Answer, Status> {
        let binding = read(body, kind, "", "v1", "Binding", call)?;
        let target = GroupResource { group: "", resource: "pods/binding" };
        if meta_text(&binding, "name") != call.name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        check_target(&binding["target"])?;
        let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
        let now = self.clock.now().to_string();
        self.update(call, Part::Server, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(call.row.target(), &call.name)) };
            check_preconditions(call, &binding, old)?;
            if let Some(why) = unbindable(old) {
                return Err(Status::conflict(target, &call.name, &why));
            }
            let mut pod = old.clone();
            pod["spec"]["nodeName"] = node.clone().into();
            for field in ["annotations", "labels"] {
                for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                    pod["metadata"][field][key] = value.clone();
                }
            }
            if let Some(status) = pod["status"].as_object_mut() {
                status.remove("nominatedNodeName");
            }
            set_scheduled(&mut pod, &now);
            metadata(&mut pod).remove("resourceVersion");
            Ok((Checked::composed(&call.row, pod)?, Vec::new()))
        })?;
        Ok(Answer { code: 201, ..Answer::from(Status::new(201, "", "")) })
    }

    /// POST of a Binding to the old path: its name is the pod's.
    fn bind_by_name(&self, call: &Call, body: &[u8], kind: ContentType) -> Result<Answer, Status> {
        let binding = read(body, kind, "", "v1", "Binding", call)?;
        let row = self.row("", "v1", "pods").ok_or_else(Status::no_resource)?;
        let pod = Call {
            row,
            namespace: call.namespace.clone(),
            name: meta_text(&binding, "name").to_owned(),
            subresource: "binding".to_owned(),
            user: call.user.clone(),
            query: call.query.clone(),
            dry_run: call.dry_run,
            field_validation: call.field_validation,
        };
        self.bind_pod(&pod, body, kind)
    }

    /// Ephemeral containers and resizes: a pod's spec, but only the part that may change.
    fn change_pod(&self, call: &Call, input: &Input<'_>) -> Result<Answer, Status> {
        match input {
            Input::Object(body, kind) => self.put(call, Part::Spec, body, *kind),
            Input::Patch(body, kind) => self.patch(call, Part::Spec, *kind, body),
            Input::None => self.get(call),
        }
    }

    /// GET of a pod's log: whoever runs the pod knows.
    fn log(&self, call: &Call) -> Result<Answer, Status> {
        let options = LogOptions::read(&call.query, &call.name, &self.clock)?;
        let pod = self.store.get(&call.row.shelf, &call.key());
        let pod = pod.ok_or_else(|| Status::not_found(call.row.target(), &call.name))?;
        let pod = pod.parse().map_err(Status::internal)?;
        let container = options.container(&pod)?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if node.is_empty() {
            return Ok(Answer::ok(Content::Nothing));
        }
        let target = GroupResource { group: "", resource: "nodes" };
        let found = self.stored("", "v1", "nodes", &steersman_base::ObjectKey::cluster(node));
        let found = found.ok_or_else(|| Status::not_found(target, node))?;
        let log = match &self.logs {
            Some(logs) => logs.open(&options.wanted(&pod, container)?),
            None if found["status"]["addresses"].as_array().is_none_or(Vec::is_empty) => {
                return Err(Status::plain("no preferred addresses found; known addresses: []"));
            }
            None => Ok(Log { lines: Vec::new(), more: None }),
        };
        let log = log.map_err(|refused| Status::bad_request(refused.to_string()))?;
        Ok(Answer::ok(Content::Log(options.text(log))))
    }

    /// POST to a resource that keeps nothing: reviews and bindings.
    pub(crate) fn review(&self, call: &Call, body: &[u8], kind: ContentType) -> Result<Answer, Status> {
        let resource = &call.row.resource;
        if call.row.is("", "bindings") {
            return self.bind_by_name(call, body, kind);
        }
        let mut review = read(body, kind, &resource.group, &resource.version, &resource.kind, call)?;
        review["kind"] = resource.kind.clone().into();
        review["apiVersion"] = resource.api_version().into();
        let meta = metadata(&mut review);
        if !call.namespace.is_empty() {
            meta.insert("namespace".into(), call.namespace.clone().into());
        }
        review["status"] = match &*resource.plural {
            "selfsubjectreviews" => {
                metadata(&mut review).insert("creationTimestamp".into(), self.clock.now().to_string().into());
                json!({"userInfo": call.user.to_json()})
            }
            "tokenreviews" => self.review_token(&review)?,
            "subjectaccessreviews" | "selfsubjectaccessreviews" | "localsubjectaccessreviews" => {
                self.review_access(call, &review)?
            }
            "selfsubjectrulesreviews" => self.review_rules(call, &review),
            _ => return Err(Status::method_not_supported(call.row.target(), "create")),
        };
        Ok(Answer::created(Content::Value(review)))
    }
}

/// Reads a body that is no object of a resource.
fn read(
    body: &[u8],
    content_type: ContentType,
    group: &str,
    version: &str,
    kind: &str,
    call: &Call,
) -> Result<Value, Status> {
    let decoded = decode::object(body, content_type).map_err(|error| Status::bad_request(error.message(kind)))?;
    let mut value = decoded.value;
    check_kind(&value, group, version, kind)?;
    let checked = schema::check_with(group, version, kind, &mut value, decoded.duplicates, call.field_validation);
    checked.map_err(|problem| Status::bad_request(problem.message(version, kind)))?;
    kinds::default(group, kind, &mut value);
    Ok(value)
}

/// A body may leave its kind out, but not be of another.
pub(super) fn check_kind(value: &Value, group: &str, version: &str, want: &str) -> Result<(), Status> {
    match value["kind"].as_str() {
        Some(kind) if !kind.is_empty() && kind != want => {
            Err(Status::bad_request(wrong_kind(group, version, want, kind)))
        }
        _ => Ok(()),
    }
}

/// If a Binding says which pod it means, and in which version, it must be that one.
fn check_preconditions(call: &Call, binding: &Value, pod: &Value) -> Result<(), Status> {
    let (uid, held) = (meta_text(binding, "uid"), meta_text(pod, "uid"));
    if !uid.is_empty() && uid != held {
        return Err(wrong_uid(call, uid, held));
    }
    let (version, held) = (meta_text(binding, "resourceVersion"), meta_text(pod, "resourceVersion"));
    if !version.is_empty() && version != held {
        return Err(wrong_version(call, version, held));
    }
    Ok(())
}

/// Why a pod cannot be bound to a node, if it cannot.
fn unbindable(pod: &Value) -> Option<String> {
    let name = meta_text(pod, "name");
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    match pod["spec"]["nodeName"].as_str() {
        Some(held) if !held.is_empty() => return Some(format!("pod {name} is already assigned to node {held:?}")),
        _ => {}
    }
    let is_gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    is_gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

/// A pod is bound to a node, and to nothing else. Upstream answers these with 500.
fn check_target(target: &Value) -> Result<(), Status> {
    let path = Path::new("target");
    let mut errors = Vec::new();
    let kind = target["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if target["name"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::plain(one.to_string())),
        many => {
            Err(Status::plain(format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))))
        }
    }
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    set_condition(pod, scheduled);
}

/// Sets a condition of a pod, unless it is so already.
pub(super) fn set_condition(pod: &mut Value, condition: Value) {
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|held| held["type"] == condition["type"]) {
        Some(held) if held["status"] == condition["status"] => {}
        Some(held) => *held = condition,
        None => conditions.push(condition),
    }
}
