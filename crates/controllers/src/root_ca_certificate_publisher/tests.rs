//! Table tests of the pure functions.

use serde_json::{Value, json};
use steersman_model::core::ConfigMapView;
use steersman_model::{Encoded, View};
use steersman_runtime::WriteError;

use super::metrics::code;
use super::plan::{correct, is_as_wanted, new};

#[test]
fn a_map_that_is_not_as_wanted_is_corrected_and_nothing_else_is_changed() {
    let check = |name: &str, map: &Value, want: bool| {
        let view = ConfigMapView::decode(Encoded::Json(map.to_string().as_bytes())).unwrap();
        assert_eq!(is_as_wanted(&view, "CA"), want, "{name}");
        let mut mended = map.clone();
        assert_eq!(correct(&mut mended, "CA"), !want, "{name}");
        let view = ConfigMapView::decode(Encoded::Json(mended.to_string().as_bytes())).unwrap();
        assert!(is_as_wanted(&view, "CA"), "{name}: {mended}");
        assert!(!correct(&mut mended, "CA"), "{name}: {mended}");
        mended
    };
    let mut map = new("ns", "CA");
    check("new", &map, true);
    map["metadata"]["annotations"]["mine"] = json!("stays");
    map["binaryData"] = json!({ "raw": "AAEC" });
    check("with something of somebody else's", &map, true);
    for (name, place, value) in [
        ("another certificate", "/data", json!({ "ca.crt": "forged" })),
        ("more data", "/data", json!({ "ca.crt": "CA", "more": "" })),
        ("other data", "/data", json!({ "b": "CA" })),
        ("no data", "/data", json!(null)),
        ("not described", "/metadata/annotations", json!({ "mine": "stays" })),
        ("described as nothing", "/metadata/annotations", json!({ "mine": "stays", "kubernetes.io/description": "" })),
    ] {
        let mut wrong = map.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        let mended = check(name, &wrong, false);
        assert_eq!(mended, map, "{name}");
    }
    let mut bare = map.clone();
    bare["metadata"]["annotations"] = json!(null);
    check("no annotations", &bare, false);
}

#[test]
fn passes_are_counted_by_code() {
    let mut forbidden = steersman_runtime::writer::Rejection::default();
    forbidden.code = 403;
    for (outcome, want) in [
        (Ok(()), 200),
        (Err(WriteError::Conflict), 409),
        (Err(WriteError::Throttled(std::time::Duration::from_secs(1))), 429),
        (Err(WriteError::Rejected(forbidden)), 403),
        (Err(WriteError::Unknown(Box::default())), 500),
    ] {
        assert_eq!(code(outcome.as_ref().copied()), want, "{outcome:?}");
    }
}
