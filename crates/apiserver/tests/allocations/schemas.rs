//! Definitions and YAML that ask for much.

use serde_json::{Map, Value, json};

use crate::{APPLY, CONFIG_MAPS, DEFINITIONS, JSON, Row, YAML};

fn definition(schema: Value) -> String {
    let mut definition = json!({
        "metadata": {"name": "a"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "bulks", "kind": "Bulk"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {}}}],
        },
    });
    definition["metadata"]["name"] = "bulks.example.org".into();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    definition.to_string()
}

fn properties(count: usize, of: impl Fn(usize) -> Value) -> Value {
    let properties: Map<String, Value> = (0..count).map(|at| (format!("p{at}"), of(at))).collect();
    json!({"type": "object", "properties": properties})
}

/// Aliases of aliases, with `bytes` of other text.
fn bomb(bytes: usize) -> String {
    let line = |at: usize| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(","));
    let lines: String = (1..10).map(line).collect();
    let filler = "#".repeat(bytes);
    format!("metadata: {{name: a}}\n{filler}\na0: &a0 [x,x,x,x,x,x,x,x,x]\n{lines}")
}

/// A long text that is used again and again.
fn copies(bytes: usize) -> String {
    let uses = vec!["*x"; bytes / 6].join(",");
    format!("metadata: {{name: a}}\ndata: {{a: &x {}}}\nmore: [{uses}]\n", "x".repeat(bytes / 2))
}

/// Bodies of about `bytes`.
pub(super) fn rows(bytes: usize) -> Vec<Row> {
    let deep = (0..20).fold(
        json!({"type": "object", "default": {}}),
        |inner, _| json!({"type": "object", "default": {}, "properties": {"a": inner}}),
    );
    let rule = |text: &str| json!([{"rule": text}]);
    let long = format!("[{}].size() > 1", vec!["self.p0"; bytes / 16].join(","));
    let mut ruled = properties(bytes / 40, |_| json!({"type": "integer"}));
    ruled["x-kubernetes-validations"] = rule("self.p1 > 1");
    let mut lengthy = properties(1, |_| json!({"type": "integer"}));
    lengthy["x-kubernetes-validations"] = rule(&long);
    let schemas = [
        ("a definition of many properties", properties(bytes / 12, |_| json!({}))),
        ("a definition of many typed properties", properties(bytes / 32, |_| json!({"type": "string"}))),
        ("many properties and a rule", ruled),
        (
            "a rule for each of many properties",
            properties(bytes / 90, |_| json!({"type": "integer", "x-kubernetes-validations": rule("self > 1")})),
        ),
        ("a rule that is too long", lengthy),
        ("patterns that backtrack", properties(bytes / 60, |_| json!({"type": "string", "pattern": "^(a+)+(b|b)*$"}))),
        (
            "patterns that are large",
            properties(bytes / 60, |_| json!({"type": "string", "pattern": "^(a{1,900}){1,900}$"})),
        ),
        ("defaults in defaults", properties(bytes / 1000, |_| deep.clone())),
    ];
    let definitions = schemas.map(|(name, schema)| ("POST", name, DEFINITIONS.into(), JSON, definition(schema)));
    let apply = format!("{CONFIG_MAPS}/there?fieldManager=m");
    let texts = [
        ("POST", "a bomb of aliases", CONFIG_MAPS.into(), YAML, bomb(bytes)),
        ("PATCH", "the same applied", apply, APPLY, bomb(bytes)),
        ("POST", "copies of a long text", CONFIG_MAPS.into(), YAML, copies(bytes)),
    ];
    definitions.into_iter().chain(texts).collect()
}
