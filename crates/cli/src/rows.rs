//! The 49 controllers of kube-controller-manager 1.37.1, in its order: what is known of each before it exists here.
//!
//! A controller that exists here has a [`Descriptor`] in [`ALL`]; a test holds it to its row. One that does not is
//! *planned*.

use std::sync::LazyLock;

use steersman_controllers::ALL;
use steersman_runtime::Descriptor;

/// A controller, as its row says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) aliases: Vec<&'static str>,
    pub(super) default: Default,
    /// Feature gates without which it does not run, named or not.
    pub(super) gates: Vec<&'static str>,
    /// The flag that says how many workers it has, if one does, and how many it has without.
    pub(super) workers: (Option<&'static str>, usize),
    /// Its service account in `kube-system`, and the end of its user agent.
    pub(super) account: &'static str,
}

/// When a controller runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Default {
    /// With `*`.
    On,
    /// When it is named.
    Named,
    /// With `*`, and if one of these flags says something; without, not even when it is named.
    With(Vec<&'static str>),
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rows = include_str!("../data/controllers.tsv").lines().skip(1);
    rows.map(Row::from_row).collect()
});

/// The controller that upstream builds before all others, whatever `--controllers` says.
pub(super) const TOKENS: &str = "serviceaccount-token-controller";

/// Every controller, in upstream's order.
pub(super) fn table() -> &'static [Row] {
    &TABLE
}

/// What `--help` says of them.
pub(super) fn help() -> String {
    let names = |wanted: &dyn Fn(&Row) -> bool| {
        let mut names: Vec<_> = table().iter().filter(|row| wanted(row)).map(|row| row.name).collect();
        names.sort_unstable();
        names.join(", ")
    };
    format!(
        "All controllers: {}\nDisabled-by-default controllers: {}\nNot here yet (planned): {}\n",
        names(&|_| true),
        names(&|row| row.default == Default::Named),
        names(&|row| row.descriptor().is_none()),
    )
}

// === impl Row ===

impl Row {
    /// The table is part of the program, and a test reads all of it: a row cannot be wrong.
    fn from_row(row: &'static str) -> Self {
        let mut columns = row.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let list = |text: &'static str| text.split(',').filter(|item| !item.is_empty()).collect::<Vec<_>>();
        let (name, aliases) = (next(), list(next()));
        let default = match next() {
            "on" => Default::On,
            "named" => Default::Named,
            with => Default::With(list(with.strip_prefix("with:").unwrap_or_default())),
        };
        let gates = list(next());
        let workers = next();
        let (flag, count) = workers.split_once('=').map_or((None, workers), |(flag, count)| (Some(flag), count));
        Self { name, aliases, default, gates, workers: (flag, count.parse().unwrap_or(1)), account: next() }
    }

    /// Whether the controller goes by this name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The controller, if it exists here.
    pub(super) fn descriptor(&self) -> Option<&'static Descriptor> {
        ALL.iter().find(|descriptor| descriptor.name == self.name)
    }
}

#[cfg(test)]
mod tests {
    use steersman_runtime::descriptor::{Enabled, Stage};

    use super::super::flags;
    use super::*;

    fn recorded() -> Vec<Vec<&'static str>> {
        let rows = include_str!("../tests/data/controllers.tsv").lines().skip(1);
        rows.map(|row| row.split('\t').collect()).collect()
    }

    #[test]
    fn the_table_is_what_was_recorded() {
        assert_eq!(table().len(), 49);
        for (row, facts) in table().iter().zip(recorded()) {
            let [name, aliases, default, gates, special, workers, account] = facts[..] else { panic!("{facts:?}") };
            assert_eq!(row.name, name);
            assert_eq!(if row.aliases.is_empty() { "none".into() } else { row.aliases.join(",") }, aliases);
            assert_eq!(row.account, account.split(' ').next().unwrap(), "{name}");
            let required = gates.split(';').next().unwrap();
            let words = required.split([' ', ',']);
            let required: Vec<_> = words.filter_map(|word| Some(word.split_once('=')?.0)).collect();
            assert_eq!(row.gates, required, "{name}");
            match &row.default {
                Default::On => assert!(default.starts_with("yes") || default == "no (gate off)", "{name}: {default}"),
                Default::Named => assert!(default.contains("must be named"), "{name}: {default}"),
                Default::With(with) => assert!(default.contains(&format!("--{}", with[0])), "{name}: {default}"),
            }
            if let Some(flag) = row.workers.0 {
                let prefix = format!("--{flag}={}", row.workers.1);
                assert!(workers.starts_with(&prefix), "{name}: {workers}");
            } else {
                assert!(!workers.contains("--"), "{name}: {workers}");
            }
            assert_eq!(name == TOKENS, special.starts_with("special: built first"), "{name}");
        }
    }

    #[test]
    fn every_flag_and_gate_of_a_row_exists() {
        for row in table() {
            let with: &[&str] = if let Default::With(with) = &row.default { with } else { &[] };
            for name in with.iter().chain(&row.workers.0) {
                let flag = flags::table().iter().find(|flag| flag.name == *name);
                let flag = flag.unwrap_or_else(|| panic!("{}: --{name}", row.name));
                if Some(flag.name) == row.workers.0 {
                    assert_eq!(flag.default, row.workers.1.to_string(), "--{name}");
                    assert!(flag.does_something(|controller| controller == row.name), "--{name}");
                }
            }
            for name in &row.gates {
                assert!(super::super::gates::table().iter().any(|gate| gate.name == *name), "{}: {name}", row.name);
            }
        }
        for flag in flags::table() {
            if let flags::Effect::Of(controllers) = &flag.effect {
                for name in controllers {
                    assert!(table().iter().any(|row| row.name == *name), "--{}: {name}", flag.name);
                }
            }
        }
    }

    #[test]
    fn controllers_that_exist_are_as_their_rows_say() {
        let order: Vec<_> = ALL.iter().map(|it| table().iter().position(|row| row.name == it.name)).collect();
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} is not upstream's order");
        for row in table() {
            let Some(it) = row.descriptor() else { continue };
            assert_eq!(it.aliases, row.aliases, "{}", row.name);
            assert_eq!(it.account, row.account, "{}", row.name);
            assert_eq!(it.gates, row.gates, "{}", row.name);
            assert_eq!((it.workers.flag, it.workers.default), row.workers, "{}", row.name);
            assert_eq!(it.default == Enabled::No, row.default == Default::Named, "{}", row.name);
            assert_eq!(it.stage == Stage::First, row.name == TOKENS, "{}", row.name);
        }
    }
}
