//! ControllerRevisions: the history of StatefulSets and DaemonSets.

use steersman_base::Meta;

use crate::template::{RawJson, Template};
use crate::view;
use crate::wire::Wire;

view! {
    /// A ControllerRevision: the template of a StatefulSet or DaemonSet, as a patch that restores it.
    pub struct ControllerRevisionView: Serialize for namespaced("apps", "v1", "controllerrevisions", "ControllerRevision") {
        /// The metadata.
        metadata: Meta = 1,
        /// The patch, as it came.
        data: RawJson = 2,
        /// Its place in the history: the highest is the newest.
        revision: i64 = 3,
    }
}

view! {
    struct Data {
        spec: DataSpec = 1,
    }
}

view! {
    struct DataSpec {
        template: Template = 1,
    }
}

// === impl ControllerRevisionView ===

impl ControllerRevisionView {
    /// Returns the template that the patch contains; `None` if the data is no such patch.
    #[must_use]
    pub fn template(&self) -> Option<Template> {
        let mut text = serde_json::Deserializer::from_str(self.data.as_str());
        let data = Data::read_json(&mut text).ok()?;
        (!data.spec.template.spec().is_empty()).then_some(data.spec.template)
    }
}
