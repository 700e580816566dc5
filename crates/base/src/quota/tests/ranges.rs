//! The bounds of LimitRanges, in upstream's words.

use serde_json::{Value, json};

use super::super::limits::LimitRange;
use super::super::{Pod, VolumeClaim};
use super::{container, pod};

fn range(type_: &str, bounds: Value) -> LimitRange {
    let mut limit = bounds;
    limit["type"] = json!(type_);
    serde_json::from_value(json!({ "spec": { "limits": [limit] } })).unwrap()
}

#[test]
fn containers_and_pods_are_within_bounds() {
    let check = |name: &str, range: &LimitRange, object: Value, want: Result<(), &str>| {
        let pod: Pod = serde_json::from_value(object).unwrap();
        assert_eq!(range.check_pod(&pod), want.map_err(str::to_owned), "{name}");
    };
    let of = |requests: Value, limits: Value| pod(json!([container("a", requests, limits)]));
    let cpu = |amount: &str| json!({ "cpu": amount });
    let bounded = range("Container", json!({ "min": { "cpu": "100m" }, "max": { "cpu": "2" } }));
    check("within", &bounded, of(cpu("100m"), cpu("2")), Ok(()));
    check(
        "too little",
        &bounded,
        of(cpu("50m"), cpu("1")),
        Err("minimum cpu usage per Container is 100m, but request is 50m"),
    );
    check(
        "too much",
        &bounded,
        of(cpu("1"), cpu("2001m")),
        Err("maximum cpu usage per Container is 2, but limit is 2001m"),
    );
    check(
        "no limit",
        &bounded,
        of(cpu("1"), json!({})),
        Err("maximum cpu usage per Container is 2.  No limit is specified"),
    );
    let want = "[minimum cpu usage per Container is 100m.  No request is specified, maximum cpu usage per Container is 2.  No limit is specified]";
    check("nothing", &bounded, of(json!({}), json!({})), Err(want));
    check("each problem once", &bounded, pod(json!([{ "name": "a" }, { "name": "b" }])), Err(want));
    let ratio = range("Container", json!({ "maxLimitRequestRatio": { "cpu": "1500m" } }));
    check("ratio", &ratio, of(cpu("2"), cpu("3")), Ok(()));
    check(
        "beyond",
        &ratio,
        of(cpu("2"), cpu("4")),
        Err("cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000"),
    );
    check(
        "no request",
        &ratio,
        of(json!({}), cpu("4")),
        Err("cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0"),
    );
    check(
        "zero limit",
        &ratio,
        of(cpu("1"), cpu("0")),
        Err("cpu max limit to request ratio per Container is 1500m, but no limit is specified or limit is 0"),
    );
    let whole = range("Pod", json!({ "max": { "memory": "1Gi" } }));
    let two = |limit: &str| {
        pod(json!([
            container("a", json!({}), json!({ "memory": limit })),
            container("b", json!({}), json!({ "memory": "512Mi" }))
        ]))
    };
    check("a pod", &whole, two("512Mi"), Ok(()));
    check("a pod with too much", &whole, two("513Mi"), Err("maximum memory usage per Pod is 1Gi, but limit is 1025Mi"));
    let mut level = two("513Mi");
    level["spec"]["resources"] = json!({ "limits": { "memory": "1Gi" } });
    check("at pod level", &whole, level, Ok(()));
    let huge = range("Container", json!({ "max": { "memory": "9E" } }));
    check("beyond thousandths", &huge, of(json!({}), json!({ "memory": "8E" })), Ok(()));
}

#[test]
fn init_containers_are_bounded_too() {
    let range = range("Container", json!({ "max": { "cpu": "1" } }));
    let pod: Pod = serde_json::from_value(
        json!({ "spec": { "initContainers": [container("i", json!({}), json!({ "cpu": "2" }))] } }),
    )
    .unwrap();
    assert_eq!(range.check_pod(&pod), Err("maximum cpu usage per Container is 1, but limit is 2".to_owned()));
}

#[test]
fn claims_are_within_bounds() {
    let range = range("PersistentVolumeClaim", json!({ "min": { "storage": "1Gi" }, "max": { "storage": "5Gi" } }));
    let check = |amount: &str, want: Result<(), &str>| {
        let claim = json!({ "spec": { "resources": { "requests": { "storage": amount } } } });
        let claim: VolumeClaim = serde_json::from_value(claim).unwrap();
        assert_eq!(range.check_claim(&claim), want.map_err(str::to_owned), "{amount}");
    };
    check("1Gi", Ok(()));
    check("5Gi", Ok(()));
    check("6Gi", Err("maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"));
    check("500Mi", Err("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"));
}
