//! Pure: `/configz`, the flags under the names of upstream's `KubeControllerManagerConfiguration`.
//!
//! `data/config.tsv` holds every field that kube-controller-manager 1.37.1 shows, and the flag that sets it; what no flag
//! sets is shown as upstream shows it.

use serde_json::{Map, Value, json};

use super::super::flags::{self, Parsed};
use super::super::rows;
use super::migration::Migration;

/// The name of the configuration on `/configz`.
pub(super) const NAME: &str = "kubecontrollermanager.config.k8s.io";

/// The effective configuration. That of a leader migration comes from a file.
pub(super) fn of(flags: &Parsed, migration: Option<&Migration>) -> Value {
    let mut config = json!({});
    for (field, value) in table() {
        let value = match value.strip_prefix("--") {
            Some("controllers") => canonical(flags.texts("controllers")),
            Some(flag) => shown(flags.value(flag)),
            // The table is part of the program, and a test reads all of it.
            None => serde_json::from_str(value).unwrap_or_default(),
        };
        set(&mut config, field, value);
    }
    if let Some(migration) = migration {
        set(&mut config, "Generic.LeaderMigration", migration.to_json());
    }
    let mut ranges = flags.text("service-cluster-ip-range").split(',');
    for field in ["NodeIPAMController.ServiceCIDR", "NodeIPAMController.SecondaryServiceCIDR"] {
        set(&mut config, field, ranges.next().unwrap_or_default().into());
    }
    config
}

/// Fields with dots between names, and what they are.
fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("../../data/config.tsv").lines().skip(1).filter_map(|row| row.split_once('\t'))
}

fn set(config: &mut Value, field: &str, value: Value) {
    let mut place = config;
    for name in field.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}

/// A value as Go's JSON shows it: durations as text, all else as it is.
fn shown(value: &flags::Value) -> Value {
    match value {
        flags::Value::Bool(on) => json!(on),
        flags::Value::Int(number) => json!(number),
        flags::Value::Float32(number) => number_of(number.to_string()),
        flags::Value::Float(number) => number_of(number.to_string()),
        other => json!(other.to_string()),
    }
}

/// Go prints whole numbers without a point; and values that JSON cannot express as text.
fn number_of(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The list with the names that controllers have now.
fn canonical(asked: &[String]) -> Value {
    let now = |item: &String| {
        let (sign, name) = item.strip_prefix('-').map_or(("", item.as_str()), |name| ("-", name));
        let row = rows::table().iter().find(|row| row.is_called(name));
        format!("{sign}{}", row.map_or(name, |row| row.name))
    };
    asked.iter().map(now).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(line: &str) -> Value {
        let words = line.split_whitespace().map(str::to_owned);
        let flags = flags::parse(flags::table(), words).unwrap();
        of(&flags, Migration::read(&flags).unwrap().as_ref())
    }

    #[test]
    fn every_row_names_a_flag_or_is_json() {
        assert!(table().count() > 100);
        for (field, value) in table() {
            let known = match value.strip_prefix("--") {
                Some(name) => flags::table().iter().any(|flag| flag.name == name),
                None => serde_json::from_str::<Value>(value).is_ok(),
            };
            assert!(known, "{field}: {value}");
        }
    }

    #[test]
    fn a_leader_migration_is_shown() {
        let show = |line: &str| config(line).pointer("/Generic/LeaderMigration/leaderName").cloned();
        assert_eq!(show(""), Some(json!("")));
        assert_eq!(show("--enable-leader-migration"), Some(json!("cloud-provider-extraction-migration")));
    }

    #[test]
    fn flags_are_shown_under_upstreams_names_and_as_go_shows_them() {
        let config = config(
            "--controllers=*,-job,replicaset --kube-api-qps=2.5 --leader-elect=false --min-resync-period=90m \
             --concurrent-gc-syncs=7 --service-cluster-ip-range=10.0.0.0/8,fd00::/64 --node-eviction-rate=1",
        );
        let check = |field: &str, want: Value| {
            let pointer = format!("/{}", field.replace('.', "/"));
            assert_eq!(config.pointer(&pointer), Some(&want), "{field}");
        };
        check("kind", json!("KubeControllerManagerConfiguration"));
        check("Generic.Controllers", json!(["*", "-job-controller", "replicaset-controller"]));
        check("Generic.ClientConnection.qps", json!(2.5));
        check("Generic.ClientConnection.burst", json!(30));
        check("Generic.LeaderElection.leaderElect", json!(false));
        check("Generic.LeaderElection.leaseDuration", json!("15s"));
        check("Generic.MinResyncPeriod", json!("1h30m0s"));
        check("GarbageCollectorController.ConcurrentGCSyncs", json!(7));
        check("NodeIPAMController.ServiceCIDR", json!("10.0.0.0/8"));
        check("NodeIPAMController.SecondaryServiceCIDR", json!("fd00::/64"));
        check("NodeLifecycleController.NodeEvictionRate", json!(1));
        check("DeprecatedController", json!({}));
    }
}
