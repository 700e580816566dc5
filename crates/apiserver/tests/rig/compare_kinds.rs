//! Every kind that has rules of its own, on the embedded server and on kube-apiserver.
//!
//! A seeded generator takes a valid object of the kind (`tests/data/kinds-bases.jsonl`, `compare-bases.jsonl`) and makes at
//! least [`REQUESTS`] requests of it, half of which kube-apiserver refuses: creates, PUTs and patches of all types with
//! missing fields, wrong types, values out of range, names too long, unknown fields, changes of immutable fields; applies by
//! several managers; writes of status and scale. Both servers get the same request. Code, reason and object (with
//! `managedFields`) are compared, and the words: messages, causes, warnings.
//!
//! Differences that are known are listed in `tests/data/compare-known.tsv` with their reasons; docs/apiserver.md has them.

mod change;
mod generator;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::generator::{Ask, Body, Generator};
use self::report::{Difference, Kind, Report};
use crate::compare::normal;
use crate::frame::clients;

/// How many requests of each kind are compared, at least.
pub(crate) const REQUESTS: usize = 104;
/// How many requests may be needed until half of them are refused.
const REQUESTS_MAX: usize = 200;
const SEED: u64 = 14;
/// How many kinds are compared at a time.
const KINDS_AT_A_TIME: usize = 4;
const BASES: [&str; 2] = [include_str!("../data/kinds-bases.jsonl"), include_str!("../data/compare-bases.jsonl")];
/// Bases of kinds that reach the requests of others: policies, APIServices. Other tests share the server, so they are compared only if
/// [`MORE`] is set, by a run of this test alone.
const MORE_BASES: &str = include_str!("../data/more-bases.jsonl");
const MORE: &str = "STEERSMAN_COMPARE_MORE";

/// A kind to compare.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    plural: String,
    is_namespaced: bool,
    pub(crate) subresources: Vec<String>,
    pub(crate) bases: Vec<Value>,
}

/// The answer of a server: its code, its body and its warnings, without what differs from server to server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Subject {
    pub(crate) fn collection(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        match self.is_namespaced {
            true => format!("/{root}/{}/namespaces/{}/{}", self.api_version, self.namespace(), self.plural),
            false => format!("/{root}/{}/{}", self.api_version, self.plural),
        }
    }

    pub(crate) fn namespace(&self) -> String {
        format!("compare-{}", self.plural)
    }

    /// The name of one of the objects.
    pub(crate) fn name(&self, number: usize) -> String {
        match self.kind.as_str() {
            "CustomResourceDefinition" => format!("ws{number}.x.y"),
            "APIService" => format!("v{number}.compare.example.com"),
            "IPAddress" => format!("10.0.77.{number}"),
            _ => format!("x{number}"),
        }
    }

    /// The name of an object that is never stored.
    pub(crate) fn free_name(&self) -> &'static str {
        if self.kind == "IPAddress" { "10.0.78.1" } else { "dry" }
    }

    /// Whether the name of an object follows from what is in it.
    pub(crate) fn has_names_by_content(&self) -> bool {
        matches!(self.kind.as_str(), "CustomResourceDefinition" | "APIService")
    }

    /// Makes an object fit its name.
    pub(crate) fn follow_name(&self, object: &mut Value, name: &str) {
        let first = name.split('.').next().unwrap_or_default();
        match self.kind.as_str() {
            "CustomResourceDefinition" => {
                object["spec"]["names"] = json!({
                    "plural": first, "kind": first.to_uppercase(), "shortNames": [format!("s{first}")], "categories": ["all"],
                });
            }
            "APIService" => object["spec"]["version"] = json!(first),
            // A default for all would reach the Pods of other kinds.
            "PriorityClass" => object["globalDefault"] = json!(false),
            // That an empty list counts as absent here is known.
            "EndpointSlice" if object["ports"] == json!([]) => {
                object.as_object_mut().map(|slice| slice.remove("ports"));
            }
            // The servers have different ranges of addresses.
            "Service" if object["spec"]["clusterIP"] != json!("None") => {
                object["spec"].as_object_mut().map(|spec| spec.remove("clusterIP"));
            }
            _ => {}
        }
    }

    /// Whether kube-apiserver itself writes the status of a new object, a moment later.
    fn settles(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "CustomResourceDefinition" | "APIService" | "FlowSchema" | "PriorityLevelConfiguration"
        )
    }
}

/// The kinds of the bases, as discovery knows them.
async fn subjects(client: &Client) -> Vec<Subject> {
    let mut bases: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    let more = std::env::var_os(MORE).map(|_| MORE_BASES);
    for line in BASES.iter().copied().chain(more).flat_map(str::lines) {
        let base: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| base[field].as_str().unwrap_or_default().to_owned();
        bases.entry((text("apiVersion"), text("kind"))).or_default().push(base);
    }
    let mut subjects = Vec::new();
    for ((api_version, kind), bases) in bases {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let get = ask("GET", &format!("/{root}/{api_version}"), Value::Null);
        let resources = exchange(client, &get, &Value::Null).await.0.body["resources"].clone();
        let rows = resources.as_array().unwrap_or_else(|| panic!("{api_version} is not served"));
        let mut all = rows.iter().filter(|row| row["kind"] == *kind).filter_map(|row| row["name"].as_str());
        let plural = all.find(|name| !name.contains('/')).unwrap_or_else(|| panic!("{kind} is not served")).to_owned();
        let names = rows.iter().filter_map(|row| row["name"].as_str());
        let below = names.filter_map(|name| name.strip_prefix(&format!("{plural}/")).map(str::to_owned));
        let is_namespaced = rows.iter().any(|row| row["name"] == *plural && row["namespaced"] == true);
        let subresources = below.collect();
        subjects.push(Subject { api_version, kind, plural, is_namespaced, subresources, bases });
    }
    subjects
}

fn ask(method: &'static str, path: &str, body: Value) -> Ask {
    let body = if body.is_null() { Body::None } else { Body::These(body) };
    Ask { what: "", method, path: path.to_owned(), content_type: "application/json", body }
}

/// Sends a request; `current` is the object as this server shows it. Returns the answer, and the body as it came.
async fn exchange(client: &Client, ask: &Ask, current: &Value) -> (Answer, Value) {
    let body = match &ask.body {
        Body::None => Vec::new(),
        Body::These(body) => body.to_string().into_bytes(),
        Body::Current(changes) => {
            let mut object = current.clone();
            changes.iter().for_each(|change| change.apply(&mut object));
            object.to_string().into_bytes()
        }
    };
    let sent = || {
        http::Request::builder()
            .method(ask.method)
            .uri(&ask.path)
            .header("content-type", ask.content_type)
            .header("accept", "application/json")
            .header("user-agent", "compare/1")
            .body(kube::client::Body::from(body.clone()))
            .unwrap()
    };
    // A kept connection may just be closed by the server: such a request is sent again.
    let mut response = client.send(sent()).await;
    if response.is_err() {
        response = client.send(sent()).await;
    }
    // The handler of kube-apiserver has panicked.
    let Ok(response) = response else {
        return (Answer { code: 0, body: json!("the connection is closed"), warnings: Vec::new() }, Value::Null);
    };
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|warning| String::from_utf8_lossy(warning.as_bytes()).into_owned()).collect();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value =
        serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
    (Answer { code, body: plain(&body, current), warnings }, body)
}

/// The body without what differs from server to server, also where messages quote the object.
fn plain(body: &Value, current: &Value) -> Value {
    let version = current["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let quoted = format!("resourceVersion\\\":\\\"{version}\\\"");
    let mut shown = normal(body, "");
    hide(&mut shown, &quoted);
    match shown["kind"].as_str() {
        // Who asks is another one.
        Some("CertificateSigningRequest") => {
            for field in ["username", "uid", "groups", "extra"] {
                shown["spec"].as_object_mut().map(|spec| spec.remove(field));
            }
        }
        // Their status is written by kube-apiserver itself, a moment later.
        Some("FlowSchema" | "APIService") => {
            shown.as_object_mut().map(|object| object.remove("status"));
            let owners = shown["metadata"]["managedFields"].as_array_mut();
            if let Some(owners) = owners {
                owners.retain(|owner| owner["subresource"] != "status");
            }
        }
        _ => {}
    }
    shown
}

fn hide(value: &mut Value, version: &str) {
    match value {
        Value::Object(map) => {
            // Whether a manager that changed nothing has a time depends on whether a second has passed since the write before.
            if map.contains_key("fieldsType") {
                map.remove("time");
            }
            for (name, value) in map {
                match name.as_str() {
                    "lastTransitionTime" | "lastUpdateTime" | "lastPhaseTransitionTime" => *value = json!("<some>"),
                    _ => hide(value, version),
                }
            }
        }
        Value::String(text) => *text = without_uids_and_times(&text.replace(version, "resourceVersion")),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, version)),
        _ => {}
    }
}

/// A text without uids and times: messages show objects, also those that kube-apiserver makes up and refuses.
fn without_uids_and_times(text: &str) -> String {
    const PATTERNS: [&[u8]; 2] = [b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", b"xxxx-xx-xxTxx:xx:xxZ"];
    let mut out = text.to_owned();
    for pattern in PATTERNS {
        let matches = |part: &[u8]| {
            part.iter().zip(pattern).all(|(byte, want)| match want {
                b'x' => byte.is_ascii_hexdigit(),
                other => byte == other,
            })
        };
        while let Some(at) = out.as_bytes().windows(pattern.len()).position(matches) {
            out.replace_range(at..at + pattern.len(), "<some>");
        }
    }
    out
}

/// Compares one kind.
async fn compare(subject: &Subject, clients: &[Client; 2]) -> Kind {
    let mut generator = Generator::new(subject, SEED);
    let mut kind = Kind::new(subject);
    let mut is_fresh = true;
    while kind.requests() < REQUESTS || kind.is_lopsided() && kind.requests() < REQUESTS_MAX {
        let ask = if is_fresh { generator.fresh() } else { generator.next(kind.refused <= kind.accepted) };
        let created = ask.what == "create";
        let mut answers = Vec::new();
        let object = self::ask("GET", &generator.object(), Value::Null);
        for client in clients {
            let needs_current = !created && ask.method != "GET";
            let current = if needs_current { exchange(client, &object, &Value::Null).await.1 } else { Value::Null };
            answers.push(exchange(client, &ask, &current).await.0);
        }
        let [theirs, ours] = <[_; 2]>::try_from(answers).unwrap();
        if created && subject.settles() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        // What differs once differs in every answer that shows the object: the next request is about another one.
        let same = kind.count(Difference::new(&ask, theirs, ours));
        is_fresh = !same;
    }
    kind
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_is_answered_as_by_kube_apiserver() {
    let clients = clients().await;
    let only = std::env::var("STEERSMAN_COMPARE_KIND").ok();
    let subjects = subjects(&clients[0]).await;
    let turns = Arc::new(Semaphore::new(KINDS_AT_A_TIME));
    let mut running = JoinSet::new();
    for subject in subjects.into_iter().filter(|subject| only.as_ref().is_none_or(|only| *only == subject.kind)) {
        let clients = clients.clone();
        let turns = turns.clone();
        running.spawn(async move {
            let _turn = turns.acquire().await;
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": subject.namespace()}});
            for client in &clients {
                exchange(client, &ask("POST", "/api/v1/namespaces", namespace.clone()), &Value::Null).await;
            }
            compare(&subject, &clients).await
        });
    }
    let mut report = Report { kinds: running.join_all().await };
    report.kinds.sort_by(|a, b| a.name.cmp(&b.name));
    report.print();
    report.check();
}
