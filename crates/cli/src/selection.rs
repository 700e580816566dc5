//! Pure: which controllers `--controllers` selects.
//!
//! 1. `*` is all that are on by default, `foo` turns one on, `-foo` turns one off; aliases count. The first item that
//!    names a controller decides, as upstream; a name that nobody has is an error.
//! 2. A controller whose feature gate or flag is missing does not run, even if it is named.
//! 3. A controller that is built first, that of token secrets, does not follow the list: it runs whenever there is a key to
//!    sign with. In a cluster that has its own key, it does.

use steersman_runtime::__internal::descriptor::{Enabled, Row};

use super::CommandError;
use super::flags::{did_you_mean, nearest};

/// The result of a list of controllers, in the order of the table.
#[derive(Debug, Default)]
pub(super) struct Selection<'a> {
    /// Those to run.
    pub(super) run: Vec<&'a Row>,
    /// The selected ones, and why they may not run.
    pub(super) held: Vec<(&'a Row, String)>,
}

/// The input of a selection.
pub(super) struct World<'a> {
    /// Whether a flag is set.
    pub(super) is_set: &'a dyn Fn(&str) -> bool,
    /// Whether a feature is on.
    pub(super) gate: &'a dyn Fn(&str) -> bool,
    /// Whether a controller is selected regardless of the list.
    pub(super) is_always_asked: &'a dyn Fn(&Row) -> bool,
}

/// Returns the controllers that a list such as `*,-replicaset` selects.
pub(super) fn select<'a>(table: &'a [Row], asked: &[String], world: &World<'_>) -> Result<Selection<'a>, CommandError> {
    for name in asked {
        check_name(table, name)?;
    }
    let mut selection = Selection::default();
    for row in table.iter().filter(|row| (world.is_always_asked)(row) || is_asked(row, asked)) {
        let off = row.gates.iter().find(|gate| !(world.gate)(gate));
        let unmet = match &row.default {
            Enabled::WithFlags(flags) if !flags.iter().any(|flag| (world.is_set)(flag)) => flags.first(),
            _ => None,
        };
        match (off, unmet) {
            (Some(gate), _) => selection.held.push((row, format!("the feature gate {gate} is off"))),
            (None, Some(flag)) => selection.held.push((row, format!("--{flag} is not given or off"))),
            (None, None) => selection.run.push(row),
        }
    }
    Ok(selection)
}

fn check_name(table: &[Row], name: &str) -> Result<(), CommandError> {
    let bare = name.strip_prefix('-').unwrap_or(name);
    if name == "*" || table.iter().any(|row| row.is_called(bare)) {
        return Ok(());
    }
    let names = table.iter().flat_map(|row| row.aliases.iter().copied().chain([row.name]));
    let near = did_you_mean(nearest(bare, names));
    Err(CommandError(format!("--controllers: there is no controller {bare:?}{near}")))
}

fn is_asked(row: &Row, asked: &[String]) -> bool {
    let named = asked.iter().find(|name| row.is_called(name.strip_prefix('-').unwrap_or(name)));
    match named {
        Some(name) => !name.starts_with('-'),
        None => row.default != Enabled::WhenNamed && asked.iter().any(|name| name == "*"),
    }
}

#[cfg(test)]
mod tests {
    use steersman_runtime::__internal::descriptor::Stage;

    use super::super::rows;
    use super::*;

    const TOKENS: &str = "tokens-controller";

    fn row(name: &'static str, alias: &'static str, default: Enabled, gates: &[&'static str]) -> Row {
        let mut row = Row::new(name);
        row.aliases = vec![alias];
        row.default = default;
        row.gates = gates.to_vec();
        row
    }

    fn names(rows: &[&Row]) -> Vec<&'static str> {
        rows.iter().map(|row| row.name).collect()
    }

    fn world() -> World<'static> {
        World {
            is_set: &|flag| flag == "given",
            gate: &|gate| gate == "On",
            is_always_asked: &|row| row.name == TOKENS,
        }
    }

    fn table() -> Vec<Row> {
        vec![
            row(TOKENS, "serviceaccount-token", Enabled::WithFlags(vec!["given"]), &[]),
            row("a-controller", "a", Enabled::ByDefault, &["On"]),
            row("b-controller", "b", Enabled::ByDefault, &[]),
            row("off", "o", Enabled::WhenNamed, &[]),
            row("gated", "g", Enabled::ByDefault, &["On", "Off"]),
            row("flagged", "f", Enabled::WithFlags(vec!["not-given"]), &[]),
        ]
    }

    #[test]
    fn the_first_item_that_names_a_controller_decides() {
        let table = table();
        let check = |asked: &[&str], run: &[&str], held: &[&str]| {
            let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
            let got = select(&table, &asked, &world()).unwrap();
            let run: Vec<_> = [TOKENS].iter().chain(run).copied().collect();
            assert_eq!(names(&got.run), run, "{asked:?}");
            assert_eq!(got.held.iter().map(|held| held.0.name).collect::<Vec<_>>(), held, "{asked:?}");
        };
        check(&["*"], &["a-controller", "b-controller"], &["gated", "flagged"]);
        check(&["a"], &["a-controller"], &[]);
        check(&["b-controller", "a"], &["a-controller", "b-controller"], &[]);
        check(&["*", "-a"], &["b-controller"], &["gated", "flagged"]);
        check(&["-a", "*"], &["b-controller"], &["gated", "flagged"]);
        check(&["a", "-a"], &["a-controller"], &[]);
        check(&["-a", "a"], &[], &[]);
        check(&["*", "off", "-b", "-g", "-f"], &["a-controller", "off"], &[]);
        check(&["gated", "f"], &[], &["gated", "flagged"]);
        check(&["-serviceaccount-token"], &[], &[]);
        check(&[], &[], &[]);
    }

    #[test]
    fn what_keeps_a_controller_from_running_is_reported() {
        let table = table();
        let got = select(&table, &["*".into()], &world()).unwrap();
        let reported: Vec<_> = got.held.iter().map(|held| held.1.as_str()).collect();
        assert_eq!(reported, ["the feature gate Off is off", "--not-given is not given or off"]);
    }

    #[test]
    fn unknown_names_are_errors() {
        let table = table();
        let check = |asked: &str, want: &str| {
            let error = select(&table, &[asked.into()], &world()).unwrap_err().to_string();
            assert!(error.contains(want), "{asked}: {error}");
        };
        check("-nope", r#"there is no controller "nope""#);
        check("b-contoller", "did you mean b-controller?");
        check("-*", r#"there is no controller "*""#);
    }

    #[test]
    fn upstreams_default_list_is_what_upstream_runs() {
        let gates = super::super::gates::Gates::default();
        let world = World {
            is_set: &|flag| flag == "enable-garbage-collector",
            gate: &|gate| gates.enabled(gate),
            is_always_asked: &|row| row.stage == Stage::First,
        };
        let got = select(rows::table(), &["*".into()], &world).unwrap();
        let held: Vec<_> = got.held.iter().map(|held| held.0.name).collect();
        assert_eq!(
            held,
            [
                "serviceaccount-token-controller",
                "podgroup-protection-controller",
                "certificatesigningrequest-signing-controller",
                "node-ipam-controller",
                "storageversion-garbage-collector-controller",
                "resourcepoolstatusrequest-controller",
            ]
        );
        assert_eq!(got.run.len(), 40, "49 without those, and without the three that must be named");
    }
}
