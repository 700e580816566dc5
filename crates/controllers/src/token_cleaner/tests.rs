//! Table tests of the pure functions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use steersman_base::Time;
use steersman_model::core::BootstrapTokenView;
use steersman_model::{Encoded, View};

use crate::bootstrap_token::{Expiry, expiry};

/// Upstream's `TestCleanerNoExpiration`, `…Expired`, `…NotExpired`, `…ExpiredAt`.
#[test]
fn a_token_expires_when_it_says_or_at_once_if_that_cannot_be_read() {
    let now: Time = "2026-11-17T12:00:00Z".parse().unwrap();
    let check = |text: &str, want: Expiry| {
        let object = json!({
            "metadata": { "name": "bootstrap-token-abcdef", "namespace": "kube-system" },
            "type": "bootstrap.kubernetes.io/token",
            "data": { "expiration": STANDARD.encode(text) },
        });
        let token = BootstrapTokenView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
        assert_eq!(expiry(&token, now), want, "{text}");
    };
    check("", Expiry::Never);
    check("2026-11-17T12:00:01Z", Expiry::At(now.plus_seconds(1)));
    check("2026-11-17T14:00:01+02:00", Expiry::At(now.plus_seconds(1)));
    check("2026-11-17T12:00:00Z", Expiry::Expired);
    check("2020-01-01T00:00:00Z", Expiry::Expired);
    check("17.11.2026", Expiry::Expired);
}
