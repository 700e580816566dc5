//! Reads: from the cache, or from the server.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use http::Method;
use steersman_base::{ObjectKey, Resource};
use steersman_informer::__internal::store::Waited;
use steersman_informer::{NotSynced, Selection, SharedInformer, Target};
use steersman_model::{Encoded, Projection, View};

use super::request::Call;
use super::{CacheMiss, CachedClient, ClientError, Query};
use crate::connection::exchange::{JSON, JSON_METADATA};
use crate::live;

/// Reads one resource as one view. Cheap to clone.
pub struct Reader<V> {
    client: CachedClient,
    resource: Resource,
    view: PhantomData<fn() -> V>,
}

/// The source of a read.
enum Source<V> {
    Cache(SharedInformer<V>),
    Server,
}

// === impl Reader ===

impl<V: View> Reader<V> {
    pub(super) fn new(client: CachedClient, resource: Resource) -> Self {
        Self { client, resource, view: PhantomData }
    }

    /// Returns the resource.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the object with this key.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is none.
    pub async fn get(&self, key: &ObjectKey) -> Result<Arc<V>, ClientError> {
        self.get_opt(key).await?.ok_or_else(|| ClientError::not_found(&self.resource, key))
    }

    /// Returns the object with this key, or `None`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<Arc<V>>, ClientError> {
        match self.source(&key.namespace).await? {
            Source::Cache(informer) => Ok(informer.store().get(key)),
            Source::Server => self.get_live(key).await,
        }
    }

    /// Returns the objects that match a query, sorted by namespace and name.
    ///
    /// # Errors
    /// [`ClientError::FieldNotCached`] if the cache cannot select by a field.
    pub async fn list(&self, query: &Query) -> Result<Vec<Arc<V>>, ClientError> {
        if query.labels.is_nothing() {
            // The syntax of queries cannot express it: the server would return everything.
            return Ok(Vec::new());
        }
        match self.source(query.namespace.as_deref().unwrap_or_default()).await? {
            Source::Cache(informer) => self.list_cached(&informer, query),
            Source::Server => {
                let target = Target { resource: self.resource.clone(), selection: query.selection() };
                let listed = live::list_of(&self.client.shared.client, &target).await;
                listed.map_err(|error| ClientError::of_wire(format!("list {target}"), error))
            }
        }
    }

    /// Returns the informer of this resource, filled: to index, to subscribe, to [wait](crate::wait).
    ///
    /// # Errors
    /// The informer may not be started, or is not filled in time.
    pub async fn informer(&self) -> Result<SharedInformer<V>, ClientError> {
        let informers = &self.client.shared.informers;
        let not_started = || ClientError::NotStarted { resource: Box::new(self.resource.clone()) };
        if !informers.is_started() {
            return Err(not_started());
        }
        let informer = match informers.existing(&self.resource, Selection::everything()) {
            Some(informer) => informer,
            None if self.client.shared.options.on_miss == CacheMiss::Forbidden => {
                let resource = Box::new(self.resource.clone());
                let view = std::any::type_name::<V>();
                return Err(ClientError::NotCached { resource, view });
            }
            None => informers.informer_for(self.resource.clone(), Selection::everything()),
        };
        if !informer.has_synced() {
            informers.start();
            self.synced(&informer).await?;
        }
        Ok(informer)
    }

    /// As [`informer`](Self::informer), for objects of a namespace; of all, if it is empty.
    ///
    /// # Errors
    /// Also [`ClientError::OtherNamespace`], if the cache never shows them.
    pub(crate) async fn informer_of(&self, namespace: &str) -> Result<SharedInformer<V>, ClientError> {
        let informer = self.informer().await?;
        if let Some(cached) = &informer.target().selection.namespace
            && **cached != *namespace
        {
            let resource = Box::new(self.resource.clone());
            let cached = cached.clone();
            return Err(ClientError::OtherNamespace { resource, wanted: namespace.into(), cached });
        }
        Ok(informer)
    }

    /// Whether reads go to the server.
    pub(crate) fn is_live(&self) -> bool {
        let same = |other: &Resource| other.group == self.resource.group && other.plural == self.resource.plural;
        self.client.mode.live || self.client.shared.options.never_cached.iter().any(same)
    }

    async fn synced(&self, informer: &SharedInformer<V>) -> Result<(), ClientError> {
        let within = self.client.shared.options.synced_within;
        if tokio::time::timeout(within, informer.synced()).await.is_ok() {
            return Ok(());
        }
        let mut missing = self.client.shared.informers.running();
        let view = std::any::type_name::<V>();
        missing.retain(|running| running.view == view && running.informer.target == *informer.target());
        Err(NotSynced::new(missing).into())
    }

    /// Returns the source: the cache, unless reads are live or it does not show this client's writes in time.
    async fn source(&self, namespace: &str) -> Result<Source<V>, ClientError> {
        if self.is_live() {
            return Ok(Source::Server);
        }
        let informer = self.informer_of(namespace).await?;
        let shared = &self.client.shared;
        let Some(newest) = shared.written.newest(&self.resource) else { return Ok(Source::Cache(informer)) };
        let shown = tokio::time::timeout(shared.options.synced_within, informer.store().reached_at_least(&newest));
        match shown.await {
            Ok(Waited::Reached) => Ok(Source::Cache(informer)),
            Ok(Waited::Restored) => {
                shared.written.forget(&self.resource, &newest);
                Ok(Source::Cache(informer))
            }
            Err(_) => {
                tracing::warn!(resource = %self.resource, version = %newest.as_str(), "the cache lags; reading live");
                Ok(Source::Server)
            }
        }
    }

    fn list_cached(&self, informer: &SharedInformer<V>, query: &Query) -> Result<Vec<Arc<V>>, ClientError> {
        if let Some(field) = query.uncached_field() {
            return Err(ClientError::FieldNotCached {
                resource: Box::new(self.resource.clone()),
                field: field.to_owned(),
            });
        }
        let lister = informer.lister();
        let wanted = |object: &V| query.wants(object.meta());
        let mut found = match &query.namespace {
            Some(namespace) => lister.namespace(namespace).filter(wanted),
            None => lister.filter(wanted),
        };
        // In the order of the server's lists.
        found.sort_by(|left, right| {
            let left = left.meta();
            let right = right.meta();
            (&*left.namespace, &*left.name).cmp(&(&*right.namespace, &*right.name))
        });
        Ok(found)
    }

    async fn get_live(&self, key: &ObjectKey) -> Result<Option<Arc<V>>, ClientError> {
        let mut call = Call::new("get", Method::GET, &self.resource, &key.namespace, Some(&key.name));
        call.accept = if V::PROJECTION == Projection::Metadata { JSON_METADATA } else { JSON };
        let what = call.what();
        let body = match self.client.send(call).await {
            Ok(body) => body,
            Err(ClientError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let object = V::decode(Encoded::Json(&body));
        object
            .map(|object| Some(Arc::new(object)))
            .map_err(|error| ClientError::Unreadable { what, source: error.into() })
    }
}

impl<V> Clone for Reader<V> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), resource: self.resource.clone(), view: PhantomData }
    }
}

impl<V> fmt::Debug for Reader<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("resource", &self.resource).finish_non_exhaustive()
    }
}
