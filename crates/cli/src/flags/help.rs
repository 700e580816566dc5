//! Pure: the text of `--help`, by section, as upstream prints it.

use std::fmt::Write;

use super::{Flag, Kind, Value, table};

/// Returns the output of `--help`.
pub(crate) fn help(program: &str, controllers: &str, gates: &str) -> String {
    let mut text = format!(
        "The Kubernetes controller manager: the control loops that ship with Kubernetes 1.37, each of which watches the\n\
         cluster through its API server and moves what is towards what is wanted.\n\n\
         Usage:\n  {program} [flags]\n"
    );
    let mut sections: Vec<&str> = Vec::new();
    for flag in table().iter().filter(|flag| !flag.hidden) {
        if !sections.contains(&flag.section) {
            sections.push(flag.section);
        }
    }
    for section in sections {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{section} flags:\n\n");
        let flags: Vec<&Flag> = table().iter().filter(|flag| flag.section == section && !flag.hidden).collect();
        let width = flags.iter().map(|flag| usage(flag).chars().count()).max().unwrap_or(0);
        for flag in flags {
            let more = match flag.name {
                "controllers" => controllers,
                "feature-gates" => gates,
                _ => "",
            };
            let indent = format!("\n{:width$}   ", "");
            let more: String = more.lines().map(|line| format!("{indent}{line}")).collect();
            let _ = writeln!(text, "{:<width$}   {}{more}{}", usage(flag), flag.help, default(flag));
        }
    }
    text
}

/// `  -v, --v Level`
fn usage(flag: &Flag) -> String {
    let short = flag.short.map_or_else(|| "      ".to_owned(), |letter| format!("  -{letter}, "));
    match flag.kind {
        Kind::Bool => format!("{short}--{}", flag.name),
        _ => format!("{short}--{} {}", flag.name, flag.type_name),
    }
}

/// ` (default 5)`, unless it is the zero value.
fn default(flag: &Flag) -> String {
    match flag.default_value() {
        Value::Text(_) if flag.default.is_empty() => String::new(),
        Value::Text(text) => format!(" (default {text:?})"),
        value if value.is_set() => format!(" (default {value})"),
        _ => String::new(),
    }
}
