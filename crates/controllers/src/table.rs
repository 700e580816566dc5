//! The facts of the 49 controllers of kube-controller-manager 1.37.1, in its order: `data/controllers.tsv`.
//!
//! Each is one of [`ALL`](crate::ALL), under the name of its row. A test compares the rows with a recording of upstream.
//!
//! | column | form |
//! |---|---|
//! | `aliases`, `gates`, `queues` | a list with commas |
//! | `default` | `on`, `named`, or `with:` and flags, one of which must be set |
//! | `workers` | a number, or `flag=number` |
//! | `component` | the source of its events; empty: the name |
//! | `limiter` | `default`, `5ms..60s` (and ten a second over all keys), `1s..1m,no-bucket`, `every:15s`, `none` |
//! | `retries` | a number or `unlimited` |
//! | `stage` | `first` or `normal` |

use std::sync::LazyLock;
use std::time::Duration;

use steersman_runtime::__internal::descriptor::{BuiltIn, Enabled, IntoBuilt, Limiter, Row, Stage, Workers};
use steersman_runtime::Descriptor;

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("../data/controllers.tsv").lines().skip(1);
    // The table is part of the program, and a test parses all of it.
    lines
        .map(|line| parse(line).unwrap_or_else(|| unreachable!("data/controllers.tsv has a wrong row: {line}")))
        .collect()
});

/// Returns every controller of upstream, in its order.
#[must_use]
pub fn rows() -> &'static [Row] {
    &ROWS
}

/// Returns the row of a controller that is implemented here.
///
/// # Panics
/// There is no such row; a test looks up each of [`ALL`](crate::ALL).
#[must_use]
pub fn row(name: &'static str) -> Row {
    let row = rows().iter().find(|row| row.name == name);
    row.unwrap_or_else(|| unreachable!("data/controllers.tsv has no row {name}")).clone()
}

/// Returns the descriptor of a controller whose facts are in the table.
pub(crate) const fn controller<O, B>(controller: &'static BuiltIn<O, B>) -> Descriptor
where
    O: Clone + Send + Sync + 'static,
    B: IntoBuilt + 'static,
{
    Descriptor::built_in(row, controller)
}

fn parse(line: &'static str) -> Option<Row> {
    let columns: Vec<&'static str> = line.split('\t').collect();
    let [name, aliases, default, gates, workers, account, component, queues, limiter, retries, stage] = *columns else {
        return None;
    };
    let mut row = Row::new(name);
    row.aliases = list(aliases);
    row.default = match default {
        "on" => Enabled::ByDefault,
        "named" => Enabled::WhenNamed,
        with => Enabled::WithFlags(list(with.strip_prefix("with:")?)),
    };
    row.gates = list(gates);
    row.workers = match workers.split_once('=') {
        Some((flag, count)) => Workers::flag(flag, count.parse().ok()?),
        None => Workers::fixed(workers.parse().ok()?),
    };
    row.account = account;
    row.component = if component.is_empty() { name } else { component };
    row.queues = list(queues);
    row.limiter = parse_limiter(limiter)?;
    row.retries_max = if retries == "unlimited" { None } else { Some(retries.parse().ok()?) };
    row.stage = match stage {
        "first" => Stage::First,
        "normal" => Stage::Normal,
        _ => return None,
    };
    Some(row)
}

fn list(text: &'static str) -> Vec<&'static str> {
    text.split(',').filter(|item| !item.is_empty()).collect()
}

fn parse_limiter(text: &str) -> Option<Limiter> {
    match text {
        "default" => return Some(Limiter::Default),
        "none" => return Some(Limiter::None),
        _ => {}
    }
    if let Some(wait) = text.strip_prefix("every:") {
        return Some(Limiter::Every(time(wait)?));
    }
    let (range, bucket) = match text.strip_suffix(",no-bucket") {
        Some(range) => (range, false),
        None => (text, true),
    };
    let (min, max) = range.split_once("..")?;
    Some(Limiter::Backoff { min: time(min)?, max: time(max)?, bucket })
}

/// Parses a duration such as `5ms`, `60s` or `1m`.
fn time(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(60 * number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    /// Returns the facts that were recorded from kube-controller-manager 1.37.1, in words.
    fn recorded() -> Vec<Vec<&'static str>> {
        let lines = include_str!("../tests/data/upstream-controllers.tsv").lines().skip(1);
        lines.map(|line| line.split('\t').collect()).collect()
    }

    #[test]
    fn the_table_is_what_was_recorded() {
        assert_eq!(rows().len(), 49);
        assert_eq!(recorded().len(), 49);
        for (row, facts) in rows().iter().zip(recorded()) {
            let [name, aliases, default, gates, special, workers, queues, limiter, retries, account, events] =
                facts[..]
            else {
                panic!("{facts:?}")
            };
            assert_eq!(row.name, name);
            assert_eq!(if row.aliases.is_empty() { "none".into() } else { row.aliases.join(",") }, aliases);
            assert_eq!(row.account, account.split(' ').next().unwrap(), "{name}");
            let required = gates.split(';').next().unwrap();
            let words = required.split([' ', ',']);
            let required: Vec<_> = words.filter_map(|word| Some(word.split_once('=')?.0)).collect();
            assert_eq!(row.gates, required, "{name}");
            match &row.default {
                Enabled::ByDefault => {
                    assert!(default.starts_with("yes") || default == "no (gate off)", "{name}: {default}");
                }
                Enabled::WhenNamed => assert!(default.contains("must be named"), "{name}: {default}"),
                Enabled::WithFlags(with) => assert!(default.contains(&format!("--{}", with[0])), "{name}: {default}"),
            }
            if let Some(flag) = row.workers.flag {
                let prefix = format!("--{flag}={}", row.workers.default);
                assert!(workers.starts_with(&prefix), "{name}: {workers}");
            } else {
                assert!(!workers.contains("--"), "{name}: {workers}");
            }
            assert_eq!(row.stage == Stage::First, special.starts_with("special: built first"), "{name}");
            let component = events.split(':').next().unwrap();
            assert_eq!(row.component, if component == "none" { name } else { component }, "{name}");
            check_queues(row, queues, limiter, retries);
        }
    }

    fn check_queues(row: &Row, queues: &str, limiter: &str, retries: &str) {
        let name = row.name;
        let named: Vec<_> = queues.split(';').map(|queue| queue.split('(').next().unwrap().trim()).collect();
        let named: Vec<_> = named.into_iter().filter(|queue| !queue.is_empty() && *queue != "none").collect();
        assert_eq!(row.queues, named, "{name}");
        match row.limiter {
            Limiter::Default => assert!(limiter.starts_with("default pair"), "{name}: {limiter}"),
            Limiter::Backoff { min, max, bucket } => {
                let limits = limiter.split("exp ").nth(1).unwrap();
                let limits = limits.split([' ', ',']).next().unwrap().split_once("..").unwrap();
                assert_eq!((time(limits.0), time(limits.1)), (Some(min), Some(max)), "{name}");
                assert_eq!(bucket, limiter.contains("bucket 10/s burst 100"), "{name}: {limiter}");
            }
            Limiter::Every(_) => assert!(limiter.starts_with("fixed interval"), "{name}: {limiter}"),
            Limiter::None => assert!(limiter.contains("none"), "{name}: {limiter}"),
            _ => panic!("{name}: {:?}", row.limiter),
        }
        match row.retries_max {
            Some(max) => assert!(retries.starts_with(&max.to_string()), "{name}: {retries}"),
            None => {
                let never_given_up = ["unlimited", "none", "node queue: none", "5 tries 10ms apart"];
                assert!(never_given_up.iter().any(|words| retries.starts_with(words)), "{name}: {retries}");
            }
        }
    }

    /// Upstream has no queue for them, but passes at regular times, or the queue has no name. Here it is named after the
    /// controller.
    const WITHOUT_QUEUE: &[&str] = &[
        "resourcepoolstatusrequest-controller",
        "certificatesigningrequest-cleaner-controller",
        "podcertificaterequest-cleaner-controller",
        "legacy-serviceaccount-token-cleaner-controller",
    ];

    #[test]
    fn every_controller_that_exists_has_a_row_and_they_are_in_upstreams_order() {
        let order: Vec<_> = ALL.iter().map(|it| rows().iter().position(|row| row.name == it.name)).collect();
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}");
        for descriptor in ALL {
            let row = descriptor.row();
            assert_eq!(row.name, descriptor.name);
            let has_queue = row.queues.is_empty() == WITHOUT_QUEUE.contains(&row.name);
            assert!(has_queue, "{}: its queue has no name, or upstream has none", row.name);
        }
    }

    #[test]
    fn a_wrong_row_is_no_row() {
        let fine = "a-controller\ta\ton\t\tflag=5\tan-account\t\ta_queue\t1s..1m,no-bucket\t15\tnormal";
        let row = parse(fine).unwrap();
        let limiter = Limiter::Backoff { min: Duration::from_secs(1), max: Duration::from_secs(60), bucket: false };
        assert_eq!((row.limiter, row.retries_max, row.component), (limiter, Some(15), "a-controller"));
        for (right, wrong) in [
            ("\tnormal", "\tsoon"),
            ("\t15", "\tmany"),
            ("1s..1m", "1s-1m"),
            ("1s..1m", "1h..1m"),
            ("flag=5", "flag=five"),
            ("\ton\t", "\tmaybe\t"),
            ("\tnormal", ""),
        ] {
            let text: &'static str = Box::leak(fine.replace(right, wrong).into_boxed_str());
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
