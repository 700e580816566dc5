//! The authors of changes, from the audit log of kube-apiserver.
//!
//! 1. The answer to most writes is the object with its new revision: that names one change, and no other.
//! 2. Evictions, bindings and removals answer without one. Such an entry stands for the first change of the object after
//!    the request came in that nobody else has claimed.
//! 3. The log of a killed server lacks its last moment: changes of that time have no author.
//!
//! Pure: text in, actors out.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_base::{Istr, MicroTime, ObjectKey};
use steersman_controllers::ALL;

use crate::invariants::TOKEN;
use crate::record::Actor;

/// Writes with their responses; resources that are not checked are left out.
pub const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources: [{ group: '', resources: [events, serviceaccounts/token] }, { group: events.k8s.io }]
- level: None
  resources: [{ group: authentication.k8s.io }, { group: authorization.k8s.io }]
- level: RequestResponse
";

/// What the user agent of nodes ends with.
pub const NODES: &str = "chaos-nodes";
/// What the user agent of users ends with.
pub const USERS: &str = "chaos-users";
/// What the user agent of a manager ends with, before its number.
pub const MANAGER: &str = "chaos-manager-";
/// What the names of the service accounts of controllers begin with.
const ACCOUNT: &str = "system:serviceaccount:kube-system:";
/// The actor name of a manager's own requests.
const ITSELF: &str = "manager";
/// How much later than the change itself its request may seem to have come in, by the two clocks' readings.
const SLACK_MICROS: i64 = 500_000;

/// The log, indexed.
#[derive(Debug, Default)]
pub struct Audit {
    /// By resource, object and revision.
    exact: BTreeMap<(Istr, ObjectKey, u64), Entry>,
    /// Requests without a revision, by resource and object, in the order of the requests.
    vague: BTreeMap<(Istr, ObjectKey), Vec<Entry>>,
    /// The requests of managers that were accepted, with their times.
    accepted: Vec<(MicroTime, Actor, String)>,
}

#[derive(Clone, Debug)]
struct Entry {
    by: Actor,
    received: MicroTime,
    ended: MicroTime,
    /// Whether a change was attributed to it.
    is_spent: bool,
    /// Whether it takes several objects.
    is_collection: bool,
}

// === impl Audit ===

impl Audit {
    /// Reads a log. Lines that a killed server left unfinished are skipped.
    #[must_use]
    pub fn read(log: &str) -> Self {
        let mut audit = Self::default();
        for line in log.lines() {
            // What a killed server began is followed by what the next one wrote.
            let begin = line.rfind(r#"{"kind":"Event""#).unwrap_or(0);
            if let Ok(entry) = serde_json::from_str::<Value>(&line[begin..]) {
                audit.add(&entry);
            }
        }
        for entries in audit.vague.values_mut() {
            entries.sort_by_key(|entry| entry.received);
        }
        audit
    }

    fn add(&mut self, entry: &Value) {
        let code = entry["responseStatus"]["code"].as_u64().unwrap_or(0);
        let Some(by) = actor(entry) else { return };
        // A server that gives up waiting for its store may have written all the same.
        let may_be_done = (200..300).contains(&code) || code >= 500;
        if !may_be_done {
            return;
        }
        let about = &entry["objectRef"];
        let resource = resource(about);
        let time = |name: &str| entry[name].as_str().and_then(|text| text.parse::<MicroTime>().ok());
        let received = time("requestReceivedTimestamp").unwrap_or(MicroTime::from_unix_micros(0));
        let ended = time("stageTimestamp").unwrap_or(received);
        let answer = &entry["responseObject"];
        let made = Entry { by, received, ended, is_spent: false, is_collection: false };
        if made.by.manager().is_some() && code < 300 && !is_heartbeat(&resource) {
            let text = format!("{} {} {}", text(&entry["verb"]), resource, key(about, answer));
            self.accepted.push((received, made.by.clone(), text));
        }
        if let Some(items) = answer["items"].as_array() {
            for item in items {
                let entry = Entry { is_collection: true, ..made.clone() };
                self.lay(&resource, key(about, item), revision(item), entry);
            }
            return;
        }
        // A binding, an eviction or a removal answers with a status, a scale with a scale.
        let is_object = answer["kind"] != "Status" && about["subresource"] != "scale";
        let revision = if is_object { revision(answer) } else { None };
        self.lay(&resource, key(about, answer), revision, made);
    }

    fn lay(&mut self, resource: &Istr, key: ObjectKey, revision: Option<u64>, entry: Entry) {
        if let Some(revision) = revision {
            let place = (resource.clone(), key.clone(), revision);
            // A write that changes nothing answers with the revision of the one before.
            let known = self.exact.get(&place);
            if known.is_none_or(|known| entry.received < known.received) {
                self.exact.insert(place, entry.clone());
            }
        }
        self.vague.entry((resource.clone(), key)).or_default().push(entry);
    }

    /// Returns the author of a change that was observed at a time.
    pub fn author(&mut self, resource: &Istr, key: &ObjectKey, revision: u64, seen: MicroTime) -> Option<Actor> {
        if let Some(entry) = self.exact.get(&(resource.clone(), key.clone(), revision)) {
            let by = entry.by.clone();
            let received = entry.received;
            let vague = self.vague.get_mut(&(resource.clone(), key.clone()));
            let same = vague.into_iter().flatten().find(|entry| entry.received == received && entry.by == by);
            if let Some(entry) = same {
                entry.is_spent = !entry.is_collection;
            }
            return Some(by);
        }
        let latest = seen.unix_micros() + SLACK_MICROS;
        let entries = self.vague.get_mut(&(resource.clone(), key.clone()))?;
        let came = entries.iter_mut().filter(|entry| entry.received.unix_micros() <= latest && !entry.is_spent);
        // Of those that came in before, the one whose answer is nearest to the change.
        let nearest = came.min_by_key(|entry| (entry.ended.unix_micros() - seen.unix_micros()).abs())?;
        nearest.is_spent = !nearest.is_collection;
        Some(nearest.by.clone())
    }

    /// What managers wrote between two times: leases and events are left out.
    pub fn written_between(&self, from: MicroTime, to: MicroTime) -> impl Iterator<Item = (&Actor, &str)> {
        let between = self.accepted.iter().filter(move |(at, ..)| from <= *at && *at < to);
        between.map(|(_, by, text)| (by, text.as_str()))
    }
}

/// Returns the sender of a request, by its user and its user agent; none if unknown.
fn actor(entry: &Value) -> Option<Actor> {
    let agent = entry["userAgent"].as_str().unwrap_or_default();
    if agent.ends_with(NODES) {
        return Some(Actor::Node);
    }
    if agent.ends_with(USERS) {
        return Some(Actor::User);
    }
    let (_, number) = agent.rsplit_once(MANAGER)?;
    let user = entry["user"]["username"].as_str().unwrap_or_default();
    let name = match user.strip_prefix(ACCOUNT) {
        Some(account) => controller_of(account),
        // It issues tokens before there are any, so it has none itself.
        None if entry["objectRef"]["resource"] == "secrets" => TOKEN,
        None => ITSELF,
    };
    Some(Actor::Controller { manager: number.parse().ok()?, name: Istr::interned(name) })
}

/// The controller of a service account: some accounts have shorter names than their controllers.
fn controller_of(account: &str) -> &str {
    ALL.iter().find(|row| row.row().account == account).map_or(account, |row| row.name)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn resource(about: &Value) -> Istr {
    let plural = text(&about["resource"]);
    let group = text(&about["apiGroup"]);
    if group.is_empty() { Istr::interned(plural) } else { Istr::interned(&format!("{plural}.{group}")) }
}

/// The object of a request: what is created under a generated name has its name in the answer.
fn key(about: &Value, answer: &Value) -> ObjectKey {
    let meta = &answer["metadata"];
    let name = if meta["name"].is_string() { &meta["name"] } else { &about["name"] };
    let namespace = match text(&about["resource"]) {
        "namespaces" | "nodes" => "",
        _ => text(&about["namespace"]),
    };
    if namespace.is_empty() { ObjectKey::cluster(text(name)) } else { ObjectKey::new(namespace, text(name)) }
}

fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn is_heartbeat(resource: &str) -> bool {
    resource == "leases.coordination.k8s.io" || resource.starts_with("events")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(agent: &str, user: &str, at: &str, about: &Value, code: u16, answer: &Value) -> String {
        let entry = json!({
            "kind": "Event", "verb": "create", "userAgent": agent, "user": {"username": user},
            "objectRef": about, "responseStatus": {"code": code}, "responseObject": answer,
            "requestReceivedTimestamp": at, "stageTimestamp": at,
        });
        // The server writes the kind first.
        let text = entry.to_string().replace(r#""kind":"Event","#, "");
        text.replacen('{', r#"{"kind":"Event","#, 1)
    }

    fn pod(name: &str, revision: u64) -> Value {
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "a", "resourceVersion": revision.to_string()}})
    }

    fn controller(manager: usize, name: &str) -> Actor {
        Actor::Controller { manager, name: Istr::interned(name) }
    }

    #[test]
    fn a_change_is_laid_to_the_request_that_was_answered_with_its_revision() {
        let pods = json!({"resource": "pods", "namespace": "a"});
        let named = json!({"resource": "pods", "namespace": "a", "name": "p"});
        let removed = json!({"kind": "Status", "status": "Success"});
        let replicas = "system:serviceaccount:kube-system:replicaset-controller";
        let namespaces = "system:serviceaccount:kube-system:namespace-controller";
        let manager = "x/1 chaos-manager-3";
        let log = [
            // Under a generated name, and then a write that changes nothing.
            line(manager, replicas, "2026-01-01T00:00:01.000000Z", &pods, 201, &pod("p", 7)),
            line("x/1 chaos-nodes", "admin", "2026-01-01T00:00:02.000000Z", &named, 200, &pod("p", 7)),
            line("x/1 chaos-nodes", "admin", "2026-01-01T00:00:03.000000Z", &named, 200, &pod("p", 9)),
            // A refused request has no change.
            line("x/1 chaos-users", "admin", "2026-01-01T00:00:04.000000Z", &named, 409, &removed),
            // A removal has no revision.
            line("x/1 chaos-users", "admin", "2026-01-01T00:00:05.000000Z", &named, 200, &removed),
            // Half a line, by a server that was killed.
            format!(
                r#"{{"kind":"Event","level":"Requ{}"#,
                line(manager, namespaces, "2026-01-01T00:00:09.000000Z", &pods, 200, &json!({"items": [pod("q", 12)]}))
            ),
        ];
        let mut audit = Audit::read(&log.join("\n"));
        let mut author = |name: &str, revision, at: &str| {
            audit.author(&Istr::interned("pods"), &ObjectKey::new("a", name), revision, at.parse().unwrap())
        };
        assert_eq!(author("p", 7, "2026-01-01T00:00:01.100000Z"), Some(controller(3, "replicaset-controller")));
        assert_eq!(author("p", 9, "2026-01-01T00:00:03.100000Z"), Some(Actor::Node));
        assert_eq!(author("p", 11, "2026-01-01T00:00:05.100000Z"), Some(Actor::User));
        assert_eq!(author("q", 12, "2026-01-01T00:00:09.100000Z"), Some(controller(3, "namespace-controller")));
        // Its removal follows from the same request.
        assert_eq!(author("q", 13, "2026-01-01T00:00:09.200000Z"), Some(controller(3, "namespace-controller")));
        assert_eq!(author("r", 14, "2026-01-01T00:00:09.200000Z"), None);
    }

    #[test]
    fn only_what_managers_wrote_counts_as_written() {
        let maps = json!({"resource": "configmaps", "namespace": "a", "name": "m"});
        let leases =
            json!({"resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "kube-system", "name": "l"});
        let log = [
            line(
                "x chaos-manager-0",
                "system:kube-controller-manager",
                "2026-01-01T00:00:01.000000Z",
                &leases,
                200,
                &json!({}),
            ),
            line(
                "x chaos-manager-0",
                "system:serviceaccount:kube-system:root-ca-cert-publisher",
                "2026-01-01T00:00:02.000000Z",
                &maps,
                201,
                &json!({}),
            ),
            line("x chaos-users", "admin", "2026-01-01T00:00:03.000000Z", &maps, 200, &json!({})),
        ];
        let audit = Audit::read(&log.join("\n"));
        let time = |text: &str| text.parse::<MicroTime>().unwrap();
        let all: Vec<_> =
            audit.written_between(time("2026-01-01T00:00:00.000000Z"), time("2026-01-01T00:01:00.000000Z")).collect();
        assert_eq!(all, [(&controller(0, "root-ca-certificate-publisher-controller"), "create configmaps a/m")]);
    }
}
