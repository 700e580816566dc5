//! Bodies that are small and ask for much: kube-apiserver's status, bounded work, and nobody else waits.

use std::sync::Mutex;

use serde_json::{Map, Value, json};
use steersman_apiserver::{ApiServer, HeavyWork, Options};

use crate::support::{CONFIG_MAPS, ask, send, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The largest body, less the text around a schema.
const SCHEMA_BYTES_MAX: usize = (3 << 20) - 1024;
const BOMBS: usize = 8;
/// A list whose square is within the estimate of a rule, and beyond what a run of it may cost.
const ITEMS: usize = 700;

/// Aliases of aliases: nine to the power of ten scalars.
fn bomb() -> Vec<u8> {
    let line = |at: usize| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(","));
    let lines: String = (1..10).map(line).collect();
    format!("metadata: {{name: a}}\na0: &a0 [x,x,x,x,x,x,x,x,x]\n{lines}").into_bytes()
}

/// Aliases that stay just within the bound of a large text: the dearest that are read to their end.
fn large_bomb() -> Vec<u8> {
    let filler = "#".repeat(1 << 20);
    let uses = vec!["*x"; 60_000].join(",");
    format!("metadata: {{name: a}}\n{filler}\nx: &x [1,1]\ny: [{uses}]\n").into_bytes()
}

fn definition(schema: &Value) -> Value {
    json!({
        "metadata": {"name": "bulks.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "bulks", "kind": "Bulk"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// On the normal clock, because heavy requests are worked on by other threads, and paused time does not wait for them.
#[tokio::test]
async fn readyz_is_answered_while_eight_alias_bombs_are_read() {
    let server = ApiServer::new(Options::default().heavy_work(HeavyWork::BlockingPool));
    let order = Mutex::new(Vec::new());
    let post = async |body: Vec<u8>| {
        let got = send(&server, "POST", CONFIG_MAPS, &[("content-type", "application/yaml")], body).await;
        order.lock().unwrap().push("bomb");
        got
    };
    let ready = async {
        let got = send(&server, "GET", "/readyz", &[], Vec::new()).await;
        order.lock().unwrap().push("ready");
        got
    };
    let bombs = futures::future::join_all((0..BOMBS).map(|at| post(if at % 2 == 0 { bomb() } else { large_bomb() })));
    let (bombs, ready) = tokio::join!(bombs, ready);
    ready.expect(200);
    let order = order.into_inner().unwrap();
    assert_eq!(order[0], "ready", "one bomb at a time is read on each processor, and health waits for none: {order:?}");
    for (at, got) in bombs.into_iter().enumerate() {
        if at % 2 == 0 {
            let got = got.expect(400);
            let message = got["message"].as_str().unwrap();
            assert!(message.contains("document contains excessive aliasing"), "{message}");
        } else {
            // What is read to its end is an object with unknown fields: the first is created.
            assert!([201, 409].contains(&got.code), "{}", got.body);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_of_a_million_properties_is_too_large_and_the_largest_that_fits_is_answered() {
    let server = server();
    let properties = |count: usize| -> Value {
        let properties: Map<String, Value> = (0..count).map(|at| (format!("{at:x}"), json!({}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let million = properties(1_000_000);
    let got = ask(&server, "POST", DEFINITIONS, Some(definition(&million))).await;
    assert_eq!(got.expect(413)["reason"], "RequestEntityTooLarge");
    // `"12345":{},` for each.
    let most = properties(SCHEMA_BYTES_MAX / 12);
    let got = ask(&server, "POST", DEFINITIONS, Some(definition(&most))).await.expect(422);
    let causes = got["details"]["causes"].as_array().map(Vec::len);
    assert!(causes.is_some_and(|count| (100..=256).contains(&count)), "{causes:?}");
    assert!(got.to_string().len() < 1 << 20, "{} bytes", got.to_string().len());
    ask(&server, "GET", &format!("{DEFINITIONS}/bulks.example.org"), None).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn patterns_that_backtrack_elsewhere_match_in_linear_time() {
    let server = server();
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": text("^(a+)+$"), "b": text("^(a|aa)+$"), "c": text("(x+x+)+y")}},
    }});
    ask(&server, "POST", DEFINITIONS, Some(definition(&schema))).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    // A matcher that backtracks would take longer than the universe is old.
    let long = format!("{}!", "a".repeat(100_000));
    let spec = json!({"a": long, "b": long, "c": "x".repeat(100_000)});
    let bulk = json!({"apiVersion": "example.org/v1", "kind": "Bulk", "metadata": {"name": "a"}, "spec": spec});
    let got = ask(&server, "POST", "/apis/example.org/v1/namespaces/default/bulks", Some(bulk)).await.expect(422);
    assert_eq!(got["details"]["causes"].as_array().map(Vec::len), Some(3), "{got}");
    // What would compile to too many states is refused with the definition.
    let schema = json!({"type": "object", "properties": {"a": text("^((a{1,900}){1,900}){1,900}$")}});
    let mut large = definition(&schema);
    large["metadata"]["name"] = "larges.example.org".into();
    large["spec"]["names"] = json!({"plural": "larges", "kind": "Large"});
    let got = ask(&server, "POST", DEFINITIONS, Some(large)).await.expect(422);
    assert!(got["message"].as_str().unwrap().contains("pattern"), "{got}");
}

#[tokio::test(start_paused = true)]
async fn rules_that_explode_are_refused_by_their_estimate_or_stopped_by_their_cost() {
    let server = server();
    let ruled = |rule: &str, items_max: Option<usize>| {
        let mut list = json!({"type": "array", "items": {"type": "integer"}});
        if let Some(max) = items_max {
            list["maxItems"] = max.into();
        }
        let spec =
            json!({"type": "object", "properties": {"list": list}, "x-kubernetes-validations": [{"rule": rule}]});
        definition(&json!({"type": "object", "properties": {"spec": spec}}))
    };
    let cubic = "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c > 0)))";
    let got = ask(&server, "POST", DEFINITIONS, Some(ruled(cubic, None))).await.expect(422);
    assert!(got["message"].as_str().unwrap().contains("estimated rule cost exceeds budget"), "{got}");
    let doubles = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(60));
    ask(&server, "POST", DEFINITIONS, Some(ruled(&doubles, None))).await.expect(422);
    // The estimate allows it, and a run stops at a million.
    let grows = "self.list.map(a, self.list.map(b, a + b)).size() >= 0";
    ask(&server, "POST", DEFINITIONS, Some(ruled(grows, Some(ITEMS)))).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let bulk = json!({
        "apiVersion": "example.org/v1", "kind": "Bulk", "metadata": {"name": "a"}, "spec": {"list": vec![1; ITEMS]},
    });
    let got = ask(&server, "POST", "/apis/example.org/v1/namespaces/default/bulks", Some(bulk)).await.expect(422);
    assert!(got["message"].as_str().unwrap().contains("cost"), "{got}");
}

/// The seed `apply-thing.yaml` of the fuzz target `request`.
#[tokio::test(start_paused = true)]
async fn a_configuration_of_a_custom_resource_that_was_never_applied_is_applied_in_a_dry_run() {
    let server = server();
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "value": {"type": "string", "pattern": "^a*$"},
    }});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "default": 1},
        "list": {
            "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        },
    }}}});
    ask(&server, "POST", DEFINITIONS, Some(definition(&schema))).await.expect(201);
    let bulks = "/apis/example.org/v1/namespaces/default/bulks";
    let bulk = |spec: Value| json!({"apiVersion": "example.org/v1", "kind": "Bulk", "metadata": {"name": "there"}, "spec": spec});
    ask(&server, "POST", bulks, Some(bulk(json!({"list": [{"name": "n"}]})))).await.expect(201);
    let config = bulk(json!({"size": 3, "list": [{"name": "n", "value": "a"}]})).to_string();
    let path = format!("{bulks}/there?dryRun=All&fieldManager=fuzz&force=true");
    let apply = [("content-type", "application/apply-patch+yaml")];
    send(&server, "PATCH", &path, &apply, config.into_bytes()).await.expect(200);
}
