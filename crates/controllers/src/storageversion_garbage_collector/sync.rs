//! The shell: both queues read from the server, and write what is left of a storage version.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::Selection;
use steersman_model::apiserverinternal::StorageVersionView;
use steersman_model::coordination::LeaseView;
use steersman_model::{Encoded, Kind, View};
use steersman_runtime::writer::{Delete, Outcome};
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::plan::{self, Plan};

const VERSIONS: &Resource = &StorageVersionView::RESOURCE;
const LEASES: &Resource = &LeaseView::RESOURCE;

/// The shell of the queue of deleted Leases.
pub(super) struct DeadServers;

/// The shell of the queue of storage versions that name API servers without a Lease.
pub(super) struct UnknownServers;

reasons! {
    /// Why the collector of storage versions writes.
    pub enum Why {
        /// Some API servers of a storage version are gone.
        SomeGone { count: usize } => "{count} of the API servers that it names have no identity Lease",
        /// All API servers of a storage version are gone.
        AllGone => "none of the API servers that it names has an identity Lease",
    }
}

// === impl DeadServers ===

impl Reconciler for DeadServers {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        if cx.live.get_meta(LEASES, key).await?.is_some() {
            return Ok(Action::Done);
        }
        let gone = BTreeSet::from([key.name.to_string()]);
        let mut failed = None;
        for version in cx.live.list::<StorageVersionView>(Selection::everything()).await? {
            let mut servers = version.status.storage_versions.iter().map(|reported| &*reported.api_server_id);
            if !servers.any(|server| *server == *key.name) {
                continue;
            }
            // A storage version that cannot be written does not hold back the others.
            if let Err(error) = collect(cx, &version.meta().key(), &gone).await {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(Action::Done), Err)
    }
}

// === impl UnknownServers ===

impl Reconciler for UnknownServers {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(version) = cx.live.get_json(VERSIONS, key).await? else { return Ok(Action::Done) };
        let mut gone = BTreeSet::new();
        for server in plan::servers(&version) {
            let lease = match server.as_str() {
                "" => None,
                server => cx.live.get_meta(LEASES, &plan::lease(server)).await?,
            };
            if !lease.is_some_and(|lease| plan::is_identity(&lease)) {
                gone.insert(server);
            }
        }
        write(cx, &version, &gone).await?;
        Ok(Action::Done)
    }
}

/// Reads a storage version with every field, known or not, and writes what is left of it without these API servers.
async fn collect(cx: &Context, key: &ObjectKey, gone: &BTreeSet<String>) -> Result<(), Error> {
    match cx.live.get_json(VERSIONS, key).await? {
        Some(version) => write(cx, &version, gone).await,
        None => Ok(()),
    }
}

/// Writes what is left of a storage version. An API server that reports at the same time makes it a conflict, which is
/// retried.
async fn write(cx: &Context, version: &Value, gone: &BTreeSet<String>) -> Result<(), Error> {
    let meta = Meta::decode(Encoded::Json(version.to_string().as_bytes()))?;
    let write = cx.writer.on_behalf_of(&meta);
    let written = match plan::plan(version, |server| gone.contains(server), cx.clock.now()) {
        Plan::Keep => return Ok(()),
        Plan::Write(left) => {
            let body = left.to_string().into_bytes();
            write.put_status(VERSIONS, &meta.key(), body, &Why::SomeGone { count: gone.len() }).await.map(drop)
        }
        Plan::Delete => write.delete(VERSIONS, &meta, Delete::default().unchanged_only(), &Why::AllGone).await,
    };
    Ok(written.ok_if_gone()?)
}
