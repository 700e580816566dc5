//! Shrinks a failing plan: operations and faults are removed while it still fails in the same way.

use std::time::Duration;

use crate::engine::{self, Outcome};
use crate::invariants::Violation;
use crate::plan::{Millis, OWNERS, Plan};

/// What is left of a plan, and how it fails.
#[derive(Debug)]
pub struct Shrunk {
    /// The plan.
    pub plan: Plan,
    /// The invariant that does not hold.
    pub invariant: &'static str,
    /// How many worlds it took.
    pub worlds: u64,
    /// When it fails.
    ended: Millis,
}

/// Shrinks a plan that violates an invariant, until nothing more can be removed or `is_over` returns true.
///
/// Halves are tried before quarters, and so on, as in delta debugging: first all faults of a half, then its operations.
pub fn shrink(plan: &Plan, violation: &Violation, mut is_over: impl FnMut() -> bool) -> Shrunk {
    let mut shrunk = Shrunk { plan: plan.clone(), invariant: violation.invariant, worlds: 0, ended: Millis::MAX };
    let again = shrunk.plan.clone();
    if !shrunk.adopt(again) {
        return shrunk;
    }
    shrunk.guess(&violation.text);
    loop {
        let before = size(&shrunk.plan);
        shrunk.forget_the_future();
        shrunk.thin(&mut is_over, |plan| &mut plan.faults);
        shrunk.thin(&mut is_over, |plan| &mut plan.operations);
        shrunk.simplify(&mut is_over);
        if size(&shrunk.plan) == before || is_over() {
            return shrunk;
        }
    }
}

/// The default time limit of shrinking.
pub const PATIENCE: Duration = Duration::from_secs(120);

fn size(plan: &Plan) -> (usize, usize, usize) {
    (plan.operations.len(), plan.faults.len(), plan.options.managers)
}

// === impl Shrunk ===

impl Shrunk {
    /// Takes out parts of a list, ever smaller ones.
    fn thin<T: Clone>(&mut self, is_over: &mut impl FnMut() -> bool, list: impl Fn(&mut Plan) -> &mut Vec<T>) {
        let mut part = list(&mut self.plan).len();
        while part > 0 {
            let mut at = 0;
            while at < list(&mut self.plan).len() {
                if is_over() {
                    return;
                }
                let mut smaller = self.plan.clone();
                let items = list(&mut smaller);
                let end = (at + part).min(items.len());
                items.drain(at..end);
                if !self.adopt(smaller) {
                    at += part;
                }
            }
            part /= 2;
        }
    }

    /// Tries only the named objects, with their nodes and namespaces: these are usually enough.
    fn guess(&mut self, text: &str) {
        let is_named = |owner: &usize| text.contains(OWNERS[*owner].name);
        let mut smaller = self.plan.clone();
        smaller.operations.retain(|step| step.operation.owner().is_none_or(|owner| is_named(&owner)));
        if smaller != self.plan {
            self.adopt(smaller);
        }
    }

    /// What comes after the failure has no part in it.
    fn forget_the_future(&mut self) {
        let ended = self.ended;
        if ended < self.plan.options.ends {
            self.plan.operations.retain(|step| step.at <= ended);
            self.plan.faults.retain(|window| window.from <= ended);
        }
    }

    /// Fewer managers, no skew, an earlier end.
    fn simplify(&mut self, is_over: &mut impl FnMut() -> bool) {
        let tries: [fn(&mut Plan); 3] = [
            |plan| plan.options.managers = plan.options.managers.saturating_sub(1).max(1),
            |plan| plan.options.skew_seconds.iter_mut().for_each(|skew| *skew = 0),
            |plan| {
                let last = plan.operations.iter().map(|step| step.at).chain(plan.faults.iter().map(|fault| fault.to));
                plan.options.ends = plan.options.ends.min(last.max().unwrap_or(0) + crate::plan::seconds(30));
            },
        ];
        for change in tries {
            let mut simpler = self.plan.clone();
            change(&mut simpler);
            if simpler != self.plan && !is_over() {
                self.adopt(simpler);
            }
        }
    }

    /// Accepts the plan if it still fails in the same way.
    fn adopt(&mut self, plan: Plan) -> bool {
        self.worlds += 1;
        let Outcome { violations, ended, .. } = engine::run(&plan, 0);
        let still_fails = violations.iter().any(|violation| violation.invariant == self.invariant);
        if still_fails {
            self.plan = plan;
            self.ended = ended;
        }
        still_fails
    }
}
