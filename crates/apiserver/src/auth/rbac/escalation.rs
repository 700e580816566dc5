//! What somebody would give away without holding it: the rules of a role, compared with those of its author.
//!
//! 1. A rule is taken apart into its smallest parts (a verb of a resource of a group, maybe of one name; a verb of a path). Each
//!    must be part of one held rule.
//! 2. What is missing is shown as upstream shows it: the verbs of a resource together, in the order of the text.
//! 3. Time and text are bounded: a role of more than [`PARTS_MAX`] parts that no held rule covers as a whole is refused.
//!
//! Follows `component-helpers/auth/rbac/validation/policy_comparator.go` and `pkg/registry/rbac/validation/policy_compact.go` of
//! Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_base::go::quote;

use crate::registry::query::strings;

/// The maximum number of parts that are compared. Upstream compares all, however long it takes.
const PARTS_MAX: usize = 32_768;
/// The maximum number of bytes that show what is missing.
const SHOWN_BYTES_MAX: usize = 256 << 10;

/// The permissions that a role grants and its author does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// These permissions, a line each.
    These(String),
    /// Too many parts to be compared.
    TooMany,
}

/// A rule, with its fields at hand.
struct Rule<'a> {
    verbs: Vec<&'a str>,
    groups: Vec<&'a str>,
    resources: Vec<&'a str>,
    names: Vec<&'a str>,
    urls: Vec<&'a str>,
}

/// The parts that are shown in one line: they differ in their verb.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Line<'a> {
    Resource { group: &'a str, resource: &'a str, name: Option<&'a str> },
    Path { url: &'a str, verb: &'a str },
}

/// Returns what of the wanted rules the held ones do not cover; none if they cover all.
pub(crate) fn missing(held: &[Value], wanted: &[Value]) -> Option<Missing> {
    let held: Vec<Rule<'_>> = held.iter().map(Rule::of).collect();
    let wanted: Vec<Rule<'_>> = wanted.iter().map(Rule::of).collect();
    let is_held = |rule: &Rule<'_>| held.iter().any(|held| held.covers(rule));
    let open: Vec<&Rule<'_>> = wanted.iter().filter(|rule| !is_held(rule)).collect();
    let count = open.iter().fold(0_usize, |sum, rule| sum.saturating_add(rule.count()));
    if count > PARTS_MAX {
        return Some(Missing::TooMany);
    }
    let mut lines: BTreeMap<Line<'_>, Vec<&str>> = BTreeMap::new();
    for rule in open {
        rule.each_part(&mut |part, line, verb| {
            if !is_held(part) {
                lines.entry(line).or_default().push(verb);
            }
        });
    }
    let shown: BTreeSet<String> = lines.iter().map(|(line, verbs)| line.shown(verbs)).collect();
    let mut text = String::new();
    for line in &shown {
        if text.len() + line.len() > SHOWN_BYTES_MAX {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    (!shown.is_empty()).then_some(Missing::These(text))
}

/// Shows a list as Go's `%q` does.
pub(crate) fn quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quote).collect();
    format!("[{}]", texts.join(" "))
}

fn has_all(set: &[&str], wanted: &[&str]) -> bool {
    wanted.iter().all(|it| set.contains(it))
}

fn covers_resource(held: &[&str], wanted: &str) -> bool {
    held.contains(&wanted)
        || wanted
            .split_once('/')
            .is_some_and(|(_, part)| held.iter().any(|held| held.strip_prefix("*/").is_some_and(|held| held == part)))
}

fn covers_url(held: &str, wanted: &str) -> bool {
    held == wanted || held.ends_with('*') && wanted.starts_with(held.trim_end_matches('*'))
}

// === impl Rule ===

impl<'a> Rule<'a> {
    fn of(rule: &'a Value) -> Self {
        Self {
            verbs: strings(&rule["verbs"]),
            groups: strings(&rule["apiGroups"]),
            resources: strings(&rule["resources"]),
            names: strings(&rule["resourceNames"]),
            urls: strings(&rule["nonResourceURLs"]),
        }
    }

    /// Whether this rule alone allows all that the other does.
    fn covers(&self, other: &Rule<'_>) -> bool {
        (self.verbs.contains(&"*") || has_all(&self.verbs, &other.verbs))
            && (self.groups.contains(&"*") || has_all(&self.groups, &other.groups))
            && (self.resources.contains(&"*") || other.resources.iter().all(|it| covers_resource(&self.resources, it)))
            && other.urls.iter().all(|url| self.urls.iter().any(|held| covers_url(held, url)))
            && (self.names.is_empty() || !other.names.is_empty() && has_all(&self.names, &other.names))
    }

    /// The number of its parts.
    fn count(&self) -> usize {
        let of_resources =
            [self.groups.len(), self.resources.len(), self.verbs.len(), self.names.len().max(1)].into_iter();
        let of_resources = of_resources.fold(1_usize, usize::saturating_mul);
        of_resources.saturating_add(self.urls.len().saturating_mul(self.verbs.len()))
    }

    /// Calls `f` with each part, the line that shows it, and its verb.
    fn each_part(&self, f: &mut impl FnMut(&Rule<'a>, Line<'a>, &'a str)) {
        let names: Vec<Option<&str>> = match &self.names[..] {
            [] => vec![None],
            names => names.iter().copied().map(Some).collect(),
        };
        let part = |verb| Rule { verbs: vec![verb], groups: vec![], resources: vec![], names: vec![], urls: vec![] };
        for &group in &self.groups {
            for &resource in &self.resources {
                for &verb in &self.verbs {
                    for &name in &names {
                        let names = name.into_iter().collect();
                        let of_resource = Rule { groups: vec![group], resources: vec![resource], names, ..part(verb) };
                        f(&of_resource, Line::Resource { group, resource, name }, verb);
                    }
                }
            }
        }
        for &url in &self.urls {
            for &verb in &self.verbs {
                f(&Rule { urls: vec![url], ..part(verb) }, Line::Path { url, verb }, verb);
            }
        }
    }
}

// === impl Line ===

impl Line<'_> {
    fn shown(&self, verbs: &[&str]) -> String {
        match self {
            Self::Resource { group, resource, name } => {
                let names = name.map(|name| format!("ResourceNames:{}, ", quoted([name]))).unwrap_or_default();
                let [group, resource] = [group, resource].map(|text| quoted([*text]));
                format!("{{APIGroups:{group}, Resources:{resource}, {names}Verbs:{}}}", quoted(verbs.iter().copied()))
            }
            Self::Path { url, verb } => format!("{{NonResourceURLs:{}, Verbs:{}}}", quoted([*url]), quoted([*verb])),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A rule as words: groups, resources, verbs, names; or paths and verbs.
    fn rule(text: &str) -> Value {
        let words: Vec<Vec<&str>> = text.split_whitespace().map(|word| word.split(',').collect()).collect();
        let words: Vec<Vec<&str>> = words
            .into_iter()
            .map(|list| list.into_iter().map(|it| if it == "core" { "" } else { it }).collect())
            .collect();
        match &words[..] {
            [urls, verbs] => json!({"nonResourceURLs": urls, "verbs": verbs}),
            [groups, resources, verbs] => json!({"apiGroups": groups, "resources": resources, "verbs": verbs}),
            [groups, resources, verbs, names] => {
                json!({"apiGroups": groups, "resources": resources, "verbs": verbs, "resourceNames": names})
            }
            _ => panic!("{text}"),
        }
    }

    fn rules(texts: &[&str]) -> Vec<Value> {
        texts.iter().map(|text| rule(text)).collect()
    }

    #[test]
    fn nobody_gives_away_what_none_of_their_rules_covers() {
        // held, wanted, the lines that are missing
        let rows: &[(&[&str], &[&str], &[&str])] = &[
            (&["core pods get"], &["core pods get"], &[]),
            (&[], &["core pods get,list"], &["{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}"]),
            (&["core */scale get"], &["core pods/scale get"], &[]),
            (
                &["core */scale get"],
                &["core pods/scales get"],
                &["{APIGroups:[\"\"], Resources:[\"pods/scales\"], Verbs:[\"get\"]}"],
            ),
            (&["a x delete", "a y delete", "a x,y update"], &["a x,y delete,update"], &[]),
            (
                &["a x,y delete,update", "a z delete"],
                &["a x,y,z delete,update"],
                &["{APIGroups:[\"a\"], Resources:[\"z\"], Verbs:[\"update\"]}"],
            ),
            (&["* roles get"], &["a,b roles get"], &[]),
            (&["a roles get"], &["* roles get"], &["{APIGroups:[\"*\"], Resources:[\"roles\"], Verbs:[\"get\"]}"]),
            (&["a roles *"], &["a roles get,watch"], &[]),
            (&["a roles get,list"], &["a roles *"], &["{APIGroups:[\"a\"], Resources:[\"roles\"], Verbs:[\"*\"]}"]),
            (&["a * get"], &["a roles,roles/x get"], &[]),
            (&["a roles get"], &["a * get"], &["{APIGroups:[\"a\"], Resources:[\"*\"], Verbs:[\"get\"]}"]),
            (&["a pods get"], &["a pods get n,m"], &[]),
            (
                &["a pods get n"],
                &["a pods get n,m"],
                &["{APIGroups:[\"a\"], Resources:[\"pods\"], ResourceNames:[\"m\"], Verbs:[\"get\"]}"],
            ),
            (&["a pods get n,m"], &["a pods get"], &["{APIGroups:[\"a\"], Resources:[\"pods\"], Verbs:[\"get\"]}"]),
            (&["* *"], &["/apis,/ get"], &[]),
            (&["/apis/* *"], &["/apis/a,/apis get"], &["{NonResourceURLs:[\"/apis\"], Verbs:[\"get\"]}"]),
            // One line for each verb of a path, one for each resource, in the order of the text.
            (
                &[],
                &["/b,/a get,put", "core z,y get"],
                &[
                    "{APIGroups:[\"\"], Resources:[\"y\"], Verbs:[\"get\"]}",
                    "{APIGroups:[\"\"], Resources:[\"z\"], Verbs:[\"get\"]}",
                    "{NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}",
                    "{NonResourceURLs:[\"/a\"], Verbs:[\"put\"]}",
                    "{NonResourceURLs:[\"/b\"], Verbs:[\"get\"]}",
                    "{NonResourceURLs:[\"/b\"], Verbs:[\"put\"]}",
                ],
            ),
            (&["* * *"], &["/apis get"], &["{NonResourceURLs:[\"/apis\"], Verbs:[\"get\"]}"]),
        ];
        for (held, wanted, want) in rows {
            let got = missing(&rules(held), &rules(wanted));
            let want = (!want.is_empty()).then(|| Missing::These(want.join("\n")));
            assert_eq!(got, want, "{held:?} -> {wanted:?}");
        }
    }

    #[test]
    fn a_role_of_very_many_parts_is_refused_unless_one_rule_covers_it() {
        let many: Vec<String> = (0..200).map(|at| format!("r{at}")).collect();
        let huge = json!({"apiGroups": many, "resources": many, "verbs": many, "resourceNames": many});
        assert_eq!(missing(&rules(&["core pods get"]), std::slice::from_ref(&huge)), Some(Missing::TooMany));
        assert_eq!(missing(&rules(&["* * *"]), &[huge]), None);
    }
}
