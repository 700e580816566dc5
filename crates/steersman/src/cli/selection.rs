//! Pure: which controllers `--controllers` asks for.
//!
//! `*` is all that are on by default, `foo` turns one on, `-foo` turns one off; aliases count. The first item that names
//! a controller decides, as upstream.

use steersman_runtime::Descriptor;

use super::CommandError;

/// The controllers that a list such as `*,-replicaset` asks for, in the order of the table.
pub(super) fn select<'a>(table: &'a [Descriptor], asked: &[String]) -> Result<Vec<&'a Descriptor>, CommandError> {
    for name in asked {
        let bare = name.strip_prefix('-').unwrap_or(name);
        if bare != "*" && !table.iter().any(|row| row.is_called(bare)) {
            let known: Vec<_> = table.iter().map(|row| row.name).collect();
            return Err(CommandError(format!(
                "--controllers: there is no controller {bare:?} yet; there are: {}",
                known.join(", ")
            )));
        }
    }
    Ok(table.iter().filter(|row| is_on(row, asked)).collect())
}

fn is_on(row: &Descriptor, asked: &[String]) -> bool {
    let named = asked.iter().find(|name| row.is_called(name.strip_prefix('-').unwrap_or(name)));
    match named {
        Some(name) => !name.starts_with('-'),
        None => asked.iter().any(|name| name == "*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, aliases: &'static [&'static str]) -> Descriptor {
        Descriptor { name, aliases, workers: 1, build: |_, _| unreachable!("nothing is built here") }
    }

    #[test]
    fn the_first_item_that_names_a_controller_decides() {
        let table = [row("a-controller", &["a"]), row("b-controller", &["b"])];
        let check = |asked: &[&str], want: &[&str]| {
            let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
            let got: Vec<_> = select(&table, &asked).unwrap().iter().map(|row| row.name).collect();
            assert_eq!(got, want, "{asked:?}");
        };
        check(&["*"], &["a-controller", "b-controller"]);
        check(&["a"], &["a-controller"]);
        check(&["b-controller", "a"], &["a-controller", "b-controller"]);
        check(&["*", "-a"], &["b-controller"]);
        check(&["-a", "*"], &["b-controller"]);
        check(&["a", "-a"], &["a-controller"]);
        check(&[], &[]);
    }

    #[test]
    fn an_unknown_controller_is_named() {
        let error = select(&[row("a-controller", &["a"])], &["-nope".into()]).unwrap_err().to_string();
        assert_eq!(error, r#"--controllers: there is no controller "nope" yet; there are: a-controller"#);
    }
}
