//! What is special about the life of each resource's objects: one row each, as upstream's strategies have it.
//!
//! Follows `pkg/registry/*/*/strategy.go` and `storage.go` of Kubernetes 1.37.

use serde_json::Value;
use steersman_base::Istr;

use crate::store::{HISTORY_EVENTS_FLEETING, HISTORY_EVENTS_MAX, Shelf};

/// How the life of a resource's objects differs from the usual one.
#[derive(Debug)]
pub struct Traits {
    /// When the generation goes up.
    pub generation: Generation,
    /// What becomes of dependents if a DELETE does not say.
    pub dependents: Dependents,
    /// Whether a DELETE answers with the object, or with a status.
    pub returns_deleted: bool,
    /// Whether a PUT of a missing object makes it.
    pub create_on_update: bool,
    /// Whether a PUT without a resource version is accepted.
    pub unconditional_update: bool,
    /// Whether a POST keeps the status.
    pub status_on_create: bool,
    /// Whether a write of the status takes the status alone, and no labels, annotations, finalizers or owners.
    pub status_alone: bool,
    /// Whether an object without a name gets one.
    pub names_itself: bool,
    /// Fields by which objects can be selected, besides name and namespace, and what they are when absent.
    pub fields: &'static [(&'static str, &'static str)],
    /// After how many seconds objects go by themselves.
    pub ttl_seconds: Option<i64>,
    /// Whether objects change so often that their history is kept short.
    pub is_fleeting: bool,
    /// Said to everybody who uses it.
    pub warning: Option<&'static str>,
}

/// When the generation of an object goes up, besides at its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// There is none.
    None,
    /// It is 1 and stays so.
    Once,
    /// When anything but metadata and status changes.
    Content,
    /// That, or the annotations.
    ContentOrAnnotations,
    /// That, or the labels.
    ContentOrLabels,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// They are deleted in the background.
    Delete,
    /// They become orphans.
    Orphan,
    /// There are none.
    Unsupported,
}

const USUAL: Traits = Traits {
    generation: Generation::None,
    dependents: Dependents::Delete,
    returns_deleted: false,
    create_on_update: false,
    unconditional_update: true,
    status_on_create: false,
    status_alone: false,
    names_itself: false,
    fields: &[],
    ttl_seconds: None,
    is_fleeting: false,
    warning: None,
};
const SPEC: Traits = Traits { generation: Generation::Content, ..USUAL };
const RETURNED: Traits = Traits { returns_deleted: true, ..USUAL };
const RBAC: Traits = Traits { create_on_update: true, ..USUAL };
const WEBHOOKS: Traits = Traits { unconditional_update: false, ..SPEC };
/// Fields of an event as it is stored; `events.k8s.io` has other names for them ([`stored_field`](super::convert::stored_field)).
const EVENTS: Traits = Traits {
    dependents: Dependents::Unsupported,
    create_on_update: true,
    fields: &[
        ("involvedObject.kind", ""),
        ("involvedObject.namespace", ""),
        ("involvedObject.name", ""),
        ("involvedObject.uid", ""),
        ("involvedObject.apiVersion", ""),
        ("involvedObject.resourceVersion", ""),
        ("involvedObject.fieldPath", ""),
        ("reason", ""),
        ("reportingComponent", ""),
        ("source", ""),
        ("type", ""),
    ],
    ttl_seconds: Some(3600),
    is_fleeting: true,
    ..USUAL
};
/// Custom resources: whatever their definition does not say.
pub(crate) const CUSTOM: Traits = Traits { unconditional_update: false, status_alone: true, ..SPEC };

static TRAITS: &[(&str, &str, Traits)] = &[
    (
        "",
        "pods",
        Traits {
            returns_deleted: true,
            fields: &[
                ("spec.nodeName", ""),
                ("spec.restartPolicy", ""),
                ("spec.schedulerName", ""),
                ("spec.serviceAccountName", ""),
                ("spec.hostNetwork", "false"),
                ("status.phase", ""),
                ("status.podIP", ""),
                ("status.nominatedNodeName", ""),
            ],
            ..SPEC
        },
    ),
    ("", "namespaces", Traits { fields: &[("status.phase", "")], ..RETURNED }),
    ("", "nodes", Traits { fields: &[("spec.unschedulable", "false")], status_on_create: true, ..USUAL }),
    ("", "secrets", Traits { fields: &[("type", "")], ..USUAL }),
    (
        "",
        "services",
        Traits { create_on_update: true, fields: &[("spec.clusterIP", ""), ("spec.type", "")], ..RETURNED },
    ),
    ("", "componentstatuses", Traits { warning: Some("v1 ComponentStatus is deprecated in v1.19+"), ..USUAL }),
    ("", "serviceaccounts", RETURNED),
    ("", "persistentvolumes", RETURNED),
    ("", "persistentvolumeclaims", RETURNED),
    ("", "resourcequotas", RETURNED),
    ("", "podtemplates", Traits { returns_deleted: true, ..SPEC }),
    ("", "limitranges", Traits { create_on_update: true, names_itself: true, ..USUAL }),
    (
        "",
        "endpoints",
        Traits {
            create_on_update: true,
            warning: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
            ..USUAL
        },
    ),
    ("", "events", EVENTS),
    ("events.k8s.io", "events", EVENTS),
    (
        "",
        "replicationcontrollers",
        Traits { dependents: Dependents::Orphan, fields: &[("status.replicas", "0")], ..SPEC },
    ),
    ("apps", "deployments", Traits { generation: Generation::ContentOrAnnotations, ..USUAL }),
    ("apps", "replicasets", Traits { fields: &[("status.replicas", "0")], ..SPEC }),
    ("apps", "statefulsets", SPEC),
    ("apps", "daemonsets", SPEC),
    ("batch", "jobs", Traits { dependents: Dependents::Orphan, fields: &[("status.successful", "0")], ..SPEC }),
    ("batch", "cronjobs", SPEC),
    ("autoscaling", "horizontalpodautoscalers", SPEC),
    ("policy", "poddisruptionbudgets", Traits { unconditional_update: false, ..SPEC }),
    ("networking.k8s.io", "ingresses", SPEC),
    ("networking.k8s.io", "ingressclasses", SPEC),
    ("networking.k8s.io", "networkpolicies", SPEC),
    ("networking.k8s.io", "servicecidrs", Traits { status_alone: true, ..USUAL }),
    ("discovery.k8s.io", "endpointslices", Traits { generation: Generation::ContentOrLabels, ..USUAL }),
    ("scheduling.k8s.io", "priorityclasses", Traits { generation: Generation::Once, ..USUAL }),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", SPEC),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", SPEC),
    (
        "resource.k8s.io",
        "resourceslices",
        Traits { returns_deleted: true, fields: &[("spec.nodeName", ""), ("spec.driver", "")], ..SPEC },
    ),
    ("resource.k8s.io", "deviceclasses", Traits { returns_deleted: true, ..SPEC }),
    ("resource.k8s.io", "resourceclaims", Traits { status_alone: true, ..RETURNED }),
    ("resource.k8s.io", "devicetaintrules", Traits { status_alone: true, ..USUAL }),
    ("resource.k8s.io", "resourceclaimtemplates", RETURNED),
    ("storage.k8s.io", "storageclasses", RETURNED),
    ("storage.k8s.io", "volumeattributesclasses", RETURNED),
    ("storage.k8s.io", "csidrivers", Traits { unconditional_update: false, ..RETURNED }),
    ("storage.k8s.io", "csinodes", Traits { unconditional_update: false, ..RETURNED }),
    ("storage.k8s.io", "volumeattachments", Traits { unconditional_update: false, status_alone: true, ..RETURNED }),
    ("storage.k8s.io", "csistoragecapacities", Traits { unconditional_update: false, ..USUAL }),
    ("node.k8s.io", "runtimeclasses", Traits { create_on_update: true, unconditional_update: false, ..USUAL }),
    (
        "coordination.k8s.io",
        "leases",
        Traits { create_on_update: true, unconditional_update: false, is_fleeting: true, ..USUAL },
    ),
    ("rbac.authorization.k8s.io", "roles", RBAC),
    ("rbac.authorization.k8s.io", "rolebindings", RBAC),
    ("rbac.authorization.k8s.io", "clusterroles", RBAC),
    ("rbac.authorization.k8s.io", "clusterrolebindings", RBAC),
    ("certificates.k8s.io", "certificatesigningrequests", Traits { fields: &[("spec.signerName", "")], ..USUAL }),
    ("certificates.k8s.io", "clustertrustbundles", Traits { fields: &[("spec.signerName", "")], ..USUAL }),
    (
        "certificates.k8s.io",
        "podcertificaterequests",
        Traits {
            status_alone: true,
            fields: &[("spec.signerName", ""), ("spec.podName", ""), ("spec.nodeName", "")],
            ..USUAL
        },
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", WEBHOOKS),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", WEBHOOKS),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", Traits { status_alone: true, ..WEBHOOKS }),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", WEBHOOKS),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", WEBHOOKS),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", WEBHOOKS),
    (
        "storagemigration.k8s.io",
        "storageversionmigrations",
        Traits { unconditional_update: false, status_alone: true, ..USUAL },
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        Traits { returns_deleted: true, unconditional_update: false, status_alone: true, ..SPEC },
    ),
    ("apiregistration.k8s.io", "apiservices", Traits { unconditional_update: false, ..USUAL }),
];

/// The traits of a resource.
#[must_use]
pub fn of(group: &str, plural: &str) -> &'static Traits {
    static ORDINARY: Traits = USUAL;
    let found = TRAITS.iter().find(|(held_group, held_plural, _)| *held_group == group && *held_plural == plural);
    found.map_or(&ORDINARY, |(.., traits)| traits)
}

/// The traits of custom resources.
#[must_use]
pub fn custom() -> &'static Traits {
    static TRAITS: Traits = CUSTOM;
    &TRAITS
}

// === impl Traits ===

impl Traits {
    /// Where the objects are kept.
    #[must_use]
    pub fn shelf(&self, group: &str, plural: &str) -> Shelf {
        let name = if group.is_empty() { Istr::interned(plural) } else { Istr::interned(&format!("{plural}.{group}")) };
        let history_events_max = if self.is_fleeting { HISTORY_EVENTS_FLEETING } else { HISTORY_EVENTS_MAX };
        Shelf { name, history_events_max, ttl_seconds: self.ttl_seconds }
    }

    /// The values of the selectable fields of an object.
    #[must_use]
    pub fn field_values(&self, object: &Value) -> Box<[Istr]> {
        self.fields.iter().map(|(path, absent)| field(object, path).unwrap_or_else(|| Istr::new(absent))).collect()
    }
}

/// The value of a field, as a selector compares it. `source` of an event is the component that reported it.
fn field(object: &Value, path: &str) -> Option<Istr> {
    let path = if path == "source" { "source.component" } else { path };
    let found = path.split('.').try_fold(object, |value, name| value.get(name))?;
    match found {
        Value::String(text) => Some(Istr::interned(text)),
        Value::Bool(flag) => Some(Istr::new(if *flag { "true" } else { "false" })),
        Value::Number(number) => Some(Istr::new(&number.to_string())),
        _ => None,
    }
}
