//! Table tests of the pure functions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_model::{Encoded, View};

use super::Options;
use super::plan::over;
use super::sync::Why;

/// Upstream's `TestCleanerWithApprovedExpiredCSR`, whose table covers all states.
#[test]
fn requests_are_deleted_by_their_state_and_age() {
    let now: Time = "2026-11-17T12:00:00Z".parse().unwrap();
    let ago = |minutes: i64| now.plus_seconds(-60 * minutes).to_string();
    let certificate = |year: i32| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let pem = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        json!(STANDARD.encode(pem))
    };
    let check = |name: &str, created: i64, conditions: Value, certificate: Value, want: Option<&str>| {
        let object = json!({
            "metadata": { "name": "a", "uid": "1", "creationTimestamp": ago(created) },
            "status": { "conditions": conditions, "certificate": certificate },
        });
        let view = CertificateSigningRequestView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
        let got = over(&view, &Options::default(), now);
        let got = got.as_ref().map(|why| match why {
            Why::Issued => "issued",
            Why::Denied => "denied",
            Why::Failed => "failed",
            Why::Pending => "pending",
            Why::Expired => "expired",
            Why::Unissued => "unissued",
        });
        assert_eq!(got, want, "{name}");
    };
    let since =
        |type_: &str, minutes: i64| json!([{ "type": type_, "status": "True", "lastUpdateTime": ago(minutes) }]);
    let none = || json!(null);
    let good = certificate(2030);
    check("new", 1, json!([]), none(), None);
    check("pending for a day", 24 * 60, json!([]), none(), None);
    check("pending for more", 24 * 60 + 1, json!([]), none(), Some("pending"));
    check("approved, not issued", 1, since("Approved", 61), none(), None);
    check("approved, not issued for a day", 1, since("Approved", 24 * 60 + 1), none(), Some("unissued"));
    check("issued", 1, since("Approved", 60), good.clone(), None);
    check("issued an hour ago", 1, since("Approved", 61), good.clone(), Some("issued"));
    check("issued, and expired", 1, since("Approved", 1), certificate(2020), Some("expired"));
    check("issued, not readable", 1, since("Approved", 1), json!("bm90aGluZw=="), None);
    check("denied", 1, since("Denied", 60), none(), None);
    check("denied an hour ago", 1, since("Denied", 61), none(), Some("denied"));
    check("failed", 1, since("Failed", 59), none(), None);
    check("failed an hour ago", 1, since("Failed", 61), none(), Some("failed"));
    check("without times", 24 * 60 + 1, json!([{ "type": "Denied", "status": "True" }]), none(), None);
    check("issued without an approval", 24 * 60 + 1, since("Other", 100), good, None);
}
