//! The functions of `authorizer`.

use std::sync::Arc;

use steersman_base::validation::{dns1123_label, dns1123_subdomain};

use super::Op;
use crate::authz::{AuthorizationCheck, AuthorizationDecision, Authz, Stage};
use crate::value::Value;

pub(super) fn overload(id: &str) -> Option<Op> {
    Some(match id {
        "authorizer_path" => |args| match text(args) {
            path if path.trim().is_empty() => Value::error("path must not be empty"),
            path => step(args, Stage::Path, |check| check.path = Some(path.to_owned())),
        },
        "authorizer_group" => |args| step(args, Stage::Group, |check| text(args).clone_into(&mut check.group)),
        "authorizer_serviceaccount" => service_account,
        "groupcheck_resource" => |args| match text(args) {
            resource if resource.trim().is_empty() => Value::error("resource must not be empty"),
            resource => step(args, Stage::Resource, |check| resource.clone_into(&mut check.resource)),
        },
        "resourcecheck_subresource" => {
            |args| step(args, Stage::Resource, |check| text(args).clone_into(&mut check.subresource))
        }
        "resourcecheck_namespace" => {
            |args| step(args, Stage::Resource, |check| text(args).clone_into(&mut check.namespace))
        }
        "resourcecheck_name" => |args| step(args, Stage::Resource, |check| text(args).clone_into(&mut check.name)),
        "authorizer_fieldselector" => {
            |args| step(args, Stage::Resource, |check| text(args).clone_into(&mut check.field_selector))
        }
        "authorizer_labelselector" => {
            |args| step(args, Stage::Resource, |check| text(args).clone_into(&mut check.label_selector))
        }
        "pathcheck_check" | "resourcecheck_check" => check,
        "decision_errored" => |args| decision(args, |decision| Value::Bool(decision.error.is_some())),
        "decision_error" => {
            |args| decision(args, |decision| Value::string(decision.error.as_deref().unwrap_or_default()))
        }
        "decision_allowed" => |args| decision(args, |decision| Value::Bool(decision.is_allowed)),
        "decision_reason" => |args| decision(args, |decision| Value::string(decision.reason.as_str())),
        _ => return None,
    })
}

fn text<'v>(args: &'v [Value<'_>]) -> &'v str {
    args.get(1).and_then(Value::as_str).unwrap_or_default()
}

/// The value with more known about the check.
fn step<'a>(args: &[Value<'a>], stage: Stage, set: impl FnOnce(&mut AuthorizationCheck)) -> Value<'a> {
    let Some(Value::Authz(authz)) = args.first() else { return args[0].or_no_such_overload() };
    let mut check = authz.check.clone();
    set(&mut check);
    Value::Authz(Arc::new(Authz { authorizer: authz.authorizer, check, stage }))
}

fn service_account<'a>(args: &[Value<'a>]) -> Value<'a> {
    let namespace = text(args);
    let name = args.get(2).and_then(Value::as_str).unwrap_or_default();
    if !dns1123_subdomain(name).is_empty() {
        return Value::error("Invalid service account name");
    }
    if !dns1123_label(namespace).is_empty() {
        return Value::error("Invalid service account namespace");
    }
    let account = Some((namespace.to_owned(), name.to_owned()));
    step(args, Stage::Authorizer, |check| check.service_account = account)
}

fn check<'a>(args: &[Value<'a>]) -> Value<'a> {
    let Some(Value::Authz(authz)) = args.first() else { return args[0].or_no_such_overload() };
    let mut check = authz.check.clone();
    text(args).clone_into(&mut check.verb);
    let decision = authz.authorizer.authorize(&check);
    Value::Authz(Arc::new(Authz { authorizer: authz.authorizer, check, stage: Stage::Decision(decision) }))
}

fn decision<'a>(args: &[Value<'a>], with: impl FnOnce(&AuthorizationDecision) -> Value<'a>) -> Value<'a> {
    match args.first() {
        Some(Value::Authz(authz)) => match &authz.stage {
            Stage::Decision(decision) => with(decision),
            _ => Value::no_such_overload(),
        },
        _ => args[0].or_no_such_overload(),
    }
}
