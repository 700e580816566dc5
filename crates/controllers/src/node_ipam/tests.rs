//! Tables: sets of ranges (the rows of upstream's tests), options, and which node has which range.

use std::collections::BTreeSet;

use ipnet::IpNet;
use serde_json::json;
use steersman_base::Meta;

use super::Options;
use super::allocator::{Allocator, AllocatorError, Effect};
use super::cidr_set::{CidrError, CidrSet};
use super::plan::{self, OptionsError, Ranges};
use crate::test_objects::decode;

fn net(text: &str) -> IpNet {
    text.parse::<IpNet>().unwrap().trunc()
}

fn set(cluster: &str, mask: i64) -> CidrSet {
    CidrSet::new(cluster.parse().unwrap(), mask).unwrap()
}

fn node(name: &str, uid: &str) -> Meta {
    decode(json!({ "metadata": { "name": name, "uid": uid } }))
}

#[test]
fn a_full_set_has_nothing_left_until_something_is_released() {
    for cluster in ["127.123.234.0/30", "beef:1234::/30"] {
        let mut set = set(cluster, 30);
        for _ in 0..2 {
            let range = set.allocate().unwrap().range;
            assert_eq!(range.to_string(), cluster);
            assert_eq!(set.allocate(), Err(CidrError::NoneLeft));
            assert_eq!(set.release(range), Ok(1));
        }
    }
}

/// `TestIndexToCIDRBlock` of `cidr_set_test.go`.
#[test]
fn ranges_are_numbered_as_upstream() {
    for (cluster, mask, index, want) in [
        ("127.123.3.0/16", 24, 0, "127.123.0.0/24"),
        ("127.123.0.0/16", 24, 15, "127.123.15.0/24"),
        ("192.168.5.219/28", 32, 5, "192.168.5.213/32"),
        ("2001:0db8:1234:3::/48", 64, 0, "2001:db8:1234::/64"),
        ("2001:0db8:1234::/48", 64, 15, "2001:db8:1234:f::/64"),
        ("2001:0db8:85a3::8a2e:0370:7334/50", 63, 6425, "2001:db8:85a3:3232::/63"),
        ("2001:0db8::/32", 48, 0, "2001:db8::/48"),
        ("2001:0db8::/32", 48, 15, "2001:db8:f::/48"),
        ("2001:0db8:85a3::8a2e:0370:7334/32", 48, 6425, "2001:db8:1919::/48"),
        ("2001:0db8:1234:ff00::/56", 72, 0, "2001:db8:1234:ff00::/72"),
        ("2001:0db8:1234:ff00::/56", 72, 15, "2001:db8:1234:ff00:f00::/72"),
        ("2001:0db8:1234:ff00::0370:7334/56", 72, 6425, "2001:db8:1234:ff19:1900::/72"),
        ("2001:0db8:1234:0:1234::/80", 96, 0, "2001:db8:1234:0:1234::/96"),
        ("2001:0db8:1234:0:1234::/80", 96, 15, "2001:db8:1234:0:1234:f::/96"),
        ("2001:0db8:1234:ff00::0370:7334/80", 96, 6425, "2001:db8:1234:ff00:0:1919::/96"),
    ] {
        assert_eq!(set(cluster, mask).range(index).to_string(), want, "{cluster} {index}");
    }
}

/// `TestGetBitforCIDR` and `TestOccupy` of `cidr_set_test.go`.
#[test]
fn a_range_covers_the_numbers_that_it_covers_upstream() {
    for (cluster, mask, range, want) in [
        ("127.0.0.0/8", 16, "127.0.0.0/16", Some((0, 0))),
        ("be00::/8", 16, "be00::/16", Some((0, 0))),
        ("127.0.0.0/8", 16, "127.123.0.0/16", Some((123, 123))),
        ("be00::/8", 16, "beef::/16", Some((0xef, 0xef))),
        ("127.0.0.0/8", 16, "127.168.0.0/16", Some((168, 168))),
        ("be00::/8", 16, "be68::/16", Some((0x68, 0x68))),
        ("127.0.0.0/8", 16, "127.224.0.0/16", Some((224, 224))),
        ("be00::/8", 16, "be24::/16", Some((0x24, 0x24))),
        ("192.168.0.0/16", 24, "192.168.12.0/24", Some((12, 12))),
        ("beef::/16", 24, "beef:1200::/24", Some((0x12, 0x12))),
        ("192.168.0.0/16", 24, "192.168.151.0/24", Some((151, 151))),
        ("beef::/16", 24, "beef:9700::/24", Some((0x97, 0x97))),
        ("192.168.0.0/16", 24, "127.168.224.0/24", None),
        ("beef::/16", 24, "2001:db00::/24", None),
        ("192.168.0.0/16", 24, "beef::/24", None),
        ("127.0.0.0/8", 16, "127.0.0.0/8", Some((0, 255))),
        ("2001:beef:1200::/40", 48, "2001:beef:1200::/40", Some((0, 255))),
        ("127.0.0.0/8", 16, "127.0.0.0/2", Some((0, 255))),
        ("2001:beef:1200::/40", 48, "2001:beef:1234::/34", Some((0, 255))),
        ("2001:beef:1200::/40", 48, "2001:beef:1200::/48", Some((0, 0))),
        ("127.0.0.0/8", 32, "127.0.0.0/16", Some((0, 65535))),
        ("2001:beef:1200::/48", 64, "2001:beef:1200::/48", Some((0, 65535))),
        ("127.0.0.0/7", 16, "127.0.0.0/15", Some((256, 257))),
        ("2001:beef:7f00::/39", 48, "2001:beef:7f00::/47", Some((256, 257))),
        ("127.0.0.0/7", 15, "127.0.0.0/15", Some((128, 128))),
        ("2001:beef:7f00::/39", 47, "2001:beef:7f00::/47", Some((128, 128))),
        ("127.0.0.0/7", 18, "127.0.0.0/15", Some((1024, 1031))),
        ("2001:beef:7f00::/39", 50, "2001:beef:7f00::/47", Some((1024, 1031))),
    ] {
        let mut set = set(cluster, mask);
        assert_eq!(set.indices(net(range)).ok(), want, "{cluster} {range}");
        let occupied = set.occupy(net(range));
        assert_eq!(occupied.ok(), want.map(|(first, last)| last - first + 1), "{cluster} {range}");
        assert_eq!(set.allocated(), want.map_or(0, |(first, last)| last - first + 1));
    }
}

/// `TestCIDRSet_RandomishAllocation` and `TestCIDRSet_AllocationOccupied` of `cidr_set_test.go`.
#[test]
fn what_is_released_is_used_again_and_what_is_occupied_is_not() {
    for cluster in ["127.123.234.0/16", "beef:1234::/16"] {
        let mut set = set(cluster, 24);
        let all = |set: &mut CidrSet| -> Vec<IpNet> {
            std::iter::from_fn(|| set.allocate().ok().map(|allocated| allocated.range)).collect()
        };
        let first = all(&mut set);
        assert_eq!(first.len(), 256);
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 256, "no two are the same");
        first.iter().for_each(|range| assert_eq!(set.release(*range), Ok(1)));
        assert_eq!(all(&mut set), first);
        first.iter().for_each(|range| assert_eq!(set.release(*range), Ok(1)));
        first[128..].iter().for_each(|range| assert_eq!(set.occupy(*range), Ok(1)));
        assert_eq!(set.occupy(first[128]), Ok(0), "it was occupied already");
        assert_eq!(all(&mut set), first[..128]);
    }
}

/// `TestDoubleOccupyRelease` of `cidr_set_test.go`.
#[test]
fn what_is_occupied_or_released_twice_counts_once() {
    let mut set = set("10.42.0.0/16", 24);
    for (range, occupy, want) in [
        ("10.42.5.0/24", true, 1),
        ("10.42.9.0/24", true, 2),
        ("10.42.8.0/22", true, 5),
        ("10.42.9.0/24", true, 5),
        ("10.42.9.0/24", false, 4),
        ("10.42.9.0/24", false, 4),
        ("10.42.4.0/22", false, 3),
    ] {
        let done = if occupy { set.occupy(net(range)) } else { set.release(net(range)) };
        assert!(done.is_ok());
        assert_eq!(set.allocated(), want, "{range}");
    }
    assert_eq!(std::iter::from_fn(|| set.allocate().ok()).count(), 256 - 3);
}

/// `TestCIDRSetv6` of `cidr_set_test.go`, and masks that make no sense.
#[test]
fn a_set_that_would_be_too_large_or_has_no_ranges_is_refused() {
    let first = |cluster: &str, mask: i64| {
        let mut set = CidrSet::new(cluster.parse().unwrap(), mask)?;
        Ok::<_, CidrError>([set.allocate()?.range.to_string(), set.allocate()?.range.to_string()])
    };
    assert_eq!(first("127.0.0.0/8", 32), Ok(["127.0.0.0/32".into(), "127.0.0.1/32".into()]));
    assert_eq!(first("beef:1234::/32", 49), Err(CidrError::TooBig));
    let want = ["2001:beef:1234:3690::/64".into(), "2001:beef:1234:3691::/64".into()];
    assert_eq!(first("2001:beef:1234:369b::/60", 64), Ok(want));
    for mask in [-1, 0, 15, 33, 1000] {
        assert!(matches!(first("10.0.0.0/16", mask), Err(CidrError::TooSmall { .. })), "{mask}");
    }
}

#[test]
fn options_describe_ranges_or_are_refused_with_the_reason() {
    let options = |cluster: &str, masks: [i64; 3]| Options {
        allocate: true,
        cluster: cluster.into(),
        mask: masks[0],
        mask_ipv4: masks[1],
        mask_ipv6: masks[2],
        ..Options::default()
    };
    let check = |cluster: &str, masks: [i64; 3], want: &[(&str, i64)]| {
        let want: Vec<_> = want.iter().map(|(range, mask)| (net(range), *mask)).collect();
        assert_eq!(plan::ranges(&options(cluster, masks)).unwrap().cluster, want, "{cluster} {masks:?}");
    };
    check("10.0.0.0/16", [0, 0, 0], &[("10.0.0.0/16", 24)]);
    check("fd00::/48", [0, 0, 0], &[("fd00::/48", 64)]);
    check("10.0.0.0/16", [20, 0, 0], &[("10.0.0.0/16", 20)]);
    check("10.0.0.0/16", [0, 20, 0], &[("10.0.0.0/16", 20)]);
    check("fd00::/48", [0, 0, 60], &[("fd00::/48", 60)]);
    check("10.0.0.0/16, fd00::/48", [0, 0, 0], &[("10.0.0.0/16", 24), ("fd00::/48", 64)]);
    check("fd00::/48,10.0.0.0/16", [0, 25, 60], &[("fd00::/48", 60), ("10.0.0.0/16", 25)]);
    let refuse = |cluster: &str, masks: [i64; 3], want: OptionsError| {
        assert_eq!(plan::ranges(&options(cluster, masks)), Err(want), "{cluster} {masks:?}");
    };
    let flag = "cluster-cidr";
    refuse("", [0, 0, 0], OptionsError::NoRange { flag, text: String::new() });
    refuse("10.0.0.0", [0, 0, 0], OptionsError::NoRange { flag, text: "10.0.0.0".into() });
    refuse("10.0.0.0/16,10.1.0.0/16", [0, 0, 0], OptionsError::NotDualStack { flag, count: 2 });
    refuse("10.0.0.0/16,fd00::/48,fd01::/48", [0, 0, 0], OptionsError::NotDualStack { flag, count: 3 });
    refuse("10.0.0.0/16,fd00::/48", [24, 0, 0], OptionsError::MaskWithDualStack);
    refuse("10.0.0.0/16", [24, 24, 0], OptionsError::TwoMasks);
    refuse("fd00::/48", [0, 24, 0], OptionsError::OtherFamily("ipv4"));
    refuse("10.0.0.0/16", [0, 0, 64], OptionsError::OtherFamily("ipv6"));
    let cloud = Options { allocator: "CloudAllocator".into(), ..options("10.0.0.0/16", [0, 0, 0]) };
    assert_eq!(plan::ranges(&cloud), Err(OptionsError::Allocator("CloudAllocator".into())));
}

fn allocator(cluster: &[(&str, i64)], services: &[&str]) -> Allocator {
    let cluster = cluster.iter().map(|(range, mask)| (net(range), *mask)).collect();
    Allocator::new(&Ranges { cluster, services: services.iter().map(|range| net(range)).collect() }).unwrap()
}

fn reserved(allocator: &mut Allocator, node: &Meta) -> Vec<String> {
    allocator.reserve(node).unwrap().0.iter().map(ToString::to_string).collect()
}

#[test]
fn a_node_keeps_what_is_reserved_for_it_until_it_is_gone() {
    let mut ranges = allocator(&[("10.0.0.0/22", 24), ("fd00::/62", 64)], &[]);
    let a = node("a", "1");
    assert_eq!(reserved(&mut ranges, &a), ["10.0.0.0/24", "fd00::/64"]);
    assert_eq!(reserved(&mut ranges, &a), ["10.0.0.0/24", "fd00::/64"], "a failed write is tried again with the same");
    assert!(ranges.occupy(&a, &[net("10.0.0.0/24"), net("fd00::/64")]).unwrap().is_empty(), "that is what it has");
    assert_eq!(reserved(&mut ranges, &node("b", "2")), ["10.0.1.0/24", "fd00:0:0:1::/64"]);
    // Another node of the same name is another node.
    assert!(ranges.release(&node("a", "9")).is_empty());
    ranges.release(&a);
    assert_eq!(ranges.sets()[0].allocated(), 1);
    assert_eq!(reserved(&mut ranges, &node("c", "3"))[0], "10.0.2.0/24");
    assert_eq!(reserved(&mut ranges, &node("d", "4"))[0], "10.0.3.0/24");
    assert_eq!(reserved(&mut ranges, &node("e", "5"))[0], "10.0.0.0/24", "used again, after all others");
}

#[test]
fn nothing_is_lost_when_one_family_is_exhausted() {
    let mut ranges = allocator(&[("10.0.0.0/16", 24), ("fd00::/64", 64)], &[]);
    reserved(&mut ranges, &node("a", "1"));
    for _ in 0..300 {
        let error = ranges.reserve(&node("b", "2")).unwrap_err();
        assert_eq!(error, AllocatorError::NoneLeft { index: 1, error: CidrError::NoneLeft });
    }
    assert_eq!(ranges.sets()[0].allocated(), 1);
}

#[test]
fn no_node_gets_the_addresses_of_services_even_after_one_had_them() {
    let mut ranges = allocator(&[("10.0.0.0/22", 24)], &["10.0.0.0/23", "172.16.0.0/12"]);
    let odd = node("odd", "1");
    ranges.occupy(&odd, &[net("10.0.1.0/24")]).unwrap();
    ranges.release(&odd);
    assert_eq!(reserved(&mut ranges, &node("a", "2")), ["10.0.2.0/24"]);
    assert_eq!(reserved(&mut ranges, &node("b", "3")), ["10.0.3.0/24"]);
    assert!(ranges.reserve(&node("c", "4")).is_err());
}

#[test]
fn a_range_that_two_nodes_have_is_free_when_both_are_gone() {
    let mut ranges = allocator(&[("10.0.0.0/23", 24)], &[]);
    let both = [node("a", "1"), node("b", "2")];
    both.iter().for_each(|node| drop(ranges.occupy(node, &[net("10.0.0.0/24")]).unwrap()));
    ranges.release(&both[0]);
    assert_eq!(reserved(&mut ranges, &node("c", "3")), ["10.0.1.0/24"]);
    assert!(ranges.reserve(&node("d", "4")).is_err());
    ranges.release(&both[1]);
    assert_eq!(reserved(&mut ranges, &node("d", "4")), ["10.0.0.0/24"]);
}

/// Ranges of other sizes, from when the flags were others: upstream 70957, 90922.
#[test]
fn of_ranges_that_overlap_only_what_nobody_else_has_becomes_free() {
    let mut ranges = allocator(&[("10.0.0.0/22", 24)], &[]);
    let [small, other, large, within] = ["small", "other", "large", "within"].map(|name| node(name, name));
    let held = [(&small, "10.0.0.0/27"), (&other, "10.0.0.32/27"), (&large, "10.0.2.0/23"), (&within, "10.0.3.0/24")];
    held.iter().for_each(|(node, range)| drop(ranges.occupy(node, &[net(range)]).unwrap()));
    assert_eq!(ranges.sets()[0].allocated(), 3);
    assert_eq!(ranges.release(&small), [], "the other one has addresses of it");
    assert_eq!(ranges.release(&large), [Effect::Released { set: 0, count: 1 }]);
    let next: Vec<_> = ["a", "b"].iter().flat_map(|name| reserved(&mut ranges, &node(name, name))).collect();
    assert_eq!(next, ["10.0.1.0/24", "10.0.2.0/24"]);
    assert!(ranges.reserve(&node("c", "c")).is_err(), "the rest is in use");
    ranges.release(&other);
    assert_eq!(reserved(&mut ranges, &node("c", "c")), ["10.0.0.0/24"]);
}

#[test]
fn a_range_that_is_not_the_clusters_is_an_error_and_takes_nothing() {
    let mut ranges = allocator(&[("10.0.0.0/22", 24)], &[]);
    let odd = node("odd", "1");
    assert!(matches!(ranges.occupy(&odd, &[net("10.9.0.0/24")]), Err(AllocatorError::NotOurs { .. })));
    let two = [net("10.0.0.0/24"), net("fd00::/64")];
    assert!(matches!(ranges.occupy(&node("two", "2"), &two), Err(AllocatorError::TooMany { .. })));
    assert_eq!(ranges.sets()[0].allocated(), 1);
    ranges.release(&odd);
    assert_eq!(ranges.sets()[0].allocated(), 1);
}
