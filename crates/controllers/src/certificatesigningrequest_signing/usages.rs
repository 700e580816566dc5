//! Pure: the usages of a key, by their names in the API.
//!
//! Follows `keyUsagesFromStrings` of `pkg/controller/certificates/authority/policies.go`.

use std::collections::BTreeSet;

use steersman_base::Istr;

use crate::certificates::der;

/// The usages of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usages {
    /// The bits of `KeyUsage`, the first one lowest.
    pub(super) bits: u16,
    /// The object identifiers of `ExtKeyUsage`, as positions in [`EXTENDED`], which is Go's order.
    pub(super) extended: BTreeSet<usize>,
}

const BITS: [(&str, u16); 10] = [
    ("digital signature", 0),
    ("signing", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Names, and the content of the object identifier.
const EXTENDED: [(&[&str], &[u8]); 12] = [
    (&["any"], &[0x55, 0x1d, 0x25, 0x00]),
    (&["server auth"], &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    (&["client auth"], &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    (&["code signing"], &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    (&["email protection", "s/mime"], &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    (&["ipsec end system"], &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    (&["ipsec tunnel"], &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    (&["ipsec user"], &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    (&["timestamping"], &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    (&["ocsp signing"], &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    (&["microsoft sgc"], &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    (&["netscape sgc"], &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

// === impl Usages ===

impl Usages {
    /// Reads the usages of a request.
    ///
    /// # Errors
    /// There are unknown ones.
    pub(super) fn parse(names: &[Istr]) -> Result<Self, String> {
        let mut usages = Self::default();
        let mut unknown = Vec::new();
        for name in names {
            let bit = BITS.iter().find(|(known, _)| **name == **known);
            let extended = EXTENDED.iter().position(|(known, _)| known.contains(&&**name));
            match (bit, extended) {
                (Some((_, bit)), _) => usages.bits |= 1 << bit,
                (None, Some(at)) => drop(usages.extended.insert(at)),
                (None, None) => unknown.push(format!("{name:?}")),
            }
        }
        if unknown.is_empty() { Ok(usages) } else { Err(format!("unrecognized usage values: [{}]", unknown.join(" "))) }
    }

    /// Returns the value of the extension `KeyUsage`; `None` if there are no bits.
    pub(super) fn key_usage(&self) -> Option<Vec<u8>> {
        let last = u16::try_from(self.bits.checked_ilog2()?).ok()?;
        // In a bit string the first bit is the highest one.
        let bytes = self.bits.reverse_bits().to_be_bytes();
        let count = usize::from(last / 8) + 1;
        let unused = u8::try_from(7 - last % 8).ok()?;
        Some(der::tagged(der::BIT_STRING, &[&[unused], bytes.get(..count)?].concat()))
    }

    /// Returns the value of the extension `ExtKeyUsage`; `None` if there are no extended usages.
    pub(super) fn extended_key_usage(&self) -> Option<Vec<u8>> {
        let ids = self.extended.iter().filter_map(|at| EXTENDED.get(*at));
        let ids: Vec<u8> = ids.flat_map(|(_, id)| der::tagged(der::OBJECT_ID, id)).collect();
        (!ids.is_empty()).then(|| der::tagged(der::SEQUENCE, &ids))
    }
}
