//! An event, and its form in the two APIs.

use serde_json::{Value, json};
use steersman_base::{Istr, MicroTime, ResourceVersion, Uid, validation};

use crate::decisions::beginning;

/// Whether something went as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It did.
    Normal,
    /// It did not.
    Warning,
}

/// What an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectReference {
    /// API group and version.
    pub api_version: Istr,
    /// Kind.
    pub kind: Istr,
    /// Namespace; empty for cluster-wide objects.
    pub namespace: Istr,
    /// Name.
    pub name: Istr,
    /// Uid.
    pub uid: Uid,
    /// Which version of it was seen.
    pub resource_version: ResourceVersion,
    /// Which part of it; empty for the whole.
    pub field_path: Istr,
}

/// One event on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: Istr,
    /// The time in its name, in nanoseconds; no other event has it.
    pub nanos: i64,
    /// What it is about.
    pub involved_object: ObjectReference,
    /// Why, in one word.
    pub reason: Istr,
    /// Why, in a sentence.
    pub message: String,
    /// Which component tells it.
    pub component: Istr,
    /// On which host that is; upstream's controller manager leaves it empty.
    pub host: Istr,
    /// The component again, as newer readers look for it.
    pub reporting_component: Istr,
    /// The host again, as newer readers look for it.
    pub reporting_instance: Istr,
    /// When it happened first.
    pub first_time: MicroTime,
    /// When it happened last.
    pub last_time: MicroTime,
    /// How often it happened.
    pub count: u32,
    /// Whether it is good or bad.
    pub type_: EventType,
}

/// `events.k8s.io/v1` allows so many bytes in a note.
const NOTE_MAX: usize = 1024;
/// Where events of cluster-wide objects are.
const DEFAULT_NAMESPACE: &str = "default";

/// `<object>.<nanoseconds in hexadecimal>`. An object whose name is no DNS name has events with random names, as upstream.
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

/// Where events about an object of this namespace are.
pub(super) fn namespace(of_object: &Istr) -> Istr {
    if of_object.is_empty() { Istr::interned(DEFAULT_NAMESPACE) } else { of_object.clone() }
}

// === impl Event ===

impl Event {
    /// The body of a `v1` Event.
    pub(super) fn core_body(&self) -> Value {
        json!({
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
        })
    }

    /// What a repeated `v1` Event changes.
    pub(super) fn core_patch(&self) -> Value {
        json!({ "count": self.count, "lastTimestamp": self.last_time.to_seconds(), "message": self.message })
    }

    /// The body of an `events.k8s.io/v1` Event: a single one, or with its series.
    pub(super) fn v1_body(&self) -> Value {
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "eventTime": self.first_time,
            "reportingController": self.reporting_component,
            // This API wants one; whoever names none is the only one.
            "reportingInstance": if self.reporting_instance.is_empty() { &self.reporting_component } else { &self.reporting_instance },
            "action": self.reason,
            "reason": self.reason,
            "regarding": self.involved_object.body(),
            "note": beginning(&self.message, NOTE_MAX),
            "type": self.type_.as_str(),
        });
        if self.count > 1 {
            body["series"] = self.series();
        }
        body
    }

    /// What a repeated `events.k8s.io/v1` Event changes.
    pub(super) fn v1_patch(&self) -> Value {
        json!({ "series": self.series() })
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
    /// As the API has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
