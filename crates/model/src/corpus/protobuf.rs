//! JSON to protobuf, driven by a table of Kubernetes' field numbers. It knows nothing of views, so it can be held
//! against them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use steersman_base::{MicroTime, Time};

/// Field numbers of the messages that a view reads, and of all they hold; from Kubernetes 1.37.1.
const TABLE: &str = include_str!("../../data/protobuf-fields.tsv");

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name, in JSON and in protobuf.
    pub name: &'static str,
    /// Its number.
    pub number: u64,
    /// The cardinality.
    pub label: Label,
    /// `string`, `bool`, `int32`, `int64`, `bytes`, or the name of a message.
    pub type_name: &'static str,
}

/// The cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// At most once.
    Optional,
    /// As a list.
    Repeated,
    /// As a map from strings.
    Map,
    /// Once; in JSON its fields stand among those of the message that holds it.
    Inline,
}

static MESSAGES: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let mut messages = BTreeMap::<_, Vec<Field>>::new();
    for row in TABLE.lines().skip(1) {
        let [message, name, number, label, type_name] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row of the table has five columns: {row:?}");
        };
        let label = match label {
            "optional" => Label::Optional,
            "repeated" => Label::Repeated,
            "map" => Label::Map,
            "inline" => Label::Inline,
            other => panic!("{other} is no label"),
        };
        let number = number.parse().unwrap_or_else(|_| panic!("{number} is no number"));
        messages.entry(message).or_default().push(Field { name, number, label, type_name });
    }
    messages
});

/// Fields that Go keeps as plain values and writes to protobuf even when they are zero, of those the API server fills.
const ALWAYS_WRITTEN: [(&str, &str); 8] = [
    ("meta.v1.ObjectMeta", "name generateName namespace selfLink uid resourceVersion generation creationTimestamp"),
    ("meta.v1.OwnerReference", "kind name uid apiVersion"),
    (
        "core.v1.PodSpec",
        "restartPolicy dnsPolicy serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC hostname \
         subdomain schedulerName priorityClassName",
    ),
    (
        "core.v1.Container",
        "name image workingDir resources terminationMessagePath imagePullPolicy stdin stdinOnce tty \
         terminationMessagePolicy",
    ),
    ("core.v1.ContainerPort", "name hostPort containerPort protocol hostIP"),
    ("core.v1.PodStatus", "phase message reason hostIP podIP qosClass nominatedNodeName resize observedGeneration"),
    ("core.v1.PodCondition", "type status lastProbeTime lastTransitionTime reason message observedGeneration"),
    ("core.v1.ContainerStatus", "name state lastState ready restartCount image imageID containerID"),
];

/// The fields of a message such as `core.v1.Pod`.
///
/// # Panics
/// The table has no such message.
#[must_use]
pub fn fields_of(message: &str) -> &'static [Field] {
    MESSAGES.get(message).unwrap_or_else(|| panic!("the table has no message {message}"))
}

/// Encodes a JSON object as the message of this name, such as `core.v1.Pod`.
///
/// # Panics
/// The object has a field that the message lacks, or a value of another type.
#[must_use]
pub fn encode(message: &str, value: &Value) -> Vec<u8> {
    Encoder { writes_zeros: true, text: None }.encode(message, value)
}

/// The same without the zeros that Go writes for what was never set.
///
/// # Panics
/// As [`encode`].
#[must_use]
pub fn encode_sparsely(message: &str, value: &Value) -> Vec<u8> {
    Encoder { writes_zeros: false, text: None }.encode(message, value)
}

/// Wraps a message as an API server sends it: magic bytes, and an `Unknown` with the type.
#[must_use]
pub fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut body = b"k8s\0".to_vec();
    put_bytes(&mut body, 1, &type_meta);
    put_bytes(&mut body, 2, message);
    put_bytes(&mut body, 3, b"");
    put_bytes(&mut body, 4, b"");
    body
}

/// The same with `text` for every text, keys of maps included. Quantities and times are not text: servers check them.
///
/// # Panics
/// As [`encode`].
#[must_use]
pub fn encode_with_text(message: &str, value: &Value, text: &'static [u8]) -> Vec<u8> {
    Encoder { writes_zeros: true, text: Some(text) }.encode(message, value)
}

#[derive(Clone, Copy)]
struct Encoder {
    writes_zeros: bool,
    /// Stands for every text.
    text: Option<&'static [u8]>,
}

impl Encoder {
    fn encode(self, message: &str, value: &Value) -> Vec<u8> {
        let mut body = Vec::new();
        let object = value.as_object().unwrap_or_else(|| panic!("{message} is an object, and not {value}"));
        let mut known = vec!["apiVersion", "kind"];
        self.put_fields(message, object, &mut known, &mut body);
        for name in object.keys() {
            assert!(known.contains(&name.as_str()), "{message} has no field {name}");
        }
        body
    }

    fn put_fields(self, message: &str, object: &Map<String, Value>, known: &mut Vec<&str>, body: &mut Vec<u8>) {
        let always = ALWAYS_WRITTEN.iter().find(|(name, _)| *name == message).map_or("", |(_, fields)| fields);
        for field in fields_of(message) {
            known.push(field.name);
            match field.label {
                Label::Inline => {
                    let mut inner = Vec::new();
                    self.put_fields(field.type_name, object, known, &mut inner);
                    put_bytes(body, field.number, &inner);
                }
                label => match object.get(field.name) {
                    None | Some(Value::Null)
                        if self.writes_zeros && always.split(' ').any(|name| name == field.name) =>
                    {
                        put_zero(field, body);
                    }
                    None | Some(Value::Null) => {}
                    Some(value) => self.put_field(field, label, value, body),
                },
            }
        }
    }

    fn put_field(self, field: &Field, label: Label, value: &Value, body: &mut Vec<u8>) {
        match (label, value) {
            (Label::Repeated, Value::Array(elements)) => {
                for element in elements {
                    self.put_value(field, element, body);
                }
            }
            (Label::Map, Value::Object(entries)) => {
                for (key, value) in entries {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, self.text.unwrap_or(key.as_bytes()));
                    self.put_value(&Field { number: 2, ..*field }, value, &mut entry);
                    put_bytes(body, field.number, &entry);
                }
            }
            (Label::Optional, value) => self.put_value(field, value, body),
            (label, value) => panic!("{} is {label:?}, and not {value}", field.name),
        }
    }

    fn put_value(self, field: &Field, value: &Value, body: &mut Vec<u8>) {
        let wrong = || -> ! { panic!("{} is a {}, and not {value}", field.name, field.type_name) };
        let text = || value.as_str().unwrap_or_else(|| wrong());
        match field.type_name {
            "string" => put_bytes(body, field.number, self.text.unwrap_or(text().as_bytes())),
            "bool" => put_number(body, field.number, value.as_bool().unwrap_or_else(|| wrong()).into()),
            "int32" | "int64" => put_number(body, field.number, value.as_i64().unwrap_or_else(|| wrong())),
            "meta.v1.Time" => {
                let time: Time = text().parse().unwrap_or_else(|_| wrong());
                put_time(body, field.number, time.unix(), 0);
            }
            "meta.v1.MicroTime" => {
                let time: MicroTime = text().parse().unwrap_or_else(|_| wrong());
                let micros = time.unix_micros();
                put_time(body, field.number, micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) * 1_000);
            }
            "resource.Quantity" => {
                let mut inner = Vec::new();
                put_bytes(&mut inner, 1, text().as_bytes());
                put_bytes(body, field.number, &inner);
            }
            "intstr.IntOrString" => {
                let mut inner = Vec::new();
                let number = value.as_i64();
                put_number(&mut inner, 1, i64::from(number.is_none()));
                put_number(&mut inner, 2, number.unwrap_or(0));
                let written = || self.text.unwrap_or(text().as_bytes());
                put_bytes(&mut inner, 3, if number.is_none() { written() } else { b"" });
                put_bytes(body, field.number, &inner);
            }
            "meta.v1.FieldsV1" => {
                let mut inner = Vec::new();
                put_bytes(&mut inner, 1, value.to_string().as_bytes());
                put_bytes(body, field.number, &inner);
            }
            message => put_bytes(body, field.number, &self.encode(message, value)),
        }
    }
}

/// Go's output for a plain value that was never set.
fn put_zero(field: &Field, body: &mut Vec<u8>) {
    match field.type_name {
        "bool" | "int32" | "int64" => put_number(body, field.number, 0),
        _ => put_bytes(body, field.number, b""),
    }
}

fn put_time(body: &mut Vec<u8>, number: u64, seconds: i64, nanos: i64) {
    let mut inner = Vec::new();
    put_number(&mut inner, 1, seconds);
    put_number(&mut inner, 2, nanos);
    put_bytes(body, number, &inner);
}

/// Writes a field that holds a number.
#[allow(clippy::cast_sign_loss, reason = "protobuf sends signed numbers as 64 bits")]
pub fn put_number(body: &mut Vec<u8>, number: u64, value: i64) {
    put_varint(body, number << 3);
    put_varint(body, value as u64);
}

/// Writes a field that holds bytes, text or a message.
pub fn put_bytes(body: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(body, number << 3 | 2);
    put_varint(body, bytes.len() as u64);
    body.extend_from_slice(bytes);
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits are taken at a time")]
fn put_varint(body: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        body.push(value as u8 | 0x80);
        value >>= 7;
    }
    body.push(value as u8);
}
