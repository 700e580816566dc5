//! ControllerRevisions: `ValidateControllerRevision` of `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::field::{FieldError, Path};
use crate::kinds::shared::check;
use crate::kinds::{NameRule, Rules};
use crate::table::{Cell, TableRow, cell};

/// The rules of ControllerRevisions.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
        check::non_negative(&new["revision"], &Path::new("revision"), errors);
        let path = Path::new("data");
        match old {
            Some(old) => check::immutable(&new["data"], &old["data"], &path, errors),
            None if new["data"].is_null() => errors.push(FieldError::required(&path, "data is mandatory")),
            None if !new["data"].is_object() => {
                errors.push(FieldError::required(&path, "data must be a valid JSON object"));
            }
            None => {}
        }
    })
    .printed(&[Cell::Name, Cell::Made(controller), Cell::Int("/revision"), Cell::Age]);

/// The controller of an object: `statefulset.apps/web`.
fn controller(row: &TableRow<'_>) -> String {
    let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(owner) = row.list_at("/metadata/ownerReferences").iter().find(is_controller) else {
        return "<none>".to_owned();
    };
    let kind = cell::text(owner, "kind").to_lowercase();
    match cell::text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{}", group.to_lowercase(), cell::text(owner, "name")),
        None => format!("{kind}/{}", cell::text(owner, "name")),
    }
}
