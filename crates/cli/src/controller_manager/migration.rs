//! Leader migration: which controllers run under a second lease, and which ones another manager runs.
//!
//! 1. The file of `--leader-migration-config` is checked as upstream checks it, and before anything is connected.
//! 2. A controller that the file gives to another component does not run here, whatever `--controllers` says: two managers
//!    must not run it at once.
//! 3. One that it gives to this component, or to any (`*`), runs while this process holds both leases: the second one
//!    (`leaderName`) is requested when the first is held, and the loss of either ends the program.
//! 4. The controller of token secrets stays under the first lease, and without an election there is no migration. As upstream.
//!
//! Follows `controller-manager/pkg/leadermigration` and `cmd/kube-controller-manager/app/controllermanager.go` of 1.37.1.

use serde::Deserialize;
use serde_json::{Value, json};
use steersman_runtime::__internal::descriptor::{Row, Stage};
use steersman_runtime::__internal::health::{Ask, Reasons};
use steersman_runtime::health::{Probe, Unhealthy};
use steersman_runtime::{Error, Group, Manager, manager::runnable};

use super::super::CommandError;
use super::super::flags::Parsed;
use super::super::selection::Selection;

/// The configuration of a migration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Migration {
    /// The name of the second lease.
    pub(super) lease: String,
    /// Controllers, and the component that runs each.
    leaders: Vec<Leader>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Leader {
    #[serde(default)]
    name: String,
    #[serde(default)]
    component: String,
}

/// The file, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    leader_name: String,
    #[serde(default)]
    resource_lock: Option<String>,
    #[serde(default)]
    controller_leaders: Option<Vec<Leader>>,
}

/// The name of this component.
const THIS: &str = "kube-controller-manager";
const ANY: &str = "*";
const GROUP: &str = "controllermanager.config.k8s.io";
const KIND: &str = "LeaderMigrationConfiguration";
const LOCK: &str = "leases";
/// The check of the controllers under the second lease.
const CHECK: &str = "leader-migration";
/// Upstream's default: controllers that this program no longer has.
const DEFAULT_LEASE: &str = "cloud-provider-extraction-migration";
const DEFAULT_CONTROLLERS: [&str; 3] = ["route-controller", "service-controller", "cloud-node-lifecycle-controller"];

// === impl Migration ===

impl Migration {
    /// Reads what the flags ask for; `None` without a migration.
    ///
    /// # Errors
    /// A sentence, for a file that cannot be read or used.
    pub(super) fn read(flags: &Parsed) -> Result<Option<Self>, CommandError> {
        if !flags.is_on("enable-leader-migration") {
            return Ok(None);
        }
        let Some(path) = flags.some_text("leader-migration-config") else { return Ok(Some(Self::standard())) };
        let wrong = |problem: String| CommandError(format!("--leader-migration-config: {path}: {problem}"));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map(Some).map_err(wrong)
    }

    fn standard() -> Self {
        let leader = |name: &str| Leader { name: name.to_owned(), component: ANY.to_owned() };
        Self { lease: DEFAULT_LEASE.to_owned(), leaders: DEFAULT_CONTROLLERS.map(leader).into() }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let version = file.api_version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
        let has_lock = match version {
            Some("v1") => false,
            Some("v1beta1" | "v1alpha1") => true,
            _ => return Err(format!("apiVersion: {:?} is not {GROUP}/v1", file.api_version)),
        };
        if file.kind != KIND {
            return Err(format!("kind: {:?} is not {KIND}", file.kind));
        }
        match &file.resource_lock {
            Some(_) if !has_lock => return Err("resourceLock: unknown field in v1".to_owned()),
            None if has_lock => return Err(format!("resourceLock: it must be {LOCK}")),
            Some(lock) if lock != LOCK => return Err(format!("resourceLock: {lock:?} is not known; there is {LOCK}")),
            _ => {}
        }
        if file.leader_name.is_empty() {
            return Err("leaderName: the lease needs one".to_owned());
        }
        let leaders = file.controller_leaders.unwrap_or_default();
        for (number, leader) in leaders.iter().enumerate() {
            for (field, text) in [("name", &leader.name), ("component", &leader.component)] {
                if text.is_empty() {
                    return Err(format!("controllerLeaders[{number}].{field}: it is needed"));
                }
            }
        }
        Ok(Self { lease: file.leader_name, leaders })
    }

    /// Takes from a selection the controllers of other components, with the reason, and returns the ones of the second lease.
    pub(super) fn divide<'a>(&self, selection: &mut Selection<'a>) -> Vec<&'a Row> {
        let mut second = Vec::new();
        let mut held = Vec::new();
        selection.run.retain(|row| match self.component_of(row) {
            None => true,
            Some(THIS | ANY) => {
                second.push(*row);
                false
            }
            Some(other) => {
                held.push((*row, format!("the leader migration gives it to {other}")));
                false
            }
        });
        selection.held.extend(held);
        second
    }

    /// As upstream, the last entry for a controller counts.
    fn component_of(&self, row: &Row) -> Option<&str> {
        if row.stage == Stage::First {
            return None;
        }
        let leader = self.leaders.iter().rev().find(|leader| row.is_called(&leader.name))?;
        Some(leader.component.as_str())
    }

    /// For `/configz`, under the names of the type.
    pub(super) fn to_json(&self) -> Value {
        let leader = |leader: &Leader| json!({ "name": leader.name, "component": leader.component });
        let leaders: Vec<_> = self.leaders.iter().map(leader).collect();
        json!({ "leaderName": self.lease, "resourceLock": LOCK, "controllerLeaders": leaders })
    }
}

/// Has a manager run another one, with a lease and caches of its own, while it leads; the pages of the first show health and
/// metrics of both.
pub(super) fn nest(manager: &Manager, second: Manager) {
    for probe in [Probe::Healthz, Probe::Livez, Probe::Readyz] {
        let health = second.health().clone();
        manager.health().add(&[probe], CHECK, move || {
            let mut ask = Ask::default();
            ask.reasons = Reasons::Shown;
            let report = health.report(probe, &ask);
            if report.passed { Ok(()) } else { Err(Unhealthy(report.text)) }
        });
    }
    if let Some(registry) = second.metrics() {
        manager.exposition().add(registry);
    }
    manager.add(runnable("leader migration", Group::Leading, |stop| async move {
        second.run(stop).await.map_err(|error| Error::message(error.to_string()))
    }));
}

#[cfg(test)]
mod tests {
    use super::super::super::{flags, rows};
    use super::*;

    const V1: &str = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n";

    fn row(name: &str) -> &'static Row {
        rows::table().iter().find(|row| row.is_called(name)).unwrap()
    }

    fn names(rows: &[&Row]) -> Vec<&'static str> {
        rows.iter().map(|row| row.name).collect()
    }

    #[test]
    fn who_runs_a_controller_is_what_the_file_says() {
        let text = format!(
            "{V1}leaderName: moving\ncontrollerLeaders:\n\
             - {{name: node-ipam-controller, component: kube-controller-manager}}\n\
             - {{name: ttl, component: '*'}}\n\
             - {{name: node-lifecycle-controller, component: cloud-controller-manager}}\n\
             - {{name: serviceaccount-token-controller, component: cloud-controller-manager}}\n\
             - {{name: route-controller, component: '*'}}\n"
        );
        let migration = Migration::parse(&text).unwrap();
        let all = ["serviceaccount-token-controller", "nodeipam", "ttl", "nodelifecycle", "replicaset"];
        let mut selection = Selection { run: all.map(row).into(), held: Vec::new() };
        let second = migration.divide(&mut selection);
        assert_eq!(migration.lease, "moving");
        assert_eq!(names(&second), ["node-ipam-controller", "ttl-controller"]);
        assert_eq!(names(&selection.run), ["serviceaccount-token-controller", "replicaset-controller"]);
        let held: Vec<_> = selection.held.iter().map(|(row, why)| (row.name, why.as_str())).collect();
        let why = "the leader migration gives it to cloud-controller-manager";
        assert_eq!(held, [("node-lifecycle-controller", why)]);
    }

    #[test]
    fn the_default_concerns_none_of_these_controllers() {
        let migration = Migration::standard();
        let mut selection = Selection { run: rows::table().iter().collect(), held: Vec::new() };
        assert!(migration.divide(&mut selection).is_empty());
        assert_eq!((selection.run.len(), selection.held.len()), (rows::table().len(), 0));
        assert_eq!(
            migration.to_json()["controllerLeaders"][0],
            json!({ "name": "route-controller", "component": "*" })
        );
    }

    #[test]
    fn a_file_that_upstream_refuses_is_refused_in_one_sentence() {
        let v1beta1 = V1.replace("/v1", "/v1beta1");
        let check = |text: String, want: &str| match Migration::parse(&text) {
            Ok(taken) => assert_eq!(want, "", "{text}: {taken:?}"),
            Err(error) => assert!(!want.is_empty() && error.contains(want), "{text}: {error}"),
        };
        check(format!("{V1}leaderName: a\n"), "");
        check(format!("{v1beta1}leaderName: a\nresourceLock: leases\ncontrollerLeaders: []\n"), "");
        check(V1.to_owned(), "leaderName");
        check(String::new(), "end of input");
        check("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n".into(), "apiVersion");
        check(format!("{V1}leaderName: a\nfoo: bar\n"), "foo");
        check(format!("{V1}leaderName: a\nleaderName: b\n"), "leaderName");
        check(format!("{V1}leaderName: a\nresourceLock: leases\n"), "resourceLock");
        check(format!("{v1beta1}leaderName: a\n"), "resourceLock");
        check(format!("{v1beta1}leaderName: a\nresourceLock: endpoints\n"), "endpoints");
        check(format!("{V1}leaderName: a\ncontrollerLeaders: [{{name: ttl}}]\n"), "controllerLeaders[0].component");
        check(format!("{V1}leaderName: a\ncontrollerLeaders: [{{component: a}}]\n"), "controllerLeaders[0].name");
    }

    #[test]
    fn a_file_is_read_only_if_there_is_a_migration() {
        let read = |words: &[&str]| {
            Migration::read(&flags::parse(flags::table(), words.iter().map(ToString::to_string)).unwrap())
        };
        assert_eq!(read(&["--leader-migration-config=/nonexistent"]).unwrap(), None);
        assert_eq!(read(&["--enable-leader-migration"]).unwrap(), Some(Migration::standard()));
        let error = read(&["--enable-leader-migration", "--leader-migration-config=/nonexistent"]).unwrap_err();
        assert!(error.to_string().contains("--leader-migration-config: /nonexistent: No such file"), "{error}");
    }
}
