//! Pure: the message of `up` when the cluster is ready.

use std::path::Path;

/// The content of the message.
pub(super) struct Greeting<'a> {
    pub(super) url: &'a str,
    pub(super) kubeconfig: &'a Path,
    pub(super) nodes: usize,
    /// The controllers that run.
    pub(super) controllers: &'a [&'a str],
    /// Selected controllers that do not run here, with the reason.
    pub(super) disabled: &'a [(&'a str, String)],
}

/// The line width of a terminal, and of readable text.
const WIDTH: usize = 100;
/// The column at which values begin.
const INDENT: &str = "              ";
/// The common suffix of controller names, which is left out.
const SUFFIX: &str = "-controller";
// === impl Greeting ===

impl Greeting<'_> {
    pub(super) fn text(&self) -> String {
        let Self { url, kubeconfig, .. } = self;
        let quoted = quoted(&kubeconfig.display().to_string());
        let kubeconfig = kubeconfig.display();
        format!(
            "API server:   {url}
kubeconfig:   {kubeconfig}
nodes:        {nodes}
controllers:  {controllers}

In another terminal:

  export KUBECONFIG={quoted}
  kubectl create deployment web --image=example/web --replicas=3
  kubectl get deployments,pods -o wide

Everything is kept in memory, and gone when this ends. Ctrl-C stops it.
",
            nodes = self.nodes(),
            controllers = self.controllers(),
        )
    }

    fn nodes(&self) -> String {
        match self.nodes {
            0 => "none: pods stay Pending".to_owned(),
            1 => "node-0, simulated".to_owned(),
            more => format!("node-0 … node-{}, simulated", more - 1),
        }
    }

    fn controllers(&self) -> String {
        let names: Vec<_> = self.controllers.iter().map(|name| name.strip_suffix(SUFFIX).unwrap_or(name)).collect();
        let mut text = if names.is_empty() { "none".to_owned() } else { wrapped(&names) };
        for (name, why) in self.disabled {
            text.push_str(&format!("\n{INDENT}without {name}: {why}"));
        }
        text
    }
}

/// Words with commas between them, in lines that are not too long.
fn wrapped(words: &[&str]) -> String {
    let mut text = String::new();
    let mut column = INDENT.len();
    for (at, word) in words.iter().enumerate() {
        // A space before it, a comma behind it.
        let length = word.len() + 2;
        if at > 0 && column + length > WIDTH {
            text.push_str(",\n");
            text.push_str(INDENT);
            column = INDENT.len();
        } else if at > 0 {
            text.push_str(", ");
        }
        text.push_str(word);
        column += length;
    }
    text
}

/// A path as shells take it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting<'a>(controllers: &'a [&'a str], nodes: usize) -> Greeting<'a> {
        Greeting {
            url: "https://127.0.0.1:6443",
            kubeconfig: Path::new("/tmp/it's here"),
            nodes,
            controllers,
            disabled: &[],
        }
    }

    #[test]
    fn no_line_is_too_long_and_nothing_is_left_out() {
        let names: Vec<_> = steersman_controllers::ALL.iter().map(|it| it.name).collect();
        let text = greeting(&names, 3).text();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        for name in names {
            assert!(text.contains(name.strip_suffix(SUFFIX).unwrap()), "{name} is missing in {text}");
        }
        assert!(text.contains("node-0 … node-2"), "{text}");
        assert!(text.contains(r"export KUBECONFIG='/tmp/it'\''s here'"), "{text}");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let text = greeting(&[], 0).text();
        assert!(
            text.contains("controllers:  none\n") && text.contains("nodes:        none: pods stay Pending\n"),
            "{text}"
        );
        let disabled = [("serviceaccount-token-controller", "there is no key".to_owned())];
        let text = Greeting { disabled: &disabled, ..greeting(&["a-controller"], 1) }.text();
        assert!(text.contains("without serviceaccount-token-controller: there is no key"), "{text}");
        assert!(text.contains("nodes:        node-0, simulated\n"), "{text}");
    }

    #[test]
    fn lines_break_between_words() {
        let word = "a".repeat(40);
        let words = [word.as_str(); 3];
        assert_eq!(wrapped(&words), format!("{word}, {word},\n{INDENT}{word}"));
        assert_eq!(wrapped(&["one"]), "one");
    }
}
