//! The page against what client_golang 1.24 and Go's `strconv` print for the same figures.

use std::time::Duration;

use prometheus::{Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use steersman_base::ObjectKey;

use super::build::{BuildInfo, register_build_info, register_features, register_version_info};
use super::process::{Facts, ProcessMetrics};
use super::text::{encode, go_float};
use super::*;

#[test]
fn numbers_are_printed_as_go_prints_them() {
    let table = [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.0, "-1"),
        (0.1, "0.1"),
        (5e-3, "0.005"),
        (1e-5, "1e-05"),
        (1e-4, "0.0001"),
        (1.2345e-4, "0.00012345"),
        (1e-8, "1e-08"),
        (1e-7, "1e-07"),
        (9.999999999999999e-06, "9.999999999999999e-06"),
        (9.999999999999999e-05, "9.999999999999999e-05"),
        (99_999.0, "99999"),
        (100_000.0, "100000"),
        (999_999.0, "999999"),
        (1e6, "1e+06"),
        (1_048_576.0, "1.048576e+06"),
        (262_144.0, "262144"),
        (123_456.789, "123456.789"),
        (1_234_567.5, "1.2345675e+06"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (1_794_744_000.12, "1.79474400012e+09"),
        (-2.5e-7, "-2.5e-07"),
        (u64::MAX as f64, "1.8446744073709552e+19"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
    ];
    for (value, want) in table {
        assert_eq!(go_float(value), want, "{value:e}");
    }
}

/// What client_golang 1.24.0 served for these metrics.
const AS_GO: &str = r#"# HELP a_gauge Gauge
# TYPE a_gauge gauge
a_gauge{of="-inf"} -Inf
a_gauge{of="inf"} +Inf
a_gauge{of="nan"} NaN
a_gauge{of="neg"} -1e-05
a_gauge{of="zero"} 0
a_gauge{of="ünï"} 0.5
# HELP b_total Back\\slash, "quote"\nand line.
# TYPE b_total counter
b_total{a="a",z=""} 1
b_total{a="b",z="x"} 1
b_total{a="q\"u\no",z="x\\y"} 1.234567e+06
# HELP c_seconds Time
# TYPE c_seconds histogram
c_seconds_bucket{name="q",le="1e-08"} 0
c_seconds_bucket{name="q",le="9.999999999999999e-06"} 0
c_seconds_bucket{name="q",le="0.1"} 1
c_seconds_bucket{name="q",le="1e+06"} 1
c_seconds_bucket{name="q",le="+Inf"} 2
c_seconds_sum{name="q"} 2.00000005e+06
c_seconds_count{name="q"} 2
# HELP d_plain P
# TYPE d_plain gauge
d_plain 262144
"#;

#[test]
fn a_page_is_what_client_golang_serves() {
    let registry = Registry::new();
    let help = "Back\\slash, \"quote\"\nand line.";
    let counter = IntCounterVec::new(Opts::new("b_total", help), &["z", "a"]).unwrap();
    counter.with_label_values(&["x\\y", "q\"u\no"]).inc_by(1_234_567);
    counter.with_label_values(&["x", "b"]).inc();
    counter.with_label_values(&["", "a"]).inc();
    let gauge = GaugeVec::new(Opts::new("a_gauge", "Gauge"), &["of"]).unwrap();
    let values = [("nan", f64::NAN), ("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY), ("neg", -0.00001)];
    for (of, value) in values.into_iter().chain([("zero", -0.0), ("ünï", 0.5)]) {
        gauge.with_label_values(&[of]).set(value);
    }
    let buckets = HistogramOpts::new("c_seconds", "Time").buckets(vec![1e-8, 9.999999999999999e-06, 0.1, 1e6]);
    let histogram = HistogramVec::new(buckets, &["name"]).unwrap();
    histogram.with_label_values(&["q"]).observe(0.05);
    histogram.with_label_values(&["q"]).observe(2e6);
    let plain = Gauge::new("d_plain", "P").unwrap();
    plain.set(262_144.0);
    registry.register(Box::new(counter)).unwrap();
    registry.register(Box::new(gauge)).unwrap();
    registry.register(Box::new(histogram)).unwrap();
    registry.register(Box::new(plain)).unwrap();
    assert_eq!(Exposition::of(&registry).text(), AS_GO);
}

#[test]
fn several_registries_are_one_page_and_the_first_wins() {
    let counter = |registry: &Registry, name: &str, label: &str, value: u64| {
        let counter = IntCounterVec::new(Opts::new(name, "Help"), &["of"]).unwrap();
        counter.with_label_values(&[label]).inc_by(value);
        registry.register(Box::new(counter)).unwrap();
    };
    let first = Registry::new();
    let second = Registry::new();
    counter(&first, "shared_total", "both", 1);
    counter(&first, "z_total", "a", 3);
    counter(&second, "shared_total", "both", 100);
    let page = Exposition::of(&first);
    page.add(&second);
    let other = Registry::new();
    counter(&other, "shared_total", "alone", 2);
    page.add(&other);
    let odd = Registry::new();
    let gauge = IntGauge::new("z_total", "not a counter here").unwrap();
    odd.register(Box::new(gauge)).unwrap();
    page.add(&odd);
    let want = "# HELP shared_total Help\n# TYPE shared_total counter\nshared_total{of=\"alone\"} 2\n\
                shared_total{of=\"both\"} 1\n# HELP z_total Help\n# TYPE z_total counter\nz_total{of=\"a\"} 3\n";
    assert_eq!(page.text(), want);
}

#[test]
fn a_family_without_series_is_left_out() {
    let registry = Registry::new();
    let empty = IntCounterVec::new(Opts::new("empty_total", "Help"), &["of"]).unwrap();
    registry.register(Box::new(empty)).unwrap();
    registry.register(Box::new(IntCounter::new("one_total", "Help").unwrap())).unwrap();
    assert_eq!(encode(&registry.gather()), "# HELP one_total Help\n# TYPE one_total counter\none_total 0\n");
}

#[test]
fn proc_is_read_as_the_manual_pages_say() {
    let facts = Facts {
        // The name of a program may hold brackets and spaces.
        stat: "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 4 0 1234 56789 77 18446744073709551615".to_owned(),
        system_stat: "cpu 1 2\nbtime 1794744000\nprocesses 3\n".to_owned(),
        status: "Name:\ta\nVmRSS:\t    2048 kB\n".to_owned(),
        limits: "Limit Soft Hard Units\nMax open files            1024    4096  files\n\
                 Max address space         unlimited unlimited bytes\n"
            .to_owned(),
        netstat: "TcpExt: A\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 100 200\n".to_owned(),
        open_fds: Some(9),
    };
    let want = [
        ("process_cpu_seconds_total", Some(2.0)),
        ("process_max_fds", Some(1024.0)),
        ("process_network_receive_bytes_total", Some(100.0)),
        ("process_network_transmit_bytes_total", Some(200.0)),
        ("process_open_fds", Some(9.0)),
        ("process_resident_memory_bytes", Some(2_097_152.0)),
        ("process_start_time_seconds", Some(1_794_744_012.34)),
        ("process_virtual_memory_bytes", Some(56_789.0)),
        ("process_virtual_memory_max_bytes", Some(u64::MAX as f64)),
    ];
    assert_eq!(facts.values(), want);
    let nothing = Facts::default().values();
    assert!(nothing.iter().all(|(_, value)| value.is_none()), "what cannot be read is not reported: {nothing:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_is_shown() {
    let registry = Registry::new();
    ProcessMetrics::register(&registry).unwrap();
    let text = Exposition::of(&registry).text();
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing in:\n{text}")).rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!(value("process_resident_memory_bytes") > 1e5);
    assert!(value("process_open_fds") >= 3.0);
    assert!(value("process_start_time_seconds") > 1.6e9);
}

#[tokio::test(start_paused = true)]
async fn passes_are_counted_under_controller_runtimes_names() {
    let registry = Registry::new();
    let metrics = ReconcileMetrics::register(&registry).unwrap();
    assert!(ReconcileMetrics::register(&registry).is_err(), "two of them in one registry would count twice");
    let activity = Activity::new("bakery", 3).counted_in(&metrics);
    let key = ObjectKey::new("default", "cake");
    let outcomes = [Outcome::Done, Outcome::Again, Outcome::After, Outcome::Failed, Outcome::FailedForGood];
    for outcome in outcomes.into_iter().chain([Outcome::Panicked, Outcome::TimedOut, Outcome::Done]) {
        let pass = activity.begin(&key);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(pass.elapsed(), Duration::from_millis(300));
        pass.end(outcome);
    }
    drop(activity.begin(&key)); // stopped: no outcome
    let held = activity.begin(&key);
    let text = Exposition::of(&registry).text();
    for line in [
        r#"controller_runtime_reconcile_total{controller="bakery",result="success"} 2"#,
        r#"controller_runtime_reconcile_total{controller="bakery",result="requeue"} 1"#,
        r#"controller_runtime_reconcile_total{controller="bakery",result="requeue_after"} 1"#,
        r#"controller_runtime_reconcile_total{controller="bakery",result="error"} 4"#,
        r#"controller_runtime_reconcile_errors_total{controller="bakery"} 4"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="bakery"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="bakery"} 1"#,
        r#"controller_runtime_reconcile_timeouts_total{controller="bakery"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{controller="bakery",le="0.25"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="bakery"} 8"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="bakery"} 3"#,
        r#"controller_runtime_active_workers{controller="bakery"} 1"#,
    ] {
        assert!(text.lines().any(|each| each == line), "{line} is missing in:\n{text}");
    }
    assert_eq!(activity.progress().passes(), 9);
    held.end(Outcome::Done);
}

#[test]
fn a_binary_says_what_it_is() {
    let registry = Registry::new();
    let info =
        BuildInfo { major: "1".into(), minor: "37".into(), git_version: "v1.37.1".into(), ..BuildInfo::default() };
    register_build_info(&registry, &info).unwrap();
    register_features(&registry, [("AllAlpha", "ALPHA", false), ("Settled", "", true)]).unwrap();
    register_version_info(&registry, "kube", "1.37", "1.37", "1.36").unwrap();
    let text = Exposition::of(&registry).text();
    for line in [
        r#"version_info{binary="1.37",component="kube",emulation="1.37",min_compat="1.36"} 1"#,
        "kubernetes_build_info{build_date=\"\",compiler=\"\",git_commit=\"\",git_tree_state=\"\",\
         git_version=\"v1.37.1\",go_version=\"\",major=\"1\",minor=\"37\",platform=\"\"} 1",
        r#"kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0"#,
        r#"kubernetes_feature_enabled{name="Settled",stage=""} 1"#,
    ] {
        assert!(text.lines().any(|each| each == line), "{line} is missing in:\n{text}");
    }
}

#[test]
fn lists_and_watches_are_counted() {
    use steersman_informer::__internal::reflector::{ListKind, ReflectorMetrics as _, WatchEnd};

    let registry = Registry::new();
    let counters = ReflectorCounters::register(&registry).unwrap();
    counters.listed(ListKind::Streamed, 10, Duration::from_millis(20));
    counters.list_failed(ListKind::Paged);
    counters.watch_started();
    counters.watch_ended(WatchEnd::Short, 0, Duration::ZERO);
    counters.stale_event();
    let text = Exposition::of(&registry).text();
    for line in [
        r#"steersman_reflector_list_duration_seconds_bucket{kind="streamed",le="0.025"} 1"#,
        r#"steersman_reflector_list_failures_total{kind="paged"} 1"#,
        "steersman_reflector_watches_total 1",
        r#"steersman_reflector_watch_ends_total{end="short"} 1"#,
        "steersman_reflector_stale_events_total 1",
    ] {
        assert!(text.lines().any(|each| each == line), "{line} is missing in:\n{text}");
    }
}
