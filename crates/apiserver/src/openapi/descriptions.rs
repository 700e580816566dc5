//! What upstream's documents say about kinds and fields, for people: `kubectl explain` prints it.
//!
//! It is kept compressed, and read when the first document is asked for.

use std::collections::HashMap;
use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::Value;

/// Lines of a type's OpenAPI name, each followed by lines of its fields: name, tab, description. The description of the type
/// itself has an empty name.
static PACKED: &[u8] = include_bytes!("../../data/descriptions.gz");

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    if let Err(error) = GzDecoder::new(PACKED).read_to_string(&mut text) {
        tracing::error!(%error, "the descriptions of kinds cannot be read");
    }
    text
});

static FIELDS: LazyLock<HashMap<&'static str, Vec<(&'static str, &'static str)>>> = LazyLock::new(|| {
    let mut types: HashMap<&str, Vec<(&str, &str)>> = HashMap::new();
    let mut current = "";
    for line in TEXT.lines() {
        match line.split_once('\t') {
            Some(row) => types.entry(current).or_default().push(row),
            None => current = line,
        }
    }
    types
});

/// Adds the descriptions of a type and of its fields to its schema.
pub(super) fn describe(name: &str, schema: &mut Value) {
    for (field, description) in FIELDS.get(name).into_iter().flatten() {
        let place = if field.is_empty() { Some(&mut *schema) } else { schema["properties"].get_mut(*field) };
        if let Some(Value::Object(described)) = place {
            described.insert("description".to_owned(), unescaped(description).into());
        }
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                other => other.unwrap_or('\\'),
            },
            letter => letter,
        });
    }
    plain
}
