//! `cargo xtask docs`: writes the tables of the documents that follow from the table of controllers and from their pages.
//!
//! | file | section |
//! |---|---|
//! | `README.md` | the 49 controllers: which are implemented |
//! | `crates/controllers/README.md` | the implemented ones, and what each does |
//! | `docs/differences.md` | the differences from upstream of each implemented one |
//! | `docs/feature-gates.md` | the feature gates that change a controller upstream, and what they do here |
//!
//! `cargo xtask tidy` fails if a table is out of date. A controller is implemented if it has a page, `crates/controllers/docs/NAME.md`.

mod gates;
mod page;
mod tables;

use std::fs;
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::{sections, workspace};

use gates::Gate;
use page::Page;

const TABLE: &str = "crates/controllers/data/controllers.tsv";
const PAGES: &str = "crates/controllers/docs";

/// A file with a generated section.
struct Document {
    file: &'static str,
    mark: &'static str,
    section: fn(&Facts) -> String,
}

/// What the sections follow from.
struct Facts {
    controllers: Vec<Entry>,
    gates: Vec<Gate>,
}

const DOCUMENTS: [Document; 4] = [
    Document { file: "README.md", mark: "controllers", section: |facts| tables::controllers(&facts.controllers) },
    Document {
        file: "crates/controllers/README.md",
        mark: "controllers",
        section: |facts| tables::summaries(&facts.controllers),
    },
    Document {
        file: "docs/differences.md",
        mark: "differences",
        section: |facts| tables::differences(&facts.controllers),
    },
    Document { file: "docs/feature-gates.md", mark: "gates", section: |facts| gates::table(&facts.gates) },
];

/// A controller of upstream; its page, if it is implemented.
struct Entry {
    name: String,
    page: Option<Page>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        return Err(Failure::usage("`docs` takes no arguments", "usage: cargo xtask docs"));
    }
    for (file, text) in outdated()? {
        let path = workspace::root().join(&file);
        fs::write(&path, text).map_err(Failure::io("writing", &path))?;
        println!("wrote {}", file.display());
    }
    Ok(())
}

/// Returns the files whose generated section is out of date, with the text they should have.
pub(crate) fn outdated() -> Result<Vec<(PathBuf, String)>> {
    let facts = Facts { controllers: entries()?, gates: gates::read()? };
    let mut found = Vec::new();
    for Document { file, mark, section } in DOCUMENTS {
        let before = workspace::read(file)?;
        let failure = |problem: String| Failure::error(format!("{file}: {problem}"));
        let after = sections::replaced(&before, mark, &section(&facts)).map_err(failure)?;
        let after = after.ok_or_else(|| failure(format!("has no section `<!-- {mark} -->`")))?;
        if after != before {
            found.push((PathBuf::from(file), after));
        }
    }
    Ok(found)
}

fn entries() -> Result<Vec<Entry>> {
    let table = workspace::read(TABLE)?;
    let names = table.lines().skip(1).filter_map(|row| row.split('\t').next());
    names
        .map(|name| {
            let file = format!("{PAGES}/{name}.md");
            let page = if workspace::root().join(&file).exists() {
                let page = Page::parse(&workspace::read(&file)?);
                Some(page.map_err(|problem| Failure::error(format!("{file}: {problem}")))?)
            } else {
                None
            };
            Ok(Entry { name: name.to_owned(), page })
        })
        .collect()
}
