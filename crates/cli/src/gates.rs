//! Pure: the feature gates of kube-controller-manager 1.37.1, and what `--feature-gates` makes of them.
//!
//! 1. `data/gates.tsv` holds every gate that upstream's program knows, also those of other components and those that are
//!    general or deprecated, which its help leaves out: a command line that upstream takes is taken.
//!    Gates of our own have the stage `OURS` and names that begin with `Steersman`; they are off unless they are named.
//! 2. `AllAlpha` and `AllBeta` are for gates that are not named themselves, in whichever order.
//! 3. A locked gate can be set to what it is and to nothing else; a gate that is on needs those it builds on.
//! 4. A gate that upstream's controllers read changes ours too: it reaches them as an option ([`options`](super::options)),
//!    read once. The use of a gate is known from [`OBEYED`], by controllers and by their table; any other that is given has no
//!    effect here, and one line at the start says so.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use super::flags::{did_you_mean, nearest};

/// A gate, from its row.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) name: &'static str,
    pub(super) stage: &'static str,
    pub(super) default: bool,
    locked: bool,
    needs: Vec<&'static str>,
}

/// The features that are on.
#[derive(Clone, Debug, Default)]
pub(super) struct Gates {
    named: BTreeMap<&'static str, bool>,
    all_alpha: Option<bool>,
    all_beta: Option<bool>,
}

/// Gates that have an effect here, in addition to those that controllers read or that decide whether one runs.
const OBEYED: [&str; 8] = [
    // Gates of gates.
    "AllAlpha",
    "AllBeta",
    // The content and format of the secure port.
    "CBORServingAndStorage",
    "ComponentFlagz",
    "ComponentStatusz",
    // Which flags may be given.
    "LoggingAlphaOptions",
    "LoggingBetaOptions",
    "RemoteRequestHeaderUID",
];

/// The stage of gates that upstream does not have.
const OURS: &str = "OURS";

static TABLE: LazyLock<Vec<Gate>> = LazyLock::new(|| {
    let rows = include_str!("../data/gates.tsv").lines().skip(1);
    rows.map(Gate::from_row).collect()
});

/// Every gate, by name.
pub(super) fn table() -> &'static [Gate] {
    &TABLE
}

/// Returns the text of `--help`: the gates that may change.
pub(super) fn help() -> String {
    let mut text = String::new();
    for gate in table().iter().filter(|gate| matches!(gate.stage, "ALPHA" | "BETA")) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "kube:{}=true|false ({} - default={})", gate.name, gate.stage, gate.default);
    }
    for gate in table().iter().filter(|gate| gate.stage == OURS) {
        // Without a component: it is given as it is shown, and `kube` is the only one there is.
        let _ = writeln!(text, "{}=true|false (default={})", gate.name, gate.default);
    }
    text
}

// === impl Gate ===

impl Gate {
    /// The table is part of the program, and a test reads all of it: a row cannot be wrong.
    fn from_row(row: &'static str) -> Self {
        let mut columns = row.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let name = next();
        let stage = next();
        let default = next();
        let locked = next();
        let needs = next();
        let needs = needs.split(',').filter(|name| !name.is_empty()).collect();
        Self { name, stage, default: default == "true", locked: locked == "locked", needs }
    }
}

// === impl Gates ===

impl Gates {
    /// Applies the items of `--feature-gates` (`Name=true`) to the defaults.
    ///
    /// # Errors
    /// A sentence, for a gate that is unknown or locked, a value that is none, or a gate without one it builds on.
    pub(super) fn parse(items: &[String]) -> Result<Self, String> {
        let mut gates = Self::default();
        for item in items {
            let (name, value) = item.split_once('=').ok_or_else(|| {
                format!("--feature-gates: {item:?} says neither on nor off; write {}=true or =false", item.trim())
            })?;
            let name = name.trim();
            let value = value.trim();
            let on = match value {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
                "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
                _ => return Err(format!("--feature-gates: {name}: {value:?} is neither true nor false")),
            };
            gates.set(name, on)?;
        }
        gates.check_needs()?;
        Ok(gates)
    }

    fn set(&mut self, name: &str, on: bool) -> Result<(), String> {
        let Some(gate) = table().iter().find(|gate| gate.name == name) else {
            let near = did_you_mean(nearest(name, table().iter().map(|gate| gate.name)));
            return Err(format!("--feature-gates: there is no feature gate {name}{near}"));
        };
        if gate.locked && gate.default != on {
            // Upstream's sentence, so that it can be searched for.
            let refused = format!("cannot set feature gate {name} to {on}, feature is locked to {}", gate.default);
            return Err(format!("--feature-gates: {refused}"));
        }
        match name {
            "AllAlpha" => self.all_alpha = Some(on),
            "AllBeta" => self.all_beta = Some(on),
            _ => drop(self.named.insert(gate.name, on)),
        }
        Ok(())
    }

    fn check_needs(&self) -> Result<(), String> {
        for gate in table().iter().filter(|gate| self.is_on(gate)) {
            let off: Vec<_> = gate.needs.iter().filter(|name| !self.enabled(name)).copied().collect();
            if !off.is_empty() {
                return Err(format!(
                    "--feature-gates: {} is on, but builds on what is off: {}",
                    gate.name,
                    off.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Whether a feature is on; one that does not exist is not.
    pub(super) fn enabled(&self, name: &str) -> bool {
        table().iter().find(|gate| gate.name == name).is_some_and(|gate| self.is_on(gate))
    }

    fn is_on(&self, gate: &Gate) -> bool {
        let all = match gate.stage {
            _ if gate.locked => None,
            "ALPHA" => self.all_alpha,
            "BETA" => self.all_beta,
            _ => None,
        };
        self.named.get(gate.name).copied().or(all).unwrap_or(gate.default)
    }

    /// Returns the gates that were set and have no effect here. `decides` is whether one concerns a controller.
    pub(super) fn ignored(&self, decides: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static str> {
        self.named.keys().copied().filter(move |name| !OBEYED.contains(name) && !decides(name))
    }

    /// Gates that were set although their time is over: general, or deprecated. Upstream warns of them.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &'static Gate> {
        table().iter().filter(|gate| self.named.contains_key(gate.name) && matches!(gate.stage, "GA" | "DEPRECATED"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Gates, String> {
        let items = text.split(',').filter(|item| !item.is_empty());
        Gates::parse(&items.map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_table_is_what_was_recorded() {
        let recorded: Vec<_> = include_str!("../tests/data/feature-gates.tsv").lines().skip(1).collect();
        let ours: Vec<_> = table()
            .iter()
            .filter(|gate| matches!(gate.stage, "ALPHA" | "BETA"))
            .map(|gate| format!("{}\t{}\t{}", gate.name, gate.stage, gate.default))
            .collect();
        for row in &ours {
            assert!(recorded.contains(&row.as_str()), "{row} was not recorded");
        }
        // One gate was recorded with the default it has under --min-compatibility-version too.
        let twice = "DRAFractionalCapacityRange\tBETA\ttrue";
        for row in recorded.iter().filter(|&&row| row != twice) {
            assert!(ours.iter().any(|our| our == row), "{row} is missing");
        }
        for gate in table() {
            assert!(["ALPHA", "BETA", "GA", "DEPRECATED", OURS].contains(&gate.stage), "{gate:?}");
            assert_eq!(gate.stage == OURS, gate.name.starts_with("Steersman"), "{gate:?}");
            for name in &gate.needs {
                assert!(table().iter().any(|gate| gate.name == *name), "{} needs {name}", gate.name);
            }
        }
        assert!(Gates::default().check_needs().is_ok());
    }

    #[test]
    fn every_gate_of_the_help_can_be_given_as_it_is_shown() {
        use super::super::flags;
        for line in help().lines() {
            let (shown, _) = line.split_once("=true|false").expect(line);
            let default = line.contains("default=true");
            let words = [format!("--feature-gates={shown}={default}")];
            let flags = flags::parse(flags::table(), words).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(Gates::parse(flags.texts("feature-gates")).is_ok(), "{line}");
        }
        assert!(help().contains("\nSteersman"), "ours are shown, too");
    }

    #[test]
    fn a_gate_that_is_named_wins_over_all_of_its_stage() {
        let check = |text: &str, name: &str, want: bool| {
            assert_eq!(parse(text).unwrap().enabled(name), want, "{text}: {name}");
        };
        check("", "WatchListClient", true);
        check("WatchListClient=false", "WatchListClient", false);
        check("WatchListClient=false,WatchListClient=true", "WatchListClient", true);
        check("AllBeta=true", "GenericWorkload", true);
        check("AllBeta=true,GenericWorkload=false,DRAWorkloadResourceClaims=false", "GenericWorkload", false);
        check("GenericWorkload=true,AllBeta=false", "GenericWorkload", true);
        check("AllBeta=false", "ClusterTrustBundle", true);
        check("LoggingAlphaOptions=T", "LoggingAlphaOptions", true);
        check("", "NoSuchGate", false);
    }

    #[test]
    fn what_upstream_refuses_is_refused_with_the_reason() {
        let check = |text: &str, want: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        };
        check("WatchListCleint=true", "did you mean WatchListClient?");
        check("JobManagedBy=false", "cannot set feature gate JobManagedBy to false, feature is locked to true");
        check(
            "PreferSameTrafficDistribution=false",
            "cannot set feature gate PreferSameTrafficDistribution to false, feature is locked to true",
        );
        check("WatchListClient", "WatchListClient=true");
        check("WatchListClient=yes", "\"yes\" is neither true nor false");
        check("WorkloadWithJob=true", "builds on what is off: GenericWorkload");
    }

    #[test]
    fn gates_without_effect_are_reported() {
        for name in OBEYED {
            assert!(table().iter().any(|gate| gate.name == name), "{name}");
        }
        let concerns_a_controller = |name: &str| matches!(name, "APIServerIdentity" | "PodDeletionCost");
        let reported = |text: &str| parse(text).unwrap().ignored(concerns_a_controller).collect::<Vec<_>>();
        assert!(reported("").is_empty() && reported("AllAlpha=false,AllBeta=false").is_empty());
        assert!(reported("PodDeletionCost=false,APIServerIdentity=true").is_empty());
        let stale = "StaleControllerConsistencyReplicaSet";
        assert_eq!(reported(&format!("{stale}=false,PodDeletionCost=true")), [stale]);
    }

    #[test]
    fn gates_whose_time_is_over_can_be_named_and_are_reported() {
        let gates = parse("JobManagedBy=true,WatchListClient=true").unwrap();
        assert_eq!(gates.leaving().map(|gate| gate.name).collect::<Vec<_>>(), ["JobManagedBy"]);
    }
}
