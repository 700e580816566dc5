//! Property names as identifiers: `my-field` is `my__dash__field`, `namespace` is `__namespace__`.

use std::borrow::Cow;

/// Words that are part of the grammar.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Words that the grammar keeps for later: no identifier may be one of them.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word is reserved by the grammar: no identifier may be one, and a property of this name is written with
/// underscores around it.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || RESERVED.contains(&name)
}

/// The identifier for a property, if there is one.
#[must_use]
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    let first = name.bytes().next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__").into());
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)) {
        return None;
    }
    if !name.contains(['-', '.', '/']) && !name.contains("__") {
        return Some(name.into());
    }
    let escaped = name.replace("__", "\0");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__");
    Some(escaped.replace('\0', "__underscores__").into())
}

/// The property that an identifier stands for.
pub(crate) fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    if !identifier.contains("__") {
        return Some(identifier.into());
    }
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        let inside = &rest[start + 2..];
        let length = inside.bytes().take_while(|byte| *byte != b'_').count();
        if length == 0 || !inside[length..].starts_with("__") {
            // No escape starts here; the next one may start at the following underscore.
            name.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        }
        name.push_str(&rest[..start]);
        match &inside[..length] {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            word if is_reserved(word) && length + 4 == identifier.len() => name.push_str(word),
            _ => return None,
        }
        rest = &inside[length + 2..];
    }
    name.push_str(rest);
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_upstream_does() {
        let check = |name: &str, want: Option<&str>| assert_eq!(escape(name).as_deref(), want, "{name}");
        check("name", Some("name"));
        check("a_b", Some("a_b"));
        check("a__b", Some("a__underscores__b"));
        check("a.b-c/d", Some("a__dot__b__dash__c__slash__d"));
        check("namespace", Some("__namespace__"));
        check("", None);
        check("1a", None);
        check("a b", None);
        for name in ["a__b", "a.b-c/d", "namespace", "a___b", "_"] {
            let escaped = escape(name).expect("can be escaped");
            assert_eq!(unescape(&escaped).as_deref(), Some(name), "{escaped}");
        }
        assert_eq!(unescape("__foo__"), None);
    }
}
