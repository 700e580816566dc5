//! Classes of which one is the default: StorageClasses and IngressClasses.

use serde_json::Value;

use crate::kinds::shared::json::text;
use crate::registry::admission::Lookup;

/// Returns the name of the newest class that is annotated as the default.
pub(crate) fn default_class(lookup: &dyn Lookup, group: &str, resource: &str, annotations: &[&str]) -> Option<String> {
    let is_default = |class: &Value| {
        annotations.iter().any(|annotation| text(&class["metadata"]["annotations"][*annotation]) == "true")
    };
    let classes = lookup.list(group, resource, "").into_iter().filter(is_default);
    let time = |class: &Value| text(&class["metadata"]["creationTimestamp"]).to_owned();
    // Of those made in the same second, the first by name.
    let newest = classes.reduce(|best, class| if time(&class) > time(&best) { class } else { best });
    newest.map(|class| text(&class["metadata"]["name"]).to_owned())
}
