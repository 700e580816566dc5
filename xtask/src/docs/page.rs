//! The page of a controller, as far as other documents repeat it.

const DIFFERENCES: &str = "## Differences from upstream";
const HEADER: &str = "| upstream 1.37.1 | here | why |";

/// The parts of a page that other documents repeat.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    /// What the controller does: the first paragraph after the example.
    pub(super) summary: String,
    /// The table of differences from upstream, header included.
    pub(super) differences: String,
}

// === impl Page ===

impl Page {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let summary = summary(text).ok_or("has no paragraph that says what the controller does")?;
        let (_, rest) =
            text.split_once(&format!("{DIFFERENCES}\n")).ok_or_else(|| format!("has no section `{DIFFERENCES}`"))?;
        let section = rest.split("\n## ").next().unwrap_or(rest);
        let table: Vec<_> = section.lines().filter(|line| line.starts_with('|')).collect();
        if table.first() != Some(&HEADER) {
            return Err(format!("the table below `{DIFFERENCES}` does not begin with `{HEADER}`"));
        }
        if let Some(row) = table.iter().find(|row| columns(row) != 3) {
            return Err(format!("a row of differences has not three columns: {row}"));
        }
        Ok(Self { summary, differences: table.join("\n") })
    }
}

/// Counts the columns of a row; a `\|` is text.
fn columns(row: &str) -> usize {
    row.replace("\\|", "").matches('|').count().saturating_sub(1)
}

/// Returns the first paragraph before the first section that is neither a heading nor in a code block.
fn summary(text: &str) -> Option<String> {
    let mut is_code = false;
    let mut paragraph = Vec::new();
    for line in text.lines().take_while(|line| !line.starts_with("## ")) {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.is_empty() && !line.starts_with('#') {
            paragraph.push(line);
        } else if !paragraph.is_empty() {
            break;
        }
    }
    (!paragraph.is_empty()).then(|| paragraph.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# a-controller\n\n```text\n$ kubectl\n```\n\nKeeps\nfour.\n\n## Guarantees\n\nNone.\n\n\
        ## Differences from upstream\n\n| upstream 1.37.1 | here | why |\n|---|---|---|\n| a | b \\| c | d |\n\n## More\n\n| x |\n";

    #[test]
    fn the_summary_and_the_differences_are_read() {
        let page = Page::parse(PAGE).expect("the page is whole");
        assert_eq!(page.summary, "Keeps four.");
        assert_eq!(page.differences, "| upstream 1.37.1 | here | why |\n|---|---|---|\n| a | b \\| c | d |");
    }

    #[test]
    fn a_page_that_lacks_a_part_is_refused() {
        for (without, want) in [
            ("## Differences from upstream", "has no section"),
            (" | why", "does not begin with"),
            (" | d |", "has not three columns"),
            ("Keeps\nfour.\n\n", "has no paragraph"),
        ] {
            let error = Page::parse(&PAGE.replace(without, "")).expect_err(without);
            assert!(error.contains(want), "{without}: {error}");
        }
    }
}
