//! Pure: which values go together, as upstream's options validate them.
//!
//! Follows `cmd/kube-controller-manager/app/options`, `apiserver/pkg/server/options` and `component-base/logs/api/v1` of
//! 1.37.1. Stricter in one thing: *every* number of workers must be at least 1, because a controller without workers
//! looks healthy and does nothing.

use super::nearest::{did_you_mean, nearest};
use super::parse::Parsed;
use super::{Kind, Value, table};
use crate::gates::Gates;

/// Flags whose values have bounds, both included.
const RANGES: &[(&str, i64, i64)] = &[
    ("secure-port", 0, 65535),
    ("concurrent-service-endpoint-syncs", 1, 50),
    ("max-endpoints-per-slice", 1, 1000),
    ("mirroring-concurrent-service-endpoint-syncs", 1, 50),
    ("mirroring-max-endpoints-per-subset", 1, 1000),
];

/// Flags that take one of a few words.
const WORDS: &[(&str, &[&str])] = &[
    ("logging-format", &["text", "json"]),
    ("cidr-allocator-type", &["RangeAllocator", ""]),
    ("cloud-provider", &["", "external"]),
    ("tls-min-version", &["", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"]),
];

/// Signers with a certificate and a key of their own.
const SIGNERS: [&str; 4] = ["kubelet-serving", "kubelet-client", "kube-apiserver-client", "legacy-unknown"];

/// The minor versions of 1.x that 1.37 can emulate.
const EMULATED: std::ops::RangeInclusive<u32> = 34..=37;

/// The ratio between the renewal timeout and the retry period (`leaderelection.JitterFactor`).
const RETRY_JITTER: f64 = 1.2;

/// Everything that is wrong, each a sentence that names the flag.
pub(crate) fn check(flags: &Parsed, gates: &Gates) -> Vec<String> {
    let mut wrong = Vec::new();
    ranges(flags, &mut wrong);
    words(flags, &mut wrong);
    lease(flags, &mut wrong);
    signing(flags, &mut wrong);
    logs(flags, gates, &mut wrong);
    headers(flags, gates, &mut wrong);
    versions(flags, &mut wrong);
    metrics(flags, &mut wrong);
    rest(flags, &mut wrong);
    wrong
}

fn ranges(flags: &Parsed, wrong: &mut Vec<String>) {
    for &(name, min, max) in RANGES {
        let value = flags.int(name);
        if !(min..=max).contains(&value) {
            wrong.push(format!("--{name}: {value} is not between {min} and {max}"));
        }
    }
    let syncs = |name: &&str| name.contains("concurrent-") && name.ends_with("-syncs");
    for name in table().iter().filter(|flag| flag.kind == Kind::Int32).map(|flag| flag.name).filter(syncs) {
        let value = flags.int(name);
        if value < 1 && !RANGES.iter().any(|range| range.0 == name) {
            wrong.push(format!("--{name}: {value} workers do nothing; give at least 1"));
        }
    }
}

fn words(flags: &Parsed, wrong: &mut Vec<String>) {
    for (name, known) in WORDS {
        let text = flags.text(name);
        if !known.contains(&text) {
            let named: Vec<_> = known.iter().filter(|word| !word.is_empty()).copied().collect();
            let near = did_you_mean(nearest(text, named.iter().copied()));
            let near = if near.is_empty() { format!("; there is {}", named.join(", ")) } else { near };
            wrong.push(format!("--{name}: {text:?} is not known{near}"));
        }
    }
}

fn lease(flags: &Parsed, wrong: &mut Vec<String>) {
    if !flags.is_on("leader-elect") {
        return;
    }
    let lock = flags.text("leader-elect-resource-lock");
    if lock != "leases" {
        wrong.push(format!("--leader-elect-resource-lock: {lock:?} is not known; there is leases"));
    }
    for name in ["leader-elect-resource-name", "leader-elect-resource-namespace"] {
        if flags.text(name).is_empty() {
            wrong.push(format!("--{name}: the lease needs one"));
        }
    }
    let [lease, renew, retry] = ["lease-duration", "renew-deadline", "retry-period"]
        .map(|name| (format!("--leader-elect-{name}"), flags.duration(&format!("leader-elect-{name}"))));
    if retry.1.is_zero() {
        wrong.push(format!("{}: it must be longer than 0", retry.0));
    }
    if renew.1.as_secs_f64() <= retry.1.as_secs_f64() * RETRY_JITTER {
        wrong.push(format!("{} must be more than {RETRY_JITTER} times {}", renew.0, retry.0));
    }
    if lease.1 <= renew.1 {
        wrong.push(format!("{} must be longer than {}", lease.0, renew.0));
    }
    // The field of a Lease counts whole seconds; less would be a lease that is never held.
    if lease.1.as_secs() == 0 {
        wrong.push(format!("{}: it must be at least 1s", lease.0));
    }
}

fn signing(flags: &Parsed, wrong: &mut Vec<String>) {
    let given = |what: &str| flags.some_text(&format!("cluster-signing-{what}")).is_some();
    for signer in SIGNERS {
        if given(&format!("{signer}-cert-file")) != given(&format!("{signer}-key-file")) {
            wrong.push(format!(
                "--cluster-signing-{signer}-cert-file and --cluster-signing-{signer}-key-file go together"
            ));
        }
    }
    let common = given("cert-file") || given("key-file");
    let special =
        SIGNERS.iter().any(|signer| given(&format!("{signer}-cert-file")) || given(&format!("{signer}-key-file")));
    if common && special {
        wrong.push(
            "--cluster-signing-cert-file and --cluster-signing-key-file are for all signers: drop them, or the pairs of \
             single signers"
                .into(),
        );
    }
}

fn logs(flags: &Parsed, gates: &Gates, wrong: &mut Vec<String>) {
    if flags.duration("log-flush-frequency").is_zero() {
        wrong.push("--log-flush-frequency: it must be longer than 0".into());
    }
    let json = flags.text("logging-format") == "json";
    if json && !gates.enabled("LoggingBetaOptions") {
        wrong.push("--logging-format: json needs the feature gate LoggingBetaOptions".into());
    }
    if json && flags.is_on("vmodule") {
        wrong.push("--vmodule is for --logging-format=text".into());
    }
    let alpha =
        ["log-json-info-buffer-size", "log-json-split-stream", "log-text-info-buffer-size", "log-text-split-stream"];
    for name in alpha.into_iter().filter(|name| flags.is_on(name)) {
        if !gates.enabled("LoggingAlphaOptions") {
            wrong.push(format!("--{name} needs the feature gate LoggingAlphaOptions"));
        }
    }
}

fn headers(flags: &Parsed, gates: &Gates, wrong: &mut Vec<String>) {
    let lists = ["username-headers", "group-headers", "uid-headers", "extra-headers-prefix", "allowed-names"];
    for name in lists.map(|list| format!("requestheader-{list}")) {
        if flags.texts(&name).iter().any(|item| item.trim().is_empty()) {
            wrong.push(format!("--{name}: an item is empty"));
        }
    }
    let uid = flags.texts("requestheader-uid-headers");
    if uid.is_empty() {
        return;
    }
    if !gates.enabled("RemoteRequestHeaderUID") {
        wrong.push("--requestheader-uid-headers needs the feature gate RemoteRequestHeaderUID".into());
    } else if !uid.iter().any(|name| name.eq_ignore_ascii_case("X-Remote-Uid")) {
        wrong.push("--requestheader-uid-headers: X-Remote-Uid must be one of them".into());
    }
}

fn versions(flags: &Parsed, wrong: &mut Vec<String>) {
    for name in ["emulated-version", "min-compatibility-version"] {
        for item in flags.texts(name) {
            let text = item.strip_prefix("kube=").unwrap_or(item);
            let minor = text.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
            if minor.is_none_or(|minor| !EMULATED.contains(&minor)) {
                let first = EMULATED.start();
                let last = EMULATED.end();
                wrong.push(format!("--{name}: {item:?} is not one of kube=1.{first} to kube=1.{last}"));
            }
        }
    }
    let hidden = flags.text("show-hidden-metrics-for-version");
    if !hidden.is_empty() && hidden != "1.36" {
        wrong.push(format!("--show-hidden-metrics-for-version: {hidden:?} is not 1.36, the version before this one"));
    }
}

/// Both flags do nothing here; what upstream refuses is refused all the same.
fn metrics(flags: &Parsed, wrong: &mut Vec<String>) {
    let is_word = |text: &str, more: fn(char) -> bool| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || more(letter);
        !text.starts_with(|first: char| first.is_ascii_digit()) && !text.is_empty() && text.chars().all(letter)
    };
    let is_metric = |text: &str| is_word(text, |letter| letter == ':');
    if let Value::Pairs(allowed) = flags.value("allow-metric-labels") {
        let is_known = |key: &String| {
            key.split_once(',').is_some_and(|(metric, label)| is_metric(metric) && is_word(label, |_| false))
        };
        for key in allowed.keys().filter(|key| !is_known(key)) {
            wrong.push(format!("--allow-metric-labels: {key:?} is not of the form metric,label=value,…"));
        }
    }
    for name in flags.texts("disabled-metrics").iter().filter(|name| !is_metric(name)) {
        wrong.push(format!("--disabled-metrics: {name:?} is not the name of a metric"));
    }
}

fn rest(flags: &Parsed, wrong: &mut Vec<String>) {
    if flags.duration("attach-detach-reconcile-sync-period").as_secs() < 1 {
        wrong.push("--attach-detach-reconcile-sync-period: it must be at least 1s".into());
    }
    if flags.text("service-cluster-ip-range").split(',').count() > 2 {
        wrong.push("--service-cluster-ip-range: more than two ranges; one of each family is possible".into());
    }
    if flags.is_on("tls-cert-file") != flags.is_on("tls-private-key-file") {
        wrong.push("--tls-cert-file and --tls-private-key-file go together".into());
    }
}
