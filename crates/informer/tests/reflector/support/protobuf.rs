//! The same objects in protobuf, written by hand so that the decoders are not tested against themselves.

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A length-delimited field.
pub fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(number << 3 | 2, &mut out);
    varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// A number.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value, &mut out);
    out
}

/// `k8s\0` and `runtime.Unknown`.
pub fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, raw), field(3, b""), field(4, b"")].concat()
}

/// The pod of `objects::pod`.
pub fn pod(name: &str, version: u64) -> Vec<u8> {
    let mut metadata = vec![
        field(1, name.as_bytes()),
        field(3, b"default"),
        field(5, format!("uid-{name}").as_bytes()),
        field(6, version.to_string().as_bytes()),
    ];
    if name == "a" {
        metadata.push(field(12, &[field(1, b"x"), field(2, br#"a "}]{\"#)].concat()));
    }
    [field(1, &metadata.concat()), field(2, &field(10, format!("node-{version}").as_bytes()))].concat()
}

pub fn list(version: u64, token: &str, items: &[(&str, u64)]) -> Vec<u8> {
    let metadata = [field(2, version.to_string().as_bytes()), field(3, token.as_bytes())].concat();
    let items: Vec<u8> = items.iter().flat_map(|(name, version)| field(2, &pod(name, *version))).collect();
    envelope("v1", "PodList", &[field(1, &metadata), items].concat())
}

/// A frame with an event around an object that has its envelope.
pub fn frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
    [(event.len() as u32).to_be_bytes().to_vec(), event].concat()
}

pub fn event(kind: &str, name: &str, version: u64) -> Vec<u8> {
    frame(kind, &envelope("v1", "Pod", &pod(name, version)))
}

pub fn bookmark(version: u64, ends: bool) -> Vec<u8> {
    let mut metadata = field(6, version.to_string().as_bytes());
    if ends {
        metadata.extend(field(12, &[field(1, b"k8s.io/initial-events-end"), field(2, b"true")].concat()));
    }
    frame("BOOKMARK", &envelope("v1", "Pod", &field(1, &metadata)))
}

pub fn status(code: u16, reason: &str, message: &str, retry_after: u64) -> Vec<u8> {
    let details = [field(4, &field(1, b"SomeCause")), number(5, retry_after)].concat();
    let status = [
        field(2, b"Failure"),
        field(3, message.as_bytes()),
        field(4, reason.as_bytes()),
        field(5, &details),
        number(6, u64::from(code)),
    ];
    envelope("v1", "Status", &status.concat())
}
