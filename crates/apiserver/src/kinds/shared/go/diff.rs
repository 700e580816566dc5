//! Unified diffs that are cut where Python's `difflib` cuts them, because upstream uses its Go twin: the longest run that
//! both have comes first, then what is left and right of it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::ops::Range;

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// From this many lines on, lines that are very common do not start a match.
const POPULAR_FROM: usize = 200;

struct Matcher<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    places: HashMap<&'a str, Vec<usize>>,
}

/// A run that both sides have.
#[derive(Clone, Copy)]
struct Run {
    old: usize,
    new: usize,
    length: usize,
}

/// A step from old to new: these lines become those.
#[derive(Clone)]
struct Step {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// The difference of two texts; empty if there is none.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let matcher = Matcher::new(old, new);
    let mut out = String::new();
    for group in groups(matcher.steps()) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = first.old.start..last.old.end;
        let new = first.new.start..last.new.end;
        let _ = writeln!(out, "@@ -{} +{} @@", span(&old), span(&new));
        for step in &group {
            let mut lines = |sign: char, lines: &[&str]| {
                for line in lines {
                    let _ = writeln!(out, "{sign}{line}");
                }
            };
            if step.same {
                lines(' ', &matcher.old[step.old.clone()]);
            } else {
                lines('-', &matcher.old[step.old.clone()]);
                lines('+', &matcher.new[step.new.clone()]);
            }
        }
    }
    out
}

fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        length => format!("{},{length}", range.start + 1),
    }
}

/// Cuts the steps where too many lines are the same.
fn groups(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(first) = steps.first_mut().filter(|step| step.same) {
        first.old.start = first.old.start.max(first.old.end.saturating_sub(CONTEXT));
        first.new.start = first.new.start.max(first.new.end.saturating_sub(CONTEXT));
    }
    if let Some(last) = steps.last_mut().filter(|step| step.same) {
        last.old.end = last.old.end.min(last.old.start + CONTEXT);
        last.new.end = last.new.end.min(last.new.start + CONTEXT);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for mut step in steps {
        if step.same && step.old.len() > 2 * CONTEXT {
            let old = step.old.start;
            let new = step.new.start;
            group.push(Step { same: true, old: old..old + CONTEXT, new: new..new + CONTEXT });
            groups.push(std::mem::take(&mut group));
            step.old.start = step.old.end - CONTEXT;
            step.new.start = step.new.end - CONTEXT;
        }
        group.push(step);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|step| !step.same));
    groups
}

// === impl Matcher ===

impl<'a> Matcher<'a> {
    fn new(old: &'a str, new: &'a str) -> Self {
        let old: Vec<_> = old.split('\n').collect();
        let new: Vec<_> = new.split('\n').collect();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (index, line) in new.iter().enumerate() {
            places.entry(*line).or_default().push(index);
        }
        if new.len() >= POPULAR_FROM {
            places.retain(|_, indexes| indexes.len() <= new.len() / 100 + 1);
        }
        Self { old, new, places }
    }

    fn steps(&self) -> Vec<Step> {
        let mut runs = Vec::new();
        self.runs(0..self.old.len(), 0..self.new.len(), &mut runs);
        runs.push(Run { old: self.old.len(), new: self.new.len(), length: 0 });
        let mut steps: Vec<Step> = Vec::new();
        let mut old = 0;
        let mut new = 0;
        for run in runs {
            if old < run.old || new < run.new {
                steps.push(Step { same: false, old: old..run.old, new: new..run.new });
            }
            (old, new) = (run.old + run.length, run.new + run.length);
            match steps.last_mut().filter(|step| step.same && step.old.end == run.old && step.new.end == run.new) {
                Some(last) => (last.old.end, last.new.end) = (old, new),
                None if run.length > 0 => steps.push(Step { same: true, old: run.old..old, new: run.new..new }),
                None => {}
            }
        }
        steps
    }

    /// All runs between these lines, in order.
    fn runs(&self, old: Range<usize>, new: Range<usize>, out: &mut Vec<Run>) {
        let run = self.longest(&old, &new);
        if run.length == 0 {
            return;
        }
        if old.start < run.old && new.start < run.new {
            self.runs(old.start..run.old, new.start..run.new, out);
        }
        out.push(run);
        let after_old = run.old + run.length;
        let after_new = run.new + run.length;
        if after_old < old.end && after_new < new.end {
            self.runs(after_old..old.end, after_new..new.end, out);
        }
    }

    fn longest(&self, old: &Range<usize>, new: &Range<usize>) -> Run {
        let mut best = Run { old: old.start, new: new.start, length: 0 };
        let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
        for at in old.clone() {
            let mut next = BTreeMap::new();
            for &place in self.places.get(self.old[at]).into_iter().flatten().filter(|place| new.contains(place)) {
                let before = place.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0);
                next.insert(place, before + 1);
                if before + 1 > best.length {
                    best = Run { old: at - before, new: place - before, length: before + 1 };
                }
            }
            lengths = next;
        }
        while best.old > old.start && best.new > new.start && self.old[best.old - 1] == self.new[best.new - 1] {
            best = Run { old: best.old - 1, new: best.new - 1, length: best.length + 1 };
        }
        while best.old + best.length < old.end
            && best.new + best.length < new.end
            && self.old[best.old + best.length] == self.new[best.new + best.length]
        {
            best.length += 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_changes_are_shown_apart() {
        let old: Vec<_> = (0..30).map(|line| line.to_string()).collect();
        let mut new = old.clone();
        new[5] = "x".to_owned();
        new.remove(20);
        let want =
            "@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n@@ -18,7 +18,6 @@\n 17\n 18\n 19\n-20\n 21\n 22\n 23\n";
        assert_eq!(unified(&old.join("\n"), &new.join("\n")), want);
        assert_eq!(unified("a\nb", "a\nb"), "");
    }
}
