//! The client of a manager: reads from the caches, writes to the server.
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
//! let mut config: ConfigMap = client.get::<ConfigMap>(&web).await?.object().clone();
//! config.data.get_or_insert_default().insert("pods".into(), pods.len().to_string());
//! client.update(&config).await?;                                                 // to the server
//! client.apply(&config, &FieldManager::named("example").force()).await?;
//! # let _ = (deployment, now);
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees:
//! 1. **Reads come from the cache** of the manager, shared with its controllers; an informer starts with the first read of
//!    its kind, or, by [`CacheMiss::Forbidden`], such a read is an error. A first read waits until the cache is filled, for
//!    [`ClientOptions::synced_within`] at most, and the error names what is missing and why.
//! 2. **Live reads** go to the server: per call through [`CachedClient::live`], per kind through
//!    [`ClientOptions::never_cached`].
//! 3. **Read your writes**: a cached read waits until the cache shows what *this* client wrote to the same kind; a cache
//!    that does not get there in time is passed by with a live read. Writes whose answer was lost, and deletions that the
//!    server answers without an object, are not waited for.
//! 4. **No write is sent twice.** A write without an answer is [`ClientError::NoAnswer`]: it may have been made.
//! 5. **Each ordinary refusal is a variant** of [`ClientError`]: not found, conflict, already exists, ….
//!
//! What is read from the cache is shared and immutable: clone the object to change it. Controllers of this workspace write
//! through the [`Writer`](crate::Writer), which asks for a reason; this client is for everybody else.

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

use kube::api::DeleteParams;
use kube::core::DynamicObject;
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::typed::resource_of;
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

/// Reads from caches, writes to the server. Cheap to clone.
#[derive(Clone)]
pub struct CachedClient {
    shared: Arc<Shared>,
    mode: Mode,
}

/// How a client works.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// What a read does that finds no informer of its kind.
    pub on_miss: CacheMiss,
    /// Kinds that are always read from the server, whatever their version.
    pub never_cached: Vec<Resource>,
    /// How long a read waits for a cache to be filled.
    pub synced_within: Duration,
    /// Whether cached reads wait for this client's own writes.
    pub read_your_writes: bool,
    /// Whose fields those are that are written, for `managedFields`; the server makes a name of the user agent if none
    /// is told.
    pub field_manager: Option<String>,
}

/// What a read does that finds no informer of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMiss {
    /// It starts one, which watches from then on.
    #[default]
    Start,
    /// It fails: nobody shall watch all Secrets by mistake.
    Forbidden,
}

struct Shared {
    client: kube::Client,
    informers: InformerFactory,
    options: ClientOptions,
    written: Written,
}

/// What differs between clones.
#[derive(Clone, Default)]
struct Mode {
    live: bool,
    dry_run: bool,
    field_manager: Option<Arc<str>>,
    /// None for who need not lead to write.
    leadership: Option<Leadership>,
    validation: Option<FieldValidation>,
}

/// A list of a large kind takes some seconds; a cache that is not filled after this long has a problem, which the error
/// tells.
const SYNCED_WITHIN: Duration = Duration::from_secs(30);

// === impl CachedClient ===

impl CachedClient {
    /// A client that reads from the caches of `informers` and writes through `client`.
    #[must_use]
    pub fn new(client: kube::Client, informers: InformerFactory, options: ClientOptions) -> Self {
        let field_manager = options.field_manager.as_deref().map(Arc::from);
        let shared = Shared { client, informers, options, written: Written::default() };
        Self { shared: Arc::new(shared), mode: Mode { field_manager, ..Mode::default() } }
    }

    /// The same client, which reads from the server.
    #[must_use]
    pub fn live(&self) -> Self {
        self.with_mode(|mode| mode.live = true)
    }

    /// The same client, whose writes the server checks, answers and does not keep.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with_mode(|mode| mode.dry_run = true)
    }

    /// The same client, which writes as this field manager.
    #[must_use]
    pub fn with_field_manager(&self, name: &str) -> Self {
        self.with_mode(|mode| mode.field_manager = Some(name.into()))
    }

    /// The same client, which has the server check for unknown and duplicate fields like this.
    #[must_use]
    pub fn with_field_validation(&self, validation: FieldValidation) -> Self {
        self.with_mode(|mode| mode.validation = Some(validation))
    }

    /// The same client, which writes only while this process leads: a write that would leave later is refused with
    /// [`ClientError::NotLeader`].
    #[must_use]
    pub fn led_by(&self, leadership: Leadership) -> Self {
        self.with_mode(|mode| mode.leadership = Some(leadership))
    }

    /// The client below: every read and every write goes to the server.
    #[must_use]
    pub fn kube(&self) -> kube::Client {
        self.shared.client.clone()
    }

    /// The caches below.
    #[must_use]
    pub fn informers(&self) -> &InformerFactory {
        &self.shared.informers
    }

    /// Objects of a type that knows its resource.
    #[must_use]
    pub fn objects<K: Object>(&self) -> Objects<K> {
        self.objects_at(resource_of::<K>())
    }

    /// Objects of a resource that is told at run time, as a type that need not know it.
    #[must_use]
    pub fn objects_at<T: AnyObject>(&self, resource: Resource) -> Objects<T> {
        Objects::new(self.clone(), resource)
    }

    /// Objects of a resource that is told at run time, as JSON with metadata.
    #[must_use]
    pub fn dynamic(&self, resource: Resource) -> Objects<DynamicObject> {
        self.objects_at(resource)
    }

    /// Reads views of a kind: the fields that controllers read, at a fraction of the memory.
    #[must_use]
    pub fn views<V: Kind>(&self) -> Reader<V> {
        self.reader(V::RESOURCE)
    }

    /// Reads the metadata of a resource, which is all that is asked of the server. It comes from a watch of its own, even
    /// beside a watch of whole objects: views leave out annotations that no controller reads.
    #[must_use]
    pub fn metadata(&self, resource: Resource) -> Reader<Meta> {
        self.reader(resource)
    }

    /// Reads a resource that is told at run time, as any view.
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

/// The same for types that know their resource, without a handle.
impl CachedClient {
    /// The object with this key.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is none.
    pub async fn get<K: Object>(&self, key: &ObjectKey) -> Result<Arc<Typed<K>>, ClientError> {
        self.objects::<K>().get(key).await
    }

    /// The object with this key, if there is one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_opt<K: Object>(&self, key: &ObjectKey) -> Result<Option<Arc<Typed<K>>>, ClientError> {
        self.objects::<K>().get_opt(key).await
    }

    /// The objects that a query asks for, by namespace and name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn list<K: Object>(&self, query: &Query) -> Result<Vec<Arc<Typed<K>>>, ClientError> {
        self.objects::<K>().list(query).await
    }

    /// Creates an object. Answers what the server made of it.
    ///
    /// # Errors
    /// [`ClientError::AlreadyExists`] if the name is taken.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, ClientError> {
        self.objects().create(object).await
    }

    /// Replaces an object. Its resourceVersion, if it has one, must be the current one.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] if it is not.
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, ClientError> {
        self.objects().update(object).await
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<K, ClientError> {
        self.objects().status().update(object).await
    }

    /// Changes a part of an object.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn patch<K: Object>(&self, key: &ObjectKey, patch: Patch<'_>) -> Result<K, ClientError> {
        self.objects().patch(key, patch).await
    }

    /// Changes a part of the status of an object.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn patch_status<K: Object>(&self, key: &ObjectKey, patch: Patch<'_>) -> Result<K, ClientError> {
        self.objects().status().patch(key, patch).await
    }

    /// Server-side apply: what the object says is so, and is this manager's; the object is made if it is not there.
    ///
    /// # Errors
    /// [`ClientError::Conflict`] if a field is another manager's and is not [forced](FieldManager::force); the causes name
    /// fields and managers.
    pub async fn apply<K: Object>(&self, object: &K, by: &FieldManager) -> Result<K, ClientError> {
        self.objects().apply(object, by).await
    }

    /// Server-side apply to the status.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_status<K: Object>(&self, object: &K, by: &FieldManager) -> Result<K, ClientError> {
        self.objects().status().apply(object, by).await
    }

    /// Deletes an object. Answers its last state where the server tells it.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if there is none, [`ClientError::Conflict`] if a precondition does not hold.
    pub async fn delete<K: Object>(&self, key: &ObjectKey, how: &DeleteParams) -> Result<Option<K>, ClientError> {
        self.objects().delete(key, how).await
    }

    /// Deletes all objects that a query asks for.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete_collection<K: Object>(&self, query: &Query, how: &DeleteParams) -> Result<(), ClientError> {
        self.objects::<K>().delete_collection(query, how).await
    }

    /// Makes sure that an object is as `mutate` leaves it: see [`Objects::create_or_patch`].
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create_or_patch<K: Object + Clone>(
        &self,
        object: K,
        mutate: impl FnOnce(&mut K) -> Result<(), BoxError> + Send,
    ) -> Result<(K, Ensured), ClientError> {
        self.objects().create_or_patch(object, mutate).await
    }

    /// Makes sure that an object is as `mutate` leaves it: see [`Objects::create_or_update`].
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create_or_update<K: Object + Clone>(
        &self,
        object: K,
        mutate: impl FnOnce(&mut K) -> Result<(), BoxError> + Send,
    ) -> Result<(K, Ensured), ClientError> {
        self.objects().create_or_update(object, mutate).await
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
