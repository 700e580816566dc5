//! Bad input gives an error with its position, and never a panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use steersman_base::Meta;
use steersman_model::corpus::{Corpus, every_field, protobuf};
use steersman_model::{
    DecodeError, DeploymentView, Encoded, EndpointSliceView, EndpointsView, LeaseView, NamespaceView, NodeView,
    PodView, ReplicaSetView, ServiceAccountView, ServiceView, View,
};

use crate::pod::pod;

/// Decodes JSON that must be refused, and returns the error.
fn refused<V: View>(body: &Value) -> String {
    match V::decode(Encoded::Json(body.to_string().as_bytes())) {
        Ok(_) => panic!("this was not refused: {body}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_error_names_the_field() {
    let check = |path: &str, wrong: Value, want: &str| {
        let mut pod = pod();
        pod["metadata"]["labels"] = json!({"app": "web"});
        pod["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "1"});
        *pod.pointer_mut(path).unwrap() = wrong;
        let error = refused::<PodView>(&pod);
        assert!(error.contains(want), "{path}: {error}");
        assert!(error.contains("line 1 column"), "{path}: {error}");
    };
    check("/metadata/name", json!(7), ".metadata.name: invalid type: integer `7`, expected a string");
    check("/metadata/labels/app", json!({}), ".metadata.labels.app: invalid type: map, expected a string");
    check(
        "/metadata/ownerReferences/1/controller",
        json!("yes"),
        ".metadata.ownerReferences[1].controller: invalid type",
    );
    check(
        "/metadata/creationTimestamp",
        json!("yesterday"),
        ".metadata.creationTimestamp: \"yesterday\" is not an RFC 3339",
    );
    check("/spec", json!([]), ".spec: invalid type: sequence, expected an object");
    check("/spec/nodeName", json!([]), ".spec.nodeName: invalid type: sequence, expected a string");
    check(
        "/spec/containers/1/ports/0/containerPort",
        json!("http"),
        ".spec.containers[1].ports[0].containerPort: invalid type",
    );
    check("/spec/volumes/1/name", json!(1), ".spec.volumes[1].name: invalid type");
    check("/spec/containers/0/resources/limits/cpu", json!("much"), ".spec.containers[0].resources.limits.cpu");
    check(
        "/status/containerStatuses/2/restartCount",
        json!("often"),
        ".status.containerStatuses[2].restartCount: invalid type",
    );
    check("/status/containerStatuses/0/state", json!(1), ".status.containerStatuses[0].state: invalid type");
    check("/status/conditions/1/type", json!(true), ".status.conditions[1].type: invalid type: boolean `true`");
}

#[test]
fn a_body_that_is_no_object_of_the_kind_is_refused() {
    let check = |body: &[u8]| {
        let json = PodView::decode(Encoded::Json(body));
        assert!(matches!(json, Err(DecodeError::Json(_))), "{body:?}");
        assert!(matches!(Meta::decode(Encoded::Json(body)), Err(DecodeError::Json(_))), "{body:?}");
    };
    check(b"");
    check(b"{");
    check(b"{\"metadata\":");
    check(b"[]");
    check(b"\"pod\"");
    check(b"{} {}");
    check(b"<html>");
}

#[test]
fn unusual_json_is_read_as_well() {
    let body = "  { \"metadata\" : {\n \"name\" : \"\\u0061\\\"b\" , \"generation\" : -1 , \"labels\":{\"\\u0061\":\"\\n\"} }, \"x\": 1.5e3 } \n";
    let meta = Meta::decode(Encoded::Json(body.as_bytes())).unwrap();
    assert_eq!((meta.name.as_str(), meta.generation), ("a\"b", -1));
    assert_eq!(meta.labels.get("a").unwrap(), "\n");
}

#[test]
fn a_field_of_the_wrong_wire_type_is_refused_with_its_place() {
    let check = |body: &[u8], want_offset: usize| match PodView::decode(Encoded::Protobuf(body)) {
        Err(DecodeError::Protobuf { offset, .. }) => assert_eq!(offset, want_offset, "{body:x?}"),
        other => panic!("{body:x?}: {other:?}"),
    };
    check(b"\x08\x01", 1); // metadata is a number
    check(b"\x0a\x02\x08\x01", 3); // metadata.name is a number
    check(b"\x0a\x05\x0a", 2); // metadata is cut off
    check(b"\x1a\x02\x0b\x0c", 3); // a group in status
}

#[test]
fn text_that_is_not_utf_8_is_read_in_every_field() {
    fn check<V: View>(message: &str, object: &Value) -> V {
        let body = protobuf::encode_with_text(message, object, b"\xff");
        V::decode(Encoded::Protobuf(&body)).unwrap_or_else(|error| panic!("{message}: {error}"))
    }
    let pod: PodView = check("core.v1.Pod", &pod());
    assert_eq!(pod.metadata.owner_references[0].name, "\u{fffd}");
    assert_eq!((pod.spec.node_name.as_str(), pod.spec.containers[0].name.as_str()), ("\u{fffd}", "\u{fffd}"));
    let meta: Meta = check("core.v1.Pod", &every_field("core.v1.Pod"));
    assert_eq!(meta.annotations.get("\u{fffd}").unwrap(), "\u{fffd}");
    let _: NodeView = check("core.v1.Node", &every_field("core.v1.Node"));
    let _: ServiceView = check("core.v1.Service", &every_field("core.v1.Service"));
    let _: EndpointsView = check("core.v1.Endpoints", &every_field("core.v1.Endpoints"));
    let _: EndpointSliceView = check("discovery.v1.EndpointSlice", &every_field("discovery.v1.EndpointSlice"));
    let _: LeaseView = check("coordination.v1.Lease", &every_field("coordination.v1.Lease"));
    let _: NamespaceView = check("core.v1.Namespace", &every_field("core.v1.Namespace"));
    let _: ServiceAccountView = check("core.v1.ServiceAccount", &every_field("core.v1.ServiceAccount"));
    for index in 0..20 {
        let object = serde_json::from_str(&Corpus::new(5).pod(index)).unwrap();
        let _: PodView = check("core.v1.Pod", &object);
    }
}

#[test]
fn both_encodings_show_bad_text_in_the_same_way() {
    let body = protobuf::encode_sparsely("core.v1.Pod", &json!({"metadata": {"name": "a-b", "labels": {"a-b": "c"}}}));
    let spoiled = |body: &[u8]| body.iter().map(|byte| if *byte == b'-' { 0xe2 } else { *byte }).collect::<Vec<u8>>();
    let from_protobuf = Meta::decode(Encoded::Protobuf(&spoiled(&body))).unwrap();
    let json = br#"{"metadata":{"name":"a-b","labels":{"a-b":"c"}}}"#;
    assert_eq!(from_protobuf, Meta::decode(Encoded::Json(&spoiled(json))).unwrap());
    assert_eq!(from_protobuf.name, "a\u{fffd}b");
}

#[test]
fn a_message_in_two_parts_is_one() {
    let whole =
        json!({"metadata": {"name": "a", "labels": {"a": "1", "b": "2"}}, "spec": {"nodeName": "n", "hostname": "h"}});
    let parts = [
        json!({"metadata": {"name": "x", "labels": {"a": "1"}}, "spec": {"nodeName": "n"}}),
        json!({"metadata": {"labels": {"b": "2"}}, "spec": {"hostname": "h"}}),
    ];
    // Nothing is written for what is absent, so that the parts can be put together.
    let mut first = protobuf::encode_sparsely("core.v1.Pod", &parts[0]);
    first.extend(protobuf::encode_sparsely("core.v1.Pod", &parts[1]));
    first.extend(protobuf::encode_sparsely("core.v1.Pod", &json!({"metadata": {"name": "a"}})));
    let view = PodView::decode(Encoded::Protobuf(&first)).unwrap();
    assert_eq!(view, PodView::decode(Encoded::Json(whole.to_string().as_bytes())).unwrap());
}

/// Decodes as everything there is.
fn decode_all(body: &[u8]) {
    for body in [Encoded::Json(body), Encoded::Protobuf(body)] {
        let _ = PodView::decode(body);
        let _ = Meta::decode(body);
        let _ = NodeView::decode(body);
        let _ = ServiceView::decode(body);
        let _ = EndpointsView::decode(body);
        let _ = EndpointSliceView::decode(body);
        let _ = LeaseView::decode(body);
        let _ = ReplicaSetView::decode(body);
        let _ = DeploymentView::decode(body);
    }
}

/// Bodies to spoil: everything set, and a usual pod.
fn bodies() -> Vec<Vec<u8>> {
    let corpus = Corpus::new(7);
    let messages = ["core.v1.Service", "core.v1.Node", "discovery.v1.EndpointSlice", "apps.v1.Deployment"];
    let objects = messages.map(|message| (message, every_field(message)));
    let mut bodies: Vec<Vec<u8>> = vec![corpus.pod(3).into(), corpus.pod_protobuf(3), corpus.replica_set(3).into()];
    for (message, object) in objects.iter().chain([&("core.v1.Pod", pod())]) {
        bodies.push(object.to_string().into());
        bodies.push(protobuf::encode(message, object));
    }
    bodies
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        decode_all(&body);
    }

    #[test]
    fn no_spoiled_body_panics(
        which in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let bodies = bodies();
        let mut body = bodies[which.index(bodies.len())].clone();
        for (at, byte) in &changes {
            let at = at.index(body.len());
            body[at] = *byte;
        }
        decode_all(&body);
        body.truncate(cut.index(body.len()));
        decode_all(&body);
    }
}
