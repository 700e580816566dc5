use serde_json::{Value, json};

use super::*;

fn service(spec: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "a"}, "spec": spec});
    (super::super::RULES.default)(&mut object);
    (super::super::RULES.prepare)(&mut object, None);
    object
}

fn create(allocator: &Allocator, spec: &Value) -> Value {
    let mut object = service(spec);
    allocator.allocate(&mut object, None).map(Reservation::commit).map(drop).expect("there is something left");
    object
}

fn refused(allocator: &Allocator, spec: &Value) -> String {
    match allocator.allocate(&mut service(spec), None) {
        Err(AllocateError::Invalid(errors)) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(AllocateError::Full(why)) => why,
        Ok(_) => String::new(),
    }
}

#[test]
fn the_same_writes_get_the_same_values_in_turn() {
    let allocator = Allocator::default();
    let port = json!([{"port": 80}]);
    let first = create(&allocator, &json!({"ports": port}));
    let second = create(&allocator, &json!({"ports": port, "type": "NodePort"}));
    assert_eq!(first["spec"]["clusterIP"], "10.0.1.1");
    assert_eq!(first["spec"]["clusterIPs"], json!(["10.0.1.1"]));
    assert_eq!(first["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(first["spec"]["ipFamilyPolicy"], "SingleStack");
    assert_eq!(second["spec"]["clusterIP"], "10.0.1.2");
    assert_eq!(second["spec"]["ports"][0]["nodePort"], 30086);
}

#[test]
fn a_value_is_given_once_and_again_after_its_release() {
    let allocator = Allocator::default();
    let spec = json!({"clusterIP": "10.0.0.9", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]});
    let held = create(&allocator, &spec);
    assert_eq!(
        refused(&allocator, &spec),
        r#"spec.clusterIPs: Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated"#
    );
    let only_port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]});
    assert_eq!(
        refused(&allocator, &only_port),
        "spec.ports[0].nodePort: Invalid value: 30123: provided port is already allocated"
    );
    allocator.release(&held);
    create(&allocator, &spec);
}

#[test]
fn a_failed_write_gives_back_what_it_took() {
    let allocator = Allocator::default();
    let mut object = service(&json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}));
    drop(allocator.allocate(&mut object, None).expect("it is free"));
    create(&allocator, &json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}));
}

#[test]
fn values_out_of_range_are_refused() {
    let allocator = Allocator::default();
    assert_eq!(
        refused(&allocator, &json!({"clusterIP": "192.168.0.1", "ports": [{"port": 80}]})),
        "spec.clusterIPs: Invalid value: [\"192.168.0.1\"]: failed to allocate IP 192.168.0.1: the provided IP \
         (192.168.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/16"
    );
    assert_eq!(
        refused(&allocator, &json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 1}]})),
        "spec.ports[0].nodePort: Invalid value: 1: provided port is not in the valid range. The range of valid ports \
         is 30000-32767"
    );
    assert_eq!(
        refused(&allocator, &json!({"ipFamilies": ["IPv6"], "ports": [{"port": 80}]})),
        "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"
    );
}

#[test]
fn a_change_of_type_keeps_releases_or_takes() {
    let allocator = Allocator::default();
    let old = create(&allocator, &json!({"type": "NodePort", "ports": [{"port": 80}]}));
    let ip = old["spec"]["clusterIP"].clone();
    let change = |old: &Value, spec: &Value| {
        let mut new = json!({"metadata": {"name": "a"}, "spec": spec});
        (super::super::RULES.default)(&mut new);
        (super::super::RULES.prepare)(&mut new, Some(old));
        allocator.allocate(&mut new, Some(old)).map(Reservation::commit).map(drop).expect("it can");
        new
    };
    let kept = change(&old, &json!({"type": "NodePort", "ports": [{"port": 81}]}));
    assert_eq!(kept["spec"]["clusterIP"], ip);
    assert_eq!(kept["spec"]["ports"][0]["nodePort"], 30086);
    let balanced =
        change(&kept, &json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 81}]}));
    assert_eq!(balanced["spec"]["healthCheckNodePort"], 30087);
    let mut plain = balanced["spec"].clone();
    plain["type"] = "ClusterIP".into();
    let plain = change(&balanced, &plain);
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(plain["spec"].get("healthCheckNodePort"), None);
    let named = change(&plain, &json!({"type": "ExternalName", "externalName": "example.com"}));
    assert_eq!(named["spec"].get("clusterIP"), None);
    assert!(allocator.state.lock().held.is_empty(), "all is free again");
}

#[test]
fn headless_services_get_no_address() {
    let allocator = Allocator::default();
    let selecting = create(&allocator, &json!({"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}));
    assert_eq!(selecting["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(selecting["spec"]["ipFamilies"], json!(["IPv4"]));
    let not = create(&allocator, &json!({"clusterIP": "None", "ports": [{"port": 80}]}));
    assert_eq!(not["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(not["spec"]["ipFamilyPolicy"], "RequireDualStack");
}

#[test]
fn a_full_range_says_so() {
    let allocator = Allocator::new(vec!["10.1.0.0/30".parse().expect("a network")]);
    for _ in 0..2 {
        create(&allocator, &json!({"ports": [{"port": 80}]}));
    }
    assert_eq!(
        refused(&allocator, &json!({"ports": [{"port": 80}]})),
        "failed to allocate a serviceIP for Service \"a\": range is full"
    );
}

#[test]
fn addresses_come_from_ranges_that_are_ready() {
    let network = |text: &str| text.parse::<IpNet>().expect("a network");
    let allocator = Allocator::new(vec![network("10.1.0.0/30")]);
    let plain = json!({"ports": [{"port": 80}]});
    for _ in 0..2 {
        create(&allocator, &plain);
    }
    allocator.set_ranges("more", &[network("10.2.0.0/30")], false);
    assert_eq!(refused(&allocator, &plain), "failed to allocate a serviceIP for Service \"a\": range is full");
    allocator.set_ranges("more", &[network("10.2.0.0/30")], true);
    assert_eq!(create(&allocator, &plain)["spec"]["clusterIP"], "10.2.0.1");
    // Two objects have the same range: one that is ready is enough.
    allocator.set_ranges("same", &[network("10.2.0.0/30")], true);
    allocator.set_ranges("more", &[], false);
    assert_eq!(create(&allocator, &plain)["spec"]["clusterIP"], "10.2.0.2");
    allocator.set_ranges("same", &[], false);
    let asked = json!({"clusterIP": "10.2.0.1", "ports": [{"port": 80}]});
    let want = "spec.clusterIPs: Invalid value: [\"10.2.0.1\"]: failed to allocate IP 10.2.0.1: the provided IP \
                (10.2.0.1) is not in the valid range. The range of valid IPs is 10.1.0.0/30";
    assert_eq!(refused(&allocator, &asked), want);
    // Such a range is refused by upstream's allocator, and only there.
    allocator.set_ranges("large", &[network("fd00::/48")], true);
    assert_eq!(allocator.state.lock().ranges.len(), 1);
}

#[test]
fn addresses_that_an_object_names_are_not_given() {
    let allocator = Allocator::new(vec!["10.1.0.0/30".parse().expect("a network")]);
    let named: IpAddr = "10.1.0.1".parse().expect("an address");
    allocator.set_named(named, true);
    let asked = json!({"clusterIP": "10.1.0.1", "ports": [{"port": 80}]});
    let want = "spec.clusterIPs: Invalid value: [\"10.1.0.1\"]: failed to allocate IP 10.1.0.1: provided IP is \
                already allocated";
    assert_eq!(refused(&allocator, &asked), want);
    assert_eq!(create(&allocator, &json!({"ports": [{"port": 80}]}))["spec"]["clusterIP"], "10.1.0.2");
    allocator.set_named(named, false);
    create(&allocator, &asked);
}
