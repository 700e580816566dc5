//! The server: made in a moment, cheap to clone, a [`tower::Service`] as it is.

use std::sync::Arc;

use steersman_base::Clock;

use crate::aggregated::Aggregated;
use crate::auth::{Auth, NoRandom, TokenKey, User};
use crate::bootstrap;
use crate::http::Sender;
use crate::http::limits::{HeavyWork, Limits, RequestLimits};
use crate::kinds::core::service::Allocator;
use crate::logs::Logs;
use crate::registry::{Registry, RegistryOptions};
use crate::store::Storage;
use crate::store::memory::Memory;

/// The options of a server.
#[derive(Default)]
#[must_use]
#[non_exhaustive]
pub struct Options {
    /// The clock: the source of the time.
    pub clock: Clock,
    /// The administrator's token; made up if there is none.
    pub admin_token: Option<String>,
    /// The storage of objects; in memory by default. The server continues with what it holds already: objects,
    /// addresses and ports of Services, definitions.
    pub storage: Option<Arc<dyn Storage>>,
    /// The key that signs tokens of service accounts; made up if there is none. Whoever has a storage that outlives the
    /// server keeps the key beside it ([`ApiServer::token_key_pem`]): tokens that another key has signed are nobody's.
    pub token_key: Option<TokenKey>,
    /// The source of the logs of containers; without one, they are empty.
    pub logs: Option<Arc<dyn Logs>>,
    /// The part of the process that serves API groups other than the server's own, such as the metrics APIs.
    pub aggregated: Option<Arc<dyn Aggregated>>,
    /// The authorization of requests.
    pub authorization: Authorization,
    /// Whether Services can have addresses of IPv6, too.
    pub dual_stack: bool,
    /// Whether claims and volumes come without the finalizers that protect them while they are in use. Where no controller
    /// takes those away again, nothing that has them could ever be deleted.
    pub unprotected_storage: bool,
    /// The maximum number of requests from outside the process that are in flight, and their time limit.
    pub limits: RequestLimits,
    /// The threads on which heavy requests run. A [listener](crate::listener) always has threads for those that it
    /// receives.
    pub heavy_work: HeavyWork,
}

impl Options {
    /// Sets the clock: where the time comes from.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the token of the administrator.
    pub fn admin_token(mut self, admin_token: impl Into<String>) -> Self {
        self.admin_token = Some(admin_token.into());
        self
    }

    /// Sets the storage of objects.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Sets the key that signs the tokens of service accounts; with `None`, the server generates one.
    pub fn token_key(mut self, token_key: impl Into<Option<TokenKey>>) -> Self {
        self.token_key = token_key.into();
        self
    }

    /// Sets the source of the logs of containers.
    pub fn logs(mut self, logs: Arc<dyn Logs>) -> Self {
        self.logs = Some(logs);
        self
    }

    /// Sets the part of the process that serves further API groups, such as the metrics APIs.
    pub fn aggregated(mut self, aggregated: impl Into<Option<Arc<dyn Aggregated>>>) -> Self {
        self.aggregated = aggregated.into();
        self
    }

    /// Sets how requests are authorized.
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.authorization = authorization;
        self
    }

    /// Sets whether Services can have IPv6 addresses, too.
    pub fn dual_stack(mut self, dual_stack: bool) -> Self {
        self.dual_stack = dual_stack;
        self
    }

    /// Sets whether claims and volumes are created without the finalizers that protect them while they are in use.
    pub fn unprotected_storage(mut self, unprotected_storage: bool) -> Self {
        self.unprotected_storage = unprotected_storage;
        self
    }

    /// Sets how many requests from outside the process may be in flight, and how long each may take.
    pub fn limits(mut self, limits: RequestLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the threads on which heavy requests run.
    pub fn heavy_work(mut self, heavy_work: HeavyWork) -> Self {
        self.heavy_work = heavy_work;
        self
    }
}

/// The authorization of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Any authenticated user may do anything.
    #[default]
    AlwaysAllow,
    /// Users may do what stored roles and bindings allow.
    Rbac,
}

/// An API server. Clones share everything.
///
/// As it is made, it answers its own process: a request that does not say whose it is, is the administrator's.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) registry: Arc<Registry>,
    pub(crate) sender: Sender,
    pub(crate) limits: Arc<Limits>,
    pub(crate) heavy_work: HeavyWork,
    /// The user agent of requests that send none.
    pub(crate) agent: &'static str,
}

// === impl ApiServer ===

impl ApiServer {
    /// Returns a server with the objects that every cluster has: namespaces, roles, priority classes, its own Service.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { clock, admin_token, storage, token_key, logs, authorization, dual_stack, .. } = options;
        let Options { aggregated, unprotected_storage, limits, heavy_work, .. } = options;
        let storage = storage.unwrap_or_else(|| Arc::new(Memory::new(clock.clone())));
        let auth = Arc::new(Auth::new(clock.clone(), admin_token, token_key));
        let services = if dual_stack { Allocator::dual_stack() } else { Allocator::default() };
        let registry = Registry::new(RegistryOptions {
            store: storage,
            clock,
            auth,
            logs,
            aggregated,
            authorization,
            services,
            unprotected_storage,
        });
        registry.resume();
        bootstrap::seed(&registry);
        let sender = Sender::Local(Arc::new(User::admin()));
        let limits = Arc::new(Limits::new(limits));
        Self { registry, sender, limits, heavy_work, agent: "" }
    }

    /// Returns the same server for requests from outside the process: those that do not authenticate get 401.
    #[must_use]
    pub fn requiring_authentication(&self) -> Self {
        Self { sender: Sender::Remote, ..self.clone() }
    }

    /// Returns the same server for a client within the process that sends no user agent: its writes are those of this one,
    /// which is the name of their field manager.
    #[must_use]
    pub fn for_agent(&self, agent: &'static str) -> Self {
        Self { agent, ..self.clone() }
    }

    /// Returns the administrator's token.
    ///
    /// # Errors
    /// If it must be made up and there are no secure random numbers.
    pub fn admin_token(&self) -> Result<&str, NoRandom> {
        self.registry.auth.admin_token()
    }

    /// Returns the private key that signs tokens of service accounts, as PEM, for the controller that puts tokens into secrets;
    /// `None` if there are no secure random numbers.
    #[must_use]
    pub fn token_key_pem(&self) -> Option<&str> {
        self.registry.auth.key_pem()
    }

    /// Returns the current revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.registry.store.revision()
    }

    /// Drops the history up to a revision: watches and lists from before get 410.
    pub fn compact(&self, revision: u64) {
        self.registry.store.compact(revision);
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
