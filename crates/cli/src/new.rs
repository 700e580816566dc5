//! `steersman new operator`: a working operator, with its kind, its roles, a test and CI.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};

use super::{CommandError, flag};

/// The files of an operator: path in the new directory, and template. `{{…}}` stands for what the user chose.
const OPERATOR: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("../templates/operator/Cargo.toml.in")),
    (".gitignore", include_str!("../templates/operator/gitignore.in")),
    ("README.md", include_str!("../templates/operator/README.md.in")),
    ("Dockerfile", include_str!("../templates/operator/Dockerfile.in")),
    ("src/lib.rs", include_str!("../templates/operator/src/lib.rs.in")),
    ("src/main.rs", include_str!("../templates/operator/src/main.rs.in")),
    ("tests/operator.rs", include_str!("../templates/operator/tests/operator.rs.in")),
    ("manifests/operator.yaml", include_str!("../templates/operator/manifests/operator.yaml.in")),
    (".github/workflows/ci.yml", include_str!("../templates/operator/.github/workflows/ci.yml.in")),
];

/// The newest version of Kubernetes that `k8s-openapi` 0.29 has types for.
const KUBERNETES: &str = "v1_37";
/// A DNS label has 63 letters at most; what is derived from the name must fit, too.
const NAME_LENGTH_MAX: usize = 40;

/// The user's choices, and the names derived from them.
struct Operator {
    name: String,
    kind: String,
    group: String,
    /// A checkout of Steersman to build with, instead of the registry's version.
    source: Option<PathBuf>,
    kubernetes: String,
}

pub(super) fn command() -> Command {
    let name = Arg::new("name").required(true).value_name("NAME").help("Name of the operator, such as web-site");
    let operator = Command::new("operator")
        .about("Writes a working operator into a new directory: kind, reconciler, roles, test, CI")
        .arg(name)
        .arg(flag("kind", "Kind of its objects; from the name, if not given: WebSite").value_name("KIND"))
        .arg(flag("group", "API group of its objects").value_name("GROUP").default_value("example.dev"))
        .arg(
            flag("directory", "Where to write it; a directory of its name, if not given")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag("steersman", "A checkout of Steersman to build with, instead of the registry's version")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag("kubernetes", "Feature of k8s-openapi: the version of Kubernetes whose types are used")
                .value_name("FEATURE")
                .default_value(KUBERNETES),
        );
    Command::new("new").about("Starts a new project").subcommand_required(true).subcommand(operator)
}

pub(super) fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    let Some(("operator", matches)) = matches.subcommand() else { unreachable!("clap asks for a subcommand it knows") };
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let name = text("name").unwrap_or_default();
    let directory = matches.get_one::<PathBuf>("directory").cloned().unwrap_or_else(|| PathBuf::from(&name));
    let operator = Operator {
        kind: text("kind").unwrap_or_else(|| kind_of(&name)),
        group: text("group").unwrap_or_default(),
        source: matches.get_one::<PathBuf>("steersman").cloned(),
        kubernetes: text("kubernetes").unwrap_or_else(|| KUBERNETES.to_owned()),
        name,
    };
    operator.check()?;
    operator.write(&directory)?;
    println!("wrote {} files to {}", OPERATOR.len(), directory.display());
    println!("next: cd {} && cargo test", directory.display());
    Ok(())
}

// === impl Operator ===

impl Operator {
    /// Whether Kubernetes and Rust will take the names.
    fn check(&self) -> Result<(), CommandError> {
        let is_label = |text: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
        };
        if !is_label(&self.name) || self.name.len() > NAME_LENGTH_MAX || !self.name.as_bytes()[0].is_ascii_lowercase() {
            return Err(CommandError(format!(
                "the name {:?} must have 1 to {NAME_LENGTH_MAX} lower-case letters, digits and dashes, and begin with a letter",
                self.name
            )));
        }
        let is_kind = self.kind.chars().next().is_some_and(|first| first.is_ascii_uppercase())
            && self.kind.chars().all(|letter| letter.is_ascii_alphanumeric());
        if !is_kind {
            return Err(CommandError(format!(
                "--kind: {:?} must be letters and digits, and begin with a capital letter, such as WebSite",
                self.kind
            )));
        }
        if !self.group.contains('.') || !self.group.split('.').all(is_label) {
            return Err(CommandError(format!(
                "--group: {:?} must be a domain name with a dot, such as example.dev",
                self.group
            )));
        }
        Ok(())
    }

    /// Writes all files, or none if the directory has files already.
    fn write(&self, directory: &Path) -> Result<(), CommandError> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| CommandError(format!("cannot write {path}: {error}"))
        };
        if std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(CommandError(format!(
                "{} is not empty: choose another --directory, or delete it first",
                directory.display()
            )));
        }
        for (path, template) in OPERATOR {
            let path = directory.join(path);
            let parent = path.parent().unwrap_or(directory);
            std::fs::create_dir_all(parent).map_err(failed(parent))?;
            std::fs::write(&path, self.fill(template)?).map_err(failed(&path))?;
        }
        Ok(())
    }

    /// Puts what the user chose into a template.
    fn fill(&self, template: &str) -> Result<String, CommandError> {
        let plural = format!("{}s", self.kind.to_lowercase());
        let dependency = self.dependency()?;
        let values = [
            ("{{name}}", self.name.clone()),
            ("{{crate}}", self.name.replace('-', "_")),
            ("{{Kind}}", self.kind.clone()),
            ("{{plural}}", plural),
            ("{{group}}", self.group.clone()),
            ("{{kubernetes}}", self.kubernetes.clone()),
            ("{{steersman}}", format!("{{ {dependency} }}")),
            ("{{steersman_testing}}", format!("{{ {dependency}, features = [\"testing\"] }}")),
        ];
        Ok(values.into_iter().fold(template.to_owned(), |text, (mark, value)| text.replace(mark, &value)))
    }

    fn dependency(&self) -> Result<String, CommandError> {
        let Some(source) = &self.source else { return Ok(format!("version = {:?}", env!("CARGO_PKG_VERSION"))) };
        let facade = source.join("crates/steersman");
        let facade = std::path::absolute(&facade)
            .ok()
            .filter(|path| path.join("Cargo.toml").is_file())
            .ok_or_else(|| CommandError(format!("--steersman: {} is no checkout of Steersman", source.display())))?;
        Ok(format!("path = {:?}", facade.display().to_string()))
    }
}

/// Returns a name in the form of a kind: `web-site` becomes `WebSite`.
fn kind_of(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(name: &str, kind: &str, group: &str) -> Operator {
        let kubernetes = KUBERNETES.to_owned();
        Operator { name: name.to_owned(), kind: kind.to_owned(), group: group.to_owned(), source: None, kubernetes }
    }

    #[test]
    fn names_that_kubernetes_or_rust_would_refuse_are_refused() {
        let check = |name: &str, kind: &str, group: &str, want: Option<&str>| {
            let refused = operator(name, kind, group).check().err().map(|error| error.to_string());
            match (&refused, want) {
                (None, None) => {}
                (Some(refused), Some(want)) => assert!(refused.contains(want), "{refused}"),
                _ => panic!("{name} {kind} {group}: {refused:?}"),
            }
        };
        check("web-site", "WebSite", "example.dev", None);
        check("", "WebSite", "example.dev", Some("the name"));
        check("7up", "WebSite", "example.dev", Some("begin with a letter"));
        check("Web", "WebSite", "example.dev", Some("lower-case"));
        check("web-", "WebSite", "example.dev", Some("the name"));
        check("web", "site", "example.dev", Some("--kind"));
        check("web", "Web-Site", "example.dev", Some("--kind"));
        check("web", "WebSite", "dev", Some("--group"));
        check("web", "WebSite", "example..dev", Some("--group"));
    }

    #[test]
    fn a_kind_follows_from_a_name() {
        assert_eq!(kind_of("web-site"), "WebSite");
        assert_eq!(kind_of("cake"), "Cake");
    }

    #[test]
    fn the_namespace_of_the_lease_is_created_before_the_operator_runs() {
        let text = |path: &str| {
            let (_, template) = OPERATOR.iter().find(|(of, _)| *of == path).unwrap();
            operator("web-site", "WebSite", "example.dev").fill(template).unwrap()
        };
        assert!(text("src/main.rs").contains(r#"LeaseOptions::new("web-site", "#));
        let readme = text("README.md");
        let created = readme.find("kubectl create namespace web-site").unwrap();
        assert!(created < readme.find("cargo run  ").unwrap(), "{readme}");
    }

    #[test]
    fn no_mark_is_left_in_any_file() {
        for (path, template) in OPERATOR {
            let text = operator("web-site", "WebSite", "example.dev").fill(template).unwrap();
            assert!(!text.contains("{{"), "{path}: {text}");
        }
    }
}
