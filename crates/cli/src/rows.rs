//! The controllers of kube-controller-manager 1.37.1.

use steersman_controllers::{ALL, table as facts};
use steersman_runtime::__internal::descriptor::{Enabled, Row};
use steersman_runtime::Descriptor;

/// Every controller, in upstream's order.
pub(super) fn table() -> &'static [Row] {
    facts::rows()
}

/// The controller of a row.
pub(super) fn controller(row: &Row) -> &'static Descriptor {
    let found = ALL.iter().find(|descriptor| descriptor.name == row.name);
    found.expect("a test compares the two lists")
}

/// The text of `--help`.
pub(super) fn help() -> String {
    let names = |wanted: &dyn Fn(&Row) -> bool| {
        let mut names: Vec<_> = table().iter().filter(|row| wanted(row)).map(|row| row.name).collect();
        names.sort_unstable();
        names.join(", ")
    };
    format!(
        "All controllers: {}\nDisabled-by-default controllers: {}\n",
        names(&|_| true),
        names(&|row| row.default == Enabled::WhenNamed),
    )
}

#[cfg(test)]
mod tests {
    use super::super::flags;
    use super::*;

    #[test]
    fn every_row_has_a_controller() {
        for row in table() {
            assert_eq!(controller(row).name, row.name);
        }
        assert_eq!(table().len(), 49);
    }

    #[test]
    fn every_flag_and_gate_of_a_row_exists() {
        for row in table() {
            let with: &[&str] = if let Enabled::WithFlags(with) = &row.default { with } else { &[] };
            for name in with.iter().chain(&row.workers.flag) {
                let flag = flags::table().iter().find(|flag| flag.name == *name);
                let flag = flag.unwrap_or_else(|| panic!("{}: --{name}", row.name));
                if Some(flag.name) == row.workers.flag {
                    assert_eq!(flag.default, row.workers.default.to_string(), "--{name}");
                    assert!(flag.does_something(), "--{name}");
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
}
