//! Ranges of pod addresses of nodes.

use std::collections::BTreeSet;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
use steersman_controllers::node_ipam::Options;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    nodes_get_ranges_of_both_families_that_nobody_else_has on both_families alone,
    a_range_is_free_when_its_node_is_gone_and_an_event_says_that_none_is_left on three_ranges alone,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::NODE_IPAM];

fn cluster(cluster: &str, services: &str, mask_ipv4: i64) -> Builder {
    TestCluster::builder().controllers(CONTROLLERS).options(options(cluster, services, mask_ipv4))
}

/// Options for these ranges.
pub(crate) fn options(cluster: &str, services: &str, mask_ipv4: i64) -> Options {
    Options::default().allocate(true).cluster(cluster).services(services).mask_ipv4(mask_ipv4)
}

pub(crate) fn both_families() -> Builder {
    cluster("10.60.0.0/16,fd00:60::/48", "10.60.1.0/24,fd00:60::/112", 0)
}

/// Four ranges, one of which is the services'.
pub(crate) fn three_ranges() -> Builder {
    cluster("10.60.0.0/22", "10.60.3.0/24", 24)
}

/// New nodes get ranges; what other nodes and services have is spared; nobody's range is changed.
pub(crate) async fn nodes_get_ranges_of_both_families_that_nobody_else_has(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let taken = ["10.60.2.0/24", "fd00:60:0:3::/64"];
    create(cluster, "taken", Some(&taken)).await?;
    until_ranges(cluster, "taken", &taken).await?;
    create_with_ranges(cluster, &["a", "b", "c"], 2).await?;
    let mut all = Vec::new();
    for name in ["taken", "a", "b", "c"] {
        all.extend(ranges(cluster, name).await?);
    }
    all.extend(["10.60.1.0/24", "fd00:60::/112"].map(str::to_owned));
    expect_apart(&all)?;
    expect_eq("what was there stays", &ranges(cluster, "taken").await?, &taken.map(str::to_owned).to_vec())?;
    delete(cluster, &["taken", "a", "b", "c"]).await
}

/// When none is left, an event says so; the range of a node that is deleted is given to the one that waits.
pub(crate) async fn a_range_is_free_when_its_node_is_gone_and_an_event_says_that_none_is_left(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    create_with_ranges(cluster, &["a", "b", "c"], 1).await?;
    create(cluster, "late", None).await?;
    until_none_is_left(cluster, "late").await?;
    let freed = ranges(cluster, "b").await?;
    delete(cluster, &["b"]).await?;
    let freed: Vec<&str> = freed.iter().map(String::as_str).collect();
    until_ranges(cluster, "late", &freed).await?;
    delete(cluster, &["a", "c", "late"]).await
}

/// Waits until an event says that there is no range for a node.
pub(crate) async fn until_none_is_left(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let about = format!("involvedObject.name={},reason=CIDRNotAvailable", own(cluster, name));
    let about = ListParams::default().fields(&about);
    let reported = async || Ok(events.list(&about).await?.items.is_empty());
    cluster.until_eq("an event says that none is left", reported, false).await?;
    expect_eq("it has none", &ranges(cluster, name).await?, &Vec::<String>::new())
}

/// No two ranges have addresses in common.
pub(crate) fn expect_apart(ranges: &[String]) -> Result<(), Failure> {
    let nets: BTreeSet<IpNet> = ranges.iter().filter_map(|range| range.parse().ok()).collect();
    expect_eq("ranges that differ", &nets.len(), &ranges.len())?;
    for left in &nets {
        let overlapping = nets.iter().filter(|right| left.contains(*right)).count();
        expect(overlapping == 1, "ranges do not overlap", &(left, ranges))?;
    }
    Ok(())
}

/// The name of a node of this test.
pub(crate) fn own(cluster: &TestCluster, name: &str) -> String {
    format!("{}-{name}", cluster.namespace())
}

pub(crate) async fn create(cluster: &TestCluster, name: &str, ranges: Option<&[&str]>) -> Result<(), Failure> {
    let node = objects::node(&own(cluster, name));
    let node = match ranges {
        Some(ranges) => node.with(json!({ "spec": { "podCIDR": ranges[0], "podCIDRs": ranges } })),
        None => node,
    };
    Api::<Node>::all(cluster.client()).create(&PostParams::default(), &node).await?;
    Ok(())
}

/// Creates nodes one after the other, and waits until each has this number of ranges.
pub(crate) async fn create_with_ranges(cluster: &TestCluster, names: &[&str], count: usize) -> Result<(), Failure> {
    for name in names {
        create(cluster, name, None).await?;
        let look = async || ranges(cluster, name).await;
        let want = |ranges: &Vec<_>| ranges.len() == count;
        cluster.until_right(&format!("the number of ranges of {name} is {count}"), look, want).await?;
    }
    Ok(())
}

pub(crate) async fn ranges(cluster: &TestCluster, name: &str) -> Result<Vec<String>, Failure> {
    let node = Api::<Node>::all(cluster.client()).get(&own(cluster, name)).await?;
    Ok(node.spec.and_then(|spec| spec.pod_cidrs).unwrap_or_default())
}

pub(crate) async fn until_ranges(cluster: &TestCluster, name: &str, want: &[&str]) -> Result<(), Failure> {
    let want: Vec<String> = want.iter().map(ToString::to_string).collect();
    cluster.until_eq(&format!("the ranges of {name}"), async || ranges(cluster, name).await, want).await
}

pub(crate) async fn delete(cluster: &TestCluster, names: &[&str]) -> Result<(), Failure> {
    for name in names {
        Api::<Node>::all(cluster.client()).delete(&own(cluster, name), &DeleteParams::default()).await?;
    }
    Ok(())
}
