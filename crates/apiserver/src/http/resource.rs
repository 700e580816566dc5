//! Requests for resources: the verb, whether the user may, and the call of the registry.

use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use http::{Method, Response};
use steersman_base::FieldSelector;
use steersman_base::validation::path_segment;
use steersman_structured_merge::manager_name;

use super::negotiate::{self, Shape};
use super::path::{ResourcePath, Target};
use super::respond::Responder;
use super::{Body, Caller};
use crate::auth::User;
use crate::auth::rbac::Attributes;
use crate::decode::ContentType;
use crate::registry::delete::DeleteOptions;
use crate::registry::query::{Query, WriteOptions};
use crate::registry::subresource::Input;
use crate::registry::write::Part;
use crate::registry::{Answer, Call, Content, Registry, Row, Verb};
use crate::server::ApiServer;
use crate::status::Status;
use crate::table::IncludeObject;
use crate::watch::Watch;

impl ApiServer {
    /// Answers a request for a resource.
    pub(super) fn resource(
        &self,
        parts: &Parts,
        responder: &Responder<'_>,
        path: ResourcePath,
        query: Query,
        Caller { user, session }: Caller,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let registry = &*self.registry;
        let Some(row) = registry.row(&path.group, &path.version, &path.plural) else {
            self.authorize_unknown(parts, &path, &query, &user)?;
            return Err(Status::no_resource());
        };
        if !path.namespace.is_empty() && !row.is_namespaced() || path.has_rest && path.subresource != "proxy" {
            return Err(Status::no_resource());
        }
        let accepted = negotiate::accepted(&parts.headers)?;
        let is_watch = path.is_watch || path.name.is_empty() && query.flag("watch");
        let verb = verb_of(&parts.method, &path, is_watch).ok_or_else(Status::method_not_allowed)?;
        registry.authorize(&user, &attributes(&row, &path, verb, &query))?;
        check_verb(&row, &path, verb)?;
        // The options of a deletion are its body's, if it has one.
        let options = match write_options_kind(verb) {
            Some(kind) => query.write_options(kind, verb == Verb::Patch && negotiate::is_apply(&parts.headers))?,
            None => WriteOptions::default(),
        };
        let user_agent = parts.headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let manager = manager_name(&options.field_manager, user_agent.as_deref().unwrap_or(self.agent));
        let mut call = Call {
            namespace: path.namespace,
            name: path.name,
            subresource: path.subresource,
            user,
            dry_run: options.dry_run,
            field_validation: options.field_validation,
            manager,
            force: options.force,
            query,
            row,
            session,
        };
        let include =
            if accepted.shape == Shape::Table { include_object(&call.query)? } else { IncludeObject::default() };
        if verb == Verb::Watch {
            return watch(registry, responder, &mut call, accepted, include);
        }
        let handled = handle(registry, parts, &call, verb, body);
        let of_webhooks = call.session.as_ref().map(|session| session.take_warnings());
        let of_webhooks = of_webhooks.unwrap_or_default();
        let of_row = call.row.warning().map(str::to_owned);
        let answer = match handled {
            Ok(mut answer) => {
                answer.warnings.splice(0..0, of_row);
                answer.warning(of_webhooks)
            }
            Err(mut status) => {
                let own = std::mem::take(&mut status.warnings);
                let warnings: Vec<String> = of_row.into_iter().chain(own).chain(of_webhooks).collect();
                return Ok(responder.refused(&status, &warnings));
            }
        };
        responder.answer(registry, &call.row, accepted, include, answer)
    }
}

impl ApiServer {
    /// Returns what a request asks for, for the authorizer.
    pub(super) fn asked(&self, parts: &Parts, target: &Target, query: &Query) -> Attributes {
        let method = || parts.method.as_str().to_ascii_lowercase();
        let Target::Resource(path) = target else {
            let path = Some(parts.uri.path().to_owned());
            return Attributes { verb: method(), path, ..Attributes::default() };
        };
        let is_watch = path.is_watch || path.name.is_empty() && query.flag("watch");
        match (verb_of(&parts.method, path, is_watch), self.registry.row(&path.group, &path.version, &path.plural)) {
            (Some(verb), Some(row)) => attributes(&row, path, verb, query),
            (Some(verb), None) => path.attributes(verb.name()),
            (None, _) => path.attributes(&method()),
        }
    }

    /// Authorizes a request for a resource that is not served: a client without a right to it does not learn that.
    pub(super) fn authorize_unknown(
        &self,
        parts: &Parts,
        path: &ResourcePath,
        query: &Query,
        user: &User,
    ) -> Result<(), Status> {
        self.registry.authorize(user, &self.asked(parts, &Target::Resource(path.clone()), query))
    }
}

fn handle(registry: &Registry, parts: &Parts, call: &Call, verb: Verb, body: &Bytes) -> Result<Answer, Status> {
    let is_custom = call.row.custom.is_some();
    let input = match verb {
        Verb::Create | Verb::Update => Input::Object(body, negotiate::content_type(&parts.headers, is_custom)?),
        Verb::Patch => negotiate::patch(&parts.headers, is_custom, body)?,
        _ => Input::None,
    };
    if !call.subresource.is_empty() {
        return registry.subresource(call, verb, &input);
    }
    match (verb, input) {
        (Verb::Get, _) => registry.get(call),
        (Verb::List, _) => {
            let options = call.query.list_options(false)?;
            registry.list(call, &options).map(|list| Answer::ok(Content::List(list)))
        }
        (Verb::Create, Input::Object(body, kind)) => match call.row.rules.create {
            Some(create) => create(registry, call, body, kind),
            None => registry.create(call, body, kind),
        },
        (Verb::Update, Input::Object(body, kind)) => registry.put(call, Part::Whole, body, kind),
        (Verb::Patch, Input::Patch(body, kind)) => registry.patch(call, Part::Whole, kind, body),
        (Verb::Patch, Input::Apply(body)) => registry.apply(call, Part::Whole, body),
        (Verb::Delete | Verb::DeleteCollection, _) => {
            let kind =
                if body.is_empty() { ContentType::Json } else { negotiate::content_type(&parts.headers, false)? };
            let options = DeleteOptions::read(&call.query, body, kind)?;
            if verb == Verb::Delete {
                registry.delete(call, &options)
            } else {
                registry.delete_collection(call, &options)
            }
        }
        _ => Err(Status::method_not_allowed()),
    }
}

fn watch(
    registry: &Registry,
    responder: &Responder<'_>,
    call: &mut Call,
    accepted: negotiate::Accepted,
    include: IncludeObject,
) -> Result<Response<Body>, Status> {
    let mut options = call.query.list_options(true)?;
    if !call.name.is_empty() {
        let term = FieldSelector::equals("metadata.name", &call.name).to_string();
        options.field_selector =
            [options.field_selector, term].into_iter().filter(|term| !term.is_empty()).collect::<Vec<_>>().join(",");
    }
    let watch = Watch::begin(registry, call, &options, accepted, include)?;
    Ok(responder.watch(call.row.warning(), watch.lines()))
}

fn verb_of(method: &Method, path: &ResourcePath, is_watch: bool) -> Option<Verb> {
    let is_named = !path.name.is_empty();
    match *method {
        Method::GET if is_watch => Some(Verb::Watch),
        Method::GET => Some(if is_named { Verb::Get } else { Verb::List }),
        Method::POST if !is_named || !path.subresource.is_empty() => Some(Verb::Create),
        Method::PUT if is_named => Some(Verb::Update),
        Method::PATCH if is_named => Some(Verb::Patch),
        Method::DELETE => Some(if is_named { Verb::Delete } else { Verb::DeleteCollection }),
        _ => None,
    }
}

/// Returns the attributes of a request, for the authorizer.
fn attributes(row: &Row, path: &ResourcePath, verb: Verb, query: &Query) -> Attributes {
    // A list or a watch of one name is authorized for that name: rules with `resourceNames` apply.
    let name = match verb {
        Verb::List | Verb::Watch if path.name.is_empty() => selected_name(query).unwrap_or_default(),
        _ => path.name.clone(),
    };
    let asked = path.attributes(verb.name());
    // A right to a namespace is a right within the namespace.
    let namespace = if row.rules.strategy.is_namespace { path.name.clone() } else { path.namespace.clone() };
    Attributes { namespace, name, ..asked }
}

/// Returns the only name that a field selector matches, if there is one.
fn selected_name(query: &Query) -> Option<String> {
    let selector: FieldSelector = query.get("fieldSelector").parse().ok()?;
    let name = selector.requires_exact_match("metadata.name")?.to_string();
    (!name.is_empty() && path_segment(&name).is_empty()).then_some(name)
}

fn check_verb(row: &Row, path: &ResourcePath, verb: Verb) -> Result<(), Status> {
    let verbs = if path.subresource.is_empty() {
        row.verbs
    } else {
        let missing = || match &row.custom {
            Some(_) => Status::not_found(row.target(), &path.name),
            None => Status::no_resource(),
        };
        row.subresource(&path.subresource).ok_or_else(missing)?.verbs
    };
    // A namespaced object is reached through its namespace; only lists cover all namespaces.
    let is_homeless = row.is_namespaced() && path.namespace.is_empty();
    if is_homeless && (!path.name.is_empty() && !path.is_watch) {
        return Err(Status::no_resource());
    }
    if is_homeless && matches!(verb, Verb::Create | Verb::DeleteCollection) || !verbs.has(verb) {
        return Err(Status::method_not_allowed());
    }
    Ok(())
}

/// Returns upstream's name for the options of a write.
const fn write_options_kind(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Create => Some("CreateOptions"),
        Verb::Update => Some("UpdateOptions"),
        Verb::Patch => Some("PatchOptions"),
        Verb::Delete | Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => None,
    }
}

fn include_object(query: &Query) -> Result<IncludeObject, Status> {
    match query.get("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "None" => Ok(IncludeObject::None),
        "Object" => Ok(IncludeObject::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', \
             'Object', 'None', or empty"
        ))),
    }
}
