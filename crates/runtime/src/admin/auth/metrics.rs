//! Counters of authentication and authorisation, under upstream's names.

use std::time::Duration;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, exponential_buckets,
};

use super::User;
use super::review::{Decision, ReviewError};

#[derive(Clone)]
pub(super) struct AuthMetrics {
    users: IntCounterVec,
    authentications: IntCounterVec,
    authentication_time: HistogramVec,
    authorizations: IntCounterVec,
    authorization_time: HistogramVec,
    token_requests: IntCounterVec,
    token_time: HistogramVec,
    token_fetches: IntCounterVec,
    token_fetching: IntGaugeVec,
}

/// A running token review; dropping it ends it.
pub(super) struct Fetching<'a> {
    fetches: &'a IntCounterVec,
    active: IntGauge,
}

// === impl AuthMetrics ===

impl AuthMetrics {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, label: &str| IntCounterVec::new(Opts::new(name, help), &[label]);
        let histogram = |name: &str, help: &str, buckets: Vec<f64>, label: &str| {
            HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), &[label])
        };
        let doubled = exponential_buckets(0.001, 2.0, 15)?;
        // Upstream has no help text for the cache's metrics; the library requires one.
        let cache = "[ALPHA]";
        let metrics = Self {
            users: counter(
                "authenticated_user_requests",
                "[ALPHA] Counter of authenticated requests broken out by username.",
                "username",
            )?,
            authentications: counter(
                "authentication_attempts",
                "[ALPHA] Counter of authenticated attempts.",
                "result",
            )?,
            authentication_time: histogram(
                "authentication_duration_seconds",
                "[ALPHA] Authentication duration in seconds broken out by result.",
                doubled.clone(),
                "result",
            )?,
            authorizations: counter(
                "authorization_attempts_total",
                "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', \
                 'denied', 'no-opinion' or 'error'.",
                "result",
            )?,
            authorization_time: histogram(
                "authorization_duration_seconds",
                "[ALPHA] Authorization duration in seconds broken out by result.",
                doubled,
                "result",
            )?,
            token_requests: counter("authentication_token_cache_request_total", cache, "status")?,
            token_time: histogram(
                "authentication_token_cache_request_duration_seconds",
                cache,
                prometheus::DEFAULT_BUCKETS.to_vec(),
                "status",
            )?,
            token_fetches: counter("authentication_token_cache_fetch_total", cache, "status")?,
            token_fetching: IntGaugeVec::new(
                Opts::new("authentication_token_cache_active_fetch_count", cache),
                &["status"],
            )?,
        };
        for family in [&metrics.users, &metrics.authentications, &metrics.authorizations, &metrics.token_requests] {
            registry.register(Box::new(family.clone()))?;
        }
        for family in [&metrics.authentication_time, &metrics.authorization_time, &metrics.token_time] {
            registry.register(Box::new(family.clone()))?;
        }
        registry.register(Box::new(metrics.token_fetches.clone()))?;
        registry.register(Box::new(metrics.token_fetching.clone()))?;
        Ok(metrics)
    }

    /// Records an authentication.
    pub(super) fn authenticated(&self, user: Option<&User>, took: Duration) {
        let result = if user.is_some() { "success" } else { "error" };
        if let Some(user) = user {
            self.users.with_label_values(&[known_user(&user.name)]).inc();
        }
        self.authentications.with_label_values(&[result]).inc();
        self.authentication_time.with_label_values(&[result]).observe(took.as_secs_f64());
    }

    /// Records an authorisation.
    pub(super) fn authorized(&self, decision: &Result<Decision, ReviewError>, took: Duration) {
        let result = match decision {
            Ok(decision) if decision.allowed.is_some() => "allowed",
            Ok(decision) if decision.denied => "denied",
            Ok(_) => "no-opinion",
            Err(_) => "error",
        };
        self.authorizations.with_label_values(&[result]).inc();
        self.authorization_time.with_label_values(&[result]).observe(took.as_secs_f64());
    }

    /// Records a look-up of a token in the cache.
    pub(super) fn token_asked(&self, hit: bool, took: Duration) {
        let status = if hit { "hit" } else { "miss" };
        self.token_requests.with_label_values(&[status]).inc();
        self.token_time.with_label_values(&[status]).observe(took.as_secs_f64());
    }

    /// Records the start of a token review.
    pub(super) fn token_fetch(&self) -> Fetching<'_> {
        let active = self.token_fetching.with_label_values(&["in_flight"]);
        active.inc();
        Fetching { fetches: &self.token_fetches, active }
    }
}

// === impl Fetching ===

impl Fetching<'_> {
    pub(super) fn end(self, answered: bool) {
        self.fetches.with_label_values(&[if answered { "ok" } else { "error" }]).inc();
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.active.dec();
    }
}

/// Limits the label to upstream's few values.
fn known_user(name: &str) -> &str {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => name,
        email if email.contains('@') => "email_id",
        _ => "other",
    }
}
