//! The syntax of names and labels, in upstream's words.
//!
//! Each check returns a list of problems, empty when the value is valid: a value can be wrong in several ways, and all
//! are reported. The sentences are those of Kubernetes 1.37 (`apimachinery/pkg/util/validation` and
//! `pkg/api/validate/content`), because people search for them. [`FieldError`] adds field and value.

mod field;

pub use field::{FieldError, FieldErrorKind, FieldErrors};

/// The problems of a value, one sentence each; empty if it is valid.
pub type Problems = Vec<String>;

/// Longest DNS label.
pub const DNS_LABEL_LENGTH_MAX: usize = 63;
/// Longest DNS subdomain.
pub const DNS_SUBDOMAIN_LENGTH_MAX: usize = 253;
/// Longest name part of a label key, and longest label value.
pub const LABEL_LENGTH_MAX: usize = 63;

/// The unit of lengths in upstream's sentences; the limit is on bytes either way.
#[derive(Clone, Copy)]
enum Unit {
    Characters,
    Bytes,
}

macro_rules! dns1123_label_pattern {
    () => {
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    };
}
macro_rules! name_pattern {
    () => {
        "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
    };
}

/// A DNS-1123 label, such as a namespace's name: lower-case letters, digits and `-`, no more than 63.
#[must_use]
pub fn dns1123_label(value: &str) -> Problems {
    let mut problems = too_long(value, DNS_LABEL_LENGTH_MAX, Unit::Characters);
    if !is_dns_label(value) {
        problems.push(if is_dns_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            mismatch(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                dns1123_label_pattern!(),
                &["my-name", "123-abc"],
            )
        });
    }
    problems
}

/// A DNS-1123 subdomain, such as most objects' names: labels joined by dots, no more than 253 characters.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Problems {
    subdomain(value, Unit::Characters)
}

fn subdomain(value: &str, unit: Unit) -> Problems {
    let mut problems = too_long(value, DNS_SUBDOMAIN_LENGTH_MAX, unit);
    if !is_dns_subdomain(value) {
        problems.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            concat!(dns1123_label_pattern!(), "(\\.", dns1123_label_pattern!(), ")*"),
            &["example.com"],
        ));
    }
    problems
}

/// A DNS-1035 label, such as a service's name: a DNS-1123 label that starts with a letter.
#[must_use]
pub fn dns1035_label(value: &str) -> Problems {
    let mut problems = too_long(value, DNS_LABEL_LENGTH_MAX, Unit::Characters);
    if !is_dns_label(value) || value.as_bytes()[0].is_ascii_digit() {
        problems.push(mismatch(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// A qualified name, such as a label or annotation key: a name of no more than 63 bytes, and optionally a DNS
/// subdomain and `/` before it.
#[must_use]
pub fn qualified_name(value: &str) -> Problems {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut problems = Problems::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                mismatch(RULE, name_pattern!(), EXAMPLES)
            )];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let wrong = subdomain(prefix, Unit::Bytes);
            problems.extend(wrong.into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    let wrong = too_long(name, LABEL_LENGTH_MAX, Unit::Bytes);
    problems.extend(wrong.into_iter().map(|problem| format!("name part {problem}")));
    if !is_name(name) {
        problems.push(format!("name part {}", mismatch(RULE, name_pattern!(), EXAMPLES)));
    }
    problems
}

/// A label's value: empty, or a name of no more than 63 bytes.
#[must_use]
pub fn label_value(value: &str) -> Problems {
    let mut problems = too_long(value, LABEL_LENGTH_MAX, Unit::Bytes);
    if !value.is_empty() && !is_name(value) {
        problems.push(mismatch(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            concat!("(", name_pattern!(), ")?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// A percentage, such as a Deployment's `maxSurge`: digits and `%`.
#[must_use]
pub fn percent(value: &str) -> Problems {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Problems::new();
    }
    let rule = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![mismatch(rule, "[0-9]+%", &["1%", "93%"])]
}

/// A name that can be one segment of a path in the API: not `.` or `..`, without `/` and `%`.
#[must_use]
pub fn path_segment(value: &str) -> Problems {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    let forbidden = ["/", "%"].into_iter().filter(|part| value.contains(part));
    forbidden.map(|part| format!("may not contain '{part}'")).collect()
}

fn is_dns_label(value: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    framed(value, alphanumeric) && value.bytes().all(|byte| alphanumeric(&byte) || byte == b'-')
}

fn is_dns_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

fn is_name(value: &str) -> bool {
    framed(value, u8::is_ascii_alphanumeric)
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether the first and the last byte are of this class; an empty value has neither.
fn framed(value: &str, class: impl Fn(&u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(&class) && bytes.last().is_some_and(&class)
}

fn too_long(value: &str, length_max: usize, unit: Unit) -> Problems {
    if value.len() <= length_max {
        return Problems::new();
    }
    let unit = match unit {
        Unit::Characters => "characters",
        Unit::Bytes => "bytes",
    };
    vec![format!("must be no more than {length_max} {unit}")]
}

/// Two spaces before `or`, as upstream has them.
fn mismatch(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples = examples.join("',  or '");
    format!("{rule} (e.g. '{examples}', regex used for validation is '{pattern}')")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, test: fn(&str) -> Problems, good: &[&str], bad: &[(&str, &str)]) {
        for value in good {
            assert_eq!(test(value), Problems::new(), "{name} {value:?}");
        }
        for (value, want) in bad {
            assert_eq!(test(value).join("; "), *want, "{name} {value:?}");
        }
    }

    #[test]
    fn names_are_judged_in_upstreams_words() {
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let long = "a".repeat(64);
        check(
            "label",
            dns1123_label,
            &["a", "0", "ab", "a1", "a-1", "a--1--2--b", "01", &"a".repeat(63)],
            &[
                ("", label),
                ("A", label),
                ("-", label),
                ("a-", label),
                ("-a", label),
                ("_", label),
                ("a b", label),
                ("1 ", label),
                ("é", label),
                ("a.a", "must not contain dots"),
                (&long, "must be no more than 63 characters"),
            ],
        );
        let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        check(
            "subdomain",
            dns1123_subdomain,
            &["a", "a.b", "0.1.2.domain", "a--b.c", &"a".repeat(253)],
            &[
                ("", subdomain),
                (".", subdomain),
                ("a.", subdomain),
                ("a..b", subdomain),
                ("A.a", subdomain),
                ("a@b", subdomain),
                (&"a".repeat(254), "must be no more than 253 characters"),
            ],
        );
        let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        check("service", dns1035_label, &["a", "a-1"], &[("", label), ("1a", label), ("a.b", label), ("A", label)]);
        check(
            "path segment",
            path_segment,
            &["", "foo.bar", "..test", "sha256:ABCDEF@1"],
            &[("..", "may not be '..'"), ("a/%", "may not contain '/'; may not contain '%'")],
        );
    }

    #[test]
    fn labels_are_judged_in_upstreams_words() {
        let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        check(
            "key",
            qualified_name,
            &[
                "simple",
                "now-with-dashes",
                "1-starts-with-num",
                "1234",
                "simple/simple",
                "1.2.3.4/5678",
                "Upper_Case.1",
            ],
            &[
                ("nospecialchars%^=@", &format!("name part {rule}")),
                ("", &format!("name part must be non-empty; name part {rule}")),
                ("/a", "prefix part must be non-empty"),
                ("a/", &format!("name part must be non-empty; name part {rule}")),
                (
                    "a/b/c",
                    &format!(
                        "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. \
                         'example.com/MyName')"
                    ),
                ),
                (&"a".repeat(64), "name part must be no more than 63 bytes"),
                (&format!("{}/a", "b".repeat(254)), "prefix part must be no more than 253 bytes"),
            ],
        );
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                    regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        check(
            "value",
            label_value,
            &["", "simple", "a.b_c-D", "1"],
            &[("a b", rule), ("-", rule), ("a-", rule), (&"a".repeat(64), "must be no more than 63 bytes")],
        );
    }

    #[test]
    fn a_percentage_is_digits_and_a_percent_sign() {
        let rule = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                    regex used for validation is '[0-9]+%')";
        check(
            "percent",
            percent,
            &["1%", "0%", "100%"],
            &[("", rule), ("%", rule), ("5", rule), ("-1%", rule), ("1%%", rule)],
        );
    }
}
