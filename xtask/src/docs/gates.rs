//! The table of feature gates: `crates/cli/data/gate-effects.tsv`, with stage and default from `gates.tsv` beside it. A test of the
//! program compares the effects with what the controllers read.

use std::collections::BTreeMap;

use crate::failure::{Failure, Result};
use crate::workspace;

const EFFECTS: &str = "crates/cli/data/gate-effects.tsv";
const GATES: &str = "crates/cli/data/gates.tsv";

/// A feature gate, and what it does to controllers.
#[derive(Debug, PartialEq)]
pub(super) struct Gate {
    name: String,
    /// Stage, and whether it is on by default.
    stage: String,
    default: String,
    controllers: Vec<String>,
    effect: Effect,
}

#[derive(Debug, PartialEq)]
enum Effect {
    /// Off means that the controller does not run.
    Decides,
    /// Obeyed; and what off means.
    Obeyed(String),
    /// No effect, and why.
    Nothing(String),
    /// It cannot be changed.
    Locked,
}

/// Reads both tables.
pub(super) fn read() -> Result<Vec<Gate>> {
    let gates = workspace::read(GATES)?;
    let effects = workspace::read(EFFECTS)?;
    parse(&gates, &effects).map_err(|problem| Failure::error(format!("{EFFECTS}: {problem}")))
}

fn parse(gates: &str, effects: &str) -> std::result::Result<Vec<Gate>, String> {
    let columns = |line: &str| -> Vec<String> { line.split('\t').map(str::to_owned).collect() };
    let known: BTreeMap<String, Vec<String>> =
        gates.lines().skip(1).map(columns).filter_map(|row| Some((row.first()?.clone(), row))).collect();
    let rows = effects.lines().skip(1).map(|line| {
        let [name, controllers, here, text] = &columns(line)[..] else { return Err(format!("four columns: {line}")) };
        let gate = known.get(name).filter(|row| row.len() > 3).ok_or_else(|| format!("no such gate: {name}"))?;
        let effect = match here.as_str() {
            "decides" => Effect::Decides,
            "obeyed" => Effect::Obeyed(text.clone()),
            "none" => Effect::Nothing(text.clone()),
            "locked" => Effect::Locked,
            _ => return Err(format!("{name}: {here:?} is none of decides, obeyed, none, locked")),
        };
        if (effect == Effect::Locked) != (gate[3] == "locked") {
            return Err(format!("{name}: whether it is locked is in {GATES}, too"));
        }
        let controllers = controllers.split(',').map(str::to_owned).collect();
        Ok(Gate { name: name.clone(), stage: gate[1].clone(), default: gate[2].clone(), controllers, effect })
    });
    rows.collect()
}

/// Returns the table, a row per gate and effect.
pub(super) fn table(gates: &[Gate]) -> String {
    let rows: String = gates.iter().map(Gate::row).collect();
    format!("| gate | stage, default | controllers | here |\n|---|---|---|---|\n{rows}")
}

// === impl Gate ===

impl Gate {
    fn row(&self) -> String {
        let default = if self.default == "true" { "on" } else { "off" };
        let link = |name: &String| match name.as_str() {
            "*" => "all".to_owned(),
            name => {
                let short = name.strip_suffix("-controller").unwrap_or(name);
                format!("[{short}](../crates/controllers/docs/{name}.md)")
            }
        };
        let controllers: Vec<_> = self.controllers.iter().map(link).collect();
        let here = match &self.effect {
            Effect::Decides => "obeyed; off: the controller does not run".to_owned(),
            Effect::Obeyed(off) => format!("obeyed; off: {off}"),
            Effect::Nothing(why) => format!("no effect: {why}"),
            Effect::Locked => "locked".to_owned(),
        };
        format!(
            "| `{}` | {}, {default} | {} | {here} |\n",
            self.name,
            self.stage.to_lowercase(),
            controllers.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATES: &str =
        "gate\tstage\tdefault\tlocked\tneeds\nA\tBETA\ttrue\t\t\nB\tGA\ttrue\tlocked\t\nC\tALPHA\tfalse\t\tA\n";

    #[test]
    fn every_row_says_what_a_gate_does_here() {
        let effects = "gate\tcontrollers\there\toff\nA\tx-controller,y-controller\tobeyed\tless\nB\tx-controller\tlocked\t\n\
                       C\t*\tnone\tit is so anyhow\nC\ty-controller\tdecides\t\n";
        let page = |name: &str| format!("[{name}](../crates/controllers/docs/{name}-controller.md)");
        let want = format!(
            "| gate | stage, default | controllers | here |\n|---|---|---|---|\n\
             | `A` | beta, on | {x}, {y} | obeyed; off: less |\n\
             | `B` | ga, on | {x} | locked |\n\
             | `C` | alpha, off | all | no effect: it is so anyhow |\n\
             | `C` | alpha, off | {y} | obeyed; off: the controller does not run |\n",
            x = page("x"),
            y = page("y"),
        );
        assert_eq!(table(&parse(GATES, effects).expect("the rows are right")), want);
    }

    #[test]
    fn a_row_that_contradicts_the_table_of_gates_is_refused() {
        for (row, want) in [
            ("D\tx\tobeyed\t", "no such gate"),
            ("A\tx\tlocked\t", "whether it is locked"),
            ("B\tx\tobeyed\t", "whether it is locked"),
            ("A\tx\tsometimes\t", "none of decides"),
            ("A\tx", "four columns"),
        ] {
            let error = parse(GATES, &format!("header\n{row}\n")).expect_err(row);
            assert!(error.contains(want), "{row}: {error}");
        }
    }
}
