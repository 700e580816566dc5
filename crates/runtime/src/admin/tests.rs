//! The router without a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Request;
use serde_json::json;
use steersman_base::{ObjectKey, Time};

use crate::health::Unhealthy;
use crate::metrics::{Activity, Outcome};

use super::profile::{Busy, Measured, Profile};
use super::zpages::{Encoding, Format, negotiate};
use super::*;

const NOW: Time = Time::from_unix(1_794_744_000);

fn admin() -> Admin {
    Admin::new("kube-controller-manager", Clock::starting_at(NOW))
}

async fn get(admin: &Admin, uri: &str) -> (u16, String) {
    let response = admin.respond(Request::get(uri).body(Bytes::new()).unwrap()).await;
    assert_eq!(response.headers()["cache-control"], "no-cache, private");
    (response.status().as_u16(), String::from_utf8_lossy(response.body()).into_owned())
}

#[tokio::test(start_paused = true)]
async fn health_is_served_with_its_checks() {
    let admin = admin();
    let health = Health::new();
    health.add(&Probe::ALL, "good", || Ok(()));
    health.add(&[Probe::Readyz], "caches", || Err(Unhealthy("not filled".into())));
    admin.serve_health(&health).unwrap();
    let ready = "[+]good ok\n[-]caches failed: reason withheld\nreadyz check failed\n";
    let table = [
        ("/healthz", 200, "ok"),
        ("/livez?verbose", 200, "[+]good ok\nlivez check passed\n"),
        ("/healthz?verbose=true&exclude=good", 200, "[+]good excluded: ok\nhealthz check passed\n"),
        ("/readyz", 500, ready),
        ("/readyz/caches", 500, "internal server error: not filled\n"),
        ("/readyz/good", 200, "ok"),
        ("/readyz/other", 404, "404 page not found\n"),
        ("/readyz/g%6Fod", 200, "ok"),
    ];
    for (uri, code, text) in table {
        assert_eq!(get(&admin, uri).await, (code, text.to_owned()), "{uri}");
    }
    let (_, slis) = get(&admin, "/metrics/slis").await;
    assert!(slis.contains(r#"kubernetes_healthcheck{name="caches",type="readyz"} 0"#), "{slis}");
}

#[tokio::test(start_paused = true)]
async fn metrics_say_what_they_are() {
    let admin = admin();
    let registry = Registry::new();
    registry.register(Box::new(prometheus::IntCounter::new("one_total", "Help").unwrap())).unwrap();
    admin.serve_metrics(&Exposition::of(&registry)).unwrap();
    let response = admin.respond(Request::get("/metrics").body(Bytes::new()).unwrap()).await;
    let want = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    assert_eq!(response.headers()["content-type"], want);
    assert!(response.body().ends_with(b"one_total 0\n"));
}

#[tokio::test(start_paused = true)]
async fn a_path_has_one_handler_and_unknown_paths_name_the_others() {
    let admin = admin();
    admin.handle("/extra", |call| text_page(StatusCode::OK, call.query.get("a").unwrap_or("-").to_owned())).unwrap();
    assert_eq!(admin.handle("/extra", |_| page::not_found()), Err(PathTaken("/extra".into())));
    admin.handle_controller("gc", |call| text_page(StatusCode::OK, call.path.clone())).unwrap();
    assert_eq!(get(&admin, "/extra?a=b%20c+d").await, (200, "b c d".to_owned()));
    assert_eq!(get(&admin, "/debug/controllers/gc").await.1, "/debug/controllers/gc");
    assert_eq!(get(&admin, "/debug/controllers/gc/graph").await.1, "/debug/controllers/gc/graph");
    let nothing = "404 page not found\n\nThere is:\n/debug/controllers/gc/\n/extra\n";
    assert_eq!(get(&admin, "/").await, (404, nothing.to_owned()));
    assert_eq!(get(&admin, "/debug/controllers/gcx").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_set_at_run_time() {
    let admin = admin();
    let level = Arc::new(AtomicU32::new(0));
    let set = level.clone();
    let setter = move |verbosity: u32| {
        set.store(verbosity, Ordering::Relaxed);
        if verbosity > 10 { Err("too much".to_owned()) } else { Ok(()) }
    };
    admin.serve_log_level(setter).unwrap();
    let table = [
        ("PUT", "4", 200, "successfully set klog.logging.verbosity to 4\n"),
        ("PUT", "four", 400, "strconv.ParseUint: parsing \"four\": invalid syntax\n"),
        ("PUT", "+4", 400, "strconv.ParseUint: parsing \"+4\": invalid syntax\n"),
        ("PUT", "", 400, "strconv.ParseUint: parsing \"\": invalid syntax\n"),
        ("PUT", "99999999999", 400, "strconv.ParseUint: parsing \"99999999999\": value out of range\n"),
        ("PUT", "11", 400, "failed set klog.logging.verbosity 11: too much\n"),
        ("GET", "", 406, "unsupported http method\n"),
    ];
    for (method, body, code, text) in table {
        let request = Request::builder().method(method).uri("/debug/flags/v").body(Bytes::from(body)).unwrap();
        let response = admin.respond(request).await;
        assert_eq!((response.status().as_u16(), &response.body()[..]), (code, text.as_bytes()), "{method} {body}");
    }
    assert_eq!(level.load(Ordering::Relaxed), 11);
}

#[test]
fn zpages_are_negotiated() {
    use Encoding::{Cbor, Json, Yaml};
    let table = [
        ("", Some(Format::Text)),
        ("*/*", Some(Format::Text)),
        ("text/*", Some(Format::Text)),
        ("text/plain", Some(Format::Text)),
        ("application/json;as=Statusz;g=config.k8s.io;v=v1beta1", Some(Format::Object(Json, "v1beta1"))),
        ("application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", Some(Format::Object(Json, "v1alpha1"))),
        ("application/yaml;v=v1beta1;g=config.k8s.io;as=Statusz", Some(Format::Object(Yaml, "v1beta1"))),
        ("application/*;v=v1beta1;g=config.k8s.io;as=Statusz", Some(Format::Object(Json, "v1beta1"))),
        ("*/*;v=v1beta1;g=config.k8s.io;as=Statusz", Some(Format::Object(Json, "v1beta1"))),
        ("application/json;as=Statusz;g=config.k8s.io;v=v1beta1, text/plain", Some(Format::Object(Json, "v1beta1"))),
        ("*/*, application/yaml;as=Statusz;g=config.k8s.io;v=v1beta1", Some(Format::Object(Yaml, "v1beta1"))),
        ("application/json;as=Statusz;g=config.k8s.io;v=v1beta1;q=0.5, text/plain", Some(Format::Text)),
        ("application/json;v=foo;g=config.k8s.io;as=Statusz,*/*", Some(Format::Text)),
        ("application/json, text/plain;q=0.9", Some(Format::Text)),
        ("application/json", None),
        ("application/json;v=v1beta1;g=config.k8s.io", None),
        ("application/json;as=Flagz;g=config.k8s.io;v=v1beta1", None),
        ("application/json;as=Statusz;g=config.k8s.io;v=v2", None),
        ("application/json;as=Statusz;g=config.k8s.io;v=v1beta1;stream=watch", None),
        ("application/vnd.kubernetes.protobuf;as=Statusz;g=config.k8s.io;v=v1beta1", None),
        ("application/cbor;as=Statusz;g=config.k8s.io;v=v1beta1", None),
        ("text/plain;v=v1beta1", None),
        ("text/html", None),
        ("text/plain;q=0", None),
    ];
    for (accept, want) in table {
        assert_eq!(negotiate(accept, "Statusz", false).ok(), want, "{accept}");
    }
    let cbor = negotiate("application/cbor;as=Statusz;g=config.k8s.io;v=v1beta1", "Statusz", true);
    assert_eq!(cbor, Ok(Format::Object(Cbor, "v1beta1")));
    let refused = negotiate("text/html", "Statusz", true).unwrap_err();
    assert!(refused.ends_with("application/json, application/yaml, text/plain, application/cbor"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn zpages_have_upstreams_formats() {
    let admin = admin();
    let started = NOW.plus_seconds(-3_725);
    let info = StatusInfo {
        started,
        binary_version: "1.37.1".into(),
        emulation_version: "1.37".into(),
        unlisted: vec!["/livez", "/readyz"],
        ..StatusInfo::default()
    };
    admin.serve_status(info).unwrap();
    admin.serve_health(&Health::new()).unwrap();
    admin.serve_profile(&Profiler::default()).unwrap();
    admin
        .serve_flags(|| [("v".to_owned(), "2".to_owned()), ("leader-elect".to_owned(), "true".to_owned())].into())
        .unwrap();
    admin.serve_config("kubecontrollermanager.config.k8s.io", json!({"kind": "X"})).unwrap();
    assert!(admin.serve_config("kubecontrollermanager.config.k8s.io", json!({})).is_err());
    admin.serve_config("other", json!(1)).unwrap();
    let warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                   guarantees and is for debugging purposes only.\n";
    let want = format!(
        "\nkube-controller-manager statusz\n{warning}\nStarted: Sun Nov 15 10:57:55 UTC 2026\nUp: 1 hr 02 min 05 sec\n\
         Go version: \nBinary version: 1.37.1\nEmulation version: 1.37\nPaths: /configz /flagz /healthz /metrics\n"
    );
    assert_eq!(get(&admin, "/statusz").await, (200, want));
    let want = format!("\nkube-controller-manager flagz\n{warning}leader-elect=true\nv=2\n");
    assert_eq!(get(&admin, "/flagz").await, (200, want));
    let want = r#"{"kubecontrollermanager.config.k8s.io":{"kind":"X"},"other":1}"#;
    assert_eq!(get(&admin, "/configz").await, (200, want.to_owned()));

    let accept = "application/json;as=Statusz;g=config.k8s.io;v=v1alpha1";
    let request = Request::get("/statusz").header("accept", accept).body(Bytes::new()).unwrap();
    let response = admin.respond(request).await;
    let warning = "299 - \"This version of the statusz endpoint is deprecated. Please use a newer version.\"";
    assert_eq!(response.headers()["warning"], warning);
    let want = json!({
        "kind": "Statusz", "apiVersion": "config.k8s.io/v1alpha1", "metadata": {"name": "kube-controller-manager"},
        "startTime": "2026-11-15T10:57:55Z", "uptimeSeconds": 3725, "goVersion": "", "binaryVersion": "1.37.1",
        "emulationVersion": "1.37", "paths": ["/configz", "/flagz", "/healthz", "/metrics"],
    });
    assert_eq!(serde_json::from_slice::<Value>(response.body()).unwrap(), want);

    let ask = async |accept: &str| {
        let request = Request::get("/flagz").header("accept", accept).body(Bytes::new()).unwrap();
        let response = admin.respond(request).await;
        (response.headers()["content-type"].clone(), response.into_body())
    };
    let (kind, yaml) = ask("application/yaml;as=Flagz;g=config.k8s.io;v=v1beta1").await;
    let want = "apiVersion: config.k8s.io/v1beta1\nflags:\n  leader-elect: \"true\"\n  v: \"2\"\nkind: Flagz\nmetadata:\n  \
                name: kube-controller-manager\n";
    assert_eq!((kind.to_str().unwrap(), &yaml[..]), ("application/yaml", want.as_bytes()));
    let of_cbor = "application/cbor;as=Flagz;g=config.k8s.io;v=v1beta1";
    assert_eq!(ask(of_cbor).await.0, "application/json", "the refusal");

    let request = Request::get("/flagz").header("accept", "application/json").body(Bytes::new()).unwrap();
    let response = admin.respond(request).await;
    assert_eq!(response.status(), 406);
    let want = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"only the \
                following media types are accepted: application/json, application/yaml, text/plain\",\"reason\":\
                \"NotAcceptable\",\"code\":406}\n";
    assert_eq!(response.body(), want);

    admin.offer_cbor();
    let (kind, cbor) = ask(of_cbor).await;
    assert_eq!((kind.to_str().unwrap(), &cbor[..4]), ("application/cbor", &[0xd9, 0xd9, 0xf7, 0xa4][..]));
}

#[tokio::test(start_paused = true)]
async fn a_profile_shows_controllers_and_keys_of_its_own_time_only() {
    let admin = admin();
    let profiler = Profiler::default();
    admin.serve_profile(&profiler).unwrap();
    let activity = Activity::new("bakery", 1).profiled_by(&profiler);
    let keys = ["before", "slow", "quick", "slow"].map(|name| ObjectKey::new("default", name));
    let work = async {
        for (key, ms) in keys.iter().zip([500, 700, 100, 300]) {
            let pass = activity.begin(key);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            pass.end(Outcome::Done);
        }
    };
    let asked = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let second = profiler.clone();
        let (page, busy) =
            tokio::join!(get(&admin, "/debug/profile?seconds=5"), second.profile(Duration::from_secs(1)));
        assert_eq!(busy, Err(Busy));
        page
    };
    let ((), (code, page)) = tokio::join!(work, asked);
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(code, 200);
    assert_eq!(page["controllers"][0]["name"], "bakery");
    assert_eq!(page["controllers"][0]["passes"], 3);
    assert_eq!(page["controllers"][0]["seconds"], 1.1);
    let slow = json!({"key": "default/slow", "passes": 2, "seconds": 1.0, "longestSeconds": 0.7, "busySeconds": 0.0});
    assert_eq!(page["controllers"][0]["keys"][0], slow);
    assert_eq!(page["controllers"][0]["keys"].as_array().unwrap().len(), 2, "what ended before is not shown");
    assert_eq!(page["runtime"]["workers"], 1);
    assert_eq!(get(&admin, "/debug/profile?seconds=0").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_profile_whose_client_goes_away_ends() {
    let profiler = Profiler::default();
    let gone = tokio::time::timeout(Duration::from_secs(1), profiler.profile(Duration::from_secs(30))).await;
    assert!(gone.is_err());
    Activity::new("bakery", 1).profiled_by(&profiler).begin(&ObjectKey::new("default", "cake")).end(Outcome::Done);
    let next = profiler.profile(Duration::from_secs(1)).await.unwrap();
    assert_eq!(next, Profile::default(), "nothing is left of the other, and nothing was recorded in between");
}

#[tokio::test(start_paused = true)]
async fn a_profile_is_also_lines_for_flame_graphs() {
    let profiler = Profiler::default();
    let activity = Activity::new("bakery", 1).profiled_by(&profiler);
    let key = ObjectKey::new("default", "cake");
    let work = async {
        let pass = activity.begin(&key);
        tokio::time::sleep(Duration::from_millis(2)).await;
        pass.end(Outcome::Done);
    };
    let (profile, ()) = tokio::join!(profiler.profile(Duration::from_secs(1)), work);
    let profile = profile.unwrap();
    assert_eq!(profile.collapsed(Measured::Wall), "bakery;default/cake 2000\n");
    assert_eq!(profile.collapsed(Measured::Busy), "bakery;default/cake 0\n");
}

/// On the real clock: a paused one stands still while somebody computes.
#[tokio::test]
async fn a_profile_separates_busy_workers_from_waiting_ones() {
    const MS: Duration = Duration::from_millis(1);
    let admin = admin();
    let profiler = Profiler::default();
    admin.serve_profile(&profiler).unwrap();
    let activity = Activity::new("bakery", 1).profiled_by(&profiler);
    let keys = ["computes", "waits"].map(|name| ObjectKey::new("default", name));
    let work = async {
        tokio::time::sleep(MS).await;
        let pass = activity.begin(&keys[0]);
        pass.run(async {
            let began = tokio::time::Instant::now();
            while began.elapsed() < 30 * MS {}
        })
        .await;
        pass.end(Outcome::Done);
        let pass = activity.begin(&keys[1]);
        pass.run(tokio::time::sleep(30 * MS)).await;
        pass.end(Outcome::Done);
    };
    let (page, ()) = tokio::join!(get(&admin, "/debug/profile?seconds=1"), work);
    let page: Value = serde_json::from_str(&page.1).unwrap();
    let of = |key: &str, field: &str| {
        let keys = page["controllers"][0]["keys"].as_array().unwrap();
        keys.iter().find(|each| each["key"] == key).unwrap()[field].as_f64().unwrap()
    };
    assert!(of("default/computes", "busySeconds") >= 0.03, "{page}");
    assert!(of("default/waits", "busySeconds") < 0.02 && of("default/waits", "seconds") >= 0.03, "{page}");
    assert!(page["cpuSeconds"].as_f64().unwrap() >= 0.02, "{page}");
}

#[tokio::test(start_paused = true)]
async fn where_go_has_its_profiles_there_is_one_and_a_word_about_the_others() {
    let admin = admin();
    let profiler = Profiler::default();
    admin.serve_profile(&profiler).unwrap();
    let (code, page) = get(&admin, "/debug/pprof/profile?seconds=1").await;
    assert!(code == 200 && page.contains("nanoseconds"), "{page}");
    assert_eq!(get(&admin, "/debug/pprof/").await.0, 200);
    let (code, page) = get(&admin, "/debug/pprof/heap").await;
    assert!(code == 404 && page.contains("/debug/pprof/profile") && page.contains("perf record"), "{page}");
    admin.withhold("/debug/pprof");
    for path in ["/debug/pprof", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1"] {
        let (code, page) = get(&admin, path).await;
        assert!(code == 404 && !page.contains("perf"), "{path}: {page}");
    }
    assert_eq!(get(&admin, "/debug/profile?seconds=1").await.0, 200, "another path");
}

#[tokio::test(start_paused = true)]
async fn queues_and_decisions_are_shown_as_json() {
    let admin = admin();
    let mut stats = QueueStats::default();
    stats.depth = 2;
    stats.adds = 7;
    admin.serve_queues(move || vec![("replicaset".to_owned(), stats.clone())]).unwrap();
    admin.serve_decisions(|query| json!({"of": query.get("controller"), "key": query.get("key")})).unwrap();
    let (_, page) = get(&admin, "/debug/queues").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((&page["queues"][0]["name"], &page["queues"][0]["depth"]), (&json!("replicaset"), &json!(2)));
    let (_, page) = get(&admin, "/debug/decisions?controller=gc&key=default%2Fa").await;
    assert_eq!(page, r#"{"key":"default/a","of":"gc"}"#);
}
