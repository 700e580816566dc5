//! Whether the server is well, for those who watch over it.
//!
//! The checks have upstream's names, so that those who look for one by name find it; a server that answers at all has
//! passed them.

use std::fmt::Write;

use crate::registry::Registry;
use crate::registry::query::Query;

/// The health checks of every server, in the order of upstream's reports.
const COMMON: &[&str] = &[
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/max-in-flight-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// The endpoints: path, checks before and behind the common ones.
const ENDPOINTS: [(&str, &[&str], &[&str]); 3] = [
    ("healthz", &["ping", "log", "loopback-serving-certificate", "etcd"], &[]),
    ("livez", &["ping", "log", "etcd"], &[]),
    ("readyz", &["ping", "log", "etcd", "etcd-readiness", "informer-sync"], &["shutdown"]),
];

/// The answer to a question about health: status and text. None: it is about something else.
pub(crate) fn answer(path: &str, query: &Query) -> Option<(u16, String)> {
    let mut segments = path.trim_matches('/').splitn(2, '/');
    let endpoint = segments.next()?;
    let (name, before, behind) = ENDPOINTS.iter().find(|(name, ..)| *name == endpoint)?;
    let checks = || before.iter().chain(COMMON).chain(*behind);
    if let Some(check) = segments.next() {
        let is_known = checks().any(|held| *held == check);
        return Some(if is_known { (200, "ok".to_owned()) } else { (404, "404 page not found\n".to_owned()) });
    }
    if !query.has("verbose") {
        return Some((200, "ok".to_owned()));
    }
    let excluded: Vec<_> = query.all("exclude").collect();
    let mut text = String::new();
    for check in checks() {
        let outcome = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        let _ = writeln!(text, "[+]{check} {outcome}");
    }
    let _ = writeln!(text, "{name} check passed");
    Some((200, text))
}

/// `/metrics`: how many objects there are, and how far the store has come.
pub(crate) fn metrics(registry: &Registry) -> String {
    let mut text = String::from(
        "# HELP apiserver_storage_objects [STABLE] Number of stored objects at the time of last check split by kind.\n\
         # TYPE apiserver_storage_objects gauge\n",
    );
    let custom = registry.custom.read();
    let mut counted = Vec::new();
    for row in crate::registry::built_in()
        .iter()
        .chain(custom.values())
        .filter(|row| row.verbs.has(crate::registry::Verb::List))
    {
        if counted.contains(&&row.collection.name) {
            continue;
        }
        counted.push(&row.collection.name);
        let count = crate::registry::list::list_all(registry, row, "").len();
        let _ = writeln!(text, "apiserver_storage_objects{{resource=\"{}\"}} {count}", row.collection.name);
    }
    let _ = writeln!(
        text,
        "# HELP steersman_apiserver_revision The newest revision of the store.\n\
         # TYPE steersman_apiserver_revision counter\n\
         steersman_apiserver_revision {}",
        registry.store.revision()
    );
    text
}
