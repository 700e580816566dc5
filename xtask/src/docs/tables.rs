//! The generated tables. Pure: controllers in, Markdown out.

use super::Entry;

/// Returns the table of README: every controller of upstream, and whether it is implemented.
pub(super) fn controllers(entries: &[Entry]) -> String {
    let implemented = entries.iter().filter(|entry| entry.page.is_some()).count();
    let all = entries.len();
    let rows: String = entries
        .iter()
        .map(|Entry { name, page }| match page {
            Some(_) => format!("| [{name}](crates/controllers/docs/{name}.md) | implemented |\n"),
            None => format!("| {name} | not implemented |\n"),
        })
        .collect();
    format!(
        "<details><summary>{implemented} of {all} are implemented</summary>\n\n\
         | controller | state |\n|---|---|\n{rows}\n</details>"
    )
}

/// Returns the index of the pages: the implemented controllers, and what each does.
pub(super) fn summaries(entries: &[Entry]) -> String {
    let rows = entries.iter().filter_map(|Entry { name, page }| {
        let page = page.as_ref()?;
        // Links of a page are relative to it.
        let summary = moved(&page.summary, "docs/");
        Some(format!("| [{name}](docs/{name}.md) | {summary} |\n"))
    });
    format!("| controller | what it does |\n|---|---|\n{}", rows.collect::<String>())
}

/// Returns the differences from upstream, a heading and a table per implemented controller.
pub(super) fn differences(entries: &[Entry]) -> String {
    let parts = entries.iter().filter_map(|Entry { name, page }| {
        let table = moved(&page.as_ref()?.differences, "../crates/controllers/docs/");
        Some(format!("### [{name}](../crates/controllers/docs/{name}.md)\n\n{table}\n"))
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns a text whose relative links lead to the same place from elsewhere; addresses stay.
fn moved(text: &str, folder: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let folder = if part.starts_with("https://") { "" } else { folder };
        text + "](" + folder + part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::page::Page;

    fn entries() -> [Entry; 2] {
        let page = Page {
            summary: "Keeps [four](b-controller.md).".to_owned(),
            differences:
                "| upstream | here | why |\n|---|---|---|\n| a | [b](b-controller.md) | [c](https://c.example) |"
                    .to_owned(),
        };
        [
            Entry { name: "a-controller".to_owned(), page: Some(page) },
            Entry { name: "b-controller".to_owned(), page: None },
        ]
    }

    #[test]
    fn every_controller_has_a_row_and_only_implemented_ones_a_link() {
        let table = controllers(&entries());
        assert!(table.contains("<summary>1 of 2 are implemented</summary>"), "{table}");
        assert!(table.contains("| [a-controller](crates/controllers/docs/a-controller.md) | implemented |"), "{table}");
        assert!(table.contains("| b-controller | not implemented |"), "{table}");
    }

    #[test]
    fn links_of_a_page_lead_to_the_same_place_from_elsewhere() {
        assert_eq!(
            summaries(&entries()),
            "| controller | what it does |\n|---|---|\n\
             | [a-controller](docs/a-controller.md) | Keeps [four](docs/b-controller.md). |\n"
        );
        let differences = differences(&entries());
        assert!(differences.starts_with("### [a-controller](../crates/controllers/docs/a-controller.md)\n\n| up"));
        assert!(differences.contains("[b](../crates/controllers/docs/b-controller.md)"), "{differences}");
        assert!(differences.contains("[c](https://c.example)"), "{differences}");
        assert!(!differences.contains("### [b"), "{differences}");
    }
}
