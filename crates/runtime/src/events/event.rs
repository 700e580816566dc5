//! An event, and its form in the two APIs.

use serde_json::{Value, json};
use steersman_base::{Istr, MicroTime, ResourceVersion, Uid, validation};

use crate::decisions::beginning;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Something went wrong.
    Warning,
}

/// The object of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ObjectReference {
    /// API group and version.
    pub api_version: Istr,
    /// Kind.
    pub kind: Istr,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Istr,
    /// Name.
    pub name: Istr,
    /// Uid.
    pub uid: Uid,
    /// The version that was seen.
    pub resource_version: ResourceVersion,
    /// The part of the object; empty for the whole.
    pub field_path: Istr,
}

/// One event to be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: Istr,
    /// The time in the name, in nanoseconds; unique among events.
    pub nanos: i64,
    /// The object of the event.
    pub involved_object: ObjectReference,
    /// Another object that the event concerns.
    pub related: Option<Box<ObjectReference>>,
    /// The action, in one word; if empty, the reason.
    pub action: Istr,
    /// The reason, in one word.
    pub reason: Istr,
    /// The message, in a sentence.
    pub message: String,
    /// The component that sends the event.
    pub component: Istr,
    /// The host of the component; upstream's controller manager leaves it empty.
    pub host: Istr,
    /// The component again, for newer readers.
    pub reporting_component: Istr,
    /// The host again, for newer readers.
    pub reporting_instance: Istr,
    /// The time of the first occurrence.
    pub first_time: MicroTime,
    /// The time of the last occurrence.
    pub last_time: MicroTime,
    /// The number of occurrences.
    pub count: u32,
    /// The type.
    pub type_: EventType,
}

/// The size limit of a note in `events.k8s.io/v1`.
const NOTE_MAX: usize = 1024;
/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// Returns `<object>.<nanoseconds in hexadecimal>`. For an object whose name is not a DNS name it is random, as in
/// upstream.
pub(super) fn name(object: &str, nanos: i64) -> String {
    let name = format!("{object}.{nanos:x}");
    if validation::dns1123_subdomain(&name).is_empty() {
        return name;
    }
    let mut bytes = [0; 16];
    fastrand::fill(&mut bytes);
    // Version 4, variant 1: a random UUID.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uid::from_bytes(bytes).to_string()
}

/// Returns the namespace of events about an object of this namespace.
pub(super) fn namespace(of_object: &Istr) -> Istr {
    if of_object.is_empty() { Istr::interned(DEFAULT_NAMESPACE) } else { of_object.clone() }
}

// === impl Event ===

impl Event {
    /// Returns the body of a `v1` Event.
    pub(super) fn core_body(&self) -> Value {
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "involvedObject": self.involved_object.body(),
            "reason": self.reason,
            "message": self.message,
            "source": self.source(),
            "firstTimestamp": self.first_time.to_seconds(),
            "lastTimestamp": self.last_time.to_seconds(),
            "count": self.count,
            "type": self.type_.as_str(),
            "eventTime": null,
            "reportingComponent": self.reporting_component,
            "reportingInstance": self.reporting_instance,
        });
        if !self.action.is_empty() {
            body["action"] = json!(self.action);
        }
        self.add_related(&mut body);
        body
    }

    /// Returns the patch of a repeated `v1` Event.
    pub(super) fn core_patch(&self) -> Value {
        json!({ "count": self.count, "lastTimestamp": self.last_time.to_seconds(), "message": self.message })
    }

    /// Returns the body of an `events.k8s.io/v1` Event: a single one, or with its series.
    pub(super) fn v1_body(&self) -> Value {
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "eventTime": self.first_time,
            "reportingController": self.reporting_component,
            // This API requires an instance; a component without one has a single instance.
            "reportingInstance": if self.reporting_instance.is_empty() { &self.reporting_component } else { &self.reporting_instance },
            "action": if self.action.is_empty() { &self.reason } else { &self.action },
            "reason": self.reason,
            "regarding": self.involved_object.body(),
            "note": beginning(&self.message, NOTE_MAX),
            "type": self.type_.as_str(),
        });
        if self.count > 1 {
            body["series"] = self.series();
        }
        self.add_related(&mut body);
        body
    }

    /// Returns the patch of a repeated `events.k8s.io/v1` Event.
    pub(super) fn v1_patch(&self) -> Value {
        json!({ "series": self.series() })
    }

    fn add_related(&self, body: &mut Value) {
        if let Some(related) = &self.related {
            body["related"] = related.body();
        }
    }

    fn series(&self) -> Value {
        json!({ "count": self.count, "lastObservedTime": self.last_time })
    }

    fn source(&self) -> Value {
        let mut source = json!({ "component": self.component });
        if !self.host.is_empty() {
            source["host"] = json!(self.host);
        }
        source
    }
}

// === impl ObjectReference ===

impl ObjectReference {
    fn body(&self) -> Value {
        let mut body = json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
        });
        for (field, text) in [
            ("namespace", self.namespace.as_str()),
            ("resourceVersion", self.resource_version.as_str()),
            ("fieldPath", self.field_path.as_str()),
        ] {
            if !text.is_empty() {
                body[field] = json!(text);
            }
        }
        body
    }
}

// === impl EventType ===

impl EventType {
    /// Returns the type as in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
