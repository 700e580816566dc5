//! Lists of indexes of a job's pods, such as `0-3,7`: `validateIndexesFormat` of `pkg/apis/batch/validation/validation.go`.

/// Returns the number of indexes of a list.
///
/// # Errors
/// The list is malformed, not in order, or has an index that is no less than `completions`.
pub(crate) fn count(list: &str, completions: i64) -> Result<i64, String> {
    if list.is_empty() {
        return Ok(0);
    }
    let mut total = 0;
    let mut last = None;
    for part in list.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {text:?}")),
        Ok(index) if index >= completions => Err(format!("too large index: {text:?}")),
        Ok(index) => Ok(index),
    };
    let ends: Vec<_> = part.split('-').collect();
    match *ends {
        [only] => index(only).map(|index| (index, index)),
        [first, end] => {
            let first = index(first)?;
            let end = index(end)?;
            if first < end {
                Ok((first, end))
            } else {
                Err(format!("non-increasing order, previous: {first}, current: {end}"))
            }
        }
        _ => Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated \
             by '-'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_order() {
        for (list, want) in [("", Ok(0)), ("0", Ok(1)), ("0-3,7", Ok(5))] {
            assert_eq!(count(list, 10), want, "{list}");
        }
        for (list, want) in [
            ("a", "cannot convert string to integer for index: \"a\""),
            ("10", "too large index: \"10\""),
            ("3-1", "non-increasing order, previous: 3, current: 1"),
            ("3,3", "non-increasing order, previous: 3, current: 3"),
        ] {
            assert_eq!(count(list, 10), Err(want.to_owned()), "{list}");
        }
    }
}
