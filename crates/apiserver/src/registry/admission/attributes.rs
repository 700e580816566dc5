//! The operation of a request on an object, as webhooks and policies see it.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_cel::{AuthorizationCheck, Binding};

use super::conditions::RequestAuthorizer;
use super::matching::{Asked, Criteria, Rule};
use crate::registry::checked::Checked;
use crate::registry::object_meta::meta_text;
use crate::registry::{Call, Registry, Row, convert};
use crate::schema;
use crate::status::{GroupResource, Status};
use steersman_base::{ObjectKey, Selector, StringMap};
use steersman_structured_merge::Schema;

/// The operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// The operation of a request on an object.
pub(crate) struct Attributes<'a> {
    pub(super) call: &'a Call,
    pub(super) operation: Operation,
    /// The name of the object, if it is known.
    pub(super) name: String,
    /// The object as it is to be written, in the version of the request; none for a deletion.
    pub(crate) object: Option<Value>,
    /// The object as it was, in the version of the request; none for a create.
    pub(super) old: Option<Value>,
    /// The options of the request.
    options: Value,
    is_dry: bool,
}

/// The resource as which a webhook or a policy knows the object.
pub(super) struct Invocation {
    /// The resource in the version that is asked for.
    pub(super) row: Arc<Row>,
}

/// The request as expressions see it, written as Go does.
pub(super) struct Seen {
    pub(super) object: Value,
    pub(super) old: Value,
    pub(super) request: Value,
}

// === impl Seen ===

impl Seen {
    /// Returns the variables of expressions that decide about a request.
    pub(super) fn bindings<'a>(
        &'a self,
        namespace: Binding<'a>,
        authorizer: &'a RequestAuthorizer<'a>,
        check: AuthorizationCheck,
    ) -> Vec<(&'static str, Binding<'a>)> {
        let mut bindings = self.bindings_without_authorizer(namespace);
        bindings.push(("authorizer", Binding::Authorizer(authorizer)));
        bindings.push(("authorizer.requestResource", Binding::ResourceCheck(authorizer, Box::new(check))));
        bindings
    }

    /// Returns the variables of expressions that write messages.
    pub(super) fn bindings_without_authorizer<'a>(
        &'a self,
        namespace: Binding<'a>,
    ) -> Vec<(&'static str, Binding<'a>)> {
        vec![
            ("object", Binding::Json(&self.object)),
            ("oldObject", Binding::Json(&self.old)),
            ("namespaceObject", namespace),
            ("request", Binding::Json(&self.request)),
        ]
    }
}

// === impl Operation ===

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

// === impl Attributes ===

impl<'a> Attributes<'a> {
    /// Returns what a create or an update does.
    pub(crate) fn written(call: &'a Call, object: Value, old: Option<Value>) -> Self {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let name = if call.name.is_empty() { meta_text(&object, "name").to_owned() } else { call.name.clone() };
        let options = if old.is_some() { "UpdateOptions" } else { "CreateOptions" };
        let options = write_options(call, options);
        Self { call, operation, name, object: Some(object), old, options, is_dry: call.dry_run }
    }

    /// Returns what a deletion does.
    pub(crate) fn deleted(call: &'a Call, old: Value, options: Value, is_dry: bool) -> Self {
        let operation = Operation::Delete;
        Self { call, operation, name: call.name.clone(), object: None, old: Some(old), options, is_dry }
    }

    pub(super) fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// Returns the namespace as webhooks see it: a namespace is in itself.
    pub(super) fn namespace(&self) -> &str {
        if self.call.row.rules.strategy.is_namespace { &self.name } else { &self.call.namespace }
    }

    fn asked<'b>(&'b self, row: &'b Row) -> Asked<'b> {
        Asked {
            group: &row.resource.group,
            version: &row.resource.version,
            resource: &row.resource.plural,
            subresource: &self.call.subresource,
            operation: self.operation.name(),
            name: &self.name,
            is_namespaced: !self.call.row.rules.strategy.is_namespace && !self.call.namespace.is_empty(),
        }
    }

    /// Returns as which resource the request meets criteria, or none if it does not.
    pub(super) fn invocation(&self, registry: &Registry, criteria: &Criteria) -> Result<Option<Invocation>, Status> {
        let namespace = self.namespace_matches(registry, criteria);
        let object = self.object_matches(criteria);
        if matches!(namespace, Ok(false)) || matches!(object, Ok(false)) {
            return Ok(None);
        }
        let matched = |rules: &[Rule]| self.matched_row(registry, rules, criteria.matches_equivalents);
        if matched(&criteria.excluded).is_some() {
            return Ok(None);
        }
        let own = || Arc::clone(&self.call.row);
        let is_any = criteria.rules.is_empty() && criteria.matches_without_rules;
        let Some(row) = is_any.then(own).or_else(|| matched(&criteria.rules)) else { return Ok(None) };
        // Only what the request would meet otherwise makes it fail.
        namespace?;
        object?;
        Ok(Some(Invocation { row }))
    }

    /// Returns what expressions about the request see.
    pub(super) fn seen(&self, invocation: &Invocation) -> Result<Seen, Status> {
        let old = self.old.as_ref().map(|old| self.as_go_writes(&invocation.row, old)).transpose()?;
        Ok(Seen {
            object: self.shown(invocation)?.unwrap_or_default(),
            old: old.unwrap_or_default(),
            request: self.request_without_objects("", invocation),
        })
    }

    /// Returns the authorizer of expressions, asked about the resource of the request.
    pub(super) fn resource_check(&self) -> AuthorizationCheck {
        let resource = &self.call.row.resource;
        AuthorizationCheck {
            group: resource.group.to_string(),
            resource: resource.plural.to_string(),
            subresource: self.call.subresource.clone(),
            namespace: self.namespace().to_owned(),
            name: self.name.clone(),
            ..AuthorizationCheck::default()
        }
    }

    /// Returns a refusal of the request.
    pub(super) fn forbidden(&self, why: &str) -> Status {
        let resource = &self.call.row.resource;
        let target = GroupResource { group: &resource.group, resource: &resource.plural };
        Status::forbidden(target, &self.name, why)
    }

    fn matched_row(&self, registry: &Registry, rules: &[Rule], matches_equivalents: bool) -> Option<Arc<Row>> {
        let row = &self.call.row;
        if rules.iter().any(|rule| rule.matches(self.asked(row))) {
            return Some(Arc::clone(row));
        }
        if !matches_equivalents || rules.is_empty() {
            return None;
        }
        let others = registry.other_versions(row);
        rules.iter().find_map(|rule| others.iter().find(|other| rule.matches(self.asked(other))).cloned())
    }

    fn namespace_matches(&self, registry: &Registry, criteria: &Criteria) -> Result<bool, Status> {
        let is_namespace = self.call.row.rules.strategy.is_namespace;
        if self.namespace().is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = criteria.namespace_selector.as_ref().map_err(Status::internal)?;
        if selector.is_everything() {
            return Ok(true);
        }
        if is_namespace && self.call.subresource.is_empty() && self.operation != Operation::Delete {
            return Ok(self.object.as_ref().is_some_and(|object| selects(selector, object)));
        }
        let name = self.namespace();
        let row = registry.row("", "v1", "namespaces");
        let stored = row.and_then(|row| registry.store.get(&row.collection, &ObjectKey::cluster(name)));
        match stored {
            Some(namespace) => Ok(selector.matches(&namespace.labels)),
            None => Err(Status::not_found(GroupResource { group: "", resource: "namespaces" }, name)),
        }
    }

    fn object_matches(&self, criteria: &Criteria) -> Result<bool, Status> {
        let selector = criteria.object_selector.as_ref().map_err(Status::internal)?;
        let is_selected = |object: &Option<Value>| object.as_ref().is_some_and(|object| selects(selector, object));
        Ok(selector.is_everything() || is_selected(&self.object) || is_selected(&self.old))
    }

    /// Returns the request of an AdmissionReview.
    pub(super) fn request(&self, uid: &str, invocation: &Invocation) -> Result<Value, Status> {
        let shown = |object: &Option<Value>| match object {
            Some(object) => self.as_go_writes(&invocation.row, object),
            None => Ok(Value::Null),
        };
        let mut request = self.request_without_objects(uid, invocation);
        request["object"] = shown(&self.object)?;
        request["oldObject"] = shown(&self.old)?;
        Ok(request)
    }

    /// Returns the request as expressions see it: the objects are variables of their own.
    fn request_without_objects(&self, uid: &str, invocation: &Invocation) -> Value {
        let call = self.call;
        let kind = |row: &Row| {
            let (group, version, kind) = kind_of(row, &call.subresource);
            json!({"group": group, "version": version, "kind": kind})
        };
        let resource = |row: &Row| {
            let resource = &row.resource;
            json!({"group": resource.group, "version": resource.version, "resource": resource.plural})
        };
        let user = &call.user;
        let mut user_info = json!({"username": user.name});
        if !user.uid.is_empty() {
            user_info["uid"] = user.uid.clone().into();
        }
        if !user.groups.is_empty() {
            user_info["groups"] = user.groups.clone().into();
        }
        if !user.extra.is_empty() {
            let extra = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.clone())));
            user_info["extra"] = Value::Object(extra.collect());
        }
        let mut request = json!({
            "uid": uid,
            "kind": kind(&invocation.row),
            "resource": resource(&invocation.row),
            "requestKind": kind(&call.row),
            "requestResource": resource(&call.row),
            "operation": self.operation.name(),
            "userInfo": user_info,
            "dryRun": self.is_dry,
            "options": self.options,
        });
        let words = [
            ("subResource", call.subresource.as_str()),
            ("requestSubResource", &call.subresource),
            ("name", &self.name),
            ("namespace", self.namespace()),
        ];
        for (field, word) in words.into_iter().filter(|(_, word)| !word.is_empty()) {
            request[field] = word.into();
        }
        request
    }

    /// Returns the object as a webhook is shown it; none for a deletion.
    pub(super) fn shown(&self, invocation: &Invocation) -> Result<Option<Value>, Status> {
        self.object.as_ref().map(|object| self.as_go_writes(&invocation.row, object)).transpose()
    }

    /// Returns an object in the version of a row, with all fields that Go writes.
    fn as_go_writes(&self, row: &Row, object: &Value) -> Result<Value, Status> {
        let own = &self.call.row;
        let mut shown = object.clone();
        if !is_same_version(own, row) {
            convert::to_storage(own, &mut shown)?;
            shown = convert::to_version(row, shown)?;
        }
        let (group, version, kind) = kind_of(row, &self.call.subresource);
        if let Some(fields) = shown.as_object_mut() {
            let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            fields.insert("apiVersion".into(), api_version.into());
            fields.insert("kind".into(), kind.into());
        }
        if row.custom.is_none() || !self.is_of_row() {
            schema::complete(group, version, kind, &mut shown);
        }
        Ok(shown)
    }

    /// Whether the body is an object of the row, not one of a subresource's own kind.
    pub(super) fn is_of_row(&self) -> bool {
        let row = &self.call.row;
        kind_of(row, &self.call.subresource) == (&*row.resource.group, &*row.resource.version, &*row.resource.kind)
    }

    /// Returns how the fields of the body are merged; none if it is of a subresource's own kind, for which upstream has no types.
    pub(super) fn field_types<'i>(&self, invocation: &'i Invocation) -> Option<&'i Schema> {
        let row = &*invocation.row;
        row.field_types.of(row).filter(|_| self.is_of_row())
    }

    /// Refuses what Go's strict decoder would not read into the body; a custom resource has no Go type.
    pub(super) fn check_strictly(&self, invocation: &Invocation, patched: &Value) -> Result<(), Status> {
        if invocation.row.custom.is_some() && self.is_of_row() {
            return Ok(());
        }
        let (group, version, kind) = kind_of(&invocation.row, &self.call.subresource);
        let mut patched = patched.clone();
        let checked = schema::check(group, version, kind, &mut patched, schema::FieldValidation::Strict);
        checked.map(|_| ()).map_err(Status::internal)
    }

    /// Takes over the object that a webhook has patched. Returns whether that changes it.
    pub(super) fn take_patched(&mut self, invocation: &Invocation, patched: Value) -> Result<bool, Status> {
        let Some(object) = &self.object else { return Ok(false) };
        let before = self.as_go_writes(&invocation.row, object)?;
        if before == patched {
            return Ok(false);
        }
        let own = &self.call.row;
        let (group, version, kind) = kind_of(&invocation.row, &self.call.subresource);
        if !self.is_of_row() {
            let mut patched = patched;
            let checked = schema::check(group, version, kind, &mut patched, schema::FieldValidation::Ignore);
            checked.map_err(Status::internal)?;
            self.object = Some(patched);
            return Ok(true);
        }
        let mut checked =
            Checked::composed(&invocation.row, patched).map_err(|status| unreadable(&status))?.into_value();
        if !is_same_version(own, &invocation.row) {
            convert::to_storage(&invocation.row, &mut checked)?;
            checked = Checked::composed(own, convert::to_version(own, checked)?)
                .map_err(|status| unreadable(&status))?
                .into_value();
        }
        self.object = Some(checked);
        Ok(true)
    }
}

/// Upstream answers 500 if it cannot read what a webhook has made of an object.
fn unreadable(status: &Status) -> Status {
    let inner = status.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    Status::internal(inner.map_or(status.message.as_str(), |(_, inner)| inner))
}

fn is_same_version(one: &Row, other: &Row) -> bool {
    one.resource.group == other.resource.group && one.resource.version == other.resource.version
}

/// Returns the group, version and kind of a body.
fn kind_of<'a>(row: &'a Row, subresource: &str) -> (&'a str, &'a str, &'a str) {
    let resource = &row.resource;
    match row.subresource(subresource) {
        Some(part) => {
            let (group, version) = match &part.answer {
                Some((group, version)) => (&**group, &**version),
                None => (&*resource.group, &*resource.version),
            };
            (group, version, &part.kind)
        }
        None => (&resource.group, &resource.version, &resource.kind),
    }
}

fn selects(selector: &Selector, object: &Value) -> bool {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: StringMap = labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    selector.matches(&labels)
}

/// Returns the options of a create or an update. Those of a patch are shown as those of an update.
fn write_options(call: &Call, kind: &str) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if call.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    for field in ["fieldManager", "fieldValidation"] {
        let word = call.query.get(field);
        if !word.is_empty() {
            options[field] = word.into();
        }
    }
    options
}
