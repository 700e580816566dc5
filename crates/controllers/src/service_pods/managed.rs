//! Pure: the slices of one manager, and which services a change of them concerns.

use steersman_base::{Meta, ObjectKey, names};
use steersman_informer::{Change, Selection};
use steersman_model::{EndpointSliceView, View};

use super::memory::Tracker;

/// A manager of slices: the value of the label that marks them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manager(pub(crate) &'static str);

// === impl Manager ===

impl Manager {
    /// Index function: the service of a slice of this manager.
    pub(crate) fn service_of(self, slice: &Meta) -> Option<ObjectKey> {
        let manager = slice.labels.get(names::labels::ENDPOINTSLICE_MANAGED_BY)?;
        let name = slice.labels.get(names::labels::SERVICE_NAME).filter(|name| !name.is_empty())?;
        (*manager == *self.0).then(|| ObjectKey { namespace: slice.namespace.clone(), name: name.clone() })
    }

    /// Returns the label selector for the slices of a service of this manager.
    pub(crate) fn slices_of(self, service: &ObjectKey) -> Selection {
        let name = names::labels::SERVICE_NAME;
        let manager = names::labels::ENDPOINTSLICE_MANAGED_BY;
        Selection::namespace(&service.namespace).with_labels(&format!("{name}={},{manager}={}", service.name, self.0))
    }

    /// Returns the services that a change of a slice concerns: none, if the change is our own write.
    pub(crate) fn services_of(self, change: &Change<EndpointSliceView>, tracker: &Tracker) -> Vec<ObjectKey> {
        let key = match change {
            // Every service is reconciled once at the start anyway.
            Change::Added { initial: true, .. } => None,
            Change::Added { new: slice, .. } => {
                self.service_of(slice.meta()).filter(|_| tracker.is_foreign(slice.meta()))
            }
            Change::Updated { old, new } => {
                let before = self.service_of(old.meta());
                let now = self.service_of(new.meta());
                if before != now {
                    // The slice was moved to another service or another manager, or to us.
                    return before.into_iter().chain(now).collect();
                }
                now.filter(|_| tracker.is_foreign(new.meta()))
            }
            Change::Deleted { last, .. } => {
                let expected = tracker.take_deleted(&last.meta().uid);
                self.service_of(last.meta()).filter(|_| !expected)
            }
        };
        key.into_iter().collect()
    }
}
