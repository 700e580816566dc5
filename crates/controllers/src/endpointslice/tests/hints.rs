//! Hints. The figures are those of upstream's `topologycache` and `trafficdist` tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Istr;
use steersman_model::EndpointSliceView;
use steersman_model::discovery::Endpoint;

use super::super::hints::{self, Near};
use super::super::packing::{Draft, Packed};
use super::super::zones::{self, Allotted, Shares};
use super::node;
use crate::service_pods::tests::{decode, service};

/// An endpoint: its zone, whether it is ready, and the zone of its hint.
fn endpoint(zone: &str, ready: bool, hint: Option<&str>) -> Value {
    let hints = hint.map_or(Value::Null, |zone| json!({ "forZones": [{ "name": zone }] }));
    json!({ "addresses": ["10.0.0.1"], "zone": zone, "nodeName": "n1", "conditions": { "ready": ready }, "hints": hints })
}

fn slice(endpoints: &[Value]) -> Arc<EndpointSliceView> {
    Arc::new(decode(json!({ "metadata": { "name": "s" }, "addressType": "IPv4", "endpoints": endpoints })))
}

fn draft(endpoints: &[Value]) -> Draft {
    Draft { endpoints: slice(endpoints).endpoints.to_vec(), ..Draft::default() }
}

fn shares(shares: &[(&str, f64)]) -> Shares {
    shares.iter().map(|(zone, share)| (Istr::new(zone), *share)).collect()
}

fn counts(allotted: &Allotted) -> Vec<(&str, usize)> {
    allotted.iter().map(|(zone, count)| (zone.as_str(), *count)).collect()
}

fn hinted(packed: &Packed) -> BTreeMap<String, usize> {
    let drafted = packed.drafts.iter().flat_map(|draft| &draft.endpoints);
    let kept = packed.unchanged.iter().flat_map(|slice| &slice.endpoints);
    let mut counts = BTreeMap::new();
    for hints in drafted.chain(kept).filter_map(|endpoint| endpoint.hints.as_ref()) {
        for zone in &hints.for_zones {
            *counts.entry(zone.name.to_string()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn endpoints_are_for_those_in_their_zone_or_on_their_node() {
    let check = |name: &str, near: Near, endpoint: Value, want: Option<(&[&str], &[&str])>| {
        let mut packed = Packed { drafts: vec![draft(&[endpoint])], ..Packed::default() };
        hints::prefer(&mut packed, near);
        let got = packed.drafts[0].endpoints[0].hints.clone();
        let names = |named: &[steersman_model::discovery::Named]| {
            named.iter().map(|named| named.name.to_string()).collect::<Vec<_>>()
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let got = got.map(|hints| (names(&hints.for_zones), names(&hints.for_nodes)));
        assert_eq!(got, want.map(|(zones, nodes)| (texts(zones), texts(nodes))), "{name}");
    };
    let zoneless = || json!({ "addresses": ["10.0.0.1"], "nodeName": "n1", "conditions": { "ready": true } });
    check("zone", Near::Zone, endpoint("a", true, None), Some((&["a"], &[])));
    check("zone, another hint before", Near::Zone, endpoint("a", true, Some("b")), Some((&["a"], &[])));
    check("node", Near::Node, endpoint("a", true, None), Some((&["a"], &["n1"])));
    check("not ready", Near::Node, endpoint("a", false, None), None);
    check("zone, in none", Near::Zone, zoneless(), None);
    check("node, in no zone", Near::Node, zoneless(), Some((&[], &["n1"])));
}

#[test]
fn slices_with_the_right_hints_are_not_written() {
    let check =
        |name: &str, near: Option<Near>, endpoints: &[Value], writes: usize| {
            let mut packed = Packed { unchanged: vec![slice(endpoints)], ..Packed::default() };
            match near {
                Some(near) => hints::prefer(&mut packed, near),
                None => hints::remove(&mut packed),
            }
            assert_eq!((packed.drafts.len(), packed.unchanged.len()), (writes, 1 - writes), "{name}");
            let mut again = Packed { unchanged: packed.unchanged, ..Packed::default() };
            again.unchanged.extend(packed.drafts.into_iter().map(|draft| {
                Arc::new(EndpointSliceView { endpoints: draft.endpoints.into(), ..(*slice(&[])).clone() })
            }));
            match near {
                Some(near) => hints::prefer(&mut again, near),
                None => hints::remove(&mut again),
            }
            assert_eq!(again.drafts, [], "{name}: once more");
        };
    check("right", Some(Near::Zone), &[endpoint("a", true, Some("a"))], 0);
    check("missing", Some(Near::Zone), &[endpoint("a", true, Some("a")), endpoint("a", true, None)], 1);
    check("wrong", Some(Near::Zone), &[endpoint("a", true, Some("b"))], 1);
    check("without a node", Some(Near::Node), &[endpoint("a", true, Some("a"))], 1);
    check("not ready", Some(Near::Zone), &[endpoint("a", false, None)], 0);
    check("none wanted, none there", None, &[endpoint("a", true, None)], 0);
    check("none wanted, some there", None, &[endpoint("a", true, Some("a"))], 1);
}

#[test]
fn a_traffic_distribution_that_is_not_known_asks_for_nothing() {
    let check = |distribution: Value, want: Option<Near>| {
        let service = service(json!({ "spec": { "trafficDistribution": distribution } }));
        assert_eq!(hints::near(&service), want, "{distribution}");
    };
    check(json!(null), None);
    check(json!("PreferClose"), Some(Near::Zone));
    check(json!("PreferSameZone"), Some(Near::Zone));
    check(json!("PreferSameNode"), Some(Near::Node));
    check(json!("PreferFarAway"), None);
}

#[test]
fn zones_have_shares_if_every_node_names_its_zone() {
    let in_zone = |name: &str, zone: &str, cpu: &str| {
        let labels = json!({ "topology.kubernetes.io/zone": zone });
        node(name, json!({ "metadata": { "labels": labels }, "status": { "allocatable": { "cpu": cpu } } }))
    };
    let check = |name: &str, nodes: &[Arc<steersman_model::core::NodeView>], want: Option<&[(&str, f64)]>| {
        let got = zones::shares(nodes.iter().map(|node| &**node));
        assert_eq!(got, want.map(shares), "{name}");
    };
    let a = in_zone("1", "a", "1");
    let b = in_zone("2", "b", "3000m");
    check("two zones", &[a.clone(), b.clone()], Some(&[("a", 0.25), ("b", 0.75)]));
    check("one zone", std::slice::from_ref(&a), None);
    check("none", &[], None);
    check("a node without zone", &[a.clone(), b.clone(), in_zone("3", "", "1")], None);
    check("a node without CPUs", &[a.clone(), b.clone(), in_zone("3", "a", "0")], None);
    let unready = node("3", json!({ "metadata": { "labels": null }, "status": { "conditions": [] } }));
    check("one that is not ready does not count", &[a.clone(), b.clone(), unready], Some(&[("a", 0.25), ("b", 0.75)]));
    let labels = json!({ "metadata": { "labels": { "node-role.kubernetes.io/control-plane": "" } } });
    check("nor the control plane", &[a, b, node("3", labels)], Some(&[("a", 0.25), ("b", 0.75)]));
}

#[test]
fn topology_hints_spread_endpoints_by_share_and_of_the_own_zone_first() {
    let check = |name: &str, of: &[(&str, f64)], zones_of: &[&str], want: Result<&[(&str, usize)], &str>| {
        let endpoints: Vec<_> = zones_of.iter().map(|zone| endpoint(zone, true, None)).collect();
        let mut packed = Packed { drafts: vec![draft(&endpoints)], ..Packed::default() };
        let shares = (!of.is_empty()).then(|| shares(of));
        let got = zones::spread(&mut packed, shares.as_ref());
        match (&got, want) {
            (Ok(allotted), Ok(want)) => {
                assert_eq!(counts(allotted), want, "{name}");
                let hinted: Vec<_> = hinted(&packed).into_iter().collect();
                let reported: Vec<_> = hinted.iter().map(|(zone, count)| (zone.as_str(), *count)).collect();
                assert_eq!(reported, want, "{name}: and the endpoints say so");
            }
            (Err(why), Err(want)) => assert_eq!(why, want, "{name}"),
            _ => panic!("{name}: {got:?} is not {want:?}"),
        }
    };
    let nodes = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
    check("nodes have no zone", &[], &["a"], Err(nodes));
    let thirds = [("a", 0.3), ("b", 0.4), ("c", 0.3)];
    check("too few", &thirds, &["a", "b"], Err("Insufficient number of endpoints (2 endpoints, 3 zones)"));
    check(
        "an endpoint without zone",
        &[("a", 0.5), ("b", 0.5)],
        &["a", ""],
        Err("One or more endpoints do not have a zone specified"),
    );
    let overload = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";
    let want = format!("{overload} (2 endpoints, 2 zones)");
    check("one zone is far larger", &[("a", 0.3), ("b", 0.7)], &["a", "b"], Err(&want));
    check("each its own", &[("a", 0.45), ("b", 0.55)], &["a", "b"], Ok(&[("a", 1), ("b", 1)]));
    check("all in one zone", &[("a", 0.5), ("b", 0.5)], &["a"; 4], Ok(&[("a", 2), ("b", 2)]));
    let third = 1.0 / 3.0;
    let equal = [("a", third), ("b", third), ("c", third)];
    check("one zone gives to two", &equal, &["a"; 6], Ok(&[("a", 2), ("b", 2), ("c", 2)]));
    check(
        "close enough",
        &[("a", 0.35), ("b", 0.35), ("c", 0.3)],
        &["a", "a", "a", "b", "b", "b", "c", "c", "c"],
        Ok(&[("a", 3), ("b", 3), ("c", 3)]),
    );
}

#[test]
fn slices_with_good_topology_hints_stay_as_they_are() {
    let halves = shares(&[("a", 0.5), ("b", 0.5)]);
    let check = |name: &str, kept: &[Value], drafted: &[Value], writes: usize, want: &[(&str, usize)]| {
        let mut packed = Packed { unchanged: vec![slice(kept)], drafts: vec![draft(drafted)], ..Packed::default() };
        let allotted = zones::spread(&mut packed, Some(&halves)).unwrap();
        assert_eq!((packed.drafts.len(), counts(&allotted)), (writes, want.to_vec()), "{name}");
    };
    let a = || endpoint("a", true, Some("a"));
    let b = || endpoint("b", true, Some("b"));
    check("good", &[a(), b()], &[endpoint("a", true, None), endpoint("b", true, None)], 1, &[("a", 2), ("b", 2)]);
    check("one is missing", &[a(), endpoint("b", true, None)], &[a(), b()], 2, &[("a", 2), ("b", 2)]);
    check("a zone that is gone", &[a(), endpoint("b", true, Some("c"))], &[a(), b()], 2, &[("a", 2), ("b", 2)]);
    check("too many for one zone", &[a(), a(), a(), a()], &[b(), b()], 2, &[("a", 3), ("b", 3)]);
    check("who is not ready does not count", &[a(), b(), endpoint("a", false, None)], &[], 1, &[("a", 1), ("b", 1)]);
}

#[test]
fn a_service_is_overloaded_when_a_zone_has_too_few_endpoints() {
    let check = |name: &str, allotted: &[(&str, usize)], of: Option<&[(&str, f64)]>, want: bool| {
        let allotted: Allotted = allotted.iter().map(|(zone, count)| (Istr::new(zone), *count)).collect();
        assert_eq!(zones::is_overloaded(&allotted, of.map(shares).as_ref()), want, "{name}");
    };
    check("no hints", &[], None, false);
    check("nodes have no zone", &[("a", 1)], None, true);
    let thirds: &[(&str, f64)] = &[("a", 0.4), ("b", 0.4), ("c", 0.2)];
    check("balanced", &[("a", 4), ("b", 4), ("c", 2)], Some(thirds), false);
    check("a little off", &[("a", 3), ("b", 4), ("c", 2)], Some(thirds), false);
    check("far off", &[("a", 1), ("b", 6), ("c", 2)], Some(thirds), true);
    check("a zone without any", &[("a", 4), ("b", 4)], Some(thirds), true);
}

#[test]
fn hints_of_endpoints_that_are_not_ready_go_with_the_next_write() {
    let stale = |ready: bool| -> Vec<Endpoint> { draft(&[endpoint("a", ready, Some("b"))]).endpoints };
    let mut packed =
        Packed { drafts: vec![Draft { endpoints: stale(false), ..Draft::default() }], ..Packed::default() };
    hints::prefer(&mut packed, Near::Zone);
    assert_eq!(packed.drafts[0].endpoints[0].hints, None);
}
