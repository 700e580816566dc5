//! Nothing that was accepted is unreadable: whatever a create, an update or a patch left can be read in every form, listed,
//! patched and deleted, and no request makes a handler panic.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use http_body_util::BodyExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use steersman_apiserver::{ApiServer, Options};
use steersman_base::Clock;
use tower::ServiceExt;

/// Where values are put: fields that mean something to the server, and some that do not.
const PLACES: &[&str] = &[
    "/metadata",
    "/metadata/annotations",
    "/metadata/annotations/x",
    "/metadata/creationTimestamp",
    "/metadata/deletionGracePeriodSeconds",
    "/metadata/deletionTimestamp",
    "/metadata/finalizers",
    "/metadata/generateName",
    "/metadata/generation",
    "/metadata/labels",
    "/metadata/labels/x",
    "/metadata/managedFields",
    "/metadata/ownerReferences",
    "/metadata/resourceVersion",
    "/metadata/uid",
    "/apiVersion",
    "/kind",
    "/binaryData",
    "/data",
    "/data/a",
    "/immutable",
    "/items",
    "/items/a",
    "/revision",
    "/spec",
    "/spec/activeDeadlineSeconds",
    "/spec/containers",
    "/spec/containers/0/env",
    "/spec/containers/0/ports",
    "/spec/containers/0/resources/limits/cpu",
    "/spec/nodeName",
    "/spec/nodeSelector",
    "/spec/priority",
    "/spec/replicas",
    "/spec/template/metadata/creationTimestamp",
    "/spec/terminationGracePeriodSeconds",
    "/spec/tolerations",
    "/spec/volumes",
    "/status",
    "/status/conditions",
    "/status/phase",
    "/status/startTime",
    "/status/replicas",
];

/// A kind, where its objects are, and an object of it.
struct Kind {
    collection: &'static str,
    api_version: &'static str,
    kind: &'static str,
    is_custom: bool,
    content: fn() -> Value,
    read: fn(&Value) -> Result<(), String>,
}

const KINDS: [Kind; 5] = [
    Kind {
        collection: "/api/v1/namespaces/default/configmaps",
        api_version: "v1",
        kind: "ConfigMap",
        is_custom: false,
        content: || json!({"data": {"a": "b"}}),
        read: typed::<k8s_openapi::api::core::v1::ConfigMap>,
    },
    Kind {
        collection: "/api/v1/namespaces/default/pods",
        api_version: "v1",
        kind: "Pod",
        is_custom: false,
        content: || json!({"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}),
        read: typed::<k8s_openapi::api::core::v1::Pod>,
    },
    Kind {
        collection: "/apis/apps/v1/namespaces/default/controllerrevisions",
        api_version: "apps/v1",
        kind: "ControllerRevision",
        is_custom: false,
        content: || json!({"revision": 1, "data": {"a": "b"}}),
        read: typed::<k8s_openapi::api::apps::v1::ControllerRevision>,
    },
    Kind {
        collection: "/apis/apps/v1/namespaces/default/deployments",
        api_version: "apps/v1",
        kind: "Deployment",
        is_custom: false,
        content: || {
            json!({"spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            }})
        },
        read: typed::<k8s_openapi::api::apps::v1::Deployment>,
    },
    Kind {
        collection: "/apis/example.com/v1/namespaces/default/things",
        api_version: "example.com/v1",
        kind: "Thing",
        is_custom: true,
        content: || json!({"items": {}}),
        read: |_| Ok(()),
    },
];

fn typed<T: DeserializeOwned>(object: &Value) -> Result<(), String> {
    serde_json::from_value::<T>(object.clone()).map(drop).map_err(|error| error.to_string())
}

/// Something that a client does.
#[derive(Clone, Debug)]
enum Act {
    /// It sends an object with this value in this place.
    Send { how: Body, place: usize, value: Value },
    /// It patches the object.
    Patch { how: Patching, part: &'static str, place: usize, value: Value },
    /// It moves or copies what is there to a place further down, so that the whole gets deeper.
    Deepen { op: &'static str, levels: usize, value: Value },
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Json,
    Yaml,
    /// A ControllerRevision as protobuf, with the value as its data.
    Protobuf,
}

#[derive(Clone, Copy, Debug)]
enum Patching {
    Json,
    Merge,
    Strategic,
    Apply,
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![0, 1, -1, i64::MAX, i64::MIN, 1 << 31, 1 << 53, 253_402_300_800])
            .prop_map(Value::from),
        Just(Value::from(u64::MAX)),
        prop_oneof![any::<f64>(), Just(1e300)].prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "a.example/b",
            "1",
            "100m",
            "99999999999999999999E",
            "2026-11-15T12:00:00Z",
            "9999-12-31T23:59:59Z",
            "0000-01-01T00:00:00Z",
            "-5000-01-01T00:00:00Z",
            "Succeeded",
            "\u{0}",
            "\u{fffd}\u{10ffff}",
        ])
        .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ]
}

/// A value that is nested so deep.
fn nested(levels: usize, is_list: bool, inside: Value) -> Value {
    (0..levels).fold(inside, |inside, _| if is_list { json!([inside]) } else { json!({"0": inside}) })
}

fn value() -> impl Strategy<Value = Value> {
    let shallow = scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z0-9./-]{0,6}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<String, Value>>())),
        ]
    });
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]);
    prop_oneof![
        3 => shallow,
        1 => (110..135_usize, any::<bool>(), scalar()).prop_map(|(levels, is_list, inside)| nested(levels, is_list, inside)),
        1 => prop::collection::vec("[a-z]{1,3}\\.[a-z]{1,3}/[a-z]{1,3}", 0..3).prop_map(Value::from),
        1 => Just(owner),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let place = 0..PLACES.len();
    let how = prop::sample::select(vec![Body::Json, Body::Yaml, Body::Protobuf]);
    let patching = prop::sample::select(vec![Patching::Json, Patching::Merge, Patching::Strategic, Patching::Apply]);
    let part = prop::sample::select(vec!["", "", "", "/status"]);
    prop_oneof![
        (how, place.clone(), value()).prop_map(|(how, place, value)| Act::Send { how, place, value }),
        (patching, part, place, value()).prop_map(|(how, part, place, value)| Act::Patch { how, part, place, value }),
        (prop::sample::select(vec!["copy", "move", "add"]), 40..126_usize, value())
            .prop_map(|(op, levels, value)| Act::Deepen { op, levels, value }),
    ]
}

/// Puts a value into an object, and what is missing on the way.
fn put(object: &mut Value, place: &str, value: Value) {
    let mut at = object;
    for step in place.split('/').skip(1) {
        let index = step.parse::<usize>().ok().filter(|index| at.as_array().is_some_and(|list| *index < list.len()));
        if let Some(index) = index {
            at = &mut at[index];
            continue;
        }
        if !at.is_object() {
            *at = json!({});
        }
        at = at.as_object_mut().unwrap().entry(step).or_insert(Value::Null);
    }
    *at = value;
}

/// A field of a protobuf message.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = value.len();
    while length >= 0x80 {
        bytes.push((length % 0x80) as u8 | 0x80);
        length /= 0x80;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(value);
    bytes
}

fn revision_as_protobuf(name: &str, data: &Value) -> Vec<u8> {
    let metadata = field(1, &field(1, name.as_bytes()));
    let data = field(2, &field(1, data.to_string().as_bytes()));
    let kind = field(1, &[field(1, b"apps/v1"), field(2, b"ControllerRevision")].concat());
    [b"k8s\0".as_slice(), &kind, &field(2, &[metadata, data].concat())].concat()
}

struct World {
    server: ApiServer,
}

impl World {
    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, Vec<u8>) {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap();
        let response = self.server.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        let text = String::from_utf8_lossy(&body);
        assert!(!text.contains("the handler of this request panicked"), "{method} {path}: {text}");
        (code, body)
    }

    async fn json(&self, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let (code, body) = self.ask(method, path, &[("content-type", kind)], body).await;
        (code, serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{method} {path}: {error}")))
    }

    async fn act(&self, kind: &Kind, act: &Act) {
        let one = format!("{}/x", kind.collection);
        let base = || {
            let mut object = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}});
            object.as_object_mut().unwrap().extend((kind.content)().as_object().unwrap().clone());
            object
        };
        match act {
            Act::Send { how, place, value } => {
                let mut object = base();
                put(&mut object, PLACES[*place], value.clone());
                let (content_type, body) = match how {
                    Body::Protobuf if kind.kind == "ControllerRevision" => {
                        ("application/vnd.kubernetes.protobuf", revision_as_protobuf("x", value))
                    }
                    // JSON is YAML.
                    Body::Yaml => ("application/yaml", object.to_string().into_bytes()),
                    Body::Json | Body::Protobuf => ("application/json", object.to_string().into_bytes()),
                };
                let headers = [("content-type", content_type)];
                let (code, _) = self.ask("POST", kind.collection, &headers, body.clone()).await;
                if code == 409 {
                    self.ask("PUT", &one, &headers, body).await;
                }
            }
            Act::Patch { how, part, place, value } => {
                self.json("POST", kind.collection, "application/json", &base()).await;
                let mut merge = json!({});
                put(&mut merge, PLACES[*place], value.clone());
                let (content_type, patch) = match how {
                    Patching::Merge => ("application/merge-patch+json", merge),
                    Patching::Strategic => ("application/strategic-merge-patch+json", merge),
                    Patching::Apply => {
                        let mut config = base();
                        put(&mut config, PLACES[*place], value.clone());
                        ("application/apply-patch+yaml", config)
                    }
                    Patching::Json => {
                        ("application/json-patch+json", json!([{"op": "add", "path": PLACES[*place], "value": value}]))
                    }
                };
                let query = if matches!(how, Patching::Apply) { "?fieldManager=somebody&force=true" } else { "" };
                let (code, answer) = self.json("PATCH", &format!("{one}{part}{query}"), content_type, &patch).await;
                assert!(!matches!(how, Patching::Apply) || code != 415, "{answer}");
            }
            Act::Deepen { op, levels, value } => {
                let place = if kind.is_custom { "/items" } else { "/data" };
                self.json("POST", kind.collection, "application/json", &base()).await;
                let deep = nested(*levels, false, json!({}));
                let below = format!("{place}{}", "/0".repeat(*levels));
                let operations = json!([
                    {"op": "add", "path": place, "value": deep},
                    {"op": "add", "path": "/metadata/annotations", "value": {}},
                    {"op": "add", "path": format!("{place}/b"), "value": value},
                    match *op {
                        "add" => json!({"op": "add", "path": format!("{below}/c"), "value": value}),
                        op => json!({"op": op, "from": format!("{place}/b"), "path": format!("{below}/c")}),
                    },
                ]);
                self.json("PATCH", &one, "application/json-patch+json", &operations).await;
            }
        }
    }

    /// If there is an object, everybody can read it, and whoever may can change it.
    async fn check(&self, kind: &Kind) {
        let one = format!("{}/x", kind.collection);
        let (code, object) = self.json("GET", &one, "", &Value::Null).await;
        if code == 404 {
            return;
        }
        assert_eq!(code, 200, "{object}");
        (kind.read)(&object).unwrap_or_else(|error| panic!("{error}: {object}"));
        typed::<ObjectMeta>(&object["metadata"]).unwrap_or_else(|error| panic!("{error}: {object}"));
        for (path, accept) in [
            (kind.collection, "application/json"),
            (kind.collection, "application/json;as=Table;g=meta.k8s.io;v=v1"),
            (kind.collection, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            (one.as_str(), "application/json;as=Table;g=meta.k8s.io;v=v1"),
            (one.as_str(), "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        ] {
            let (code, body) = self.ask("GET", path, &[("accept", accept)], Vec::new()).await;
            let read: Result<Value, _> = serde_json::from_slice(&body);
            assert!(code == 200 && read.is_ok(), "{path} as {accept}: {code} {read:?}");
        }
        let (code, _) = self.ask("GET", &one, &[("accept", "application/yaml")], Vec::new()).await;
        assert_eq!(code, 200, "as YAML: {object}");
        let note = json!({"metadata": {"annotations": {"noted": "yes"}}});
        let (code, answer) = self.json("PATCH", &one, "application/merge-patch+json", &note).await;
        assert_eq!(code, 200, "{answer}\n{object}");
        let (code, answer) = self.json("PUT", &one, "application/json", &answer).await;
        assert_eq!(code, 200, "{answer}\n{object}");
    }

    /// It can be deleted, too.
    async fn delete(&self, kind: &Kind) {
        let one = format!("{}/x", kind.collection);
        let (code, object) = self.json("GET", &one, "", &Value::Null).await;
        if code == 404 {
            return;
        }
        let (code, answer) = self.json("DELETE", &one, "application/json", &Value::Null).await;
        assert!(matches!(code, 200 | 404), "{answer}\n{object}");
        let at_once = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
        let (code, answer) = self.json("DELETE", &one, "application/json", &at_once).await;
        assert!(matches!(code, 200 | 404), "{answer}\n{object}");
        let release = json!({"metadata": {"finalizers": null}});
        let (code, answer) = self.json("PATCH", &one, "application/merge-patch+json", &release).await;
        assert!(matches!(code, 200 | 404), "{answer}\n{object}");
        let (code, answer) = self.json("GET", &one, "", &Value::Null).await;
        assert_eq!(code, 404, "{answer}");
    }
}

async fn world() -> World {
    let clock = Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
    let world = World { server: ApiServer::new(Options::default().clock(clock)) };
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"status": {}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(world.json("POST", definitions, "application/json", &definition).await.0, 201);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_was_accepted_can_be_read_listed_patched_and_deleted(
        kind in 0..KINDS.len(),
        acts in prop::collection::vec(act(), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = world().await;
            for act in &acts {
                world.act(&KINDS[kind], act).await;
                world.check(&KINDS[kind]).await;
            }
            world.delete(&KINDS[kind]).await;
        });
    }
}
