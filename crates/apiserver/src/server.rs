//! The server: made in a moment, cheap to clone, a [`tower::Service`] as it is.

use std::sync::Arc;

use serde_json::json;
use steersman_base::Clock;

use crate::admission::NAMESPACES;
use crate::auth::{Auth, NoRandom, User};
use crate::http::Sender;
use crate::registry::query::Query;
use crate::registry::{Call, Registry};
use crate::schema::FieldValidation;
use crate::store::Storage;
use crate::store::memory::Memory;

/// How a server is made.
#[derive(Default)]
#[must_use]
pub struct Options {
    /// Where time comes from.
    pub clock: Clock,
    /// The administrator's token; made up if there is none.
    pub admin_token: Option<String>,
    /// Where objects are kept; in memory if nothing is said.
    pub storage: Option<Arc<dyn Storage>>,
}

/// An API server. Clones share everything.
///
/// As it is made, it answers its own process: a request that does not say whose it is, is the administrator's.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) registry: Arc<Registry>,
    pub(crate) sender: Sender,
}

// === impl ApiServer ===

impl ApiServer {
    /// A server with the namespaces that every cluster has.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { clock, admin_token, storage } = options;
        let storage = storage.unwrap_or_else(|| Arc::new(Memory::new(clock.clone())));
        let auth = Arc::new(Auth::new(clock.clone(), admin_token));
        let registry = Registry::new(storage, clock, auth);
        let server = Self { registry, sender: Sender::Local(Arc::new(User::admin())) };
        server.bootstrap();
        server
    }

    /// The same server for people outside the process: who does not say who they are gets 401.
    #[must_use]
    pub fn for_strangers(&self) -> Self {
        Self { registry: Arc::clone(&self.registry), sender: Sender::Remote }
    }

    /// The administrator's token.
    ///
    /// # Errors
    /// If it must be made up and there are no secure random numbers.
    pub fn admin_token(&self) -> Result<&str, NoRandom> {
        self.registry.auth.admin_token()
    }

    /// The newest revision: what a list would say.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.registry.store.revision()
    }

    /// Forgets what happened up to a revision: watches and lists from before get 410.
    pub fn compact(&self, revision: u64) {
        self.registry.store.compact(revision);
    }

    fn bootstrap(&self) {
        let Some(row) = self.registry.row("", "v1", "namespaces") else { return };
        for name in NAMESPACES {
            let call = Call {
                row: Arc::clone(&row),
                namespace: String::new(),
                name: String::new(),
                subresource: String::new(),
                user: User::admin(),
                query: Query::default(),
                dry_run: false,
                field_validation: FieldValidation::Ignore,
            };
            let body = json!({"metadata": {"name": name}}).to_string();
            // A storage that outlives the process has them already.
            let _ = self.registry.create(&call, body.as_bytes(), crate::decode::ContentType::Json);
        }
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
