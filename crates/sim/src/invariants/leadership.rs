//! Leadership: which manager may write.

use super::{
    ACCOUNT, AGGREGATION, ATTACH_DETACH, AUTOSCALER, BOOTSTRAP_SIGNER, CLASS_PROTECTION, CRON_JOB, Case, DAEMON_SET,
    DEPLOYMENT, DEVICE_TAINT_EVICTION, DISRUPTION, ENDPOINTS, EPHEMERAL, GARBAGE, JOB, MIRRORING, NAMESPACE, NODE_IPAM,
    NODE_LIFECYCLE, POD_GC, POLICY_STATUS, QUOTA, REPLICA_SET, REPLICATION, RESOURCE_CLAIM, ROOT_CA, SERVICE_CIDR,
    SIGNING, SLICES, STATEFUL_SET, TAINT_EVICTION, TOKEN, TOKEN_CLEANER, TTL_AFTER_FINISHED, VOLUME_BINDER, Verdict,
};
use steersman_base::Istr;

use crate::world::{Body, Object};

const LEASES: &str = "leases.coordination.k8s.io";

/// "Kubernetes also uses Leases to ensure only one instance of a component is running at any given time." (website:
/// Leases)
///
/// Asked when a controller writes anything but events and leases: the lease must be held, at the store and at that
/// revision, under the identity that its manager took it with. Judged against the store alone. Where the time is known
/// at which the request was sent, a lease that its manager held then, or later, excuses it: nobody can call back what
/// is under way.
pub(super) fn no_write_by_a_deposed_leader(case: &Case<'_>) -> Verdict {
    let Some((manager, key)) = case.change.by.manager().zip(case.options.lease.as_ref()) else {
        return Verdict::NotMine;
    };
    let Some(history) = case.world.history(LEASES, key) else { return Verdict::NotMine };
    if [LEASES, "events", "events.events.k8s.io"].contains(&&*case.change.resource) {
        return Verdict::NotMine;
    }
    // Without the author of the lease there is nothing to compare.
    if case.memory.identities.is_empty() {
        return Verdict::NotMine;
    }
    let mine = case.memory.identities.get(&manager);
    let is_mine = |lease: &Object| is_held_by(lease, mine);
    if history.now().is_some_and(|lease| is_mine(lease)) {
        return Verdict::Holds;
    }
    let sent = case.change.shown.as_ref().and_then(|shown| shown.sent);
    let held_since = |sent| case.world.since_time(history, sent).ever(is_mine);
    if sent.is_some_and(held_since) {
        return Verdict::Excused;
    }
    let holder = match history.now().map(|lease| &lease.body) {
        Some(Body::Lease { holder }) => holder.to_string(),
        _ => String::new(),
    };
    let resource = &case.change.resource;
    let object = &case.change.key;
    Verdict::Violated(format!(
        "{resource} {object} is written by manager {manager}, and the lease {key} is held by {holder:?}, not by {:?}",
        mine.map(ToString::to_string).unwrap_or_default()
    ))
}

/// Whether a lease is held under this identity.
pub(super) fn is_held_by(lease: &Object, identity: Option<&Istr>) -> bool {
    matches!(&lease.body, Body::Lease { holder } if Some(holder) == identity)
}

/// What each controller may write, beside events: the rules of its role.
const ROLES: [(&str, &[&str]); 43] = [
    (DEPLOYMENT, &["deployments.apps", "replicasets.apps"]),
    (REPLICA_SET, &["replicasets.apps", "pods"]),
    (REPLICATION, &["replicationcontrollers", "pods"]),
    (SLICES, &["endpointslices.discovery.k8s.io"]),
    (ENDPOINTS, &["endpoints"]),
    (POD_GC, &["pods"]),
    (ROOT_CA, &["configmaps"]),
    (ACCOUNT, &["serviceaccounts"]),
    (TOKEN, &["secrets", "serviceaccounts"]),
    (STATEFUL_SET, &["statefulsets.apps", "pods", "persistentvolumeclaims", "controllerrevisions.apps"]),
    (DAEMON_SET, &["daemonsets.apps", "pods", "controllerrevisions.apps"]),
    (JOB, &["jobs.batch", "pods"]),
    (CRON_JOB, &["cronjobs.batch", "jobs.batch"]),
    (DISRUPTION, &["poddisruptionbudgets.policy", "pods"]),
    (MIRRORING, &["endpointslices.discovery.k8s.io"]),
    (AGGREGATION, &["clusterroles.rbac.authorization.k8s.io"]),
    (AUTOSCALER, &["horizontalpodautoscalers.autoscaling", "deployments.apps", "statefulsets.apps"]),
    (SIGNING, &["certificatesigningrequests.certificates.k8s.io"]),
    (VOLUME_BINDER, &["persistentvolumes", "persistentvolumeclaims", "pods"]),
    (ATTACH_DETACH, &["volumeattachments.storage.k8s.io", "nodes"]),
    (NODE_LIFECYCLE, &["nodes", "pods"]),
    (NODE_IPAM, &["nodes"]),
    ("ttl-controller", &["nodes"]),
    (TAINT_EVICTION, &["pods"]),
    (DEVICE_TAINT_EVICTION, &["pods", "devicetaintrules.resource.k8s.io"]),
    (RESOURCE_CLAIM, &["resourceclaims.resource.k8s.io", "pods", "podgroups.scheduling.k8s.io"]),
    ("resourcepoolstatusrequest-controller", &["resourcepoolstatusrequests.resource.k8s.io"]),
    ("podgroup-protection-controller", &["podgroups.scheduling.k8s.io"]),
    (QUOTA, &["resourcequotas"]),
    (TTL_AFTER_FINISHED, &["jobs.batch"]),
    (EPHEMERAL, &["persistentvolumeclaims"]),
    ("persistentvolume-expander-controller", &["persistentvolumes", "persistentvolumeclaims"]),
    ("persistentvolumeclaim-protection-controller", &["persistentvolumeclaims"]),
    ("persistentvolume-protection-controller", &["persistentvolumes"]),
    (CLASS_PROTECTION, &["volumeattributesclasses.storage.k8s.io"]),
    (SERVICE_CIDR, &["servicecidrs.networking.k8s.io"]),
    (POLICY_STATUS, &["validatingadmissionpolicies.admissionregistration.k8s.io"]),
    (BOOTSTRAP_SIGNER, &["configmaps"]),
    (TOKEN_CLEANER, &["secrets"]),
    ("certificatesigningrequest-approving-controller", &["certificatesigningrequests.certificates.k8s.io"]),
    ("certificatesigningrequest-cleaner-controller", &["certificatesigningrequests.certificates.k8s.io"]),
    ("podcertificaterequest-cleaner-controller", &["podcertificaterequests.certificates.k8s.io"]),
    ("storageversion-garbage-collector-controller", &["storageversions.internal.apiserver.k8s.io"]),
];

/// "Corresponding roles exist for each built-in controller, prefixed with `system:controller:`." (website: Using RBAC
/// Authorization)
///
/// Asked when a controller writes: the resource must be one that its role names, a status write changes no generation,
/// and owners of pods do not change themselves. The garbage collector and the namespace controller may delete anything;
/// the latter changes nothing but namespaces. Judged against the store alone.
pub(super) fn controllers_write_only_what_is_theirs(case: &Case<'_>) -> Verdict {
    let Some(name) = case.change.by.controller() else { return Verdict::NotMine };
    let resource = &*case.change.resource;
    if resource.starts_with("events") || resource == LEASES {
        return Verdict::NotMine;
    }
    if name == GARBAGE || name == NAMESPACE {
        let is_creation = case.created().is_some();
        return Verdict::at_store(!is_creation, || format!("{resource} {} is created", case.change.key));
    }
    let Some((_, role)) = ROLES.iter().find(|(controller, _)| *controller == name) else { return Verdict::NotMine };
    let is_own_spec = matches!(
        (name, resource),
        (REPLICA_SET, "replicasets.apps")
            | (REPLICATION, "replicationcontrollers")
            | (STATEFUL_SET, "statefulsets.apps")
            | (DAEMON_SET, "daemonsets.apps")
            | (JOB, "jobs.batch")
            | (CRON_JOB, "cronjobs.batch")
            | (DISRUPTION, "poddisruptionbudgets.policy")
            | (AUTOSCALER, "horizontalpodautoscalers.autoscaling")
    );
    let changes_spec = case.updated().is_none_or(|(before, after)| before.generation != after.generation);
    let holds = role.contains(&resource) && !(is_own_spec && changes_spec);
    Verdict::at_store(holds, || format!("{resource} {} is not the controller's to write", case.change.key))
}
