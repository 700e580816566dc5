//! Objects of a server as views, from JSON and protobuf: a body is read, or refused with its place.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steersman_base::Meta;
use steersman_model::{
    DeploymentView, Encoded, EndpointSliceView, LeaseView, NodeView, PodView, ReplicaSetView, ServiceView, View,
};

fn decode<V: View>(body: Encoded<'_>) {
    if let Ok(view) = V::decode(body) {
        let _ = view.meta().key();
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    let body = if first & 0x80 == 0 { Encoded::Json(body) } else { Encoded::Protobuf(body) };
    match first & 0x7 {
        0 => decode::<PodView>(body),
        1 => decode::<DeploymentView>(body),
        2 => decode::<ReplicaSetView>(body),
        3 => decode::<NodeView>(body),
        4 => decode::<ServiceView>(body),
        5 => decode::<EndpointSliceView>(body),
        6 => decode::<LeaseView>(body),
        _ => decode::<Meta>(body),
    }
});
