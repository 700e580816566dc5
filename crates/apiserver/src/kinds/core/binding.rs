//! Bindings, by the path of their own: the name of a Binding is that of its pod.

use super::pod::binding;
use crate::kinds::Rules;
use crate::registry::Call;
use crate::registry::object_meta::meta_text;
use crate::registry::subresource::read_body;
use crate::status::Status;

/// The rules of Bindings.
pub(crate) static RULES: Rules = Rules::not_stored(|registry, call, body, kind| {
    let binding_of = read_body(body, kind, "", "v1", "Binding", call)?;
    let row = registry.row("", "v1", "pods").ok_or_else(Status::no_resource)?;
    let pod = Call {
        row,
        namespace: call.namespace.clone(),
        name: meta_text(&binding_of, "name").to_owned(),
        subresource: "binding".to_owned(),
        user: call.user.clone(),
        query: call.query.clone(),
        dry_run: call.dry_run,
        field_validation: call.field_validation,
        manager: call.manager.clone(),
        force: false,
        session: call.session.clone(),
    };
    binding::create(registry, &pod, body, kind)
});
