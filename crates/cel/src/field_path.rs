//! Paths of fields as rules write them: `.spec.name`, `.labels['a.b']`.

use crate::schema::Schema;

/// The path as errors print it, or what is wrong with it.
pub(crate) fn normalize(path: &str, schema: &Schema) -> Result<String, String> {
    let mut normalized = String::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let token = next_token(&mut rest);
        let end = || "unexpected end of JSON path".to_owned();
        let name = match token {
            "[" => {
                let quoted = if rest.is_empty() { return Err(end()) } else { next_token(&mut rest) };
                let inside = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inside = inside.filter(|_| quoted.len() >= 2);
                let inside = inside.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                unescape(inside).map_err(|error| format!("invalid string literal: {error}"))?
            }
            "." => {
                if rest.is_empty() {
                    return Err(end());
                }
                next_token(&mut rest).to_owned()
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        if let Some(properties) = &schema.properties {
            schema = properties.get(&name).ok_or("does not refer to a valid field")?;
            if !normalized.is_empty() {
                normalized.push('.');
            }
            normalized.push_str(&name);
        } else {
            schema = schema.additional_schema().ok_or("does not refer to a valid field")?;
            normalized.push_str(&format!("[{name}]"));
        }
        if token == "[" {
            let close = if rest.is_empty() { return Err(end()) } else { next_token(&mut rest) };
            if close != "]" {
                return Err(format!("expected ] but got {close}"));
            }
        }
    }
    Ok(normalized)
}

/// Takes the next token: a delimiter, a quoted string, or what is before a delimiter.
fn next_token<'p>(rest: &mut &'p str) -> &'p str {
    let text = *rest;
    let bytes = text.as_bytes();
    let length = if bytes[0] == b'\'' {
        let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[*at - 1] != b'\\');
        close.map_or(bytes.len(), |at| at + 1)
    } else {
        match bytes.iter().position(|byte| b".[]".contains(byte)) {
            Some(0) => 1,
            Some(at) => at,
            None => bytes.len(),
        }
    };
    *rest = &text[length..];
    &text[..length]
}

fn unescape(text: &str) -> Result<String, String> {
    let mut unescaped = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            unescaped.push(char);
            continue;
        }
        match chars.next() {
            Some('a') => unescaped.push('\u{7}'),
            Some('b') => unescaped.push('\u{8}'),
            Some('f') => unescaped.push('\u{c}'),
            Some('n') => unescaped.push('\n'),
            Some('r') => unescaped.push('\r'),
            Some('t') => unescaped.push('\t'),
            Some('v') => unescaped.push('\u{b}'),
            Some(char @ ('\'' | '\\')) => unescaped.push(char),
            Some(char) => return Err(format!("invalid escape char \\{char}")),
            None => unescaped.push('\\'),
        }
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_fields() {
        let schema = Schema::new(&serde_json::json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a.b": {"type": "string"}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }}));
        let check = |path: &str, want: Result<&str, &str>| {
            assert_eq!(normalize(path, &schema).as_deref().map_err(String::as_str), want, "{path}");
        };
        check(".spec['a.b']", Ok("spec.a.b"));
        check(".labels.x", Ok("labels[x]"));
        check(".spec.c", Err("does not refer to a valid field"));
        check("spec", Err("expected [ or . but got: spec"));
        check(".spec['a.b'", Err("unexpected end of JSON path"));
    }
}
