//! The requests of one kind, from a fixed seed.

use serde_json::{Value, json};

use super::Subject;
use super::change::{Change, bad, good};

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// After how many requests there is a new object.
const OBJECT_REQUESTS_MAX: usize = 12;

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    None,
    These(Value),
    /// The object as the server shows it, with changes.
    Current(Vec<Change>),
}

/// One request, the same for both servers.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// What it is about, for reports.
    pub(crate) what: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Body,
}

/// Makes the requests of one kind.
pub(crate) struct Generator<'a> {
    subject: &'a Subject,
    random: fastrand::Rng,
    /// The object that is written: its base has this name.
    base: Value,
    objects: usize,
    requests: usize,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(subject: &'a Subject, seed: u64) -> Self {
        let own = subject.kind.bytes().fold(seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let random = fastrand::Rng::with_seed(own);
        Self { subject, random, base: Value::Null, objects: 0, requests: 0 }
    }

    /// The path of the object that is written.
    pub(crate) fn object(&self) -> String {
        format!("{}/{}", self.subject.collection(), self.name())
    }

    /// The creation of another object, which the next requests are about.
    pub(crate) fn fresh(&mut self) -> Ask {
        self.base = self.subject.bases[self.objects % self.subject.bases.len()].clone();
        self.objects += 1;
        self.requests = 0;
        let name = self.subject.name(self.objects);
        self.base["metadata"]["name"] = json!(name);
        self.subject.follow_name(&mut self.base, &name);
        self.post("create", "", self.base.clone())
    }

    /// The next request: one that is likely to be refused, or to be accepted.
    pub(crate) fn next(&mut self, is_bad: bool) -> Ask {
        self.requests += 1;
        if self.requests > OBJECT_REQUESTS_MAX {
            return self.fresh();
        }
        if is_bad { self.bad() } else { self.good() }
    }

    fn bad(&mut self) -> Ask {
        let change = bad(&self.base, &mut self.random);
        let has = |name: &str| self.subject.subresources.iter().any(|it| it == name);
        match self.random.u8(..100) {
            0..35 => {
                let mut object = self.base.clone();
                change.apply(&mut object);
                self.post("create, changed", "?dryRun=All", object)
            }
            35..50 => self.put("put, changed", "", vec![change]),
            50..57 => self.patch("json patch", JSON_PATCH, "", change.json_patch()),
            57..64 => self.patch("merge patch", MERGE_PATCH, "", change.merge_patch(&self.base)),
            64..71 => self.patch("strategic patch", STRATEGIC, "", change.merge_patch(&self.base)),
            71..79 => {
                let mut object = self.base.clone();
                change.apply(&mut object);
                self.patch("apply, changed", APPLY, "?fieldManager=one", object)
            }
            79..83 => self.conflict(),
            83..88 => self.unknown("Strict"),
            88..92 if has("status") => self.bad_status(),
            88..92 if has("scale") => self.scale(-1),
            92..94 => self.bad_patch(),
            _ => self.bad_metadata(),
        }
    }

    fn good(&mut self) -> Ask {
        let number = self.random.usize(..4).to_string();
        let label = Change::set("/metadata/labels/a", json!(number));
        let note = Change::set("/metadata/annotations/example.com~1n", json!(number));
        let either = if self.random.bool() { label } else { note };
        let change = good(&self.base, &mut self.random);
        let has_scale = self.subject.subresources.iter().any(|name| name == "scale");
        let has_status = self.subject.subresources.iter().any(|name| name == "status");
        match self.random.u8(..100) {
            0..10 => {
                let mut object = self.base.clone();
                change.apply(&mut object);
                self.post("create, changed", "?dryRun=All", object)
            }
            10..20 => self.put("put, changed", "?fieldManager=three", vec![change, either]),
            20..26 => self.put("put, labels", "?fieldManager=two", vec![either]),
            26..29 => self.put("put, the same", "?fieldManager=two", Vec::new()),
            29..35 => self.patch("json patch", JSON_PATCH, "", change.json_patch()),
            35..43 => self.patch("merge patch", MERGE_PATCH, "", either.merge_patch(&self.base)),
            43..50 => self.patch("strategic patch", STRATEGIC, "", either.merge_patch(&self.base)),
            50..58 => self.patch("apply", APPLY, "?fieldManager=one&force=true", self.base.clone()),
            58..64 => {
                let mut object = self.base.clone();
                either.apply(&mut object);
                change.apply(&mut object);
                self.patch("apply, forced", APPLY, "?fieldManager=two&force=true", object)
            }
            64..70 => {
                let mut object = self.named();
                either.apply(&mut object);
                self.patch("apply, labels", APPLY, "?fieldManager=three&force=true", object)
            }
            70..76 => {
                let validation = if self.random.bool() { "Ignore" } else { "Warn" };
                self.unknown(validation)
            }
            76..86 if has_status => self.status(),
            86..94 if has_scale => {
                let replicas = self.random.i64(0..4);
                self.scale(replicas)
            }
            94..96 => Ask { what: "get", method: "GET", path: self.object(), content_type: JSON, body: Body::None },
            96..98 => Ask {
                what: "delete, dry",
                method: "DELETE",
                path: format!("{}?dryRun=All", self.object()),
                content_type: JSON,
                body: Body::None,
            },
            _ => self.patch("owners given up", MERGE_PATCH, "", json!({"metadata": {"managedFields": [{}]}})),
        }
    }

    /// An apply that takes away what others own.
    fn conflict(&mut self) -> Ask {
        let mut object = self.base.clone();
        good(&self.base, &mut self.random).apply(&mut object);
        self.patch("apply, not forced", APPLY, "?fieldManager=other", object)
    }

    fn unknown(&mut self, validation: &str) -> Ask {
        let deep = ["/bogus", "/metadata/bogus", "/spec/bogus"];
        let change = Change::set(deep[self.random.usize(..deep.len())], json!(1));
        let query = format!("?fieldManager=four&fieldValidation={validation}");
        let mut object = self.base.clone();
        change.apply(&mut object);
        match self.random.u8(..5) {
            0 => self.post("unknown field, create", &format!("{query}&dryRun=All"), object),
            1 => self.put("unknown field, put", &query, vec![change]),
            2 => self.patch("unknown field, merge patch", MERGE_PATCH, &query, change.merge_patch(&self.base)),
            3 => self.patch("unknown field, strategic patch", STRATEGIC, &query, change.merge_patch(&self.base)),
            _ => self.patch("unknown field, json patch", JSON_PATCH, &query, change.json_patch()),
        }
    }

    fn status(&mut self) -> Ask {
        let time = "2026-01-01T00:00:00Z";
        let state = ["True", "False", "Unknown"][self.random.usize(..3)];
        let values = [
            json!({"conditions": [{"type": "A", "status": state, "reason": "R", "message": "m", "lastTransitionTime": time}]}),
            json!({"replicas": self.random.i32(0..3)}),
            json!({"observedGeneration": 1}),
            json!({"phase": "Bound"}),
        ];
        let value = values[self.random.usize(..values.len())].clone();
        self.write_status("status", value)
    }

    fn bad_status(&mut self) -> Ask {
        let values = [
            json!({"conditions": "text"}),
            json!({"conditions": [{"type": "", "status": "Maybe"}]}),
            json!({"replicas": -1}),
            json!({"phase": 5}),
            json!("text"),
        ];
        let value = values[self.random.usize(..values.len())].clone();
        self.write_status("status, bad", value)
    }

    fn write_status(&mut self, what: &'static str, value: Value) -> Ask {
        let path = format!("{}/status", self.object());
        let mut object = self.named();
        object["status"] = value.clone();
        match self.random.u8(..4) {
            0 => Ask {
                what,
                method: "PUT",
                path,
                content_type: JSON,
                body: Body::Current(vec![Change::set("/status", value)]),
            },
            1 => patch(what, format!("{path}?fieldManager=five&force=true"), APPLY, object),
            2 => patch(what, path, STRATEGIC, json!({"status": value})),
            _ => patch(what, path, MERGE_PATCH, json!({"status": value})),
        }
    }

    fn scale(&mut self, replicas: i64) -> Ask {
        let path = format!("{}/scale", self.object());
        let spec = json!({"replicas": replicas});
        let mut scale = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": self.name()}, "spec": spec,
        });
        match self.random.u8(..4) {
            0 => {
                scale["metadata"]["namespace"] = json!(self.subject.namespace());
                Ask { what: "scale, put", method: "PUT", path, content_type: JSON, body: Body::These(scale) }
            }
            1 => patch("scale, apply", format!("{path}?fieldManager=six&force=true"), APPLY, scale),
            2 => Ask { what: "scale, get", method: "GET", path, content_type: JSON, body: Body::None },
            _ => patch("scale, merge patch", path, MERGE_PATCH, json!({"spec": spec})),
        }
    }

    fn bad_patch(&mut self) -> Ask {
        let patches = [
            json!([{"op": "test", "path": "/metadata/name", "value": "another"}]),
            json!([{"op": "replace", "path": "/nothing/here", "value": 1}]),
            json!([{"op": "remove", "path": "/metadata/nothing"}]),
            json!([{"op": "nonsense", "path": "/metadata/name"}]),
            json!({"op": "test"}),
        ];
        let patch = patches[self.random.usize(..patches.len())].clone();
        self.patch("json patch, bad", JSON_PATCH, "", patch)
    }

    fn bad_metadata(&mut self) -> Ask {
        let long = "x".repeat(300);
        let changes = [
            Change::set("/metadata/labels/a", json!("Bad Value!")),
            Change::set("/metadata/labels/bad key", json!("v")),
            Change::set("/metadata/annotations/bad key", json!("v")),
            Change::set("/metadata/labels/a", json!(long)),
            Change::set("/metadata/finalizers", json!(["nonsense"])),
            Change::set("/metadata/ownerReferences", json!([{"apiVersion": "v1", "kind": "Pod", "name": "p"}])),
            Change::set("/metadata/name", json!("another")),
            Change::set("/metadata/namespace", json!("another")),
            Change::set("/metadata/uid", json!("00000000-0000-0000-0000-000000000000")),
            Change::set("/metadata/resourceVersion", json!("1")),
            Change::set("/metadata/resourceVersion", json!("x")),
            Change::set("/metadata/name", json!(long)),
            Change::set("/metadata/name", json!("Bad Name!")),
            Change::set("/apiVersion", json!("nonsense/v1")),
            Change::set("/kind", json!("Nonsense")),
            Change::set("/metadata/generateName", json!("Bad Name!")),
            Change::set("/metadata/deletionGracePeriodSeconds", json!(-1)),
        ];
        let change = changes[self.random.usize(..changes.len())].clone();
        let queries = ["", "", "", "", "?fieldManager=a%00b", "?dryRun=Some", "?fieldValidation=Some"];
        let query = queries[self.random.usize(..queries.len())];
        let mut object = self.base.clone();
        change.apply(&mut object);
        match self.random.u8(..3) {
            0 => {
                let query = if query.is_empty() { "?dryRun=All" } else { query };
                self.post("metadata, create", query, object)
            }
            1 => self.put("metadata, put", query, vec![change]),
            _ => self.patch("metadata, merge patch", MERGE_PATCH, query, change.merge_patch(&self.base)),
        }
    }

    fn name(&self) -> &str {
        self.base["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The object with nothing but its name.
    fn named(&self) -> Value {
        json!({"apiVersion": self.base["apiVersion"], "kind": self.base["kind"], "metadata": {"name": self.name()}})
    }

    fn post(&self, what: &'static str, query: &str, mut object: Value) -> Ask {
        // What is not stored is of another name: it does not exist yet.
        let is_own = object.pointer("/metadata/name").is_some_and(|name| name == self.name());
        if query.contains("dryRun=All") && is_own && !self.subject.has_names_by_content() {
            object["metadata"]["name"] = json!(self.subject.free_name());
        }
        let path = format!("{}{query}", self.subject.collection());
        Ask { what, method: "POST", path, content_type: JSON, body: Body::These(object) }
    }

    fn put(&self, what: &'static str, query: &str, changes: Vec<Change>) -> Ask {
        let path = format!("{}{query}", self.object());
        Ask { what, method: "PUT", path, content_type: JSON, body: Body::Current(changes) }
    }

    fn patch(&self, what: &'static str, content_type: &'static str, query: &str, body: Value) -> Ask {
        patch(what, format!("{}{query}", self.object()), content_type, body)
    }
}

fn patch(what: &'static str, path: String, content_type: &'static str, body: Value) -> Ask {
    Ask { what, method: "PATCH", path, content_type, body: Body::These(body) }
}
