//! Generated sections of documents: the lines between `<!-- MARK -->` and `<!-- /MARK -->`. The rest of a file is written by people.

/// Returns the text with its section replaced, or nothing if it has no such section.
pub(crate) fn replaced(text: &str, mark: &str, section: &str) -> Result<Option<String>, String> {
    let open = open(mark);
    let close = close(mark);
    match (text.find(&open), text.find(&close)) {
        (None, None) => Ok(None),
        (Some(start), Some(end)) if start < end => {
            Ok(Some(format!("{}{}{}", &text[..start], block(mark, section), &text[end + close.len()..])))
        }
        _ => Err(format!("`{open}` and `{close}` must both be there, in this order")),
    }
}

/// Returns a section with its marks.
pub(crate) fn block(mark: &str, section: &str) -> String {
    format!("{}\n{}\n{}", open(mark), section.trim_end(), close(mark))
}

fn open(mark: &str) -> String {
    format!("<!-- {mark} -->")
}

fn close(mark: &str) -> String {
    format!("<!-- /{mark} -->")
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_section_is_replaced_in_place_and_the_rest_stays() {
        let text = "# B\n\nwords\n<!-- bench:a -->\nold\n<!-- /bench:a -->\nmore words\n";
        let once = replaced(text, "bench:a", "new\n").expect("both marks are there").expect("the section is there");
        assert_eq!(once, "# B\n\nwords\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\nmore words\n");
        assert_eq!(replaced(&once, "bench:a", "new\n"), Ok(Some(once)));
    }

    #[test]
    fn a_section_that_is_not_there_is_not_replaced() {
        assert_eq!(replaced("# B\n", "bench:a", "new\n"), Ok(None));
    }

    #[test]
    fn half_a_section_is_an_error() {
        assert!(replaced("<!-- bench:a -->\n", "bench:a", "new").is_err());
        assert!(replaced("<!-- /bench:a --><!-- bench:a -->", "bench:a", "new").is_err());
    }
}
