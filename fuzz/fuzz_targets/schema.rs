//! Schemas of custom resources, and objects under them: two JSON documents with a zero byte between them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use steersman_structural_schema::{
    Requirements, Schema, default, prune, validate, validate_definition, validate_lists,
};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut document = || serde_json::from_slice::<Value>(parts.next()?).ok();
    let Some(written) = document() else { return };
    let Ok(schema) = Schema::parse(&written) else { return };
    let errors = validate_definition(&schema, &written, "schema", Requirements::of_new(false));
    let Some(mut object) = document() else { return };
    if !errors.is_empty() {
        return;
    }
    prune(&mut object, &schema);
    if default(&mut object, &schema).is_err() {
        return;
    }
    let once = object.clone();
    assert!(prune(&mut object, &schema).is_empty(), "pruned twice");
    assert!(default(&mut object, &schema).is_ok());
    assert_eq!(object, once, "pruned and defaulted twice");
    let _ = validate(&schema, &object, "");
    let _ = validate_lists(&schema, &object);
});
