//! Tables of the decisions.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::View;
use steersman_model::core::{ServiceAccountView, TokenSecretView};

use super::plan::{Limit, Step, account_name, add_secrets, date, is_automatic};
use crate::test_objects::{NOW, decode, merged, now, pod};

/// With [`NOW`] it makes the limit 2025-11-15.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn secret(more: Value) -> TokenSecretView {
    let base = json!({ "metadata": {
        "name": "robot-token", "namespace": "default", "uid": "s", "creationTimestamp": "2020-01-01T00:00:00Z",
        "annotations": { "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": "robot" },
    } });
    decode(merged(base, more))
}

fn limit() -> Limit {
    Limit::new(time("2020-01-01T00:00:00Z"), YEAR, now()).unwrap()
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

#[test]
fn nothing_happens_before_use_was_tracked_for_a_period_and_a_day() {
    let check = |since: &str, want: bool| {
        assert_eq!(Limit::new(date(since).unwrap(), YEAR, now()).is_some(), want, "{since}");
    };
    check("2025-11-13", true);
    check("2025-11-14", true);
    check("2025-11-15", false);
    check("2026-11-15", false);
    for wrong in ["", "2025", "2025-11-32", "2025-11-14T00:00:00Z", "14-11-2025", "2025/11/14"] {
        assert_eq!(date(wrong), None, "{wrong}");
    }
    let ages = Duration::from_secs(u64::MAX);
    assert_eq!(Limit::new(date("2020-01-01").unwrap(), ages, now()), None);
}

#[test]
fn a_token_is_unused_if_it_is_old_and_was_not_used_since() {
    let check = |name: &str, more: Value, want: bool| {
        assert_eq!(limit().is_unused(secret(more).meta()), want, "{name}");
    };
    let used = |day: &str| json!({ "metadata": { "labels": { "kubernetes.io/legacy-token-last-used": day } } });
    check("never used", json!({}), true);
    check("used before", used("2025-11-14"), true);
    check("used on that day", used("2025-11-15"), false);
    check("used since", used("2026-01-01"), false);
    check("a mark that is no date", used("yesterday"), false);
    check("new", json!({ "metadata": { "creationTimestamp": "2025-11-15T12:00:00Z" } }), false);
    check("just old enough", json!({ "metadata": { "creationTimestamp": "2025-11-15T11:59:59Z" } }), true);
    check("terminating", json!({ "metadata": { "deletionTimestamp": NOW } }), false);
}

#[test]
fn a_token_is_marked_then_kept_for_a_period_then_deleted() {
    let check = |mark: Option<&str>, want: Step| {
        let labels = json!({ "kubernetes.io/legacy-token-invalid-since": mark });
        let labels = mark.map_or(json!({}), |_| labels);
        assert_eq!(limit().step(secret(json!({ "metadata": { "labels": labels } })).meta()), want, "{mark:?}");
    };
    check(None, Step::Invalidate);
    check(Some("whenever"), Step::Invalidate);
    check(Some("2026-11-15"), Step::Keep);
    check(Some("2025-11-15"), Step::Keep);
    check(Some("2025-11-14"), Step::Delete);
    let want = json!({
        "metadata": { "uid": "s", "labels": { "kubernetes.io/legacy-token-invalid-since": "2026-11-15" } },
    });
    assert_eq!(limit().invalid(secret(json!({})).meta()), want);
}

#[test]
fn only_a_token_that_its_account_lists_is_automatic() {
    let account = |uid: &str, secrets: Value| -> ServiceAccountView {
        decode(json!({ "metadata": { "name": "robot", "namespace": "default", "uid": uid }, "secrets": secrets }))
    };
    let listed = json!([{ "name": "other" }, { "name": "robot-token" }]);
    let of_no_uid = json!({ "metadata": { "annotations": { "kubernetes.io/service-account.uid": null } } });
    assert!(is_automatic(&secret(json!({})), &account("robot", listed.clone())));
    assert!(is_automatic(&secret(of_no_uid), &account("another", listed.clone())));
    assert!(!is_automatic(&secret(json!({})), &account("another", listed)));
    assert!(!is_automatic(&secret(json!({})), &account("robot", json!([]))));
    assert_eq!(account_name(&secret(json!({}))).map(|name| &**name), Some("robot"));
    let of_nobody = json!({ "metadata": { "annotations": { "kubernetes.io/service-account.name": "" } } });
    assert_eq!(account_name(&secret(of_nobody)), None);
}

#[test]
fn a_pod_uses_secrets_in_many_places() {
    let env = |name: &str| json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": name, "key": "k" } } }]);
    let pod = pod(
        "web",
        json!({ "spec": {
            "imagePullSecrets": [{ "name": "pull" }],
            "containers": [{ "name": "a", "env": env("env"), "envFrom": [{ "secretRef": { "name": "env-from" } }] }],
            "initContainers": [{ "name": "b", "env": env("init") }],
            "ephemeralContainers": [{ "name": "c", "env": env("ephemeral") }],
            "volumes": [{ "name": "v", "secret": { "secretName": "volume" } }],
        } }),
    );
    let mut names = BTreeSet::new();
    add_secrets(&pod, &mut names);
    let names: Vec<_> = names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["env", "env-from", "ephemeral", "init", "pull", "volume"]);
}
