//! Pure: DER, as far as certificates and keys need it: values are cut and put together, and nothing is interpreted.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// One value: its tag, its content, and all of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) whole: &'a [u8],
}

/// Returns the first value and the bytes after it; `None` if there is none, or it ends too early.
pub(crate) fn first(der: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 4)?;
        (bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let whole = der.get(..der.len() - rest.len())?;
    Some((Element { tag, content, whole }, rest))
}

/// Returns the content and the rest of a value with this tag.
pub(crate) fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (element, rest) = first(der)?;
    (element.tag == tag).then_some((element.content, rest))
}

/// Returns the values, one after the other; `None` if one of them ends too early.
pub(crate) fn elements(mut der: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut all = Vec::new();
    while !der.is_empty() {
        let (element, rest) = first(der)?;
        all.push(element);
        der = rest;
    }
    Some(all)
}

/// Encodes a value: tag, length, content.
pub(crate) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut value = vec![tag];
    match u8::try_from(length) {
        Ok(length @ ..0x80) => value.push(length),
        _ => {
            let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
            // A length has at most eight bytes.
            value.push(0x80 | u8::try_from(bytes.len()).unwrap_or(8));
            value.extend(bytes);
        }
    }
    value.extend_from_slice(content);
    value
}

/// Encodes a sequence of encoded values.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

/// Encodes bits, all of whose bytes count.
pub(crate) fn bits(content: &[u8]) -> Vec<u8> {
    tagged(BIT_STRING, &[&[0], content].concat())
}
