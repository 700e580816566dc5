//! Pure: `/debug/controllers`: whether each of upstream's controllers runs here, and why not.

use serde_json::{Value, json};
use steersman_runtime::__internal::descriptor::Row;

use super::super::selection::Selection;

/// The state of each controller, in the order of the table.
#[derive(Debug)]
pub(super) struct Roster(Vec<(&'static str, State)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Enabled,
    Disabled(String),
    NotAsked,
}

// === impl Roster ===

impl Roster {
    /// The state from the selection, and from the controllers of a leader migration, before anything is built.
    pub(super) fn of(table: &'static [Row], selection: &Selection<'_>, migrated: &[&Row]) -> Self {
        let state = |row: &Row| {
            let is = |other: &&Row| other.name == row.name;
            if let Some((_, why)) = selection.held.iter().find(|(held, _)| is(held)) {
                return State::Disabled(why.clone());
            }
            if selection.run.iter().chain(migrated).any(is) { State::Enabled } else { State::NotAsked }
        };
        Self(table.iter().map(|row| (row.name, state(row))).collect())
    }

    /// A controller has nothing to do on this cluster.
    pub(super) fn disable(&mut self, controller: &str, why: &str) {
        for (_, state) in self.0.iter_mut().filter(|(name, _)| *name == controller) {
            *state = State::Disabled(why.to_owned());
        }
    }

    /// For the page.
    pub(super) fn to_json(&self) -> Value {
        let entry = |(name, state): &(&'static str, State)| {
            let (state, why) = match state {
                State::Enabled => ("enabled", None),
                State::Disabled(why) => ("disabled", Some(why.as_str())),
                State::NotAsked => ("off", Some("--controllers does not ask for it")),
            };
            match why {
                Some(why) => json!({"name": name, "state": state, "why": why}),
                None => json!({"name": name, "state": state}),
            }
        };
        json!({ "controllers": self.0.iter().map(entry).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rows;
    use super::*;

    #[test]
    fn every_controller_has_a_state_and_who_does_not_run_a_reason() {
        let row = |name: &str| rows::table().iter().find(|row| row.is_called(name)).unwrap();
        let selection = Selection {
            run: vec![row("replicaset"), row("endpointslice")],
            held: vec![(row("tokencleaner"), "a flag is off".to_owned())],
        };
        let mut roster = Roster::of(rows::table(), &selection, &[row("ttl")]);
        roster.disable("endpointslice-controller", "its API is absent");
        let page = roster.to_json();
        let entries = page["controllers"].as_array().unwrap();
        assert_eq!(entries.len(), rows::table().len());
        let check = |name: &str, state: &str, why: &str| {
            let entry = entries.iter().find(|entry| entry["name"] == row(name).name).unwrap();
            let reported = entry["why"].as_str().unwrap_or_default();
            assert_eq!((entry["state"].as_str().unwrap(), reported.starts_with(why)), (state, true), "{entry}");
            assert_eq!(reported.is_empty(), state == "enabled", "{entry}");
        };
        check("replicaset", "enabled", "");
        check("ttl", "enabled", "");
        check("endpointslice", "disabled", "its API is absent");
        check("tokencleaner", "disabled", "a flag is off");
        check("deployment", "off", "--controllers does not ask");
    }
}
