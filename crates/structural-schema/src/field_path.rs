//! Paths to fields as definitions write them: `.spec.color`, `.metadata['name']`. Follows `ValidFieldPath` of
//! `apiextensions-apiserver/pkg/apiserver/schema/cel`.

use crate::schema::Schema;

/// A path that a schema has: its fields, and the schema of the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldPath<'a> {
    /// The names of the fields, from the outside.
    pub fields: Vec<String>,
    /// The schema of the field.
    pub schema: &'a Schema,
}

/// Finds the field of a path.
///
/// # Errors
/// With what is wrong with the path.
pub fn resolve<'a>(path: &str, schema: &'a Schema, brackets: bool) -> Result<FieldPath<'a>, String> {
    let mut tokens = Tokens { rest: path };
    let mut found = FieldPath { fields: Vec::new(), schema };
    const END: &str = "unexpected end of JSON path";
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let token = tokens.next().ok_or(END)?;
                let quoted = token.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
                let Some(quoted) = quoted else {
                    return Err(format!("expected single quoted string but got {token}"));
                };
                quoted.replace("\\'", "'").replace("\\\\", "\\")
            }
            "." => tokens.next().ok_or(END)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let within = found.schema;
        let next = if within.properties.is_empty() { within.additional_schema() } else { within.properties.get(&name) };
        found.schema = next.ok_or("does not refer to a valid field")?;
        found.fields.push(name);
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err(END.to_owned()),
            }
        }
    }
    Ok(found)
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let end = if first == '\'' {
            let bytes = self.rest.as_bytes();
            let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
            close.map_or(self.rest.len(), |at| at + 1)
        } else if matches!(first, '.' | '[' | ']') {
            1
        } else {
            self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len())
        };
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }
}
