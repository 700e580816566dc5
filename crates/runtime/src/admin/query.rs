//! Query parameters, decoded as Go's `net/url` does.

/// The parameters of a request, in order; names may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

/// The meaning of a plus sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plus {
    /// A plus sign, in paths.
    Literal,
    /// A space, in parameters.
    Space,
}

// === impl Query ===

impl Query {
    /// Parses `a=1&b=2`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name, Plus::Space), decode(value, Plus::Space))
        });
        Self(pairs.collect())
    }

    /// Returns the first value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str())
    }

    /// Returns every value of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(each, _)| each == name).map(|(_, value)| value.as_str())
    }

    /// Whether the name is present, with or without a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// Decodes percent-encoding. Invalid encodings stay as they are; bytes that are not UTF-8 become replacement
/// characters.
pub(super) fn decode(text: &str, plus: Plus) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match (byte, hex(bytes.get(at)), hex(bytes.get(at + 1))) {
            (b'%', Some(high), Some(low)) => {
                // Two digits make a byte.
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                at += 2;
            }
            (b'+', ..) if plus == Plus::Space => decoded.push(b' '),
            _ => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
