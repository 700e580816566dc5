//! The audit log of a rig while it is written: what a manager asks for, and when anything was written last.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steersman_testing::Failure;
use steersman_testing::rig::request;
use tokio::time::Instant;

use super::compare::{Area, Difference};

/// The requests of a manager: by verb and resource, and for each by account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Calls(pub BTreeMap<String, BTreeMap<String, u64>>);

/// A log that is read as it grows.
#[derive(Debug)]
pub struct Tail {
    file: PathBuf,
    read: u64,
    /// The begin of a line whose end is not there yet.
    rest: Vec<u8>,
    calls: Calls,
    refused: BTreeSet<String>,
    written: Instant,
}

/// What chance may add: one request more of each, and a part of what there is.
const CALLS_SLACK: u64 = 2;
const CALLS_SLACK_PART: u64 = 4;
const ACCOUNTS: &str = "system:serviceaccount:kube-system:";
const ROOT: &str = "system:kube-controller-manager";
/// Requests that follow the clock and not the load, or that the server makes for its own purposes.
const UNCOUNTED: [&str; 6] = [
    "leases",
    "tokenreviews",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
    "serviceaccounts/token",
    "nodes/status",
];

// === impl Calls ===

impl Calls {
    fn add(&mut self, what: String, account: &str) {
        *self.0.entry(what).or_default().entry(account.to_owned()).or_default() += 1;
    }

    /// Returns how many requests of this verb and resource there were.
    #[must_use]
    pub fn sum(&self, what: &str) -> u64 {
        self.0.get(what).map_or(0, |accounts| accounts.values().sum())
    }

    /// Returns what a controller of ours asks for more often than Go's: reads and writes of a resource, whatever the verb.
    #[must_use]
    pub fn more_than(&self, go: &Self) -> Vec<Difference> {
        let mine = self.by_class();
        let theirs = go.by_class();
        let mut found = Vec::new();
        for ((account, class), verbs) in &mine {
            let other = theirs.get(&(account.clone(), class.clone()));
            let count = |verbs: &BTreeMap<String, u64>| verbs.values().sum::<u64>();
            let few = other.map_or(0, count);
            if count(verbs) > few + few / CALLS_SLACK_PART + CALLS_SLACK {
                let told = |verbs: &BTreeMap<String, u64>| {
                    let each: Vec<String> = verbs.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
                    each.join(", ")
                };
                found.push(Difference {
                    area: Area::Calls,
                    about: class.clone(),
                    name: account.clone(),
                    path: String::new(),
                    ours: told(verbs),
                    go: other.map_or_else(|| "none".to_owned(), told),
                });
            }
        }
        found
    }

    /// By account, and by reads or writes of a resource; for each the verbs.
    fn by_class(&self) -> BTreeMap<(String, String), BTreeMap<String, u64>> {
        let mut classes: BTreeMap<(String, String), BTreeMap<String, u64>> = BTreeMap::new();
        for (what, accounts) in &self.0 {
            let (verb, resource) = what.split_once(' ').unwrap_or_default();
            let class = if matches!(verb, "get" | "list") { "reads" } else { "writes" };
            for (account, count) in accounts {
                // Ours has one queue of events for all controllers.
                let account = if resource == "events" { "all" } else { account };
                let verbs = classes.entry((account.to_owned(), format!("{class} of {resource}"))).or_default();
                *verbs.entry(verb.to_owned()).or_default() += count;
            }
        }
        classes
    }
}

// === impl Tail ===

impl Tail {
    /// Begins with what there is in the file.
    #[must_use]
    pub fn new(file: PathBuf) -> Self {
        let calls = Calls::default();
        Self { file, read: 0, rest: Vec::new(), calls, refused: BTreeSet::new(), written: Instant::now() }
    }

    /// Reads what was added to the file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn follow(&mut self) -> Result<(), Failure> {
        let mut file = std::fs::File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut added = Vec::new();
        self.read += u64::try_from(file.read_to_end(&mut added)?)?;
        self.rest.extend(added);
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.add(&serde_json::from_slice(line)?);
        }
        Ok(())
    }

    fn add(&mut self, entry: &Value) {
        let what = request(entry);
        let (verb, resource) = what.split_once(' ').unwrap_or_default();
        if UNCOUNTED.contains(&resource) {
            return;
        }
        let code = entry["responseStatus"]["code"].as_u64().unwrap_or(0);
        let is_write = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        if is_write && resource != "events" && code < 300 {
            self.written = Instant::now();
        }
        let user = entry["user"]["username"].as_str().unwrap_or_default();
        let account = user.strip_prefix(ACCOUNTS).or_else(|| (user == ROOT).then_some("manager"));
        let Some(account) = account else { return };
        if entry["annotations"]["authorization.k8s.io/decision"] == "forbid" {
            self.refused.insert(format!("{account}: {what}"));
        }
        if verb != "watch" && !resource.is_empty() {
            self.calls.add(what, account);
        }
    }

    /// Returns when anything was written last, as far as the log was read.
    #[must_use]
    pub fn written(&self) -> Instant {
        self.written
    }

    /// Returns what the manager has asked for so far.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns what it has no right to.
    #[must_use]
    pub fn refused(&self) -> &BTreeSet<String> {
        &self.refused
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_counted_by_controller_and_only_those_that_are_more_are_told() {
        let mut ours = Tail::new(PathBuf::new());
        let mut go = Tail::new(PathBuf::new());
        let entry = |user: &str, verb: &str| json!({"verb": verb, "user": {"username": user}, "objectRef": {"resource": "pods"}, "responseStatus": {"code": 200}});
        let account = "system:serviceaccount:kube-system:job-controller";
        for _ in 0..5 {
            ours.add(&entry(account, "create"));
        }
        ours.add(&entry("admin", "delete"));
        ours.add(&entry(account, "watch"));
        ours.add(&entry(ROOT, "get"));
        go.add(&entry(account, "update"));
        go.add(&entry(account, "get"));
        let more = ours.calls().more_than(go.calls());
        assert_eq!(more.len(), 1);
        assert_eq!((more[0].name.as_str(), more[0].about.as_str()), ("job-controller", "writes of pods"));
        assert_eq!((more[0].ours.as_str(), more[0].go.as_str()), ("create 5", "update 1"));
        assert_eq!(ours.calls().sum("delete pods"), 0);
        assert!(go.calls().more_than(ours.calls()).is_empty());
    }
}
