//! One `let` per binding, and options of one level: code that is read from left to right.

use super::Finding;
use super::lexer::Source;

pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut start = 0;
    for (number, line) in source.lines() {
        let code = &source.code[start..];
        if line.trim_start().starts_with("let (") && binds_a_tuple(code) {
            findings.push(Finding::error(number, "`let (a, b) = (x, y)`: write one `let` per binding"));
        }
        if line.contains("Option<Option<") {
            findings.push(Finding::error(number, "`Option<Option<…>>`: give the cases names, in an enum"));
        }
        start += line.len() + 1;
    }
    findings
}

/// Whether the code starts with `let (…) = (…, …);`, with or without a type.
fn binds_a_tuple(code: &str) -> bool {
    let statement = || {
        let (_, rest) = in_parentheses(code)?;
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix(':') {
            Some(typed) => &typed[typed.find('=')?..],
            None => rest,
        };
        let value = rest.strip_prefix('=')?.trim_start();
        let (inside, rest) = in_parentheses(value).filter(|_| value.starts_with('('))?;
        Some(rest.trim_start().starts_with(';') && has_comma(inside))
    };
    statement().unwrap_or(false)
}

/// Returns what is in the first pair of parentheses, and the rest behind it.
fn in_parentheses(code: &str) -> Option<(&str, &str)> {
    let open = code.find('(')?;
    let mut depth = 0_usize;
    for (at, char) in code[open..].char_indices() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some((&code[open + 1..open + at], &code[open + at + 1..]));
        }
    }
    None
}

/// Whether there is a comma outside of all brackets.
fn has_comma(code: &str) -> bool {
    let mut depth = 0_i32;
    code.chars().any(|char| {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        char == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_let_that_binds_a_tuple_expression_is_found() {
        for (text, want) in [
            ("let (a, b) = (x, y);", vec![1]),
            ("fn f() {\n    let (a, b): (u8, u8) =\n        (x(1), y);\n}", vec![2]),
            ("let (a, b) = pair(x, y);", vec![]),
            ("let (a, b) = (x, y).swap();", vec![]),
            ("let (Some(a), Some(b)) = (x, y) else { return };", vec![]),
            ("let (a, b): (Vec<_>, Vec<_>) = all.partition(is_small);", vec![]),
            ("// let (a, b) = (x, y);", vec![]),
            ("fn f() -> Option<Option<u8>> {}", vec![1]),
        ] {
            let found: Vec<_> = check(&Source::new(text));
            assert_eq!(found.into_iter().map(|finding| finding.line).collect::<Vec<_>>(), want, "{text}");
        }
    }
}
