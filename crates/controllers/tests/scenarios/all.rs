//! What runs on every server, and what it needs for that.
//!
//! A scenario is a function that takes a cluster. Each file lists its own, `scenarios! { name on cluster, … }`, and each
//! tier makes a test of each: `deployment::a_paused_one_waits_and_goes_on` runs on the embedded server and on the rig.
//! A scenario that is `alone` needs all nodes, or all of the API, for itself: on the rig it has a server of its own, while
//! the others run beside each other, each in its own namespace.

/// Lists the scenarios of a file, each with the function that describes its cluster: `name on cluster`, or
/// `name on cluster alone`.
///
/// It leaves behind a macro `list!`, which calls the macro of a tier with each row.
macro_rules! scenarios {
    (@list ($dollar:tt) $($scenario:ident on $cluster:ident $($alone:ident)?),* $(,)?) => {
        macro_rules! list {
            ($dollar tier:ident in $dollar file:ident) => {
                $($dollar tier! { $dollar file::$scenario on $cluster $($alone)? })*
            };
        }
        pub(crate) use list;
    };
    ($($row:tt)*) => { scenarios! { @list ($) $($row)* } };
}

/// Makes tests of all scenarios with the macro of a tier: a module for each file, with a test for each row.
macro_rules! tests_of_all {
    ($tier:ident) => {
        tests_of_all! {
            $tier in accounts, attach_detach, bootstrap, certificates, clusterrole_aggregation, cronjob, daemonset,
            deployment, device_taint_eviction, disruption, endpointslice_mirroring, ephemeral_volume,
            garbage_collector, gates, gates_off, horizontal_pod_autoscaler, issues, job,
            legacy_serviceaccount_token_cleaner, namespace, node_ipam, node_issues, node_lifecycle, node_outages,
            persistentvolume_binder, persistentvolume_expander, pod_garbage_collector, protection,
            replicaset, replicationcontroller, resourceclaim, resourcequota, selinux_warning, service_cidr,
            services, statefulset, storage_version_migrator, storageversion_garbage_collector,
            taint_eviction, ttl, ttl_after_finished, validatingadmissionpolicy_status, volumes
        }
    };
    ($tier:ident in $($file:ident),*) => {
        $(mod $file { crate::scenarios::$file::list!($tier in $file); })*
    };
}

pub(crate) mod accounts;
pub(crate) mod attach_detach;
pub(crate) mod bootstrap;
pub(crate) mod certificates;
pub(crate) mod clusterrole_aggregation;
pub(crate) mod cronjob;
pub(crate) mod daemonset;
pub(crate) mod deployment;
pub(crate) mod device_taint_eviction;
pub(crate) mod disruption;
pub(crate) mod endpointslice_mirroring;
pub(crate) mod ephemeral_volume;
pub(crate) mod garbage_collector;
pub(crate) mod gates;
pub(crate) mod gates_off;
pub(crate) mod horizontal_pod_autoscaler;
pub(crate) mod issues;
pub(crate) mod job;
pub(crate) mod legacy_serviceaccount_token_cleaner;
pub(crate) mod namespace;
pub(crate) mod node_ipam;
pub(crate) mod node_issues;
pub(crate) mod node_lifecycle;
pub(crate) mod node_outages;
pub(crate) mod persistentvolume_binder;
pub(crate) mod persistentvolume_expander;
pub(crate) mod pod_garbage_collector;
pub(crate) mod protection;
pub(crate) mod replicaset;
pub(crate) mod replicationcontroller;
pub(crate) mod resourceclaim;
pub(crate) mod resourcequota;
pub(crate) mod selinux_warning;
pub(crate) mod service_cidr;
pub(crate) mod services;
pub(crate) mod statefulset;
pub(crate) mod storage_version_migrator;
pub(crate) mod storageversion_garbage_collector;
pub(crate) mod support;
pub(crate) mod taint_eviction;
pub(crate) mod ttl;
pub(crate) mod ttl_after_finished;
pub(crate) mod validatingadmissionpolicy_status;
pub(crate) mod volumes;
