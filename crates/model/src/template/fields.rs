//! The fields of a JSON object whose values stay texts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess};
use serde_json::value::RawValue;

/// The fields of a JSON object, in their order: some can be taken out or put in, and none of the others is decoded.
#[derive(Debug)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

// === impl Fields ===

impl<'a> Fields<'a> {
    /// Reads the fields of an object.
    ///
    /// # Errors
    /// The text is no JSON object.
    pub fn of(object: &'a str) -> Result<Self, serde_json::Error> {
        let Borrowed(fields) = serde_json::from_str(object)?;
        Ok(Self(fields))
    }

    /// Takes a field out, and returns its JSON. Of several fields of one name the last counts.
    pub fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let mut last = None;
        while let Some(at) = self.0.iter().position(|(held, _)| held == name) {
            last = Some(self.0.remove(at).1);
        }
        last
    }

    /// Puts a field in, whose value is this JSON, in place of any of its name.
    pub fn put(&mut self, name: &'static str, json: impl Into<Cow<'a, str>>) {
        self.take(name);
        self.0.push((Cow::Borrowed(name), json.into()));
    }

    /// Returns the JSON of the object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let length: usize = self.0.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let mut text = String::with_capacity(length + 2);
        text.push('{');
        for (name, value) in &self.0 {
            if text.len() > 1 {
                text.push(',');
            }
            push_name(&mut text, name);
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        text
    }
}

fn push_name(text: &mut String, name: &str) {
    if name.bytes().any(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        text.push_str(&serde_json::Value::from(name).to_string());
        return;
    }
    text.push('"');
    text.push_str(name);
    text.push('"');
}

struct Borrowed<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de> Deserialize<'de> for Borrowed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> de::Visitor<'de> for Object {
            type Value = Borrowed<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    fields.push((name, Cow::Borrowed(map.next_value::<&RawValue>()?.get())));
                }
                Ok(Borrowed(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The name of a field; borrowed, unless it has escaped letters.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> de::Visitor<'de> for Text {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }
            fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_and_the_others_stay_byte_for_byte() {
        let mut fields =
            Fields::of(r#" {"a": [1.50,{"x":"}"}], "h\u006fst":"old","b":"\u00e9" , "host":"older"} "#).unwrap();
        fields.put("host", r#""new""#);
        assert_eq!(fields.to_json(), r#"{"a":[1.50,{"x":"}"}],"b":"\u00e9","host":"new"}"#);
        assert_eq!(fields.take("a").as_deref(), Some(r#"[1.50,{"x":"}"}]"#));
        assert_eq!(fields.take("a"), None);
        assert_eq!(fields.to_json(), r#"{"b":"\u00e9","host":"new"}"#);
    }

    #[test]
    fn odd_names_stay_json() {
        let odd = r#"{"\"\n":1,"":2}"#;
        assert_eq!(Fields::of(odd).unwrap().to_json(), odd);
        assert_eq!(Fields::of("{}").unwrap().to_json(), "{}");
        for none in ["", "[]", "null", r#"{"a":}"#, r#"{"a":1"#] {
            assert!(Fields::of(none).is_err(), "{none}");
        }
    }
}
