//! The shell: observe → create or correct the ConfigMap.

use std::sync::Arc;

use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{ConfigMapView, NamespaceView};
use steersman_model::{Kind, View};
use steersman_runtime::live::Live;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};
use tokio::time::Instant;

use super::metrics::{Metrics, NO_ANSWER, code};
use super::{NAME, plan};

const MAPS: &Resource = &ConfigMapView::RESOURCE;

/// The controller's shell: the caches that it reads from.
pub(super) struct Publisher {
    /// The manager's own client: the publisher's account may create and update, but not read.
    pub(super) live: Live,
    pub(super) namespaces: Lister<NamespaceView>,
    pub(super) maps: Lister<ConfigMapView>,
    pub(super) root_ca: Arc<str>,
    pub(super) metrics: Metrics,
}

reasons! {
    /// Why the root CA certificate publisher writes.
    pub enum Why {
        /// A namespace has no ConfigMap with the certificate.
        Missing => "the namespace does not have the root certificate",
        /// The ConfigMap of a namespace is wrong.
        Changed => "the root certificate of the namespace is not the cluster's",
    }
}

// === impl Publisher ===

impl Reconciler for Publisher {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(Action::Done) };
        let began = Instant::now();
        let outcome = match self.maps.namespace(&key.name).get(NAME) {
            Some(map) if plan::is_as_wanted(&map, &self.root_ca) => Ok(()),
            Some(map) => match self.live.get_json(MAPS, &map.meta().key()).await {
                Ok(live) => self.correct(cx, namespace.meta(), &map.meta().key(), live).await,
                Err(error) => {
                    self.metrics.note(NO_ANSWER, began.elapsed());
                    return Err(error.into());
                }
            },
            // Nothing is created in a terminating namespace; the server would refuse it anyway.
            None if namespace.meta().is_terminating() => Ok(()),
            None => self.create(cx, namespace.meta()).await,
        };
        self.metrics.note(code(outcome.as_ref().copied()), began.elapsed());
        outcome?;
        Ok(Action::Done)
    }
}

impl Publisher {
    async fn create(&self, cx: &Context, namespace: &Meta) -> Result<(), WriteError> {
        let body = plan::new(&namespace.name, &self.root_ca).to_string().into_bytes();
        let write = cx.writer.on_behalf_of(namespace);
        let created = write.create_in(Some(&namespace.name), MAPS, body, &Why::Missing).await;
        // Nothing can be created in a terminating namespace.
        created.ok_if_gone().ok_if_terminating()
    }

    /// Corrects the ConfigMap as the server has it, and keeps all other fields. If it is deleted, its deletion is an
    /// event of its own.
    async fn correct(
        &self,
        cx: &Context,
        namespace: &Meta,
        key: &ObjectKey,
        live: Option<serde_json::Value>,
    ) -> Result<(), WriteError> {
        let Some(mut map) = live else { return Ok(()) };
        if !plan::correct(&mut map, &self.root_ca) {
            return Ok(());
        }
        let write = cx.writer.on_behalf_of(namespace);
        write.put(MAPS, key, map.to_string().into_bytes(), &Why::Changed).await.map(drop)
    }
}
