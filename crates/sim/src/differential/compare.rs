//! Two clusters side by side: the state of every object, the events, the answers to users. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::normal::Normal;

/// A difference between our cluster and Go's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    /// Where it was found.
    pub area: Area,
    /// The resource, or the source of an event.
    pub about: String,
    /// The object.
    pub name: String,
    /// The field; nothing for the object itself.
    pub path: String,
    /// What we have.
    pub ours: String,
    /// What Go has.
    pub go: String,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// Objects at the end of a sequence.
    State,
    /// Events.
    Event,
    /// The server's answers to users.
    Answer,
    /// The number of requests of a manager.
    Calls,
}

/// Objects by resource and normalised name: those with generated names share one.
pub type State = BTreeMap<(String, String), Vec<Value>>;

/// The number of events by source and text.
pub type Events = BTreeMap<(String, String), u64>;

/// How differently two managers may count what both do: an event may be sent once more because a change came in two parts.
const COUNT_FACTOR: u64 = 2;
const COUNT_SLACK: u64 = 1;
/// The longest value that is shown.
const SHOWN_MAX: usize = 300;
const ABSENT: &str = "—";
/// Those who send events and are not controllers: simulated nodes, and the API server.
const OTHERS: [&str; 5] =
    ["kubelet", "default-scheduler", "simulated-provisioner", "simulated-resizer", "ipallocator-repair-controller"];

// === impl Difference ===

impl Difference {
    /// Whether another difference is in the same place.
    fn is_where(&self, other: &Self) -> bool {
        (self.area, &self.about, &self.name, &self.path) == (other.area, &other.about, &other.name, &other.path)
    }
}

/// Adds an object to a state.
pub fn add(state: &mut State, normal: &Normal, resource: &str, object: Value) {
    if is_servers(resource, &object) {
        return;
    }
    let object = normal.object(resource, object);
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    let name = match text("namespace") {
        namespace if namespace.is_empty() => text("name"),
        namespace => format!("{namespace}/{}", text("name")),
    };
    state.entry((resource.to_owned(), name)).or_default().push(object);
}

/// Whether an object names the port of a server, which differs.
fn is_servers(resource: &str, object: &Value) -> bool {
    let names = [("default", "kubernetes"), ("kube-system", "simulated-metrics")];
    let meta = &object["metadata"];
    let is_about_ports = matches!(resource, "services" | "endpoints" | "endpointslices.discovery.k8s.io");
    is_about_ports && names.iter().any(|(namespace, name)| meta["namespace"] == *namespace && meta["name"] == *name)
}

/// Returns the differences that were there before, in the same field of the same object, whatever its values.
#[must_use]
pub fn lasting(before: &[Difference], mut found: Vec<Difference>) -> Vec<Difference> {
    found.retain(|difference| before.iter().any(|known| known.is_where(difference)));
    found
}

/// Compares the objects of two clusters.
#[must_use]
pub fn states(ours: &State, go: &State) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut keys: Vec<_> = ours.keys().chain(go.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let of = |state: &State| state.get(key).cloned().unwrap_or_default();
        let mut difference = |path: &str, ours: String, go: String| {
            let (about, name) = key.clone();
            found.push(Difference { area: Area::State, about, name, path: path.to_owned(), ours, go });
        };
        let mine = of(ours);
        let theirs = of(go);
        if mine.len() != theirs.len() {
            difference("", format!("{} of them", mine.len()), format!("{} of them", theirs.len()));
        }
        let (mine, theirs) = without_equal(mine, theirs);
        for (mine, theirs) in mine.iter().zip(&theirs) {
            fields("", mine, theirs, &mut difference);
        }
    }
    found
}

/// Objects that have an equal on the other side are left out; the rest is in order.
fn without_equal(mine: Vec<Value>, mut theirs: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let mut left = Vec::new();
    for one in mine {
        match theirs.iter().position(|other| *other == one) {
            Some(at) => drop(theirs.swap_remove(at)),
            None => left.push(one),
        }
    }
    left.sort_by_cached_key(ToString::to_string);
    theirs.sort_by_cached_key(ToString::to_string);
    (left, theirs)
}

fn fields(path: &str, ours: &Value, go: &Value, found: &mut dyn FnMut(&str, String, String)) {
    if ours == go {
        return;
    }
    match (ours, go) {
        (Value::Object(mine), Value::Object(theirs)) => {
            let mut names: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match (mine.get(name), theirs.get(name)) {
                    (Some(mine), Some(theirs)) => fields(&path, mine, theirs, found),
                    (mine, theirs) => found(&path, shown(mine), shown(theirs)),
                }
            }
        }
        (Value::Array(mine), Value::Array(theirs)) => {
            if let (Some(mine), Some(theirs)) = (by_type(mine), by_type(theirs)) {
                let mut names: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
                names.sort();
                names.dedup();
                for name in names {
                    let path = format!("{path}[{name}]");
                    match (mine.get(name), theirs.get(name)) {
                        (Some(mine), Some(theirs)) => fields(&path, mine, theirs, found),
                        (mine, theirs) => found(&path, shown(mine.copied()), shown(theirs.copied())),
                    }
                }
            } else if mine.len() == theirs.len() {
                for (mine, theirs) in mine.iter().zip(theirs) {
                    fields(&format!("{path}[]"), mine, theirs, found);
                }
            } else {
                found(path, shown(Some(ours)), shown(Some(go)));
            }
        }
        _ => found(path, shown(Some(ours)), shown(Some(go))),
    }
}

/// Conditions by their type, if that is what they are.
fn by_type(items: &[Value]) -> Option<BTreeMap<String, &Value>> {
    let map: BTreeMap<_, _> =
        items.iter().map(|item| Some((item["type"].as_str()?.to_owned(), item))).collect::<Option<_>>()?;
    (map.len() == items.len() && !items.is_empty()).then_some(map)
}

fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None => ABSENT.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    if text.len() > SHOWN_MAX { format!("{}…", text.chars().take(SHOWN_MAX).collect::<String>()) } else { text }
}

/// Adds an event to those of a cluster, unless it is not a controller's.
pub fn add_event(events: &mut Events, normal: &Normal, event: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let source = match text(&event["source"]["component"]) {
        source if source.is_empty() => text(&event["reportingComponent"]),
        source => source,
    };
    if OTHERS.contains(&source.as_str()) {
        return;
    }
    let about = &event["involvedObject"];
    let what = format!(
        "{} {} {}/{}: {}: {}",
        text(&event["type"]),
        text(&about["kind"]),
        text(&about["namespace"]),
        text(&about["name"]),
        text(&event["reason"]),
        text(&event["message"])
    );
    let count = event["series"]["count"].as_u64().or_else(|| event["count"].as_u64()).unwrap_or(1).max(1);
    *events.entry((source, normal.text(&what))).or_default() += count;
}

/// Compares the events of two clusters. What both do may happen more or less often, within a factor.
#[must_use]
pub fn events(ours: &Events, go: &Events) -> Vec<Difference> {
    let mut keys: Vec<_> = ours.keys().chain(go.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut found = Vec::new();
    for key in keys {
        let mine = ours.get(key).copied().unwrap_or(0);
        let theirs = go.get(key).copied().unwrap_or(0);
        if !is_alike(mine, theirs) {
            let (about, name) = key.clone();
            let shown = |count: u64| format!("{count} times");
            let path = String::new();
            found.push(Difference { area: Area::Event, about, name, path, ours: shown(mine), go: shown(theirs) });
        }
    }
    found
}

fn is_alike(mine: u64, theirs: u64) -> bool {
    let few = mine.min(theirs);
    let many = mine.max(theirs);
    few == many || (few > 0 && many <= few * COUNT_FACTOR + COUNT_SLACK)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(objects: &[Value]) -> State {
        let mut state = State::new();
        for object in objects {
            add(&mut state, &Normal::new(), "pods", object.clone());
        }
        state
    }

    #[test]
    fn a_difference_lasts_while_its_field_differs_in_whatever_values() {
        let pod = |phase: &str, node: &str| json!({"metadata": {"name": "web", "namespace": "a"}, "spec": {"nodeName": node}, "status": {"phase": phase}});
        let before = states(&state(&[pod("Pending", "x")]), &state(&[pod("Running", "y")]));
        let later = states(&state(&[pod("Running", "x")]), &state(&[pod("Failed", "x")]));
        let still: Vec<_> = lasting(&before, later).into_iter().map(|found| (found.path, found.go)).collect();
        assert_eq!(still, [("status.phase".to_owned(), "Failed".to_owned())]);
        assert_eq!(lasting(&[], before), Vec::new());
    }

    #[test]
    fn objects_with_generated_names_are_matched_by_content_and_differences_name_the_field() {
        let pod = |name: &str, phase: &str, reason: &str| {
            json!({"metadata": {"name": name, "namespace": "a"},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "reason": reason}]}})
        };
        let ours = state(&[pod("web-x2k4z", "Running", "A"), pod("web-zzzzz", "Failed", "A")]);
        let go = state(&[pod("web-bcdfg", "Failed", "B"), pod("web-vwxz2", "Running", "A")]);
        let found = states(&ours, &go);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].path.as_str(), found[0].ours.as_str(), found[0].go.as_str()),
            ("a/web-<random>", "status.conditions[Ready].reason", "A", "B")
        );
        assert_eq!(states(&go, &go), Vec::new());
        let fewer = state(&[pod("web-x2k4z", "Running", "A")]);
        assert_eq!(states(&fewer, &go)[0].ours, "1 of them");
    }

    #[test]
    fn events_differ_if_one_side_lacks_them_or_repeats_them_far_more_often() {
        for (mine, theirs, want) in
            [(0, 1, false), (1, 1, true), (1, 3, true), (1, 4, false), (2, 5, true), (6, 2, false), (0, 0, true)]
        {
            assert_eq!(is_alike(mine, theirs), want, "{mine} and {theirs}");
        }
        let event = |reason: &str, source: &str| {
            json!({"type": "Normal", "reason": reason, "message": "m", "source": {"component": source},
                "involvedObject": {"kind": "Pod", "namespace": "a", "name": "p"}, "count": 2})
        };
        let mut ours = Events::new();
        add_event(&mut ours, &Normal::new(), &event("Started", "kubelet"));
        add_event(&mut ours, &Normal::new(), &event("Killed", "taint-eviction-controller"));
        let found = events(&ours, &Events::new());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "Normal Pod a/p: Killed: m");
    }
}
