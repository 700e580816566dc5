//! Pure: suggestions for misspelled names.

/// The candidate that is nearest to what was written, if one is near.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.into_iter().map(|name| (distance(written, name), name)).min_by_key(|&(distance, _)| distance);
    // More than a third of the letters wrong is another word.
    let bound = written.chars().count() / 3;
    near.filter(|&(distance, _)| distance <= bound).map(|(_, name)| name)
}

/// `; did you mean …?`, or nothing.
pub(crate) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// Returns the number of letters to add, drop, change or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let width = b.len() + 1;
    let mut rows = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = rows[(i - 1) * width + j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let one = change.min(rows[(i - 1) * width + j] + 1).min(rows[i * width + j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { one.min(rows[(i - 2) * width + j - 2] + 1) } else { one }
            };
        }
    }
    rows[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        let known = ["leader-elect", "leader-elect-retry-period", "v", "kubeconfig"];
        let check = |written, want| assert_eq!(nearest(written, known), want, "{written}");
        check("leader-elct", Some("leader-elect"));
        check("leader-elcet", Some("leader-elect"));
        check("Kubeconfig", Some("kubeconfig"));
        check("kube-config", Some("kubeconfig"));
        check("x", None);
        check("vv", None);
        check("completely-different", None);
        check("", None);
    }
}
