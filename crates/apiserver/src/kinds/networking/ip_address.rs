//! IPAddresses: `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_subdomain, path_segment};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{immutable_unshown, problems, strict_ip};
use crate::kinds::shared::json::{is_set, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::Registry;
use crate::registry::object_meta::meta_text;
use crate::table::{Cell, TableRow, cell};

/// The rules of IPAddresses.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(|new, old, errors| {
        let path = Path::new("spec").child("parentRef");
        if old.is_none() {
            strict_ip(text(&new["metadata"]["name"]), &Path::new("metadata").child("name"), errors);
        }
        parent_reference(&new["spec"]["parentRef"], &path, errors);
        if let Some(old) = old {
            immutable_unshown(&new["spec"]["parentRef"], &old["spec"]["parentRef"], &path, errors);
        }
    })
    .after_write(|registry, stored| {
        if let Ok(address) = stored.parse() {
            set_named(registry, &address, true);
        }
    })
    .after_delete(|registry, address| set_named(registry, address, false))
    .printed(&[Cell::Name, Cell::Made(parent), Cell::Age]);

/// Notifies the allocator of Services that this address is taken, or is free again.
pub(crate) fn set_named(registry: &Registry, address: &Value, is_named: bool) {
    if let Ok(ip) = meta_text(address, "name").parse() {
        registry.services.set_named(ip, is_named);
    }
}

fn parent_reference(parent: &Value, path: &Path, errors: &mut Errors) {
    if !is_set(parent) {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let group = text(&parent["group"]);
    if !group.is_empty() {
        problems(group, dns1123_subdomain(group), &path.child("group"), errors);
    }
    for (field, is_required) in [("resource", true), ("name", true), ("namespace", false)] {
        match text(&parent[field]) {
            "" if is_required => errors.push(FieldError::required(&path.child(field), "")),
            name => problems(name, path_segment(name), &path.child(field), errors),
        }
    }
}

fn parent(row: &TableRow<'_>) -> String {
    let Some(parent) = row.at("/spec/parentRef") else { return "<none>".to_owned() };
    let [group, resource, namespace, name] =
        ["group", "resource", "namespace", "name"].map(|field| cell::text(parent, field));
    let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let parts = [resource.to_lowercase(), namespace.to_owned(), name.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}
