//! The client of a manager: cached reads, live reads, and writes outside of reconciles.
//!
//! ```no_run
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Pod}};
//! # use steersman_base::ObjectKey;
//! # use steersman_runtime::client::{CachedClient, ClientError, FieldManager, Query};
//! # async fn example(client: CachedClient) -> Result<(), ClientError> {
//! let web = ObjectKey::new("default", "web");
//! let deployment = client.get::<Deployment>(&web).await?;                        // from the cache
//! let pods = client.list::<Pod>(&Query::namespace("default").labels("app=web")?).await?;
//! let now = client.live().get::<Deployment>(&web).await?;                        // from the server
//! let mut config = client.get::<ConfigMap>(&web).await?.object().clone();
//! config.data.get_or_insert_default().insert("pods".into(), pods.len().to_string());
//! client.objects().update(&config).await?;                                       // to the server
//! client.objects().apply(&config, &FieldManager::named("example").force()).await?;
//! # let _ = (deployment, now);
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees:
//! 1. **Reads come from the cache** of the manager, shared with its controllers; an informer starts with the first read
//!    of its kind, or, with [`CacheMiss::Forbidden`], such a read is an error. A first read waits until the cache is
//!    filled, for at most [`ClientOptions::synced_within`], and the error names what is missing and why.
//! 2. **Live reads** go to the server: per call through [`CachedClient::live`], per kind through
//!    [`ClientOptions::never_cached`].
//! 3. **Read your writes**: a cached read waits until the cache shows what *this* client wrote to the same kind; if the
//!    cache does not catch up in time, the read is live. Writes whose answer was lost, and deletions that the server
//!    answers without an object, are not waited for.
//! 4. **No write is sent twice.** A write without an answer is [`ClientError::NoAnswer`]: it may have been applied.
//! 5. **Each ordinary refusal is a variant** of [`ClientError`]: not found, conflict, already exists, ….
//!
//! Cached objects are shared and immutable: clone an object to change it.
//!
//! Reconcilers do not write with this client but with [`Context::writer`](crate::Context::writer), which records a
//! reason, keeps the consistency book and respects shadow mode. The writes of [`Objects`] are for everything else:
//! `main`, [runnables](crate::Runnable), webhooks, tests.

mod diff;
mod ensure;
mod error;
pub(crate) mod object;
mod query;
mod read;
mod request;
mod send;
mod subresource;
mod write;
mod written;

use std::sync::Arc;
use std::time::Duration;

use kube::core::DynamicObject;
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::resource_of;
use steersman_informer::{InformerFactory, Typed};
use steersman_model::{Kind, View};

pub use ensure::{BoxError, Ensured};
pub use error::{ClientError, Refusal};
pub use object::{AnyObject, Object};
pub use query::Query;
pub use read::Reader;
pub use request::{FieldManager, FieldValidation};
pub use subresource::{Eviction, Subresource, Token, TokenOptions};
pub use write::Objects;
use written::Written;

pub use crate::writer::Patch;

use crate::Leadership;

/// Reads from caches. Cheap to clone. [`objects`](Self::objects) returns a handle that also writes.
#[derive(Clone)]
pub struct CachedClient {
    shared: Arc<Shared>,
    mode: Mode,
}

/// The options of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The action of a read that finds no informer of its kind.
    pub on_miss: CacheMiss,
    /// The kinds that are always read from the server, whatever their version.
    pub never_cached: Vec<Resource>,
    /// The maximum time a read waits for a cache to be filled.
    pub synced_within: Duration,
    /// Whether cached reads wait for this client's own writes.
    pub read_your_writes: bool,
    /// The field manager of writes, for `managedFields`; without one, the server derives a name from the user agent.
    pub field_manager: Option<String>,
}

/// The action of a read that finds no informer of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMiss {
    /// The read starts an informer, which keeps watching.
    #[default]
    Start,
    /// The read fails, so that nothing watches all Secrets by mistake.
    Forbidden,
}

struct Shared {
    client: kube::Client,
    informers: InformerFactory,
    options: ClientOptions,
    written: Written,
}

/// The settings that differ between clones.
#[derive(Clone, Default)]
struct Mode {
    live: bool,
    dry_run: bool,
    field_manager: Option<Arc<str>>,
    /// `None` if writes need no leadership.
    leadership: Option<Leadership>,
    validation: Option<FieldValidation>,
}

/// A list of a large kind takes some seconds; a cache that is not filled after this long has a problem, which the error
/// names.
const SYNCED_WITHIN: Duration = Duration::from_secs(30);

// === impl CachedClient ===

impl CachedClient {
    /// Creates a client that reads from the caches of `informers` and writes through `client`.
    #[must_use]
    pub fn new(client: kube::Client, informers: InformerFactory, options: ClientOptions) -> Self {
        let field_manager = options.field_manager.as_deref().map(Arc::from);
        let shared = Shared { client, informers, options, written: Written::default() };
        Self { shared: Arc::new(shared), mode: Mode { field_manager, ..Mode::default() } }
    }

    /// Returns the same client, with reads from the server.
    #[must_use]
    pub fn live(&self) -> Self {
        self.with_mode(|mode| mode.live = true)
    }

    /// Returns the same client, with writes that the server checks, answers and does not store.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with_mode(|mode| mode.dry_run = true)
    }

    /// Returns the same client, with writes by this field manager.
    #[must_use]
    pub fn with_field_manager(&self, name: &str) -> Self {
        self.with_mode(|mode| mode.field_manager = Some(name.into()))
    }

    /// Returns the same client, with this validation of unknown and duplicate fields by the server.
    #[must_use]
    pub fn with_field_validation(&self, validation: FieldValidation) -> Self {
        self.with_mode(|mode| mode.validation = Some(validation))
    }

    /// Returns the same client, with writes only while this process leads: later ones fail with
    /// [`ClientError::NotLeader`].
    #[doc(hidden)]
    #[must_use]
    pub fn led_by(&self, leadership: Leadership) -> Self {
        self.with_mode(|mode| mode.leadership = Some(leadership))
    }

    /// Returns the underlying client: its reads and writes all go to the server.
    #[must_use]
    pub fn kube(&self) -> kube::Client {
        self.shared.client.clone()
    }

    /// Returns the underlying caches.
    #[must_use]
    pub fn informers(&self) -> &InformerFactory {
        &self.shared.informers
    }

    /// Returns a handle that reads and writes objects of a type that knows its resource.
    #[must_use]
    pub fn objects<K: Object>(&self) -> Objects<K> {
        self.objects_at(resource_of::<K>())
    }

    /// Returns a handle for a resource chosen at run time, with a type that need not know it.
    #[must_use]
    pub fn objects_at<T: AnyObject>(&self, resource: Resource) -> Objects<T> {
        Objects::new(self.clone(), resource)
    }

    /// Returns a handle for a resource chosen at run time, with objects as JSON and metadata.
    #[must_use]
    pub fn dynamic(&self, resource: Resource) -> Objects<DynamicObject> {
        self.objects_at(resource)
    }

    /// Returns a reader of views of a kind: the fields that controllers read, at a fraction of the memory.
    #[must_use]
    pub fn views<V: Kind>(&self) -> Reader<V> {
        self.reader(V::RESOURCE)
    }

    /// Returns a reader of the metadata of a resource, which is all that is requested from the server. It has a watch
    /// of its own, even beside a watch of whole objects: views leave out annotations that no controller reads.
    #[must_use]
    pub fn metadata(&self, resource: Resource) -> Reader<Meta> {
        self.reader(resource)
    }

    /// Returns a reader of any view of a resource chosen at run time.
    #[must_use]
    pub fn reader<V: View>(&self, resource: Resource) -> Reader<V> {
        Reader::new(self.clone(), resource)
    }

    fn with_mode(&self, change: impl FnOnce(&mut Mode)) -> Self {
        let mut other = self.clone();
        change(&mut other.mode);
        other
    }
}

/// Shortcuts for types that know their resource.
impl CachedClient {
    /// Returns the object with this key.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is none.
    pub async fn get<K: Object>(&self, key: &ObjectKey) -> Result<Arc<Typed<K>>, ClientError> {
        self.objects::<K>().get(key).await
    }

    /// Returns the object with this key, or `None`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_opt<K: Object>(&self, key: &ObjectKey) -> Result<Option<Arc<Typed<K>>>, ClientError> {
        self.objects::<K>().get_opt(key).await
    }

    /// Returns the objects that match a query, sorted by namespace and name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn list<K: Object>(&self, query: &Query) -> Result<Vec<Arc<Typed<K>>>, ClientError> {
        self.objects::<K>().list(query).await
    }
}

impl std::fmt::Debug for CachedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedClient").field("live", &self.mode.live).finish_non_exhaustive()
    }
}

// === impl ClientOptions ===

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            on_miss: CacheMiss::default(),
            never_cached: Vec::new(),
            synced_within: SYNCED_WITHIN,
            read_your_writes: true,
            field_manager: None,
        }
    }
}
