//! The parameters of a policy: the objects that a binding chooses.

use serde_json::Value;
use steersman_base::ObjectKey;

use super::configuration::{Binding, ParamKind};
use crate::registry::list::list_all;
use crate::registry::{Registry, convert};
use crate::status::Status;
use crate::store::Object;

/// Returns the parameters for a request in a namespace: null if the policy or the binding has none, nothing if the policy is
/// not to be evaluated.
///
/// # Errors
/// The binding cannot be used, and why.
pub(super) fn collect(
    registry: &Registry,
    kind: Option<&ParamKind>,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let (Some(ParamKind { api_version, kind }), Some(chosen)) = (kind, &binding.param_ref) else {
        return Ok(vec![Value::Null]);
    };
    let Some(row) = registry.row_of_kind(api_version, kind) else {
        return Err(format!("paramKind kind `&ParamKind{{APIVersion:{api_version},Kind:{kind},}}` not known"));
    };
    let place = match (row.is_namespaced(), chosen.namespace.as_str()) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned()
            );
        }
        (true, "") => namespace,
        (true, own) => own,
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let shown = |stored: &Object| -> Result<Value, Status> {
        convert::to_version(&row, stored.parse().map_err(Status::internal)?)
    };
    let found: Result<Vec<Value>, Status> = if chosen.name.is_empty() {
        let selector = chosen.selector.as_ref().map_err(Clone::clone)?;
        let all = list_all(registry, &row, place);
        all.iter().filter(|stored| selector.matches(&stored.labels)).map(|stored| shown(stored)).collect()
    } else {
        let stored = registry.store.get(&row.collection, &ObjectKey::new(place, &chosen.name));
        stored.iter().map(|stored| shown(stored)).collect()
    };
    let found = found.map_err(|status| status.message)?;
    if found.is_empty() && chosen.denies_without {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found)
}
