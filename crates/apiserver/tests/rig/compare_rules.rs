//! Definitions with rules of `x-kubernetes-validations`, and their objects, on the embedded server and on kube-apiserver:
//! accepted and refused alike, in the same words.

use std::time::Duration;

use serde_json::{Value, json};

use crate::compare::{Request, normal};
use crate::frame::Comparison;

const GROUP: &str = "rules.example.com";
const NAMESPACE: &str = "compare-rules";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of cluster-scoped things with this schema of the spec.
fn definition(plural: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind_of(plural)},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn kind_of(plural: &str) -> String {
    format!("K{plural}")
}

fn ruled(mut schema: Value, rules: Value) -> Value {
    schema["x-kubernetes-validations"] = rules;
    schema
}

/// A schema of the spec with one rule.
fn rule(expression: &str) -> Value {
    ruled(fields(), json!([{"rule": expression}]))
}

fn fields() -> Value {
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 16}, "count": {"type": "integer"},
    }});
    json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "ratio": {"type": "number"}, "on": {"type": "boolean"},
        "name": {"type": "string", "maxLength": 64}, "long": {"type": "string"},
        "at": {"type": "string", "format": "date-time"}, "wait": {"type": "string", "format": "duration"},
        "port": {"x-kubernetes-int-or-string": true},
        "list": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 16}},
        "open": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 16}, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array", "maxItems": 8, "items": part, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "map": {"type": "object", "maxProperties": 8, "additionalProperties": {"type": "string", "maxLength": 16}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "odd-name": {"type": "string", "maxLength": 8}, "namespace": {"type": "string", "maxLength": 8},
    }})
}

/// Expressions about [`fields`]: some compile, some do not.
const EXPRESSIONS: &[&str] = &[
    "self.size > 3",
    "self.size >",
    "self.size + 'a' == 'b'",
    "self.nothing == 1",
    "has(self.nothing)",
    "self.size",
    "'text'",
    "true",
    "",
    "   ",
    "self.name.matches('[')",
    "self.name.matches('^[a-z]+$')",
    "self.list.all(x, x.startsWith('a'))",
    "self.list.all(x, x > 1)",
    "self.list.exists_one(x, x == self.name)",
    "self.open.all(x, self.open.all(y, x == y))",
    "self.open.all(x, x.contains(self.long))",
    "self.open.map(x, x + x).size() < 3",
    "self.map.all(k, self.map[k] != '')",
    "self.parts.all(p, p.count < 3)",
    "self.parts.filter(p, has(p.count)).map(p, p.count).sum() < 10",
    "oldSelf.size <= self.size",
    "oldSelf == self",
    "self.at > timestamp('2026-01-01T00:00:00Z')",
    "self.wait < duration('1h')",
    "self.at > self.wait",
    "self.port == 80 || self.port == 'http'",
    "type(self.port) == int ? self.port < 10 : true",
    "self.__namespace__ == 'a'",
    "self.namespace == 'a'",
    "self.odd__dash__name == 'x'",
    "self.free.a == 1",
    "self.embedded.metadata.name == 'x'",
    "self.embedded.kind == 'x'",
    "self.embedded.spec == 'x'",
    "quantity(self.name).isGreaterThan(quantity('1'))",
    "isIP(self.name) && ip(self.name).family() == 4",
    "cidr('10.0.0.0/8').containsIP(self.name)",
    "url(self.name).getHost() == 'example.com'",
    "self.name.split(',').size() < 3",
    "self.name.find('[a-z]+') == 'a'",
    "self.list.isSorted() && self.list.indexOf('a') == 0",
    "sets.contains(self.list, ['a'])",
    "semver('1.2.3').major() == 1",
    "format.dns1123Label().validate(self.name).hasValue()",
    "self.?size.orValue(3) < 5",
    "optional.of(1).value() == self.size",
    "self.ratio < 0.5",
    "self.size < 0.5",
    "double(self.size) < 0.5",
    "dyn(self.size) == 'a'",
    "self.on ? self.size > 1 : self.size > 2",
    "self.size in [1, 2, 3]",
    "{'a': 1}.a == self.size",
    "unknown(self.size)",
    "self.name.unknown()",
    "self.size ==\n  1",
    "cel.bind(x, self.size, x > 1)",
    "[1, 2].map(x, [3, 4].map(y, x * y)).size() == self.size",
    "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, a + b + c + d != ''))))",
    "self.open.all(a, self.open.all(b, self.open.all(c, a + b + c != '')))",
    "string(self.size) == base64.encode(b'a')",
    "authorizer.path('/').check('get').allowed()",
    "variables.x == 1",
    "self.map.transformList(k, v, k + v).size() > 1",
    "math.greatest(self.size, 3) == 3",
    "strings.quote(self.name) == ''",
    "self.name.charAt(0) == 'a' && self.name.lowerAscii() == self.name",
    "self.name.reverse() == self.name",
];

/// Schemas of the spec that are more than one rule about [`fields`].
fn schemas() -> Vec<Value> {
    let entry = |entry: Value| ruled(fields(), json!([entry]));
    let below = |name: &str, rules: Value| {
        let mut schema = fields();
        schema["properties"][name]["x-kubernetes-validations"] = rules;
        schema
    };
    let mut items = fields();
    items["properties"]["list"]["items"]["x-kubernetes-validations"] = json!([{"rule": "self == oldSelf"}]);
    let mut keyed = fields();
    keyed["properties"]["parts"]["items"]["x-kubernetes-validations"] =
        json!([{"rule": "self.count >= oldSelf.count", "message": "counts only grow"}]);
    let mut values = fields();
    values["properties"]["map"]["additionalProperties"]["x-kubernetes-validations"] =
        json!([{"rule": "self != oldSelf", "optionalOldSelf": true}]);
    let with_default = |value: Value, rule: &str| {
        json!({"type": "object", "properties": {"size": {
            "type": "integer", "default": value, "x-kubernetes-validations": [{"rule": rule}],
        }}})
    };
    let mut both = rule("self.size > 'a'");
    both["properties"]["size"] = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self.x"}]});
    let mut broken = rule("self.size > 'a'");
    broken["properties"]["name"]["uniqueItems"] = json!(true);
    let mut untyped = rule("self.size > 'a'");
    untyped["properties"]["name"] = json!({});
    vec![
        entry(json!({"rule": "self.size > 3", "message": " "})),
        entry(json!({"rule": "self.size > 3", "message": "two\nlines"})),
        entry(json!({"rule": "self.size > 3", "messageExpression": " "})),
        entry(json!({"rule": "self.size > 3", "messageExpression": "1"})),
        entry(json!({"rule": "self.size > 3", "messageExpression": "'a' + self.nothing"})),
        entry(json!({"rule": "self.size > 3", "messageExpression": "'at least %d'.format([self.size])"})),
        entry(json!({"rule": "self.size > 3", "reason": "Nonsense"})),
        entry(json!({"rule": "self.size > 3", "reason": "FieldValueRequired", "fieldPath": ".size"})),
        entry(json!({"rule": "self.size > 3", "fieldPath": ".nothing"})),
        entry(json!({"rule": "self.size > 3", "fieldPath": "size"})),
        entry(json!({"rule": "self.size > 3", "fieldPath": ".parts[0]"})),
        entry(json!({"rule": "self.size > 3", "fieldPath": ".map['a']"})),
        entry(json!({"rule": "self.size > 3", "fieldPath": "['odd-name']"})),
        entry(json!({"rule": "self.size > 3", "optionalOldSelf": true})),
        entry(json!({"rule": "!oldSelf.hasValue() || oldSelf.value().size < self.size", "optionalOldSelf": true})),
        entry(json!({"rule": "oldSelf.size < self.size", "optionalOldSelf": true})),
        entry(json!({"message": "no rule"})),
        entry(json!({"rule": "self.size > 3", "nonsense": 1})),
        below("open", json!([{"rule": "self.all(x, x.matches('a.*b'))"}])),
        below("long", json!([{"rule": "self.contains(self)"}])),
        below("free", json!([{"rule": "self.a == 1"}])),
        below("port", json!([{"rule": "self == 1"}, {"rule": "self == 'a'"}])),
        below("set", json!([{"rule": "oldSelf.all(x, x in self)"}])),
        items,
        keyed,
        values,
        with_default(json!(1), "self > 3"),
        with_default(json!(5), "self > 3"),
        with_default(json!(5), "self / 0 > 3"),
        both,
        broken,
        untyped,
    ]
}

/// Definitions whose objects are compared, and the specs that objects get, one after the other.
fn objects() -> Vec<(Value, Vec<Value>)> {
    let rules = json!([
        {"rule": "!has(self.size) || self.size > 3", "message": "too small"},
        {"rule": "!has(self.size) || self.size < 10", "messageExpression": "'at most 9, not %d'.format([self.size])"},
        {"rule": "!has(self.name) || self.name != 'bad'", "reason": "FieldValueForbidden", "fieldPath": ".name"},
        {"rule": "!has(self.name) || self.name != 'twice'", "reason": "FieldValueDuplicate", "fieldPath": ".name"},
        {"rule": "!has(self.on) || self.on || has(self.name)", "reason": "FieldValueRequired", "message": "off needs a name"},
        {"rule": "!has(self.list) || self.list[2] == 'c'"},
        {"rule": "!has(self.port) || self.port == 80 || self.port == 'http'"},
        {"rule": "!has(self.ratio) || 1 / int(self.ratio) > 0"},
    ]);
    let mut transitions = ruled(
        fields(),
        json!([
            {"rule": "!has(oldSelf.size) || self.size >= oldSelf.size", "message": "size only grows"},
            {"rule": "!oldSelf.hasValue() || has(self.name)", "optionalOldSelf": true, "message": "updates need names"},
            {"rule": "!has(self.list) || self.list.size() < 2", "message": "one at most"},
        ]),
    );
    transitions["properties"]["parts"]["items"]["x-kubernetes-validations"] = json!([
        {"rule": "!has(oldSelf.count) || self.count >= oldSelf.count", "message": "counts only grow"},
        {"rule": "!has(self.count) || self.count < 100", "message": "99 at most"},
    ]);
    transitions["properties"]["map"]["additionalProperties"]["x-kubernetes-validations"] =
        json!([{"rule": "self == oldSelf"}]);
    let loop4 = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d > -1))))";
    let numbers = json!({"type": "object", "properties": {"numbers": {
        "type": "array", "maxItems": 25, "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": loop4}],
    }}});
    let twenty: Vec<usize> = (0..20).collect();
    let twenty_five: Vec<usize> = (0..25).collect();
    vec![
        (
            ruled(fields(), rules),
            vec![
                json!({"size": 5, "name": "good"}),
                json!({"size": 1}),
                json!({"size": 11}),
                json!({"name": "bad"}),
                json!({"name": "twice"}),
                json!({"on": false}),
                json!({"list": ["a"]}),
                json!({"list": ["a", "b", "c"]}),
                json!({"list": ["a", "b", "d"]}),
                json!({"port": 81}),
                json!({"port": "http"}),
                json!({"ratio": 0.5}),
                json!({"ratio": 1}),
                json!({"size": "x"}),
                json!({"size": 1, "name": "x".repeat(65)}),
                json!({"size": 1, "name": "bad", "on": false, "port": 1, "list": []}),
                json!({"size": null}),
                json!(7),
            ],
        ),
        (
            transitions,
            vec![
                json!({"size": 5, "parts": [{"name": "a", "count": 2}], "map": {"a": "1"}}),
                json!({"size": 5}),
                json!({"size": 6, "name": "n"}),
                json!({"size": 4, "name": "n"}),
                json!({"name": "n"}),
                json!({"size": 6, "name": "n", "list": ["a", "b"]}),
                json!({"size": 6, "name": "n", "parts": [{"name": "a", "count": 1}, {"name": "b", "count": 0}]}),
                json!({"size": 6, "name": "n", "parts": [{"name": "a", "count": 3}]}),
                json!({"size": 6, "name": "n", "parts": [{"name": "b"}, {"name": "a", "count": 2}]}),
                json!({"size": 6, "name": "n", "parts": [{"name": "b", "count": 100}]}),
                json!({"size": 6, "name": "n", "map": {"a": "1", "b": "2"}}),
                json!({"size": 6, "name": "n", "map": {"a": "2", "b": "2"}}),
            ],
        ),
        (numbers, vec![json!({"numbers": [1, 2]}), json!({"numbers": twenty}), json!({"numbers": twenty_five})]),
    ]
}

/// Compares a write, and returns whether it was accepted. Upstream goes through properties in any order, and its message has the
/// errors in that order, so the letters of messages are compared.
async fn compare(comparison: &mut Comparison, request: &Request) -> bool {
    let [theirs, ours] = comparison.both(request).await;
    let sorted = |(code, body): &(u16, Value)| {
        let mut body = normal(body, "");
        if let Some(message) = body.get("message").and_then(Value::as_str) {
            let mut letters: Vec<char> = message.chars().collect();
            letters.sort_unstable();
            body["message"] = letters.into_iter().collect::<String>().into();
        }
        (*code, body)
    };
    let is_equal = sorted(&theirs) == sorted(&ours);
    let is_accepted = theirs.0 < 300;
    let Request { method, path, body, .. } = request;
    let shown = body.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec").unwrap_or(body);
    comparison.note(is_equal, || {
        let text = |(code, body): &(u16, Value)| format!("{code} {}", normal(body, ""));
        (format!("{method} {path} {shown}"), [text(&theirs), text(&ours)])
    });
    is_accepted
}

/// Compares what a definition has become.
async fn conditions(comparison: &mut Comparison, plural: &str) {
    let path = format!("{DEFINITIONS}/{plural}.{GROUP}");
    let get = Request { method: "GET", path, content_type: "application/json", body: Value::Null };
    let [theirs, ours] = comparison.both(&get).await.map(|(_, mut body)| {
        for condition in body["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = "<some>".into();
        }
        body["status"].take()
    });
    comparison.note(theirs == ours, || (format!("status of {plural}"), [theirs.to_string(), ours.to_string()]));
}

fn post(path: String, body: Value) -> Request {
    Request { method: "POST", path, content_type: "application/json", body }
}

#[tokio::test]
async fn definitions_with_rules_are_accepted_and_refused_as_on_kube_apiserver() {
    let mut comparison = Comparison::start(NAMESPACE).await;
    let mut accepted = 0;
    for schema in EXPRESSIONS.iter().map(|expression| rule(expression)).chain(schemas()) {
        let request = post(format!("{DEFINITIONS}?dryRun=All"), definition("dries", &schema));
        accepted += usize::from(compare(&mut comparison, &request).await);
    }
    let compared = comparison.compared;
    assert!(accepted * 3 > compared && (compared - accepted) * 3 > compared, "{accepted} of {compared} are accepted");
    comparison.end();
}

#[tokio::test]
async fn definitions_have_the_conditions_of_kube_apiserver() {
    let mut comparison = Comparison::start(NAMESPACE).await;
    let named = |plural: &str, short: &str| {
        let mut definition = definition(plural, &json!({"type": "object"}));
        definition["spec"]["names"]["shortNames"] = json!([short]);
        definition
    };
    let mut approved = definition("approvals", &json!({"type": "object"}));
    approved["metadata"] = json!({
        "name": "approvals.rules.x-k8s.io", "annotations": {"api-approved.kubernetes.io": "https://example.com/pull/1"},
    });
    approved["spec"]["group"] = "rules.x-k8s.io".into();
    let mut unknown = named("unknowns", "un");
    unknown["spec"]["preserveUnknownFields"] = true.into();
    let rows = [named("firsts", "short"), named("seconds", "short"), named("thirds", "firsts"), approved, unknown];
    for definition in rows {
        compare(&mut comparison, &post(format!("{DEFINITIONS}?dryRun=All"), definition.clone())).await;
        comparison.both(&post(DEFINITIONS.to_owned(), definition)).await;
        // Names go to who comes first.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for plural in ["firsts", "seconds", "thirds"] {
        conditions(&mut comparison, plural).await;
    }
    let path = format!("{DEFINITIONS}/firsts.{GROUP}");
    comparison.both(&Request { method: "DELETE", path, content_type: "application/json", body: Value::Null }).await;
    // The names are free again.
    tokio::time::sleep(Duration::from_secs(8)).await;
    for plural in ["seconds", "thirds"] {
        conditions(&mut comparison, plural).await;
    }
    comparison.end();
}

#[tokio::test]
async fn objects_keep_rules_as_on_kube_apiserver() {
    let mut comparison = Comparison::start(NAMESPACE).await;
    for (at, (schema, specs)) in objects().into_iter().enumerate() {
        let plural = format!("things{at}");
        for (code, body) in comparison.both(&post(DEFINITIONS.to_owned(), definition(&plural, &schema))).await {
            assert!(code == 201 || code == 409, "{body}");
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        conditions(&mut comparison, &plural).await;
        let collection = format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{plural}");
        let object = |name: &str, spec: &Value| {
            let kind = kind_of(&plural);
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
        };
        for (at, spec) in specs.iter().enumerate() {
            compare(&mut comparison, &post(collection.clone(), object(&format!("o{at}"), spec))).await;
            let apply = |name: &str, spec: &Value| Request {
                method: "PATCH",
                path: format!("{collection}/{name}?fieldManager=one&force=true"),
                content_type: "application/apply-patch+yaml",
                body: object(name, spec),
            };
            compare(&mut comparison, &apply("one", spec)).await;
            let patch = Request {
                method: "PATCH",
                path: format!("{collection}/o0?fieldManager=two"),
                content_type: "application/merge-patch+json",
                body: json!({"spec": spec}),
            };
            compare(&mut comparison, &patch).await;
            let status = Request {
                method: "PATCH",
                path: format!("{collection}/o{at}/status"),
                content_type: "application/merge-patch+json",
                body: json!({"status": {"round": at}}),
            };
            compare(&mut comparison, &status).await;
        }
    }
    comparison.end();
}
