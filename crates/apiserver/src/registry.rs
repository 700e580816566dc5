//! The resources, and what requests do to their objects.
//!
//! 1. Every resource is a [`Row`]: names, scope, verbs and subresources come from `data/resources.tsv`, what is special about
//!    its kind from the rule set that the row holds ([`kinds`](crate::kinds)). Nothing here knows a kind by name.
//! 2. Every write takes the same steps in the same order, whichever subresource it comes by: [`mod@write`].
//! 3. A refused write has written nothing; a dry run writes nothing and answers as if it had.

pub(crate) mod admission;
mod answer;
mod authorize;
mod call;
pub(crate) mod checked;
pub(crate) mod conversion;
pub(crate) mod convert;
pub(crate) mod crd;
pub(crate) mod custom;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod object_meta;
pub(crate) mod owners;
pub(crate) mod query;
pub(crate) mod request_match;
mod row;
mod scale;
pub(crate) mod strategy;
pub(crate) mod subresource;
#[cfg(test)]
mod tests;
mod verb;
pub(crate) mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use steersman_base::{Clock, Istr, ObjectKey};

use crate::aggregated::Aggregated;
use crate::auth::Auth;
use crate::discovery;
use crate::kinds::core::service::{Allocator, addresses};
use crate::kinds::networking::{ip_address, service_cidr};
use crate::logs::Logs;
use crate::openapi::Documents;
use crate::server::Authorization;
use crate::store::Storage;
use admission::policy::Policies;
use admission::webhook::Hooks;

pub(crate) use answer::{Answer, Content, ListAnswer};
pub(crate) use call::Call;
pub(crate) use row::{Row, Subresource, built_in};
pub(crate) use verb::{Verb, Verbs};

/// The resources and their objects.
pub(crate) struct Registry {
    pub(crate) store: Arc<dyn Storage>,
    pub(crate) clock: Clock,
    pub(crate) auth: Arc<Auth>,
    pub(crate) custom: RwLock<BTreeMap<(String, String, String), Arc<Row>>>,
    /// The definitions as they are served. Watches of their objects end when that changes.
    pub(crate) served: Mutex<BTreeMap<Istr, crd::Served>>,
    /// Definitions whose objects are being deleted, each by one task.
    pub(crate) cleaning: Mutex<BTreeSet<String>>,
    /// The admission webhooks.
    pub(crate) webhooks: RwLock<Arc<Hooks>>,
    /// The validating admission policies.
    pub(crate) policies: RwLock<Arc<Policies>>,
    /// The mutating admission policies.
    pub(crate) mutating_policies: RwLock<Arc<Policies>>,
    /// Whether a definition has ever had its objects converted by a webhook.
    pub(crate) has_conversions: AtomicBool,
    /// The OpenAPI documents that have been asked for.
    pub(crate) documents: Documents,
    /// The documents of aggregated discovery.
    pub(crate) discovered: discovery::Kept,
    /// The allocated cluster IPs and node ports.
    pub(crate) services: Allocator,
    /// Held while a write is charged to quotas.
    pub(crate) quotas: Mutex<()>,
    /// The source of container logs.
    pub(crate) logs: Option<Arc<dyn Logs>>,
    /// The source of aggregated groups.
    pub(crate) aggregated: Option<Arc<dyn Aggregated>>,
    /// Their groups and versions, which never change: every request is compared with them, and the source computes them.
    pub(crate) aggregated_versions: Vec<(String, String)>,
    /// The authorization of requests.
    pub(crate) authorization: Authorization,
    /// Whether claims and volumes get no finalizers that protect them.
    pub(crate) unprotected_storage: bool,
    /// Whether stored definitions wait for a runtime, because the server was made without one.
    is_waiting: AtomicBool,
    /// The registry itself, for tasks that outlive a request.
    pub(crate) me: Weak<Self>,
}

/// The parts of a [`Registry`].
pub(crate) struct RegistryOptions {
    pub(crate) store: Arc<dyn Storage>,
    pub(crate) clock: Clock,
    pub(crate) auth: Arc<Auth>,
    pub(crate) logs: Option<Arc<dyn Logs>>,
    pub(crate) aggregated: Option<Arc<dyn Aggregated>>,
    pub(crate) authorization: Authorization,
    pub(crate) services: Allocator,
    pub(crate) unprotected_storage: bool,
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(options: RegistryOptions) -> Arc<Self> {
        let RegistryOptions { store, clock, auth, logs, aggregated, authorization, services, unprotected_storage } =
            options;
        let versions = aggregated.iter().flat_map(|source| source.versions());
        let aggregated_versions = versions.map(|held| (held.group, held.version)).collect();
        Arc::new_cyclic(|me| Self {
            store,
            clock,
            auth,
            custom: RwLock::default(),
            served: Mutex::default(),
            cleaning: Mutex::default(),
            webhooks: RwLock::default(),
            policies: RwLock::default(),
            mutating_policies: RwLock::default(),
            has_conversions: AtomicBool::new(false),
            documents: Documents::default(),
            discovered: discovery::Kept::default(),
            services,
            quotas: Mutex::default(),
            logs,
            aggregated,
            aggregated_versions,
            authorization,
            unprotected_storage,
            is_waiting: AtomicBool::new(false),
            me: Weak::clone(me),
        })
    }

    /// Restores the state that follows from stored objects, for a storage that outlives its servers: allocated addresses and
    /// ports of Services, the resources of stored definitions, the webhooks and the policies.
    pub(crate) fn resume(&self) {
        self.webhooks_changed();
        self.policies_changed();
        let stored = |group: &str, plural: &str| -> Vec<Value> {
            let Some(row) = self.row(group, "v1", plural) else { return Vec::new() };
            list::list_all(self, &row, "").iter().filter_map(|stored| stored.parse().ok()).collect()
        };
        let services = stored("", "services");
        services.iter().for_each(|service| self.services.restore(service));
        stored("networking.k8s.io", "servicecidrs")
            .iter()
            .for_each(|range| service_cidr::update_allocator(self, range));
        stored("networking.k8s.io", "ipaddresses")
            .iter()
            .for_each(|address| ip_address::set_named(self, address, true));
        services.iter().for_each(|service| addresses::repair(self, service));
        self.resume_definitions();
        self.is_waiting.store(tokio::runtime::Handle::try_current().is_err(), Ordering::Relaxed);
    }

    /// Does what [`resume`](Self::resume) needed a runtime for and had none.
    pub(crate) fn catch_up(&self) {
        if self.is_waiting.load(Ordering::Relaxed) && self.is_waiting.swap(false, Ordering::Relaxed) {
            self.resume_definitions();
        }
    }

    /// Returns the resource with these names.
    #[must_use]
    pub(crate) fn row(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Row>> {
        row::find_built_in(group, version, plural).or_else(|| {
            let key = (group.to_owned(), version.to_owned(), plural.to_owned());
            self.custom.read().get(&key).cloned()
        })
    }

    /// Whether a group is served, in this version if one is given.
    #[must_use]
    pub(crate) fn has_group(&self, group: &str, version: Option<&str>) -> bool {
        let fits =
            |row: &Arc<Row>| row.resource.group == group && version.is_none_or(|want| row.resource.version == want);
        built_in().iter().any(fits) || self.custom.read().values().any(fits)
    }

    /// Returns the built-in resource with this group and plural, in any version.
    pub(crate) fn any_version(&self, group: &str, plural: &str) -> Option<Arc<Row>> {
        built_in().iter().find(|row| row.resource.group == group && row.resource.plural == plural).cloned()
    }

    /// Returns the resource of a kind.
    pub(crate) fn row_of_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Row>> {
        let fits = |row: &&Arc<Row>| row.resource.kind == kind && row.resource.api_version() == api_version;
        built_in().iter().find(fits).cloned().or_else(|| self.custom.read().values().find(fits).cloned())
    }

    /// Returns a stored object of a built-in resource, as a tree.
    pub(crate) fn stored(&self, group: &str, version: &str, plural: &str, key: &ObjectKey) -> Option<Value> {
        let row = self.row(group, version, plural)?;
        self.store.get(&row.collection, key)?.parse().ok()
    }
}
