//! `FieldsV1` of managed fields: what is read and written again is the same, and sets obey their algebra.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steersman_structured_merge::FieldSet;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut set = || FieldSet::parse(parts.next()?).ok();
    let Some(one) = set() else { return };
    let text = one.to_json();
    assert_eq!(FieldSet::parse(text.as_bytes()).map(|again| again.to_json()).ok(), Some(text));
    let Some(other) = set() else { return };
    let both = one.union(&other);
    assert_eq!(both.to_json(), other.union(&one).to_json(), "the order of a union");
    assert_eq!(one.intersection(&both).to_json(), one.to_json(), "a part of a union");
    assert!(one.difference(&both).is_empty());
});
